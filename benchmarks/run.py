"""Run the benchmarks and print one table.

`--quick` is a smaller run, names choose some benchmarks, `--keep` writes what is measured into
results.json, from which `make docs` makes docs/benchmarks.md.
"""

from __future__ import annotations

import datetime
import importlib
import json
import os
import platform
import sys
from pathlib import Path

from measure import PRODUCTION, Row, calibration

RESULTS = Path(__file__).with_name("results.json")
BENCHMARKS = (
    "ground",
    "starting",
    "placing",
    "both_models",
    "bounding",
    "production_like",
    "never_beaten",
    "against_metis",
    "sizing",
    "sizers",
    "few_tasks",
    "moving",
    "simulating",
    "simulated_batches",
    "observing",
    "running",
    "keeping",
    "deciding",
    "limited",
    "on_storm",
    "applications",
    "adapting",
    "driving",
    "workers",
    "looping",
    "laboratory",
    "advising",
    "fuzzing",
)


def main() -> int:
    """Print the table; the exit status says whether every target holds."""
    arguments = sys.argv[1:]
    quick, keeping = "--quick" in arguments, "--keep" in arguments
    if quick and keeping:
        print("--keep is for whole runs: leave --quick out", file=sys.stderr)
        return 2
    chosen = [a for a in arguments if not a.startswith("-")] or BENCHMARKS
    date = datetime.datetime.now(datetime.UTC).date()
    print(
        f"{date}, {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}; calibration loop {calibration():.3f} s\n"
    )
    if PRODUCTION.name.startswith("generated"):
        print("The production clusters are generated ones; targets are for the real ones.\n")
    missed = 0
    for name in chosen:
        found: list[Row] = []
        for row in importlib.import_module(name).rows(quick):
            print(row, flush=True)
            found.append(row)
            missed += row.holds is False
        if keeping:
            keep(name, found, date)
    return 1 if missed else 0


def keep(name: str, found: list[Row], date: datetime.date) -> None:
    """Put the rows of a benchmark in the place of those it had."""
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = [
        {"what": row.what, "value": row.value, "target": row.target, "verdict": row.verdict.lower()}
        for row in found
    ]
    kept[name] = {"measured": str(date), "rows": rows}
    order = sorted(kept, key=lambda one: BENCHMARKS.index(one))
    text = json.dumps({one: kept[one] for one in order}, indent=1, ensure_ascii=False)
    RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

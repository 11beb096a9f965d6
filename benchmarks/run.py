"""Run the benchmarks and print one table.

`--quick` is a smaller run, names choose some benchmarks, `--markdown` prints a table for documents.
"""

from __future__ import annotations

import datetime
import importlib
import os
import platform
import sys

from measure import PRODUCTION, Row, calibration

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
    "applications",
    "adapting",
    "driving",
    "looping",
    "laboratory",
    "advising",
    "fuzzing",
    "serving",
)


def main() -> int:
    """Print the table; the exit status says whether every target holds."""
    arguments = sys.argv[1:]
    quick, markdown = "--quick" in arguments, "--markdown" in arguments
    chosen = [a for a in arguments if not a.startswith("-")] or BENCHMARKS
    date = datetime.datetime.now(datetime.UTC).date()
    print(
        f"{date}, {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}; calibration loop {calibration():.3f} s\n"
    )
    if PRODUCTION.name.startswith("generated"):
        print("The production clusters are generated ones; targets are for the real ones.\n")
    if markdown:
        print("| what | measured | target | |\n|---|---:|---:|---|")
    missed = 0
    for name in chosen:
        for row in importlib.import_module(name).rows(quick):
            print(line(row, markdown), flush=True)
            missed += row.holds is False
    return 1 if missed else 0


def line(row: Row, markdown: bool) -> str:
    """One row as text."""
    verdict = {True: "holds", False: "MISSED", None: ""}[row.holds]
    if markdown:
        return f"| {row.what} | {row.value} | {row.target} | {verdict} |"
    return f"{row.what:<90} {row.value:>16}  {row.target:>12}  {verdict}"


if __name__ == "__main__":
    sys.exit(main())

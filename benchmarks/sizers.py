"""A search for workloads on which another sizer beats headrace: there must be none.

    python benchmarks/sizers.py --seed 7 --workloads 200    # other workloads than those of run.py

Workloads come from `model/generate_workload.py`: cycles, streams to every task, ticks, fixed costs,
nodes of several cores, limits. Every sizer that takes a workload gets it with its defaults,
Nasiri's with both ways to choose a machine; the exhaustive optimum where it finishes. Headrace is
asked for the very best rate (`within=0`): by default it gives up to 1 % of it for fewer tasks.
Sizers that only count are placed by our own scheduler. Rates are the judge's; plans that break a
rule do not count.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from typing import Any

from measure import Row

from headrace.errors import HeadraceError
from headrace.model.generate_workload import random_workload
from headrace.model.read import validated
from headrace.model.workload import Workload
from headrace.planner import size

NEAR = 0.001  # as a share: a rate so near is as good
WORKLOADS = 1000
QUICK_WORKLOADS = 40
LISTED = 5  # workloads without a gain that are listed by seed
# What it is called here -> sizer, options.
RIVALS: dict[str, tuple[str, dict[str, Any]]] = {
    "nasiri, least TCU": ("nasiri", {"to": "least-tcu"}),
    "nasiri, least utilised": ("nasiri", {"to": "least-utilised"}),
    "nasiri-optimal": ("nasiri-optimal", {}),
    "ds2": ("ds2", {}),
    "lsa": ("lsa", {}),
    "mba": ("mba", {}),
}


def rows(quick: bool) -> Iterator[Row]:
    """Measure."""
    yield from search(0, QUICK_WORKLOADS if quick else WORKLOADS)


def search(seed: int, workloads: int) -> Iterator[Row]:
    """Compare on so many workloads, the seed of the first of which is given."""
    ratios: dict[str, list[float]] = {name: [] for name in RIVALS}
    equal: dict[str, list[int]] = {name: [] for name in RIVALS}
    lost: list[str] = []
    for number in range(seed, seed + workloads):
        work = Workload(validated(random_workload(number), {}))
        ours = sustained(work, "headrace", {"within": 0.0})
        for name, (by, options) in RIVALS.items():
            theirs = sustained(work, by, options)
            if theirs is None:
                continue
            if ours is None or theirs > ours * (1 + NEAR):
                lost.append(f"seed {number}: {name} {theirs:.6g}, headrace {ours or 0:.6g}")
            if ours is None:
                continue
            ratios[name].append(ours / theirs)
            if ours <= theirs * (1 + NEAR):
                equal[name].append(number)
    for name, values in ratios.items():
        if not values:
            yield Row(f"headrace over {name}: it answers none of {workloads} workloads", "-")
            continue
        seeds = ", ".join(map(str, equal[name][:LISTED]))
        listed = f" (nothing gained on {len(equal[name])}: seeds {seeds}, ..)" if seeds else ""
        yield Row(
            f"headrace over {name}, {len(values)} of {workloads} workloads{listed}: "
            "least, median, most",
            f"{min(values):.4f}, {statistics.median(values):.3f}, {max(values):.3g}",
            f">= {1 - NEAR:g}",
            min(values) >= 1 - NEAR,
        )
    for line in lost:
        yield Row(f"  beaten: {line}", "", "none", False)


def sustained(work: Workload, by: str, options: dict[str, Any]) -> float | None:
    """The judge's rate of a sizer's plan; None where it refuses, or breaks a rule."""
    try:
        report = size(work, by, options=options).report
    except HeadraceError:
        return None
    return report.max_rate if report.feasible and report.max_rate else None


def main() -> int:
    """Search from a seed; the exit status says whether headrace was ever beaten."""
    parser = argparse.ArgumentParser(description="Search for workloads where headrace is beaten.")
    parser.add_argument("--seed", type=int, default=0, help="of the first workload")
    parser.add_argument("--workloads", type=int, default=WORKLOADS)
    chosen = parser.parse_args()
    missed = 0
    for row in search(chosen.seed, chosen.workloads):
        print(row, flush=True)
        missed += row.holds is False
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())

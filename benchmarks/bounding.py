"""How near the bounds come: production clusters, and unequal tasks on unequal nodes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from instances import unsymmetric
from measure import LARGE_PRODUCTION, PRODUCTION, Row
from problems import production_problem

from headrace.planner import place
from headrace.solve.least_traffic.search import least_crossing_search
from headrace.solve.proof.by_topology import crossing_bound_by_topology

SECONDS = 60.0
TASKS, NODES = 100, 16
SEEDS = 10  # of each of two shapes


def rows(quick: bool) -> Iterator[Row]:
    """Measure."""
    for name, path, seconds, most in (
        ("small", PRODUCTION, 30.0, 0.12),
        ("large", LARGE_PRODUCTION, 60.0, 0.40),
    ):
        problem = production_problem(path)
        report = place(problem, "headrace").report
        yield Row(f"{name} production cluster, gap of headrace's plan", _gap(report.gap))
        proof = place(problem, "optimal", seconds=seconds, clock=time.process_time).report
        yield Row(
            f"  of optimal in {seconds:g} s of processor ({proof.bound.kind})",
            _gap(proof.gap),
            f"<= {most:.0%}",
            proof.gap is not None and proof.gap <= most,
        )
        ras = place(problem, "storm-ras", bounded=False).report.inter_node_traffic
        least = (proof.bound.value or 0.0) / ras
        yield Row("    so no plan's traffic / storm-ras's is below", f"{least:.3f}")
    gaps = sorted(
        _unequal(shape, seed) for shape in SHAPES for seed in range(1 if quick else SEEDS)
    )
    median = statistics.median(gaps)
    yield Row(
        f"{TASKS} unequal tasks on {NODES} unequal nodes, gap in {SECONDS:g} s of processor, "
        f"of {len(gaps)}: "
        "least, median, most",
        f"{gaps[0]:.1%}, {median:.1%}, {gaps[-1]:.1%}",
        "<= 10 %",
        median <= 0.10,
    )


SHAPES = ("sparse", "operators")


def _unequal(shape: str, seed: int) -> float:
    """The gap between the search's plan and the bound, both in so many seconds of processor."""
    instance = unsymmetric(seed, shape, tasks=TASKS, nodes=NODES)
    end = time.process_time() + SECONDS
    found = least_crossing_search(instance)
    if found is None:
        return 1.0
    value, _ = crossing_bound_by_topology(
        instance, work=float("inf"), deadline=lambda: time.process_time() >= end
    )
    return 1.0 - value / found.crossing


def _gap(gap: float | None) -> str:
    return "none" if gap is None else f"{gap:.1%}"

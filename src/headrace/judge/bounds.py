"""How good could any plan be? The only part of the judge that may ask the solvers.

A bound's `kind` says where it comes from; `proven` is true when the value is known to be the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.problem import CPU, Problem


@dataclass(frozen=True, slots=True)
class Bound:
    """The best any feasible plan could reach."""

    of: str
    value: float | None
    proven: bool
    kind: str


def bound(problem: Problem, figure: str) -> Bound:
    """A bound on a figure of the report."""
    if figure == "max_rate":
        return Bound(figure, _rate(problem), False, "trivial")
    if figure == "nodes_used":
        return Bound(figure, float(_nodes(problem)), False, "trivial")
    return Bound(figure, 0.0, False, "trivial")


def _rate(problem: Problem) -> float | None:
    """Every task on the machine type that suits it best, all free CPU pooled."""
    by_rate = problem.demand[:, CPU] * problem.tasks + problem.cpu_rate.min(axis=1)
    fixed = (problem.cpu_fixed.min(axis=1) * problem.tasks).sum()
    room = problem.free[:, CPU].sum() - fixed
    return float(max(0.0, room) / by_rate.sum()) if by_rate.sum() > 0 and np.isfinite(room) else None


def _nodes(problem: Problem) -> int:
    """The fewest nodes, largest first, whose room adds up to the need, resource by resource."""
    demand = (problem.demand * problem.tasks[:, None]).sum(axis=0)
    demand[CPU] += problem.cpu_rate.min(axis=1).sum() + (problem.cpu_fixed.min(axis=1) * problem.tasks).sum()
    need = 1
    for k in range(len(problem.resources)):
        room = np.cumsum(np.sort(problem.free[:, k])[::-1])
        need = max(need, int(np.searchsorted(room, demand[k] * (1 - 1e-9))) + 1)
    return min(need, len(problem.nodes))

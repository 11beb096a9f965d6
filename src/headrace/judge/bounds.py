"""How good could any plan be? The only part of the judge that asks the solvers.

A bound's `kind` says where it comes from; `proven` is true when the value is known to be the
optimum, not only a limit to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from headrace.model.problem import CPU, Problem

EXACT_TASKS, EXACT_NODES = 60, 16  # up to here the optimum itself is tried for
EXACT_STEPS = 20
SEARCH_STEPS = 20_000  # for a first plan that lets the proof cut


@dataclass(frozen=True, slots=True)
class Bound:
    """The best any feasible plan could reach."""

    of: str
    value: float | None
    proven: bool
    kind: str


@lru_cache(maxsize=16)
def bound(problem: Problem, figure: str) -> Bound:
    """A bound on a figure of the report; remembered, since many plans of one problem are judged."""
    if figure == "inter_node_traffic":
        return _crossing(problem)
    if figure == "max_rate":
        return _rate(problem)
    if figure == "nodes_used":
        return Bound(figure, float(_nodes(problem)), False, "sums")
    if figure == "batch_seconds":
        return Bound(figure, _batch(problem), False, "critical-task")
    return Bound(figure, 0.0, False, "trivial")


def _crossing(problem: Problem) -> Bound:
    """Least inter-node traffic: the optimum where the problem is small, else a Lagrangian relaxation."""
    from headrace.solve.classes import classes_of
    from headrace.solve.least_traffic.search import least_crossing_search
    from headrace.solve.proof.bound import crossing_bound
    from headrace.solve.proof.exact import least_crossing

    figure = "inter_node_traffic"
    if problem.pair_count > 50_000_000 and problem.task_share is not None:
        return Bound(figure, 0.0, False, "trivial")
    instance = classes_of(problem, at_least=True).instance
    local = any(s.grouping == "local-or-shuffle" for s in problem.streams)
    if not len(instance.edge_a):
        return Bound(figure, 0.0, not local, "exact" if not local else "trivial")
    value, kind = crossing_bound(instance)
    if problem.task_count > EXACT_TASKS or len(problem.nodes) > EXACT_NODES:
        return Bound(figure, value, False, kind)
    start = least_crossing_search(instance, steps=SEARCH_STEPS)
    proof = least_crossing(instance, start=None if start is None else start.x, steps=EXACT_STEPS)
    if proof.infeasible:
        return Bound(figure, None, False, "infeasible")
    if proof.proven:
        return Bound(figure, proof.bound, not local, "exact")
    return Bound(figure, *max((value, False, kind), (proof.bound, False, proof.kind)))


def _rate(problem: Problem) -> Bound:
    """The fluid relaxation: tasks divisible, alike nodes pooled."""
    from headrace.solve.classes import classes_of
    from headrace.solve.rate.fluid import fluid_rate

    classes = classes_of(problem)
    owner, task = classes.component, classes.order[classes.first[:-1]]
    grows = (
        problem.demand[owner, CPU][:, None] + problem.cpu_rate[owner] * problem.share[task][:, None]
    )
    value = fluid_rate(
        classes.instance.count,
        grows,
        problem.cpu_fixed[owner],
        problem.demand[owner][:, 1:],
        problem.free,
        problem.node_type,
        classes.instance.allowed,
    )
    return Bound("max_rate", value, False, "fluid")


def _nodes(problem: Problem) -> int:
    """The fewest nodes, largest first, whose room adds up to the need, resource by resource."""
    demand = (problem.demand * problem.tasks[:, None]).sum(axis=0)
    demand[CPU] += (
        problem.cpu_rate.min(axis=1).sum() + (problem.cpu_fixed.min(axis=1) * problem.tasks).sum()
    )
    need = int(max([1, *problem.tasks[problem.apart].tolist()]))
    for k in range(len(problem.resources)):
        room = np.cumsum(np.sort(problem.free[:, k])[::-1])
        need = max(need, int(np.searchsorted(room, demand[k] * (1 - 1e-9))) + 1)
    return min(need, len(problem.nodes))


def _batch(problem: Problem) -> float:
    """Stage after stage, no stage is shorter than its largest task, nor than its load spread over all cores."""
    options = problem.options.get("judge", {})
    interval, overhead = (
        float(str(options.get("batch_interval_s", 1))),
        float(str(options.get("batch_overhead_s", 0))),
    )
    cores = np.maximum(
        1.0, np.floor((problem.capacity[:, CPU] - problem.taken[:, CPU]) / 100)
    ).sum()
    total = overhead
    types = np.unique(problem.node_type)
    owner = problem.component_of
    least_rate, least_fixed = (
        problem.cpu_rate[:, types].min(axis=1),
        problem.cpu_fixed[:, types].min(axis=1),
    )
    each = problem.demand[owner, CPU] + least_fixed[owner] + least_rate[owner] * problem.share
    for stage in range(int(problem.stage.max(initial=-1)) + 1):
        points = each[problem.stage[owner] == stage]
        total += (
            interval
            * max(float(points.max()), float(points.sum()) / cores if np.isfinite(cores) else 0.0)
            / 100
        )
    return total

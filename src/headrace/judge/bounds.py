"""How good could any plan be? The only part of the judge that asks the solvers.

A bound's `kind` says where it comes from; `proven` is true when the value is known to be the
optimum, not only a limit to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from headrace.judge.thread_rate import thread_factors_by_type
from headrace.model.arrays import TOLERANCE, distinct
from headrace.model.problem import CPU, Assignment, Problem, StatedProof
from headrace.model.progress import stop_wished

EXACT_TASKS, EXACT_NODES = 60, 16  # up to here the optimum itself is tried for
EXACT_STEPS, EXACT_COLUMNS = 20, 1_000  # larger ones stop too late
SEARCH_STEPS = 20_000  # for a first plan that lets the proof cut
MOST_PAIRS = 50_000_000  # of single tasks with measured shares: reading more takes too long
PRICE_WORK = 400_000_000  # visits, about a second

Clock = Callable[[], bool]  # says whether time is up


@dataclass(frozen=True, slots=True)
class Bound:
    """The best any feasible plan could reach."""

    of: str
    value: float | None
    proven: bool
    kind: str


def no_bound(figure: str) -> Bound:
    """What a report has where no bound was asked for."""
    return Bound(figure, None, False, "not asked")


def bound(
    problem: Problem,
    figure: str,
    *,
    cheap: bool = False,
    deadline: Clock | None = None,
    thorough: bool = False,
) -> Bound:
    """A bound on a figure of the report; `cheap` ones need no solver and no compiled code.

    It is remembered, since many plans of one problem are judged, unless a deadline may cut it
    short. A `thorough` one is worked on until the deadline.
    """
    if deadline is None:
        return _remembered(problem, figure, cheap)
    return _bound(problem, figure, cheap, deadline, thorough)


@lru_cache(maxsize=16)
def _remembered(problem: Problem, figure: str, cheap: bool) -> Bound:
    return _bound(problem, figure, cheap, stop_wished)


def _bound(
    problem: Problem, figure: str, cheap: bool, deadline: Clock | None, thorough: bool = False
) -> Bound:
    if figure == "inter_node_traffic":
        return _crossing(problem, cheap, deadline, thorough)
    if figure == "network_cost":
        return _network(problem, cheap, deadline, thorough)
    if figure == "max_rate":
        return _with_threads(problem, _rate_by_sums(problem) if cheap else _rate(problem))
    if figure == "nodes_used":
        return Bound(figure, float(_nodes(problem)), False, "sums")
    if figure == "batch_seconds":
        return Bound(figure, _batch(problem), False, "critical-task")
    return Bound(figure, 0.0, False, "trivial")


def _network(problem: Problem, cheap: bool, deadline: Clock | None, thorough: bool) -> Bound:
    """What crosses between nodes costs at least as much as inside a rack."""
    worker, node, _ = problem.network
    least = _crossing(problem, cheap, deadline, thorough)
    if least.value is None:
        return replace(least, of="network_cost")
    alone = least.proven and len(problem.racks) == 1 and worker == 0
    return Bound("network_cost", node * least.value, alone, least.kind)


def _crossing(problem: Problem, cheap: bool, deadline: Clock | None, thorough: bool) -> Bound:
    """Least inter-node traffic: the optimum where the problem is small, else a relaxation."""
    from headrace.solve.classes import classes_of
    from headrace.solve.proof.by_counts import least_crossing_by_counts

    figure = "inter_node_traffic"
    unknown = Bound(figure, 0.0, False, "trivial")
    if problem.pair_count > MOST_PAIRS and problem.task_share is not None:
        return unknown
    instance = classes_of(problem, at_least=True).instance
    local = any(s.by_place for s in problem.streams)
    if not len(instance.edge_a):
        return Bound(figure, 0.0, not local, "exact" if not local else "trivial")
    small = problem.task_count <= EXACT_TASKS and len(problem.nodes) <= EXACT_NODES
    least = least_crossing_by_counts(instance) if small else None
    if least is not None:
        possible = np.isfinite(least)
        return Bound(figure, least, not local, "exact") if possible else _impossible(figure)
    if cheap or (deadline is not None and deadline()):
        return unknown

    from headrace.solve.least_traffic.search import least_crossing_search
    from headrace.solve.proof.by_topology import WORK, crossing_bound_by_topology
    from headrace.solve.proof.exact import least_crossing

    work = np.inf if thorough else WORK
    value, kind = crossing_bound_by_topology(instance, work=work, deadline=deadline)
    if not small:
        return Bound(figure, value, False, kind)
    start = least_crossing_search(instance, steps=SEARCH_STEPS, deadline=deadline)
    proof = least_crossing(
        instance,
        start=None if start is None else start.x,
        steps=EXACT_STEPS,
        deadline=deadline,
        columns=EXACT_COLUMNS,
    )
    if proof.infeasible:
        return _impossible(figure)
    if proof.proven:
        return Bound(figure, proof.bound, not local, "exact")
    return Bound(figure, *max((value, False, kind), (proof.bound, False, proof.kind)))


def price_of_nodes(problem: Problem, work: float = PRICE_WORK) -> dict[str, float]:
    """By how much one more node of a machine type lowers the bound on traffic, about.

    These are the bound's own prices: those of node classes in its linear program, over patterns
    that greed found. Empty where there are none, as for several topologies, which share the nodes.
    """
    from headrace.solve.classes import classes_of
    from headrace.solve.proof.prices import Work, converge, master_of, without_pause
    from headrace.solve.symmetry import quotient

    if len(problem.topologies) > 1 or problem.pair_count > MOST_PAIRS:
        return {}
    instance = classes_of(problem, at_least=True).instance
    if not len(instance.edge_a):
        return {}
    q = quotient(instance)
    if not q.most.any(axis=0).all():
        return {}
    prices = without_pause(converge(master_of(q), None, Work(work, stop_wished)))
    if prices is None:
        return {}
    found: dict[str, float] = {}
    for members, price in zip(q.node_members, prices.node.tolist(), strict=True):
        kind = problem.types[problem.node_type[members[0]]]
        worth = price if price > TOLERANCE * abs(prices.guess) else 0.0  # else rounding
        found[kind] = max(found.get(kind, 0.0), worth)
    return found


def prove_again(
    problem: Problem, plan: Assignment, stated: StatedProof, deadline: Clock | None = None
) -> Bound | None:
    """A proof that comes with a feasible plan, found again from the problem; None if it is not.

    The plan is only where the solver starts: a better one, wherever it is, ends in None.
    """
    if stated.of != "inter_node_traffic" or any(s.by_place for s in problem.streams):
        return None
    from headrace.solve.classes import classes_of
    from headrace.solve.proof.by_counts import least_crossing_by_counts
    from headrace.solve.proof.exact import least_crossing

    classes = classes_of(problem)
    least = least_crossing_by_counts(classes.instance)
    if least is None:
        start = classes.counts(plan.node)
        proof = least_crossing(classes.instance, start=start, steps=stated.steps, deadline=deadline)
        least = proof.bound if proof.proven else None
    if least is None or abs(least - stated.value) > 1e-9 * max(abs(least), abs(stated.value)):
        return None
    return Bound(stated.of, least, True, "exact")


def _impossible(figure: str) -> Bound:
    """No plan keeps all limits, so there is nothing to compare with."""
    return Bound(figure, None, False, "infeasible")


def _rate_by_sums(problem: Problem) -> Bound:
    """All tasks on their fastest machines against the CPU of all nodes together."""
    owner = problem.component_of
    grows = problem.demand[owner, CPU] + problem.cpu_rate.min(axis=1)[owner] * problem.share
    fixed = problem.cpu_fixed.min(axis=1)[owner].sum()
    load, room = float(grows.sum()), float(problem.free[:, CPU].sum() - fixed)
    known = load > 0 and np.isfinite(room)
    return Bound("max_rate", max(room, 0.0) / load if known else None, False, "sums")


def _with_threads(problem: Problem, by_nodes: Bound) -> Bound:
    """The bound, or what the threads of some component sustain on the type that suits it best."""
    factor = thread_factors_by_type(problem)[:, problem.node_type]
    if problem.allowed is not None:
        factor = np.where(problem.allowed, factor, 0.0)
    most = float(factor.max(axis=1, initial=0.0).min(initial=np.inf))
    if not np.isfinite(most) or (by_nodes.value is not None and by_nodes.value <= most):
        return by_nodes
    return Bound("max_rate", most, False, "thread")


def _rate(problem: Problem) -> Bound:
    """The fluid relaxation: tasks divisible, alike nodes pooled."""
    from headrace.solve.classes import classes_of
    from headrace.solve.rate.fluid import fluid_rate

    classes = classes_of(problem)
    owner, task = classes.component, classes.order[classes.first[:-1]]
    by_share = problem.cpu_rate[owner] * problem.share[task][:, None]
    value = fluid_rate(
        classes.instance.count,
        problem.demand[owner, CPU][:, None] + by_share,
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
    fixed = (problem.cpu_fixed.min(axis=1) * problem.tasks).sum()
    demand[CPU] += problem.cpu_rate.min(axis=1).sum() + fixed
    need = int(max([1, *problem.tasks[problem.apart].tolist()]))
    for k in range(len(problem.resources)):
        room = np.cumsum(np.sort(problem.free[:, k])[::-1])
        need = max(need, int(np.searchsorted(room, demand[k] * (1 - TOLERANCE))) + 1)
    return min(need, len(problem.nodes))


def _batch(problem: Problem) -> float:
    """No stage is shorter than its largest task, nor than its load spread over all cores."""
    options = problem.options.get("judge", {})
    interval = float(str(options.get("batch_interval_s", 1)))
    total = float(str(options.get("batch_overhead_s", 0)))
    free = problem.capacity[:, CPU] - problem.taken[:, CPU]
    cores = np.maximum(1.0, np.floor(free / 100)).sum()
    types = distinct(problem.node_type)
    owner = problem.component_of
    least_rate = problem.cpu_rate[:, types].min(axis=1)
    least_fixed = problem.cpu_fixed[:, types].min(axis=1)
    each = problem.demand[owner, CPU] + least_fixed[owner] + least_rate[owner] * problem.share
    for stage in range(int(problem.stage.max(initial=-1)) + 1):
        points = each[problem.stage[owner] == stage]
        spread = float(points.sum()) / cores if np.isfinite(cores) else 0.0
        total += interval * max(float(points.max()), spread) / 100
    return total

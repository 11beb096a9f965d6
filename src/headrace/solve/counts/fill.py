"""The largest rate on given machines: bound, counts and places; then places with less to send."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.problem import CPU, THREAD, Problem
from headrace.model.sizable import Load
from headrace.solve.chance import stream
from headrace.solve.classes import Classes, classes_of
from headrace.solve.counts.count_flow import count_flow
from headrace.solve.counts.fullness import TaskCosts, without_cpu
from headrace.solve.counts.grow import grow_counts, keeps_limits
from headrace.solve.counts.rate_lp import Pools, most_rate
from headrace.solve.counts.small_clusters import Exhaustive, list_busy
from headrace.solve.counts.starts import Growth, deal_starts
from headrace.solve.counts.trim import trim_counts
from headrace.solve.least_traffic.feasible import feasible
from headrace.solve.least_traffic.search import polish
from headrace.solve.rate.costs import rate_costs
from headrace.solve.rate.speed import improve_speed, sustained_rate

POLISH_STEPS = 300_000
FEW_LARGE = (100.0, 70.0)  # points of the tasks that trimming starts from
# On a small cluster all counts are looked at: so many tasks on a node, so many vectors of counts,
# so many places of them at most.
FEW_PER_NODE, FEW_COUNTS, SMALL_STEPS = 12, 2_000_000, 20_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Filled:
    """Tasks per component and node, and the factor of the rates that they sustain by CPU."""

    x: Ints  # [C, N]
    factor: float
    bound: float  # no counts on these machines sustain more

    @property
    def node(self) -> Ints:
        """The node of every task, component by component, [T]."""
        nodes = np.arange(self.x.shape[1])
        return np.concatenate([np.repeat(nodes, row) for row in self.x])

    def tasks(self, load: Load) -> dict[str, int]:
        """Tasks of every component by name."""
        return {
            name: int(n)
            for name, n in zip(load.problem.components, self.x.sum(axis=1), strict=True)
        }


def pools_of(load: Load) -> tuple[Pools, Ints, Floats]:
    """Pools of alike nodes; the pool of every node [N]; how many nodes a pool has [P]."""
    problem = load.problem
    key = np.column_stack([problem.node_type, problem.free, load.fits.T])
    _, first, pool = np.unique(
        np.nan_to_num(key, posinf=1e300), axis=0, return_index=True, return_inverse=True
    )
    pool = pool.ravel().astype(np.int64)
    pools = Pools(
        by_rate=load.by_rate[:, first],
        fixed=load.fixed[:, first],
        other=problem.demand[:, 1:],
        thread=load.thread[first],
        may=load.fits[:, first],
        cpu=problem.free[first, CPU],
        room=problem.free[first, 1:],
        most=load.most,
        apart=problem.apart,
    )
    return pools, pool, np.bincount(pool).astype(np.float64)


def fluid_bound(load: Load) -> float | None:
    """Tuples/s that no counts on these machines exceed; 0 if one task of each does not fit.

    None where other counts than one task each can mean less load: no bound is known there.
    """
    if not load.least_at_one_each:
        return None
    pools, _, machines = pools_of(load)
    fluid = most_rate(pools, machines)
    return 0.0 if fluid is None else fluid.bound * load.spout_rate


def fill_machines(
    load: Load,
    *,
    seed: int = 0,
    steps: int | None = None,
    deadline: Callable[[], bool] | None = None,
    enough: float = np.inf,
    known: Sequence[Ints] = (),
) -> Filled | None:
    """Counts and places for the largest factor of the rates.

    None where no plan was found that has one task of every component. Ends early at a factor that
    is `enough`. Counts that others found, `known` [C, N] each, are starts too.
    """
    question = growth_of(load, seed, deadline, enough)
    if question is None:
        return None
    growth, bound = question
    found = grow_counts(growth, steps=steps, known=known)
    return None if found is None else Filled(found[0], found[1], bound)


def growth_of(
    load: Load,
    seed: int = 0,
    deadline: Callable[[], bool] | None = None,
    enough: float = np.inf,
) -> tuple[Growth, float] | None:
    """What counts are searched for, and the bound on their factor; None if one each do not fit."""
    pools, pool, machines = pools_of(load)
    fluid = most_rate(pools, machines)
    if fluid is None:
        return None
    problem = load.problem
    fixed = problem.cpu_fixed.T
    # Copies of their own: kernels are compiled again for arrays that are read-only or a part.
    costs = TaskCosts(
        by_rate=np.ascontiguousarray((problem.demand[:, [CPU]] + problem.cpu_rate).T),
        fixed=np.array(fixed, order="C"),
        thread=np.ascontiguousarray(THREAD - fixed),
        cpu=problem.free[:, CPU].copy(),
        most=load.most,
        flow=count_flow(load.workload.flow, problem.rate),
    )
    instance = replace(classes_of(problem).instance, allowed=load.fits)
    # Where a node has any amount of CPU, the program may say more than all of a component.
    total = fluid.handled.sum(axis=1, keepdims=True)
    handled = fluid.handled * np.minimum(1.0, fluid.factor / np.maximum(total, 1e-300))
    rng = stream(seed)
    return Growth(instance, costs, handled, pool, rng, deadline, enough), fluid.bound


def trim_tasks(
    load: Load,
    x: Ints,
    factor: float,
    *,
    seed: int = 0,
    steps: int | None = None,
    deadline: Callable[[], bool] | None = None,
) -> Ints | None:
    """Counts [C, N] with few tasks that sustain a factor, from counts x that do; None if none do.

    Full threads at that factor are a start too.
    """
    question = growth_of(load, seed, deadline)
    if question is None:
        return None
    growth, bound = question
    scaled = replace(growth, handled=growth.handled * (factor / bound if bound > 0 else 1.0))
    starts = [np.ascontiguousarray(x.T, dtype=np.int64)]
    starts += [rows for rows in deal_starts(scaled, FEW_LARGE) if rows.sum() < x.sum()]
    found = trim_counts(growth, starts, factor, steps)
    return found if found is not None and keeps_limits(growth, found) else None


def search_small_cluster(load: Load, found: Filled, deadline: Callable[[], bool] | None) -> Filled:
    """Better counts if there are any with few tasks per node, on a cluster small enough to see.

    The search leaves out all that cannot beat what was found, so it is mostly over soon.
    """
    busy, nodes = list_busy(load), len(load.problem.nodes)
    few = [n for n in range(1, FEW_PER_NODE + 1) if math.comb(n * nodes, len(busy)) <= FEW_COUNTS]
    if not few or not len(busy) or not np.isfinite(found.factor) or load.workload.flow.uneven:
        return found
    search = Exhaustive.of(load, busy, few[-1], limits=True)
    search.best_factor[0] = found.factor
    while not search.look_on(SMALL_STEPS):
        if search.spent >= SMALL_STEPS or (deadline is not None and deadline()):
            break
    if not search.best.any():
        return found
    better = Filled(search.instances(load), float(search.best_factor[0]), found.bound)
    total = better.x.sum(axis=1)
    instance = without_cpu(replace(classes_of(load.problem).instance, allowed=load.fits))
    return better if feasible(replace(instance, count=total), better.x) else found


def place_for_sending(
    problem: Problem,
    node: Ints,
    *,
    seed: int = 0,
    steps: int | None = None,
    deadline: Callable[[], bool] | None = None,
) -> tuple[Classes, Ints]:
    """The same counts on nodes chosen again for what is sent.

    As fast as bandwidth allows, then with less traffic at that rate.
    """
    classes = classes_of(problem)
    x = classes.counts(node)
    demand = classes.instance.demand.copy()
    # How full a node may be follows from the rate, which is what is searched.
    demand[:, :, CPU] = 0.0
    free = replace(classes, instance=replace(classes.instance, demand=demand))
    if sending_limits(problem) or problem.task_share is not None:
        x = improve_speed(problem, free, x, "rate", seed=seed, steps=steps, deadline=deadline)
    rate = sustained_rate(problem, free, x)
    if not 0 < rate < np.inf:
        return classes, x
    costs = rate_costs(problem, classes)
    full = demand.copy()
    full[:, :, CPU] = rate * (1 - 1e-9) * costs.grows + costs.fixed
    if deadline is not None and deadline():
        return classes, x
    crowded = replace(classes.instance, demand=full)
    found = polish(crowded, x, steps=POLISH_STEPS if steps is None else steps, seed=seed)
    if found is not None and sustained_rate(problem, free, found.x) >= rate * (1 - 1e-9):
        x = found.x
    return classes, x


def sending_limits(problem: Problem) -> bool:
    """Whether what is sent can limit the rate: by bandwidth, or by the CPU it costs."""
    stated = problem.options.get("judge", {})
    prices = [stated.get(name, 0) for name in ("send_node_cpu_ms", "receive_node_cpu_ms")]
    sized = any(s.bytes > 0 for s in problem.streams) or bool((problem.pairs.bytes_per_s > 0).any())
    costs = any(float(str(price)) > 0 for price in prices)
    return costs or bool(sized and np.isfinite(problem.bandwidth_mbps).any())

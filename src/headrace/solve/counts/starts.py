"""First counts and places: what the linear program gives each pool, dealt out in whole tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.chance import Rng
from headrace.solve.compiled import NONE, ONE, ZERO, kernel
from headrace.solve.counts.fullness import TaskCosts, room_terms
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.state import State, empty_state, load_state, overload_after, put
from headrace.solve.least_traffic.terms import Terms

POINTS = (100.0, 70.0, 50.0, 35.0, 25.0, 16.0, 10.0, 6.0)  # sizes of tasks to start from
DEALS_PER_NODE = 64  # of one component: beyond, tasks are dealt several at a time
FIXED_WEIGHT = 1e-3  # of a task's fixed points while dealing: enough to tell nodes apart


@dataclass(frozen=True, slots=True, eq=False)
class Growth:
    """What counts are wanted for, and what ends the search. C components, P pools, N nodes."""

    instance: Instance
    costs: TaskCosts
    handled: Floats  # [C, P] how much of each component the pools handle in the linear program
    pool: Ints  # [N]
    rng: Rng
    deadline: Callable[[], bool] | None
    enough: float  # the factor at which to stop


def deal_starts(growth: Growth, sizes: Sequence[float] = (np.inf, *POINTS)) -> list[Ints]:
    """Rows [N, C] dealt out in tasks of several sizes, if every component found a place."""
    terms = room_terms(growth.instance, growth.costs)
    state = empty_state(terms)
    starts: list[Ints] = []
    for points in sizes:
        quota = task_quotas(growth, points)
        if any((quota.sum(axis=1) == rows.sum(axis=0)).all() for rows in starts):
            continue
        if starts and growth.deadline is not None and growth.deadline():
            break
        load_state(terms, state, np.zeros_like(state.x))
        _deal(terms, state, growth, quota, np.zeros(len(growth.pool)))
        if state.x.any(axis=0).all():
            starts.append(state.x.copy())
    return starts


def deal_the_few(growth: Growth, rows: Ints, many: Ints) -> Ints | None:
    """Rows with the components of few tasks dealt out on top; None where one finds no place.

    `many` are the components that the rows hold already; beyond their most tasks, some are taken
    away.
    """
    costs = growth.costs
    terms = room_terms(growth.instance, costs)
    state = empty_state(terms)
    for c in many.tolist():
        beyond = int(rows[:, c].sum() - costs.most[c])
        for n in np.flatnonzero(rows[:, c])[::-1].tolist():
            if beyond > 0:
                taken = min(beyond, int(rows[n, c]))
                rows[n, c] -= taken
                beyond -= taken
    quota = task_quotas(growth, POINTS[0])
    quota[many] = 0
    load_state(terms, state, rows)
    total = np.maximum(rows.sum(axis=0), 1)
    load = (rows * costs.by_rate[terms.node_type] / total).sum(axis=1)
    _deal(terms, state, growth, quota, load)
    return state.x.copy() if state.x.any(axis=0).all() else None


def task_quotas(growth: Growth, points: float) -> Ints:
    """Whole tasks of about so many points (inf: one) for every component and pool, [C, P].

    The pools share them in the proportions of the linear program.
    """
    costs, handled = growth.costs, growth.handled
    machine = np.zeros(handled.shape[1], dtype=np.int64)
    machine[growth.pool] = growth.instance.node_type
    by_rate, thread = costs.by_rate[machine].T, costs.thread[machine].T
    factor = handled.sum(axis=1, keepdims=True)
    share = np.divide(handled, factor, out=np.zeros_like(handled), where=factor > 0)
    idle = factor[:, 0] <= 0
    share[idle, 0] = 1.0
    load = (by_rate * handled).sum(axis=1)
    # No task above one thread on the slowest machine it is dealt to, but for the fewest of all.
    fewest = np.where(share > 1e-6, factor * by_rate / np.maximum(thread, 1e-9), 0.0).max(
        axis=1, initial=0.0
    ) * float(points < np.inf)
    tasks = np.clip(
        np.maximum(np.ceil(fewest * (1 - 1e-9)), np.round(load / points)), 1, costs.most
    ).astype(np.int64)
    exact = share * tasks[:, None]
    quota = np.floor(exact + 1e-9).astype(np.int64)
    for c in range(len(quota)):
        left = int(tasks[c] - quota[c].sum())
        order = np.argsort(-(exact[c] - quota[c]), kind="stable")
        quota[c, order[:left]] += 1
    return quota


def _deal(terms: Terms, state: State, growth: Growth, quota: Ints, load: Floats) -> None:
    share = 1.0 / np.maximum(quota.sum(axis=1), 1)  # of a component's load in one task
    largest_first = np.argsort(-(growth.costs.by_rate * share).max(axis=0), kind="stable")
    deal_quotas(terms, state, growth.costs, largest_first, share, quota, growth.pool, load)


@kernel
def deal_quotas(
    terms: Terms,
    state: State,
    costs: TaskCosts,
    order: Ints,
    share: Floats,
    quota: Ints,
    pool: Ints,
    load: Floats,
) -> None:
    """Give each task to the node of its pool that stays least full, or else to any node.

    Components come in the given order; load[N] grows with what the nodes get. Of a great many alike
    tasks, several go together.
    """
    for c in order:
        for p in range(quota.shape[1]):
            left = quota[c, p]
            together = max(ONE, left // (DEALS_PER_NODE * len(pool)))
            while left > 0:
                n = least_full_node(terms, state, costs, pool, load, share, c, p)
                if n < 0:
                    n = least_full_node(terms, state, costs, pool, load, share, c, NONE)
                if n < 0:
                    break
                k = min(together, left)
                if k > 1 and (terms.apart[c] or overload_after(terms, state, n, c, k, c, ZERO) > 0):
                    k = ONE
                y = terms.node_type[n]
                put(terms, state, c, n, k)
                load[n] += k * (costs.by_rate[y, c] * share[c] + costs.fixed[y, c] * FIXED_WEIGHT)
                left -= k


@kernel
def least_full_node(
    terms: Terms,
    state: State,
    costs: TaskCosts,
    pool: Ints,
    load: Floats,
    share: Floats,
    c: int,
    p: int,
) -> int:
    """The node of pool p (p < 0: of any) that one more task of c leaves least full; -1: none."""
    where = -1
    least = np.inf
    for n in range(len(pool)):
        if p >= 0 and pool[n] != p:
            continue
        if not terms.allowed[n, c] or (terms.apart[c] and state.x[n, c] > 0):
            continue
        full = (load[n] + costs.by_rate[terms.node_type[n], c] * share[c]) / max(costs.cpu[n], 1e-9)
        if full < least and overload_after(terms, state, n, c, ONE, c, ZERO) <= 0.0:
            least = full
            where = n
    return where

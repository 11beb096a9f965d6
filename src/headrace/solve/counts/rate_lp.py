"""The best any counts, machines and placement could do: work divisible, alike machines pooled.

One linear program over how much of each component each pool of alike machines handles, and with how
many tasks. Tasks are at most one thread each, cost their fixed CPU and memory, and every component
has at least one. With whole numbers of machines to rent it becomes a small integer program. Every
real plan satisfies these rows, so what they allow at best is a bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.solve import highs

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint

SLACK = 1e-7  # relative: what the solver's tolerances may cost; bounds are moved outward by it
NEAR = 3e-4  # relative: machines so near to the best are good enough; the bound is what is proven
NODES = 300  # branch-and-bound nodes; where they run out, the bound so far still holds


@dataclass(frozen=True, slots=True, eq=False)
class Pools:
    """Kinds of machines and what components cost on them.

    C components, P pools, K resources besides CPU.
    """

    by_rate: Floats  # [C, P] points of the whole component at factor 1
    fixed: Floats  # [C, P] points of one task
    other: Floats  # [C, K] of one task
    thread: Floats  # [P] most points of one task
    may: Bools  # [C, P]
    cpu: Floats  # [P] of one machine
    room: Floats  # [P, K] of one machine
    most: Ints  # [C] tasks
    apart: Bools  # [C]
    one_each: bool = False  # a machine holds one task

    def scaled(self, factor: float) -> Pools:
        """The same with factor 1 meaning `factor` of before."""
        return replace(self, by_rate=self.by_rate * factor)


@dataclass(frozen=True, slots=True, eq=False)
class Fluid:
    """An optimal point of the relaxation."""

    factor: float
    machines: Floats  # [P]
    handled: Floats  # [C, P] share of the factor
    tasks: Floats  # [C, P]
    bound: float  # on the factor (from above) or the cost (from below)

    def scaled(self, factor: float) -> Fluid:
        """The same with factor `factor` meaning what 1 did before."""
        return replace(
            self,
            factor=self.factor * factor,
            handled=self.handled * factor,
            bound=self.bound * factor,
        )


def most_rate(pools: Pools, machines: Floats) -> Fluid | None:
    """The largest factor on given machines; None if even factor 0 does not fit.

    A factor of inf if nothing limits it.
    """
    guess = _guess(pools, machines)
    found = _solve(pools.scaled(guess), machines, machines, None, None, None)
    return None if found is None else found.scaled(guess)


def fastest_machines(pools: Pools, price: Floats, available: Floats, budget: float) -> Fluid | None:
    """The largest factor of machines that a budget buys; None if it buys nothing that works."""
    with np.errstate(divide="ignore", invalid="ignore"):
        per_factor = np.where(
            pools.may & np.isfinite(pools.cpu), pools.by_rate * (price / pools.cpu), np.inf
        ).min(axis=1)
    per_factor = per_factor[np.isfinite(per_factor)].sum()
    guess = budget / per_factor if per_factor > 0 else 1.0
    high = np.minimum(available, np.floor(budget / price * (1 + SLACK)))
    found = _solve(pools.scaled(guess), np.zeros_like(price), high, price, budget, None)
    return None if found is None else found.scaled(guess)


def cheapest_machines(
    pools: Pools, price: Floats, available: Floats, factor: float
) -> Fluid | None:
    """The cheapest machines for a factor; None if all there are do not carry it."""
    guess = factor if factor > 0 else 1.0
    found = _solve(
        pools.scaled(guess), np.zeros_like(price), available, price, None, factor / guess
    )
    if found is None:
        return None
    return replace(found, factor=factor, handled=found.handled * guess)


def _guess(pools: Pools, machines: Floats) -> float:
    """A factor of the right size, so that the program's numbers are near 1."""
    total = float(np.where(np.isfinite(pools.cpu), pools.cpu * machines, 0.0).sum())
    least = np.where(pools.may, pools.by_rate, np.inf).min(axis=1)
    need = float(least[np.isfinite(least)].sum())
    return total / need if total > 0 and need > 0 else 1.0


class _Columns:
    """Where the variables of the program are: handled[C, P], tasks[C, P], machines[P], factor."""

    def __init__(self, components: int, kinds: int) -> None:
        size = components * kinds
        self.handled = np.arange(size).reshape(components, kinds)
        self.tasks = size + self.handled
        self.machines = 2 * size + np.arange(kinds)
        self.factor = 2 * size + kinds
        self.count = self.factor + 1


def _solve(
    pools: Pools,
    low: Floats,
    high: Floats,
    price: Floats | None,
    budget: float | None,
    factor: float | None,
) -> Fluid | None:
    """The largest factor, or with a factor the least cost, for `low` to `high` machines[P].

    With prices, machines are whole.
    """
    columns = _Columns(*pools.may.shape)
    rows = _Rows(columns.count)
    _add_component_rows(rows, columns, pools)
    _add_machine_rows(rows, columns, pools)
    if price is not None and budget is not None:
        rows.at_most(columns.machines, price, budget)
    lower, upper = np.zeros(columns.count), np.full(columns.count, np.inf)
    upper[columns.handled] = upper[columns.tasks] = np.where(pools.may, np.inf, 0.0)
    lower[columns.machines], upper[columns.machines] = low, high
    goal = np.zeros(columns.count)
    if factor is None:
        goal[columns.factor] = -1.0
    else:
        lower[columns.factor] = upper[columns.factor] = factor
        goal[columns.machines] = price
    whole = np.zeros(columns.count)
    whole[columns.machines] = 0.0 if price is None else 1.0
    result = highs.solve_integer_program(
        goal,
        constraints=rows.constraint(),
        integrality=whole,
        bounds=highs.bounds(lower, upper),
        options={"mip_rel_gap": NEAR, "node_limit": NODES},
    )
    if result.status == 3:  # unbounded: nothing limits the rate
        shape = pools.may.shape
        return Fluid(np.inf, high, np.zeros(shape), np.ones(shape), np.inf)
    if result.x is None:
        return None
    x = np.asarray(result.x, dtype=np.float64)
    dual = getattr(result, "mip_dual_bound", None)
    proven = float(result.fun if dual is None or not whole.any() else dual)
    # Maximising minimises the negative factor, so what is proven is below the value in both cases.
    bound = -proven * (1 + SLACK) if factor is None else proven * (1 - SLACK)
    return Fluid(
        float(x[columns.factor]), x[columns.machines], x[columns.handled], x[columns.tasks], bound
    )


def _add_component_rows(rows: _Rows, columns: _Columns, pools: Pools) -> None:
    """Every component is handled at the factor, by tasks of at most one thread each."""
    components, kinds = pools.may.shape
    handled, tasks = columns.handled, columns.tasks
    for c in range(components):
        if pools.by_rate[c].any():
            rows.at_least([*handled[c], columns.factor], [*np.ones(kinds), -1.0], 0.0)
        rows.between(tasks[c], np.ones(kinds), 1.0, float(pools.most[c]))
        for p in range(kinds):
            if pools.may[c, p] and pools.by_rate[c, p] > 0:
                rows.at_most(
                    [handled[c, p], tasks[c, p]],
                    [pools.by_rate[c, p], pools.fixed[c, p] - pools.thread[p]],
                    0.0,
                )
            if pools.apart[c]:
                rows.at_most([tasks[c, p], columns.machines[p]], [1.0, -1.0], 0.0)


def _add_machine_rows(rows: _Rows, columns: _Columns, pools: Pools) -> None:
    """The machines of a pool have room for what they handle together."""
    components, kinds = pools.may.shape
    for p in range(kinds):
        handled, tasks, machines = columns.handled[:, p], columns.tasks[:, p], columns.machines[p]
        if np.isfinite(pools.cpu[p]):
            rows.at_most(
                [*handled, *tasks, machines],
                [*pools.by_rate[:, p], *pools.fixed[:, p], -pools.cpu[p]],
                0.0,
            )
        for k in np.flatnonzero(np.isfinite(pools.room[p]) & pools.other.any(axis=0)).tolist():
            rows.at_most([*tasks, machines], [*pools.other[:, k], -pools.room[p, k]], 0.0)
        if pools.one_each:
            rows.at_most([*tasks, machines], [*np.ones(components), -1.0], 0.0)


class _Rows:
    """Rows of the program, collected one by one."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.index: list[Ints] = []
        self.value: list[Floats] = []
        self.low: list[float] = []
        self.high: list[float] = []

    def between(self, index: Any, value: Any, low: float, high: float) -> None:
        self.index.append(np.asarray(index, dtype=np.int64))
        self.value.append(np.asarray(value, dtype=np.float64))
        self.low.append(low)
        self.high.append(high)

    def at_most(self, index: Any, value: Any, high: float) -> None:
        self.between(index, value, -np.inf, high)

    def at_least(self, index: Any, value: Any, low: float) -> None:
        self.between(index, value, low, np.inf)

    def constraint(self) -> LinearConstraint:
        from scipy.sparse import coo_array

        row = np.repeat(np.arange(len(self.index)), [len(i) for i in self.index])
        matrix = coo_array(
            (np.concatenate(self.value), (row, np.concatenate(self.index))),
            shape=(len(self.index), self.size),
        )
        return highs.rows(matrix.tocsr(), np.array(self.low), np.array(self.high))

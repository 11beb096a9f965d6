"""The best any counts, machines and placement could do: work divisible at will, machines of a pool taken together.

One linear program over how much of each component each pool of alike machines handles, and with how
many tasks. Tasks are at most one thread each, cost their fixed CPU and memory, and every component
has at least one. With whole numbers of machines to rent it becomes a small integer program. Every
real plan satisfies these rows, so what they allow at best is a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint
from scipy.sparse import coo_array

from headrace.model.arrays import Bools, Floats, Ints
from headrace.solve import highs

SLACK = 1e-7  # relative: what the solver's tolerances may cost; bounds are moved outward by it
NEAR = 3e-4  # relative: machines so near to the best are good enough; the bound is what is proven
NODES = 300  # branch-and-bound nodes; where they run out, the bound so far still holds


@dataclass(frozen=True, slots=True, eq=False)
class Pools:
    """Kinds of machines and what components cost on them. C components, P pools, K resources besides CPU."""

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
        return Pools(
            self.by_rate * factor,
            self.fixed,
            self.other,
            self.thread,
            self.may,
            self.cpu,
            self.room,
            self.most,
            self.apart,
            self.one_each,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Fluid:
    """An optimal point of the relaxation."""

    factor: float
    machines: Floats  # [P]
    handled: Floats  # [C, P] share of the factor
    tasks: Floats  # [C, P]
    bound: float  # on the factor (from above) or the cost (from below)


def most_rate(pools: Pools, machines: Floats) -> Fluid | None:
    """The largest factor on given machines; None if even factor 0 does not fit; a factor of inf if nothing limits it."""
    guess = _guess(pools, machines)
    found = _solved(pools.scaled(guess), machines, machines, None, None, None)
    if found is None:
        return None
    return Fluid(
        found.factor * guess,
        found.machines,
        found.handled * guess,
        found.tasks,
        found.bound * guess,
    )


def fastest_machines(pools: Pools, price: Floats, available: Floats, budget: float) -> Fluid | None:
    """The largest factor of machines that a budget buys; None if it buys nothing that works."""
    with np.errstate(divide="ignore", invalid="ignore"):
        per_factor = np.where(
            pools.may & np.isfinite(pools.cpu), pools.by_rate * (price / pools.cpu), np.inf
        ).min(axis=1)
    per_factor = per_factor[np.isfinite(per_factor)].sum()
    guess = budget / per_factor if per_factor > 0 else 1.0
    high = np.minimum(available, np.floor(budget / price * (1 + SLACK)))
    found = _solved(pools.scaled(guess), np.zeros_like(price), high, price, budget, None)
    if found is None:
        return None
    return Fluid(
        found.factor * guess,
        found.machines,
        found.handled * guess,
        found.tasks,
        found.bound * guess,
    )


def cheapest_machines(
    pools: Pools, price: Floats, available: Floats, factor: float
) -> Fluid | None:
    """The cheapest machines for a factor; None if all there are do not carry it."""
    guess = factor if factor > 0 else 1.0
    found = _solved(
        pools.scaled(guess), np.zeros_like(price), available, price, None, factor / guess
    )
    if found is None:
        return None
    return Fluid(factor, found.machines, found.handled * guess, found.tasks, found.bound)


def _guess(pools: Pools, machines: Floats) -> float:
    """A factor of the right size, so that the program's numbers are near 1."""
    total = float(np.where(np.isfinite(pools.cpu), pools.cpu * machines, 0.0).sum())
    least = np.where(pools.may, pools.by_rate, np.inf).min(axis=1)
    need = float(least[np.isfinite(least)].sum())
    return total / need if total > 0 and need > 0 else 1.0


def _solved(
    pools: Pools,
    low: Floats,
    high: Floats,
    price: Floats | None,
    budget: float | None,
    factor: float | None,
) -> Fluid | None:
    """Solve the program in the variables handled[C, P], tasks[C, P], machines[P], factor."""
    components, kinds = pools.may.shape
    size = components * kinds
    h, m = (
        np.arange(size).reshape(components, kinds),
        size + np.arange(size).reshape(components, kinds),
    )
    z, f = 2 * size + np.arange(kinds), 2 * size + kinds
    rows = _Rows(2 * size + kinds + 1)
    for c in range(components):
        if pools.by_rate[c].any():
            rows.at_least([*h[c], f], [*np.ones(kinds), -1.0], 0.0)
        rows.between(m[c], np.ones(kinds), 1.0, float(pools.most[c]))
        for p in range(kinds):
            if pools.may[c, p] and pools.by_rate[c, p] > 0:  # a task is one thread
                rows.at_most(
                    [h[c, p], m[c, p]],
                    [pools.by_rate[c, p], pools.fixed[c, p] - pools.thread[p]],
                    0.0,
                )
            if pools.apart[c]:
                rows.at_most([m[c, p], z[p]], [1.0, -1.0], 0.0)
    for p in range(kinds):
        if np.isfinite(pools.cpu[p]):
            rows.at_most(
                [*h[:, p], *m[:, p], z[p]],
                [*pools.by_rate[:, p], *pools.fixed[:, p], -pools.cpu[p]],
                0.0,
            )
        for k in np.flatnonzero(np.isfinite(pools.room[p]) & pools.other.any(axis=0)).tolist():
            rows.at_most([*m[:, p], z[p]], [*pools.other[:, k], -pools.room[p, k]], 0.0)
        if pools.one_each:
            rows.at_most([*m[:, p], z[p]], [*np.ones(components), -1.0], 0.0)
    if price is not None and budget is not None:
        rows.at_most(z, price, budget)
    lower, upper = np.zeros(f + 1), np.full(f + 1, np.inf)
    upper[h], upper[m] = np.where(pools.may, np.inf, 0.0), np.where(pools.may, np.inf, 0.0)
    lower[z], upper[z] = low, high
    goal = np.zeros(f + 1)
    if factor is None:
        goal[f] = -1.0
    else:
        lower[f] = upper[f] = factor
        goal[z] = price
    whole = np.zeros(f + 1)
    whole[z] = 0.0 if price is None else 1.0
    result = highs.solve_integer_program(
        goal,
        constraints=rows.constraint(),
        integrality=whole,
        bounds=highs.bounds(lower, upper),
        options={"mip_rel_gap": NEAR, "node_limit": NODES},
    )
    if result.status == 3:  # unbounded: nothing limits the rate
        return Fluid(
            np.inf, high, np.zeros((components, kinds)), np.ones((components, kinds)), np.inf
        )
    if result.x is None:
        return None
    x = np.asarray(result.x, dtype=np.float64)
    value = float(result.fun)
    dual = getattr(result, "mip_dual_bound", None)
    proven = value if dual is None or not whole.any() else float(dual)
    # maximising minimises the negative factor, so the dual bound is below the value in both cases
    bound = -proven * (1 + SLACK) if factor is None else proven * (1 - SLACK)
    return Fluid(float(x[f]), x[z], x[h], x[m], bound)


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
        row = np.repeat(np.arange(len(self.index)), [len(i) for i in self.index])
        matrix = coo_array(
            (np.concatenate(self.value), (row, np.concatenate(self.index))),
            shape=(len(self.index), self.size),
        )
        return highs.rows(matrix.tocsr(), np.array(self.low), np.array(self.high))

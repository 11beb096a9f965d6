"""One machine per task: the largest factor of the rates within a budget, or the least cost for a factor, proven.

A component with n tasks, evenly loaded, on machines of one type carries n times what one of them carries; the whole topology carries what its
weakest component does. So only multiples of single rates can be the answer, and between two of them nothing changes: search them by
halving, and ask for each whether machines for it can be paid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import LinearConstraint
from scipy.sparse import csr_array

from headrace.errors import Unsupported
from headrace.model.arrays import Bools, Floats, Ints
from headrace.solve import highs

ROUNDING = 1e-9  # relative: a task may be as full as a sum of floats makes it
MOST_CANDIDATES = 20_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Market:
    """What one machine carries and costs. C components, Y machine types."""

    carries: Floats  # [C, Y] factor of the rates that one task on its own machine carries; 0 where it does not fit; inf if it costs nothing
    price: Floats  # [Y]
    available: Ints  # [Y]
    most: Ints  # [C] most tasks

    def needed(self, factor: float, *, mixed: bool = False) -> Ints:
        """The fewest tasks of each component, the slowest on this type, for a factor, [C, Y]; 0 where the type will not do.

        Mixed, other types may help where there are too few of one.
        """
        fits = self.carries > 0
        exact = np.divide(factor, self.carries, out=np.zeros_like(self.carries), where=fits)
        tasks = np.maximum(np.ceil(exact * (1 - ROUNDING)), 1.0)
        limit = np.minimum(self.most[:, None], self.available.sum() if mixed else self.available[None, :])
        return np.where(fits & (tasks <= limit), tasks, 0.0).astype(np.int64)

    def factor(self, machines: Ints) -> float:
        """What machines[C, Y] carry: every component's tasks share its load evenly, so its slowest machine sets the pace."""
        slowest = np.where(machines > 0, self.carries, np.inf).min(axis=1)
        return float((slowest * machines.sum(axis=1)).min())

    def highest(self, budget: float) -> float:
        """No machines within a budget carry more: as if tasks could be cut at will, and as if each component had all machines."""
        with np.errstate(divide="ignore"):
            per_factor = np.where(self.carries > 0, self.price / np.where(self.carries > 0, self.carries, 1.0), np.inf).min(
                axis=1
            )
        paid = budget * (1 + ROUNDING) / per_factor.sum() if per_factor.sum() > 0 else np.inf
        return min(float(paid), float((np.minimum(self.most, self.available.sum()) * self.carries.max(axis=1)).min()))

    def cost(self, machines: Ints) -> float:
        """Price of machines[C, Y]."""
        return float((machines.sum(axis=0) * self.price).sum())


def cheapest(
    market: Market, factor: float, *, budget: float = np.inf, mixed: bool = False, any_will_do: bool = False
) -> Ints | None:
    """Machines [C, Y] that carry a factor for the least money; None if there are none within the budget.

    With `any_will_do` the first found within the budget is enough.
    """
    need = market.needed(factor, mixed=mixed)
    usable = need > 0
    if not usable.any(axis=1).all():
        return None
    price = np.where(usable, need * market.price, np.inf)
    least = price.argmin(axis=1)
    rows = np.arange(len(need))
    if price[rows, least].sum() > budget * (1 + ROUNDING):
        return None
    machines = np.zeros_like(need)
    machines[rows, least] = need[rows, least]
    if (machines.sum(axis=0) <= market.available).all():
        return machines  # nothing is scarce
    found = _mixed(market, need, usable, budget, any_will_do) if mixed else _one_type(market, need, usable, budget, any_will_do)
    return None if found is None or market.cost(found) > budget * (1 + ROUNDING) else found


def _one_type(market: Market, need: Ints, usable: Bools, budget: float, any_will_do: bool) -> Ints | None:
    """Exactly one type per component: a choice with one row per component and one per scarce type."""
    c, y = np.nonzero(usable)
    count = need[c, y]
    cost = count * market.price[y]
    pick = np.arange(len(c))
    one = csr_array((np.ones(len(c)), (c, pick)), shape=(len(need), len(c)))
    scarce = csr_array((count.astype(np.float64), (y, pick)), shape=(len(market.price), len(c)))
    rows = [highs.rows(one, 1, 1), highs.rows(scarce, -np.inf, market.available.astype(np.float64))]
    chosen = _solved(cost, rows, budget, any_will_do)
    if chosen is None:
        return None
    machines = np.zeros_like(need)
    taken = np.round(chosen) > 0
    machines[c[taken], y[taken]] = count[taken]
    return machines


def _mixed(market: Market, need: Ints, usable: Bools, budget: float, any_will_do: bool) -> Ints | None:
    """Any types for the tasks of a component: a level n of parallelism is chosen, then n machines of the types that do with n tasks."""
    level: list[tuple[int, int]] = sorted({(int(c), int(need[c, y])) for c, y in zip(*np.nonzero(usable), strict=True)})
    arcs = [(i, c, y) for i, (c, n) in enumerate(level) for y in np.flatnonzero(usable[c] & (need[c] <= n)).tolist()]
    levels, size = len(level), len(level) + len(arcs)
    at = np.arange(len(arcs))
    which, owner, kind = (np.array(column) for column in zip(*arcs, strict=True))
    one = csr_array((np.ones(levels), ([c for c, _ in level], np.arange(levels))), shape=(len(need), size))
    filled = csr_array(
        (
            np.concatenate([np.ones(len(arcs)), [-float(n) for _, n in level]]),
            (np.concatenate([which, np.arange(levels)]), np.concatenate([levels + at, np.arange(levels)])),
        ),
        shape=(levels, size),
    )
    scarce = csr_array((np.ones(len(arcs)), (kind, levels + at)), shape=(len(market.price), size))
    rows = [
        highs.rows(one, 1, 1),
        highs.rows(filled, 0, 0),
        highs.rows(scarce, -np.inf, market.available.astype(np.float64)),
    ]
    cost = np.concatenate([np.zeros(levels), market.price[kind]])
    chosen = _solved(cost, rows, budget, any_will_do, np.concatenate([np.ones(levels), np.full(len(arcs), np.inf)]))
    if chosen is None:
        return None
    machines = np.zeros_like(need)
    np.add.at(machines, (owner, kind), np.round(chosen[levels:]).astype(np.int64))
    return machines


def _solved(
    cost: Floats, rows: list[LinearConstraint], budget: float, any_will_do: bool, upper: float | Floats = 1.0
) -> Floats | None:
    """Least cost over whole numbers; None where the budget forbids every solution."""
    if np.isfinite(budget):
        rows = [*rows, highs.rows(csr_array(cost[None, :]), -np.inf, budget * (1 + ROUNDING / 2))]
    options = {"mip_rel_gap": 1.0 if any_will_do else 1e-9}
    result = highs.least(cost, constraints=rows, integrality=np.ones(len(cost)), bounds=highs.bounds(0, upper), options=options)
    return None if result.x is None else np.asarray(result.x, dtype=np.float64)


def fastest(market: Market, budget: float, *, mixed: bool = False) -> Ints | None:
    """Machines [C, Y] that carry the largest factor within a budget, and of those the cheapest; None if the budget buys nothing."""
    if cheapest(market, 0.0, budget=budget, mixed=mixed, any_will_do=True) is None:
        return None
    factors = candidates(market, budget)
    low, high = -1, len(factors)  # factors[low] is carried, factors[high] is not
    single = fastest(market, budget) if mixed else None
    if single is not None:
        low = int(np.searchsorted(factors, market.factor(single) * (1 - ROUNDING)))
    while high - low > 1:
        middle = (low + high) // 2
        if cheapest(market, float(factors[middle]), budget=budget, mixed=mixed, any_will_do=True) is None:
            high = middle
        else:
            low = middle
    return cheapest(market, float(factors[low]) if low >= 0 else 0.0, budget=budget, mixed=mixed)


def candidates(market: Market, budget: float) -> Floats:
    """Every factor at which some component could be the one that limits, ascending."""
    real = np.isfinite(market.carries) & (market.carries > 0)
    if not real.any():
        return np.zeros(0)
    highest = market.highest(budget)
    tasks = np.where(real, np.minimum(highest / np.where(real, market.carries, 1.0), market.available), 0.0)
    tasks = np.minimum(np.ceil(tasks), market.most[:, None]).astype(np.int64)
    if tasks.sum() > MOST_CANDIDATES:
        message = f"the budget would buy {int(tasks.max()):,} machines for one component; too many to search one by one"
        raise Unsupported(message, resource="machines", needed=float(tasks.sum()), available=MOST_CANDIDATES, fix="use headrace")
    cells = np.argwhere(real).tolist()
    return np.unique(np.concatenate([market.carries[c, y] * np.arange(1, int(tasks[c, y]) + 1) for c, y in cells]))

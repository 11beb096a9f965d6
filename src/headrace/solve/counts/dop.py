"""One machine per task: the largest factor for a budget, or the least cost for a factor, proven.

A component with n tasks, evenly loaded, on machines of one type carries n times what one of them
carries; the whole topology carries what its weakest component does. So only multiples of single
rates can be the answer, and between two of them nothing changes: search them by halving, and ask
for each whether machines for it can be paid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headrace.errors import Unsupported
from headrace.model.arrays import Bools, Floats, Ints
from headrace.solve import highs

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint

ROUNDING = 1e-9  # relative: a task may be as full as a sum of floats makes it
MOST_CANDIDATES = 20_000_000
SOON = 20  # branch-and-bound nodes


@dataclass(frozen=True, slots=True, eq=False)
class Market:
    """What one machine carries and costs. C components, Y machine types."""

    # [C, Y] factor of the rates that one task on its own machine carries; 0 where it does not fit,
    # inf if it costs nothing
    carries: Floats
    price: Floats  # [Y]
    available: Ints  # [Y]
    most: Ints  # [C] most tasks

    def needed(self, factor: float, *, mixed: bool = False) -> Ints:
        """The fewest tasks of a component, the slowest on this type, for a factor, [C, Y].

        0 where the type will not do. Mixed, other types may help where there are too few of one.
        """
        fits = self.carries > 0
        exact = np.divide(factor, self.carries, out=np.zeros_like(self.carries), where=fits)
        tasks = np.maximum(np.ceil(exact * (1 - ROUNDING)), 1.0)
        limit = np.minimum(
            self.most[:, None], self.available.sum() if mixed else self.available[None, :]
        )
        return np.where(fits & (tasks <= limit), tasks, 0.0).astype(np.int64)

    def factor(self, machines: Ints, of: Bools | None = None) -> float:
        """The factor that machines[C, Y] carry; `of`[C] leaves components out.

        Tasks of a component share its load evenly, so its slowest machine sets the pace.
        """
        slowest = np.where(machines > 0, self.carries, np.inf).min(axis=1)
        return float(
            (slowest * machines.sum(axis=1)).min(initial=np.inf, where=True if of is None else of)
        )

    def highest(self, budget: float) -> float:
        """A factor that no machines within a budget exceed.

        As if tasks could be cut at will, and as if each component had all machines.
        """
        with np.errstate(divide="ignore"):
            per_factor = np.where(
                self.carries > 0, self.price / np.where(self.carries > 0, self.carries, 1.0), np.inf
            ).min(axis=1)
        paid = budget * (1 + ROUNDING) / per_factor.sum() if per_factor.sum() > 0 else np.inf
        return min(
            float(paid),
            float((np.minimum(self.most, self.available.sum()) * self.carries.max(axis=1)).min()),
        )

    def cost(self, machines: Ints) -> float:
        """Price of machines[C, Y]."""
        return float((machines.sum(axis=0) * self.price).sum())


class _Undecided(Exception):
    """No machines within the budget were found soon enough, nor a proof that there are none."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What is asked of an integer program."""

    budget: float
    any_will_do: bool
    soon: bool


def cheapest(
    market: Market,
    factor: float,
    *,
    budget: float = np.inf,
    mixed: bool = False,
    any_will_do: bool = False,
    soon: bool = False,
) -> Ints | None:
    """Machines [C, Y] that carry a factor for the least money; None if the budget is too small.

    With `any_will_do` the first found within the budget is enough; with `soon` a long proof is not
    waited for.
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
    effort = Effort(budget, any_will_do, soon)
    found = (
        _mixed(market, need, usable, effort) if mixed else _one_type(market, need, usable, effort)
    )
    return None if found is None or market.cost(found) > budget * (1 + ROUNDING) else found


def _one_type(market: Market, need: Ints, usable: Bools, effort: Effort) -> Ints | None:
    """Exactly one type per component: one row per component and one per scarce type."""
    c, y = np.nonzero(usable)
    c, y = _worth_choosing(market, need, c, y, effort.budget)
    if len(np.unique(c)) < len(need):
        return None
    count = need[c, y]
    chosen = _solve(count * market.price[y], _choice_rows(market, need, c, y), effort)
    if chosen is None:
        return None
    machines = np.zeros_like(need)
    taken = np.round(chosen) > 0
    machines[c[taken], y[taken]] = count[taken]
    return machines


def _choice_rows(market: Market, need: Ints, c: Ints, y: Ints) -> list[LinearConstraint]:
    from scipy.sparse import csr_array

    pick = np.arange(len(c))
    one = csr_array((np.ones(len(c)), (c, pick)), shape=(len(need), len(c)))
    scarce = csr_array(
        (need[c, y].astype(np.float64), (y, pick)), shape=(len(market.price), len(c))
    )
    return [highs.rows(one, 1, 1), highs.rows(scarce, -np.inf, market.available.astype(np.float64))]


def _worth_choosing(
    market: Market, need: Ints, c: Ints, y: Ints, budget: float
) -> tuple[Ints, Ints]:
    """The choices (component, type) that a plan within the budget can hold.

    One that costs more than is left over in the linear program is out. Near the largest factor the
    budget leaves next to nothing over, so few choices remain, and the proof is short.
    """
    if not np.isfinite(budget):
        return c, y
    count = need[c, y].astype(np.float64)
    one, scarce = (constraint.A for constraint in _choice_rows(market, need, c, y))
    result = highs.solve_linear_program(
        count * market.price[y],
        A_ub=scarce,
        b_ub=market.available.astype(np.float64),
        A_eq=one,
        b_eq=np.ones(len(need)),
    )
    if result.status == 2:  # not even with parts of machines
        return c[:0], y[:0]
    if result.status != 0:
        return c, y
    worth, rent = np.asarray(result.eqlin.marginals), np.asarray(result.ineqlin.marginals)
    beyond = count * market.price[y] - worth[c] - rent[y] * count
    # Any duals give a bound, so these figures are worked out again and owe nothing to the solver's
    # tolerances.
    least = float(
        worth.sum()
        + np.minimum(rent, 0.0) @ market.available
        + np.minimum(_least_of(beyond, c, len(need)), 0.0).sum()
    )
    kept = least + np.maximum(beyond, 0.0) <= budget * (1 + ROUNDING)
    return c[kept], y[kept]


def _least_of(values: Floats, group: Ints, groups: int) -> Floats:
    least = np.full(groups, np.inf)
    np.minimum.at(least, group, values)
    return least


def _mixed(market: Market, need: Ints, usable: Bools, effort: Effort) -> Ints | None:
    """Any types for the tasks of a component.

    A level n of parallelism is chosen, then n machines of the types that do with n tasks.
    """
    from scipy.sparse import csr_array

    level: list[tuple[int, int]] = sorted(
        {(int(c), int(need[c, y])) for c, y in zip(*np.nonzero(usable), strict=True)}
    )
    arcs = [
        (i, c, y)
        for i, (c, n) in enumerate(level)
        for y in np.flatnonzero(usable[c] & (need[c] <= n)).tolist()
    ]
    levels, size = len(level), len(level) + len(arcs)
    at = np.arange(len(arcs))
    which, owner, kind = (np.array(column) for column in zip(*arcs, strict=True))
    one = csr_array(
        (np.ones(levels), ([c for c, _ in level], np.arange(levels))), shape=(len(need), size)
    )
    filled = csr_array(
        (
            np.concatenate([np.ones(len(arcs)), [-float(n) for _, n in level]]),
            (
                np.concatenate([which, np.arange(levels)]),
                np.concatenate([levels + at, np.arange(levels)]),
            ),
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
    chosen = _solve(
        cost, rows, effort, np.concatenate([np.ones(levels), np.full(len(arcs), np.inf)])
    )
    if chosen is None:
        return None
    machines = np.zeros_like(need)
    np.add.at(machines, (owner, kind), np.round(chosen[levels:]).astype(np.int64))
    return machines


def _solve(
    cost: Floats, rows: list[LinearConstraint], effort: Effort, upper: float | Floats = 1.0
) -> Floats | None:
    """Least cost over whole numbers; None where the budget forbids every solution."""
    if np.isfinite(effort.budget):
        rows = [*rows, highs.rows(cost[None, :], -np.inf, effort.budget * (1 + ROUNDING / 2))]
    options: dict[str, float] = {"mip_rel_gap": 1.0 if effort.any_will_do else 1e-9}
    if effort.soon:
        options["node_limit"] = SOON
    result = highs.solve_integer_program(
        cost,
        constraints=rows,
        integrality=np.ones(len(cost)),
        bounds=highs.bounds(0, upper),
        options=options,
    )
    if result.x is None and effort.soon and result.status != 2:  # 2: proven to have no solution
        raise _Undecided
    return None if result.x is None else np.asarray(result.x, dtype=np.float64)


def fastest(market: Market, budget: float, *, mixed: bool = False) -> Ints | None:
    """The cheapest machines [C, Y] for the largest factor within a budget; None if none are."""
    if cheapest(market, 0.0, budget=budget, mixed=mixed, any_will_do=True) is None:
        return None
    factors = candidates(market, budget)
    low, high = -1, len(factors)  # factors[low] is carried, factors[high] is not
    single = fastest(market, budget) if mixed else None
    if single is not None:
        low = int(np.searchsorted(factors, market.factor(single) * (1 - ROUNDING)))
    # From here on nothing is known to be carried, but only factors[high] is known not to be.
    doubtful = high
    while high - low > 1:
        # A proof that a factor just above the best one is too much takes longest, and one such
        # proof is enough: what is not decided soon is left for later, when only the next factor is
        # asked about.
        sure = doubtful - low <= 1
        middle = low + 1 if sure else (low + doubtful) // 2
        try:
            found = cheapest(
                market,
                float(factors[middle]),
                budget=budget,
                mixed=mixed,
                any_will_do=True,
                soon=not sure,
            )
        except _Undecided:
            doubtful = middle
            continue
        if found is None:
            high = doubtful = middle
        else:  # whole machines may carry more than was asked for
            low = max(
                middle,
                int(np.searchsorted(factors, market.factor(found) * (1 + ROUNDING), side="right"))
                - 1,
            )
            low = min(low, high - 1)
            doubtful = high if sure else max(doubtful, low + 1)
    return cheapest(market, float(factors[low]) if low >= 0 else 0.0, budget=budget, mixed=mixed)


def candidates(market: Market, budget: float) -> Floats:
    """Every factor at which some component could be the one that limits, ascending."""
    real = np.isfinite(market.carries) & (market.carries > 0)
    if not real.any():
        return np.zeros(0)
    highest = market.highest(budget)
    tasks = np.where(
        real, np.minimum(highest / np.where(real, market.carries, 1.0), market.available), 0.0
    )
    tasks = np.minimum(np.ceil(tasks), market.most[:, None]).astype(np.int64)
    if tasks.sum() > MOST_CANDIDATES:
        raise Unsupported(
            f"the budget would buy {int(tasks.max()):,} machines for one component; "
            "too many to search one by one",
            resource="machines",
            needed=float(tasks.sum()),
            available=MOST_CANDIDATES,
            fix="use headrace",
        )
    cells = np.argwhere(real).tolist()
    return np.unique(
        np.concatenate(
            [market.carries[c, y] * np.arange(1, int(tasks[c, y]) + 1) for c, y in cells]
        )
    )

"""Bounds on the traffic that nodes can keep, ever closer: greed's guess, made sure by search.

At any prices of the tasks

    prices @ count + sum over node classes of nodes * (most that a pattern is worth at these prices)

is an upper bound on the traffic kept. Greed finds good prices soon (`prices`); to be sure of the
most that a pattern is worth takes a search of its patterns, which is short if it may overlook what
is worth little more. Where nodes are scarce, each node class starts with much that is overlooked
and gets less, the class first where that gains most for its time. Where there are nodes in plenty,
what is overlooked on each would add up to nothing useful: there the prices are raised until no
pattern pays, and by ever less.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.proof.knapsack import Knapsack
from headrace.solve.proof.knapsack_search import advance_search, start_search
from headrace.solve.proof.prices import CONVERGED, Master, Prices, Work, converge, master_of
from headrace.solve.symmetry import Quotient

RAISES = (3.0, 1.0, 0.3, 0.1, 0.05, 0.02, 0.01, 0.003, 0.0)  # of the prices, as a share
LESS = 0.6  # of what is overlooked, from one search to the next
LITTLE = 2e-4  # of all traffic: less is not worth a search of its own
STRETCH = 10_000_000  # visits between two looks at the clock
BEST_FOUND = 32  # patterns that a search hands over
PLENTY = 0.5  # share of the room: what needs less has nodes in plenty


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is known of the traffic that nodes can keep."""

    upper: float  # no plan keeps more
    hoped: float  # no bound of this kind is less


Bounds = Iterator[Estimate | None]  # None: nothing new yet, somebody else may go first


def kept_bounds(q: Quotient, work: Work) -> Bounds:
    """Ever better bounds, until the work is spent or nothing is gained any more."""
    master = master_of(q)
    yield from _raise_prices(master, work) if in_plenty(q) else _search_closer(master, work)


def in_plenty(q: Quotient) -> bool:
    """Whether there are so many nodes that what is overlooked on each would add up."""
    needed = (q.demand.min(axis=0) * q.count[:, None]).sum(axis=0)
    room = (np.maximum(q.room, 0.0) * q.nodes[:, None]).sum(axis=0)
    return bool((needed <= PLENTY * room).all())


def _raise_prices(master: Master, work: Work) -> Bounds:
    """Bounds from prices that are raised by less and less."""
    prices = yield from converge(master, None, work)
    for scale in 1.0 + np.array(RAISES):
        worth: Floats | None = None
        while worth is None:
            if prices is None or work.spent():
                return
            worth = yield from _sure_worth(master, prices, scale, work)
            if worth is None:
                prices = yield from converge(master, prices, work)
            else:
                upper = scale * float(prices.task @ master.q.count) + float(worth @ master.q.nodes)
                yield Estimate(min(upper, master.total), prices.program)


def _sure_worth(
    master: Master, prices: Prices, scale: float, work: Work
) -> Generator[None, None, Floats | None]:
    """The most that a pattern of each node class is worth; None if a new pattern turns up."""
    worth = scale * prices.node + 1e-9 * master.total
    for j, knapsack in enumerate(master.knapsacks):
        price = scale * prices.task
        sure, found = yield from search_patterns(
            knapsack, price, float(worth[j]), work, any_will_do=True
        )
        if sure is not None and master.add(j, found):
            return None
        worth[j] = np.inf if sure is None or len(found) else sure
    return worth


def _search_closer(master: Master, work: Work) -> Bounds:
    """Bounds from prices of which less and less is overlooked; then from better prices."""
    prices: Prices | None = None
    best, patterns = master.total, -1
    while patterns < len(master.pattern):
        prices = yield from converge(master, prices, work)
        patterns = len(master.pattern)
        if prices is None or work.spent():
            return
        for upper in _look_closer(master, prices, work):
            best = best if upper is None else min(best, upper)
            yield None if upper is None else Estimate(best, prices.program)
        if best - prices.program <= CONVERGED * master.total:
            return


def _look_closer(master: Master, prices: Prices, work: Work) -> Iterator[float | None]:
    """Bounds at these prices: what is overlooked on nodes becomes less, search by search."""
    q = master.q
    paid = float(prices.task @ q.count)
    worth = np.array([root_worth(knapsack, prices.task) for knapsack in master.knapsacks])
    worth = np.maximum(worth, prices.node)
    spent = np.ones(len(worth))  # on the last search of a node class; inf: its worth is exact
    yield paid + float(worth @ q.nodes)
    while not np.isinf(spent).all():
        over = np.where(np.isinf(spent), -1.0, (worth - prices.node) * q.nodes)
        j = int(np.argmax(over / np.minimum(spent, 1e300)))
        slack = LESS * float(worth[j] - prices.node[j])
        if slack * q.nodes[j] < LITTLE * master.total:
            slack = 0.0
        floor, before = float(prices.node[j]) + slack, work.done
        sure, found = yield from search_patterns(
            master.knapsacks[j], prices.task, floor, work, any_will_do=False
        )
        if sure is None:
            return
        master.add(j, found)
        exact = sure > floor or slack == 0.0
        worth[j], spent[j] = max(sure, 0.0), np.inf if exact else max(work.done - before, 1.0)
        yield paid + float(worth @ q.nodes)


def root_worth(knapsack: Knapsack, price: Floats) -> float:
    """A first bound on what a pattern is worth at these prices."""
    return max(float(start_search(knapsack, -price, 0.0).upper[0]), 0.0)


def search_patterns(
    knapsack: Knapsack, price: Floats, floor: float, work: Work, *, any_will_do: bool
) -> Generator[None, None, tuple[float | None, Ints]]:
    """What no pattern is worth more than, at least the floor, and patterns above the floor.

    With `any_will_do`, the search ends with the first patterns found. None for the worth where the
    work is spent before.
    """
    each = 4 * len(knapsack.most) + int(np.count_nonzero(knapsack.weight))
    search = start_search(knapsack, -price, floor)
    found = np.zeros((BEST_FOUND, len(knapsack.most)), dtype=np.int64)
    hits = 0
    while search.depth[0] >= 0:
        if work.spent():
            return None, found[: min(hits, BEST_FOUND)]
        before = int(search.nodes[0])
        hits += advance_search(
            knapsack, search, False, found, np.zeros(BEST_FOUND), STRETCH // each + 1
        )
        work.spend(each * (int(search.nodes[0]) - before))
        if hits and any_will_do:
            break
        if search.depth[0] >= 0:
            yield
    return float(search.floor[0]), found[: min(hits, BEST_FOUND)]

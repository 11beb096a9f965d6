"""The fastest machines within a budget, and the least budget that buys any."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.model.arrays import Ints
from headrace.model.sized import Provisioned
from headrace.provision.alone import rent_fastest_alone
from headrace.provision.least_cost import rent_least_cost
from headrace.provision.offer import (
    ENOUGH,
    MOST_MISSES,
    SLACK,
    Offer,
    estimate_factors,
    list_exchanges,
)
from headrace.provision.one_each import market_of
from headrace.provision.refusals import too_little_money
from headrace.solve.counts.fill import Filled
from headrace.solve.counts.rate_lp import fastest_machines, most_rate

LEAST = 1e-3  # of what one machine carries: a rate that works at all


def rent_most_throughput(offer: Offer, budget: float) -> Provisioned:
    """The fastest machines found within a budget."""
    alone = rent_fastest_alone(offer, budget)
    fluid = fastest_machines(offer.pools, offer.price, offer.available, budget)
    best = None
    if fluid is not None:
        best = fill_and_exchange(offer, budget, np.round(fluid.machines).astype(np.int64))
    plan = None if best is None else offer.plan(*best)
    if alone is not None and (plan is None or alone.rate > plan.rate):
        plan = alone
    if plan is None or not plan.rate > 0:
        raise too_little_money(budget, find_least_budget(offer))
    bound = None if fluid is None else max(fluid.bound * offer.load.spout_rate, plan.rate)
    return replace(plan, bound=bound, bound_of="rate", bound_kind="machines whole, work divisible")


def fill_and_exchange(offer: Offer, budget: float, machines: Ints) -> tuple[Ints, Filled] | None:
    """Fill the machines, then exchange some within the budget while that raises the factor."""
    first = offer.fill(machines)
    best = None if first is None else (machines, first)
    improved = True
    while improved and not offer.is_time_up():
        improved, misses = False, 0
        here = machines if best is None else best[0]
        more = [here + row for row in np.eye(len(here), dtype=np.int64)]
        rows = [
            row for row in [*more, *list_exchanges(offer, here)] if (row <= offer.available).all()
        ]
        rows = [row for row in rows if row.any() and offer.cost(row) <= budget * (1 + ENOUGH)]
        reach = estimate_factors(offer, here, rows)
        for i in np.argsort(-reach, kind="stable").tolist():
            factor = 0.0 if best is None else best[1].factor
            if misses >= MOST_MISSES or offer.is_time_up() or reach[i] <= factor:
                break
            fluid = most_rate(offer.pools, rows[i].astype(np.float64))
            if fluid is None or fluid.bound <= factor * SLACK:
                continue
            misses += 1
            found = offer.fill(rows[i])
            if found is not None and found.factor > factor * (1 + 1e-4):
                best, improved = (rows[i], found), True
                break
    return best


def find_least_budget(offer: Offer) -> float:
    """The cost of the cheapest machines that carry anything at all."""
    tiny = LEAST * float(market_of(offer.load).carries.max(axis=1).min())
    return rent_least_cost(offer, tiny * offer.load.spout_rate).cost

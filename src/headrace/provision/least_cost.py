"""The cheapest machines that carry a rate, and the largest rate that any carry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.errors import Unsupported
from headrace.model.arrays import Ints
from headrace.model.sized import Provisioned
from headrace.provision.alone import make_shop, rent_cheapest_alone
from headrace.provision.offer import (
    ENOUGH,
    MOST_MISSES,
    SLACK,
    Offer,
    bound_factor,
    estimate_factors,
    list_exchanges,
)
from headrace.provision.optimal import find_largest_rate_alone
from headrace.provision.refusals import too_fast
from headrace.solve.counts.cutting_stock import pack_machines
from headrace.solve.counts.fill import Filled
from headrace.solve.counts.rate_lp import Fluid, cheapest_machines, most_rate

MARGIN = 0.002  # the least by which more is asked for after machines could not be filled
USUAL = 0.985  # of the bound: what filling usually reaches
HANDFUL = 8  # machines that a search fills well
NEAR = 1.01  # of the bound: cost above which a handful is also looked for by patterns
FEW = 40  # machines up to which single ones are exchanged; with more, patterns are good enough
HALVINGS = 4  # between a rate that works and one that cannot


def rent_least_cost(offer: Offer, rate: float) -> Provisioned:
    """The cheapest machines found that carry a rate."""
    factor = rate / offer.load.spout_rate
    fluid = cheapest_machines(offer.pools, offer.price, offer.available, factor)
    found = find_machines(offer, factor)
    plan = None if found is None else plan_to_carry(offer, rate, *found)
    # One machine per task: at the least the cheapest machine for each component.
    least_alone = np.where(offer.load.fits, offer.price, np.inf).min(axis=1).sum()
    if plan is None or least_alone < plan.cost:
        alone = rent_cheapest_alone(offer, factor)
        if plan is None or (alone is not None and alone.cost < plan.cost * (1 - ENOUGH)):
            plan = alone
    if plan is None:
        raise too_fast(rate, find_largest_rate(offer))
    bound = plan.cost if fluid is None else min(fluid.bound, plan.cost)
    return replace(plan, bound=bound, bound_of="cost", bound_kind="machines whole, work divisible")


def find_machines(offer: Offer, factor: float) -> tuple[Ints, Filled] | None:
    """Cheap machines that carry a factor, and counts on them; None if none were found.

    A handful are found by search, many by patterns; a few are then exchanged one by one.
    """
    fluid = cheapest_machines(offer.pools, offer.price, offer.available, factor)
    if fluid is None:
        return None
    handful = fluid.machines.sum() <= HANDFUL
    found = None if handful else choose_by_patterns(offer, fluid)
    if found is not None and found[0].sum() > FEW:
        return found
    found = (
        find_first_that_carries(offer, factor, np.inf if found is None else offer.cost(found[0]))
        or found
    )
    found = None if found is None else exchange_for_cheaper(offer, factor, *found)
    if handful and (found is None or offer.cost(found[0]) > fluid.bound * NEAR):
        other = choose_by_patterns(offer, fluid)
        if other is not None and (
            found is None or offer.cost(other[0]) < offer.cost(found[0]) * (1 - ENOUGH)
        ):
            return other
    return found


def choose_by_patterns(offer: Offer, fluid: Fluid) -> tuple[Ints, Filled] | None:
    """Machines chosen by what each can hold; None where more than that limits a plan."""
    problem = offer.load.problem
    if (
        offer.load.copied
        or len(problem.topologies) > 1
        or np.isfinite(problem.worker_heap_mb).any()
    ):
        return None
    found = pack_machines(offer.pools, fluid, offer.price, offer.available, offer.request.deadline)
    return None if found is None else (found[0], Filled(found[1], fluid.factor, fluid.factor))


def plan_to_carry(offer: Offer, rate: float, machines: Ints, found: Filled) -> Provisioned | None:
    """The plan of these machines, or of more where sending makes it too slow for the rate.

    More machines are found by asking for a higher rate; None if they do not help.
    """
    plan = offer.plan(machines, found)
    asked = rate
    for _ in range(6):
        if plan.rate >= rate * (1 - 1e-6) or offer.is_time_up():
            break
        asked *= min(2.0, rate / max(plan.rate, rate / 2)) * 1.01
        more = find_machines(offer, asked / offer.load.spout_rate)
        if more is None:
            return None
        plan = offer.plan(*more)
    return plan if plan.rate >= rate * (1 - 1e-6) else None


def find_first_that_carries(
    offer: Offer, factor: float, below: float
) -> tuple[Ints, Filled] | None:
    """The first machines that, when filled, carry the factor; None if none below a cost do.

    Tried are the cheapest machines for the factor, then for a little more, and so on.
    """
    asked = factor
    while not offer.is_time_up():
        fluid = cheapest_machines(offer.pools, offer.price, offer.available, asked)
        if fluid is None:
            break
        machines = np.round(fluid.machines).astype(np.int64)
        if offer.cost(machines) >= below:
            return None
        found = offer.fill(machines, enough=factor)
        reached = 0.0 if found is None else found.factor
        if found is not None and reached >= factor * (1 - ENOUGH):
            return machines, found
        # Add most of what could not be filled, not all: the next machines may be easier to fill.
        missed = min(max(factor / reached - 1, MARGIN), 1.0) if reached > 0 else 1.0
        asked *= 1 + max(MARGIN, 0.7 * missed)
    if not np.isfinite(offer.available).all():
        return None
    everything = offer.available.astype(np.int64)
    found = fill_to_carry(offer, everything, factor) if offer.cost(everything) < below else None
    return None if found is None else (everything, found)


def fill_to_carry(offer: Offer, machines: Ints, factor: float) -> Filled | None:
    """Counts on these machines that carry a factor; None if none were found."""
    found = offer.fill(machines, enough=factor)
    return found if found is not None and found.factor >= factor * (1 - ENOUGH) else None


def exchange_for_cheaper(
    offer: Offer, factor: float, machines: Ints, found: Filled
) -> tuple[Ints, Filled]:
    """Exchange machines for cheaper ones as long as the factor is still carried."""
    improved = True
    while improved and not offer.is_time_up():
        improved, misses = False, 0
        rows = [
            row
            for row in list_exchanges(offer, machines)
            if offer.cost(row) < offer.cost(machines) * (1 - ENOUGH)
        ]
        reach = estimate_factors(offer, machines, rows)
        # Those that can probably be filled, cheapest first; then the others, the one that reaches
        # furthest first.
        order = sorted(
            range(len(rows)),
            key=lambda i: (
                (0, offer.cost(rows[i])) if reach[i] * USUAL >= factor else (1, -reach[i])
            ),
        )
        for i in order:
            if misses >= MOST_MISSES or offer.is_time_up() or reach[i] < factor:
                break
            fluid = most_rate(offer.pools, rows[i].astype(np.float64))
            if fluid is None or fluid.bound < factor * SLACK:
                continue
            misses += 1
            better = fill_to_carry(offer, rows[i], factor)
            if better is not None:
                machines, found, improved = rows[i], better, True
                break
    return machines, found


def find_largest_rate(offer: Offer) -> float:
    """The largest rate for which machines can be rented, as far as it was found."""
    if np.isfinite(offer.available).all():
        everything = offer.available.astype(np.int64)
        found = offer.fill(everything)
        together = 0.0 if found is None else offer.plan(everything, found).rate
        together = raise_rate_by_patterns(offer, together)
    else:
        together = 0.0
    try:
        return max(together, find_largest_rate_alone(make_shop(offer), mixed=True))
    except Unsupported:
        return together


def raise_rate_by_patterns(offer: Offer, rate: float) -> float:
    """A higher rate than one known to work that machines chosen by patterns carry, if any."""
    reach = bound_factor(offer, offer.available.astype(np.int64))
    low, high = rate / offer.load.spout_rate, reach
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        fluid = cheapest_machines(offer.pools, offer.price, offer.available, middle)
        found = None if fluid is None else choose_by_patterns(offer, fluid)
        plan = None if found is None else offer.plan(*found)
        if plan is None or plan.rate < middle * offer.load.spout_rate * (1 - 1e-6):
            high = middle
        else:
            low, rate = middle, min(plan.rate, middle * offer.load.spout_rate)
    return rate

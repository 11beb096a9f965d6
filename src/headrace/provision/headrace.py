"""Headrace's own provisioning: machines chosen, filled and connected together, with a proven bound.

Source    ours; an integer program over machines and divisible work gives the bound and the first
          machines; they are filled by the search of `size/headrace`, then exchanged for others as
          long as that helps.
Maturity  ours
Guards    budget, availability, CPU, memory and further resources, slots, worker heap, separations
          and `max_tasks` are never broken; no task is planned above one thread; bandwidth and the
          price of sending are kept at the rate given.
Differs   nothing to differ from. With `machine_per_task` it is the exact search of `optimal`, for
          small problems with mixed types. Otherwise the plan of one machine per task is among those
          it compares, so sharing machines never costs throughput.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from headrace.errors import Unsupported
from headrace.judge.thread_rate import thread_rate
from headrace.model.arrays import Floats, Ints
from headrace.model.sizable import Load, left_out, load_of, sizable
from headrace.model.sized import Provisioned
from headrace.model.workload import Workload
from headrace.place.building_blocks.filled import placed
from headrace.provision.one_each import Shop, market_of, rented
from headrace.provision.optimal import largest_rate
from headrace.provision.optimal import optimal as one_machine_per_task
from headrace.provision.wanted import (
    checked,
    too_fast,
    too_few_machines,
    too_little_money,
    too_little_money_for,
)
from headrace.solve.counts.cutting_stock import pack_machines
from headrace.solve.counts.dop import cheapest, fastest
from headrace.solve.counts.fill import Filled, fill_machines, pools_of
from headrace.solve.counts.rate_lp import (
    Fluid,
    Pools,
    cheapest_machines,
    fastest_machines,
    most_rate,
)

MARGIN = 0.002  # the least by which more is asked for after machines could not be filled
SLACK = 1.002  # machines whose bound is no further above what is wanted are not worth filling
USUAL = 0.985  # of the bound: what filling usually reaches
HANDFUL = 8  # machines that a search fills well
NEAR = 1.01  # of the bound: cost above which a handful is also looked for by patterns
FEW = 40  # machines up to which single ones are exchanged: with more, patterns leave less to gain than a search costs
MOST_MISSES = 8  # other machines filled in vain, one after the other, before the search ends
MOST_MIXED = 200  # components x types up to which several types per component are searched; they help only where machines are scarce
HALVINGS = 4  # between a rate that works and one that cannot
ENOUGH = 1e-9  # relative: by how much a rate may miss
LEAST = 1e-3  # of what one machine carries: a rate that works at all


def headrace(
    workload: Workload,
    *,
    budget: float | None = None,
    rate: float | None = None,
    seed: int = 0,
    steps: int | None = None,
    deadline: Callable[[], bool] | None = None,
) -> Provisioned:
    """Most throughput within a budget, or least cost for a rate; with both, least cost, refused above the budget."""
    checked(budget, rate)
    if workload.machine_per_task:
        few = len(workload.components) * len(workload.catalog) <= MOST_MIXED
        return one_machine_per_task(workload, budget=budget, rate=rate, mixed=few)
    offer = offer_of(workload, seed, steps, deadline)
    if rate is not None:
        plan = least_cost(offer, rate)
        if budget is not None and plan.cost > budget * (1 + ENOUGH):
            raise too_little_money_for(rate, budget, plan.cost)
        return plan
    assert budget is not None
    return most_throughput(offer, budget)


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """A workload and the machines it can rent, with what ends the search. Y machine types."""

    workload: Workload
    load: Load  # on one machine of each type
    pools: Pools
    price: Floats  # [Y]
    available: Floats  # [Y] inf where there is no limit
    seed: int
    steps: int | None
    deadline: Callable[[], bool] | None
    notes: tuple[str, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Machine types."""
        return self.load.problem.types

    def cost(self, machines: Ints) -> float:
        """Price of machines[Y]."""
        return float((machines * self.price).sum())

    def ended(self) -> bool:
        """Whether time is up."""
        return self.deadline is not None and self.deadline()

    def fill(
        self, machines: Ints, steps: int | None, enough: float = np.inf
    ) -> tuple[Load, Filled] | None:
        """The load on these machines, and the best counts found on them; None where no plan was found."""
        rented_now = {kind: int(n) for kind, n in zip(self.kinds, machines, strict=True) if n}
        if not rented_now:
            return None
        one_each = {c.name: 1 for c in self.workload.components}
        load = Load(
            self.workload.problem(one_each, rented_now),
            self.workload,
            self.load.most,
            self.load.spout_rate,
        )
        found: Filled | None = None
        for _ in range(3 if load.copied else 1):
            found = fill_machines(
                load, seed=self.seed, steps=steps, deadline=self.deadline, enough=enough
            )
            if found is None or not load.copied:
                break
            load = load.at(found.tasks(load))
        return None if found is None else (load, found)

    def plan(self, machines: Ints, found: Filled) -> Provisioned:
        """The machines with their tasks placed; machines that stay empty are not rented."""
        used = found.x.any(axis=0)
        kept = np.zeros_like(machines)
        kind_of = np.repeat(np.arange(len(machines)), machines)
        np.add.at(kept, kind_of[used], 1)
        tasks = found.tasks(self.load)
        problem = self.workload.problem(
            tasks, {kind: int(n) for kind, n in zip(self.kinds, kept, strict=True) if n}
        )
        node = Filled(found.x[:, used], found.factor, found.bound).node
        assignment = placed(problem, node, seed=self.seed, steps=self.steps, deadline=self.deadline)
        return Provisioned(
            machines={kind: int(n) for kind, n in zip(self.kinds, kept, strict=True) if n},
            tasks=tasks,
            problem=problem,
            assignment=assignment,
            cost=self.cost(kept),
            rate=thread_rate(problem, assignment),
            notes=(*problem.notes, *self.notes),
            workload=self.workload,
        )


def offer_of(
    workload: Workload, seed: int, steps: int | None, deadline: Callable[[], bool] | None
) -> Offer:
    """Read what can be rented; refuse what fits no machine."""
    notes = left_out(workload)
    workload = sizable(workload, catalog=True)
    load = load_of(workload, catalog=True)
    load.refuse_what_fits_nowhere()
    pools, _, _ = pools_of(load)  # one pool per type, in the order of the catalog
    catalog = workload.catalog.values()
    available = np.array([np.inf if m.available is None else float(m.available) for m in catalog])
    if not (load.fits & (available > 0)).any(axis=1).all():
        raise too_few_machines(len(load.most), int(np.minimum(available, 1e9).sum()))
    return Offer(
        workload,
        load,
        pools,
        np.array([m.price for m in catalog]),
        available,
        seed,
        steps,
        deadline,
        notes,
    )


def least_cost(offer: Offer, rate: float) -> Provisioned:
    """The cheapest machines found that carry a rate."""
    factor = rate / offer.load.spout_rate
    fluid = cheapest_machines(offer.pools, offer.price, offer.available, factor)
    found = machines_for(offer, factor)
    plan = None if found is None else carrying(offer, rate, *found)
    # One machine per task: at the least the cheapest machine for each component.
    least_alone = np.where(offer.load.fits, offer.price, np.inf).min(axis=1).sum()
    if plan is None or least_alone < plan.cost:
        alone = cheapest_alone(offer, factor)
        plan = (
            alone
            if plan is None or (alone is not None and alone.cost < plan.cost * (1 - ENOUGH))
            else plan
        )
    if plan is None:
        raise too_fast(rate, largest(offer))
    bound = plan.cost if fluid is None else min(fluid.bound, plan.cost)
    return replace(plan, bound=bound, bound_of="cost", bound_kind="machines whole, work divisible")


def machines_for(offer: Offer, factor: float) -> tuple[Ints, Filled] | None:
    """Cheap machines that carry a factor, filled: a handful by search, many by patterns; up to some number, single ones are exchanged."""
    fluid = cheapest_machines(offer.pools, offer.price, offer.available, factor)
    if fluid is None:
        return None
    handful = fluid.machines.sum() <= HANDFUL
    found = None if handful else by_patterns(offer, fluid)
    if found is not None and found[0].sum() > FEW:
        return found
    found = (
        first_that_carries(offer, factor, np.inf if found is None else offer.cost(found[0]))
        or found
    )
    found = None if found is None else cheaper(offer, factor, *found)
    if handful and (found is None or offer.cost(found[0]) > fluid.bound * NEAR):
        other = by_patterns(offer, fluid)
        if other is not None and (
            found is None or offer.cost(other[0]) < offer.cost(found[0]) * (1 - ENOUGH)
        ):
            return other
    return found


def by_patterns(offer: Offer, fluid: Fluid) -> tuple[Ints, Filled] | None:
    """Machines chosen by what they can hold; None where that is not all that limits what runs together."""
    problem = offer.load.problem
    if (
        offer.load.copied
        or len(problem.topologies) > 1
        or np.isfinite(problem.worker_heap_mb).any()
    ):
        return None
    found = pack_machines(offer.pools, fluid, offer.price, offer.available, offer.deadline)
    return None if found is None else (found[0], Filled(found[1], fluid.factor, fluid.factor))


def carrying(offer: Offer, rate: float, machines: Ints, found: Filled) -> Provisioned | None:
    """The plan of these machines; where sending makes it too slow, of machines for a higher rate, until it carries the one asked for."""
    plan = offer.plan(machines, found)
    asked = rate
    for _ in range(6):
        if plan.rate >= rate * (1 - 1e-6) or offer.ended():
            break
        asked *= min(2.0, rate / max(plan.rate, rate / 2)) * 1.01
        more = machines_for(offer, asked / offer.load.spout_rate)
        if more is None:
            return None
        plan = offer.plan(*more)
    return plan if plan.rate >= rate * (1 - 1e-6) else None


def first_that_carries(offer: Offer, factor: float, below: float) -> tuple[Ints, Filled] | None:
    """The cheapest machines for a little more than the factor that, when filled, carry it; None if there are none below a cost."""
    asked = factor
    while not offer.ended():
        fluid = cheapest_machines(offer.pools, offer.price, offer.available, asked)
        if fluid is None:
            break
        machines = np.round(fluid.machines).astype(np.int64)
        if offer.cost(machines) >= below:
            return None
        found = offer.fill(machines, offer.steps, enough=factor)
        reached = 0.0 if found is None else found[1].factor
        if found is not None and reached >= factor * (1 - ENOUGH):
            return machines, found[1]
        # What could not be filled comes on top, in part: the next machines may be easier to fill.
        missed = min(max(factor / reached - 1, MARGIN), 1.0) if reached > 0 else 1.0
        asked *= 1 + max(MARGIN, 0.7 * missed)
    if not np.isfinite(offer.available).all():
        return None
    everything = offer.available.astype(np.int64)
    found = (
        carried(offer, everything, factor, offer.steps) if offer.cost(everything) < below else None
    )
    return None if found is None else (everything, found)


def carried(offer: Offer, machines: Ints, factor: float, steps: int | None) -> Filled | None:
    """Counts on these machines that carry a factor; None if none were found."""
    found = offer.fill(machines, steps, enough=factor)
    return found[1] if found is not None and found[1].factor >= factor * (1 - ENOUGH) else None


def cheaper(offer: Offer, factor: float, machines: Ints, found: Filled) -> tuple[Ints, Filled]:
    """Exchange machines for cheaper ones as long as the factor is still carried."""
    improved = True
    while improved and not offer.ended():
        improved, misses = False, 0
        rows = [
            row
            for row in exchanges(offer, machines)
            if offer.cost(row) < offer.cost(machines) * (1 - ENOUGH)
        ]
        reach = estimated(offer, machines, rows)
        # Those that can probably be filled, cheapest first; then the others, as far above the
        # factor as they are.
        order = sorted(
            range(len(rows)),
            key=lambda i: (
                (0, offer.cost(rows[i])) if reach[i] * USUAL >= factor else (1, -reach[i])
            ),
        )
        for i in order:
            if misses >= MOST_MISSES or offer.ended() or reach[i] < factor:
                break
            fluid = most_rate(offer.pools, rows[i].astype(np.float64))
            if fluid is None or fluid.bound < factor * SLACK:
                continue
            misses += 1
            better = carried(offer, rows[i], factor, offer.steps)
            if better is not None:
                machines, found, improved = rows[i], better, True
                break
    return machines, found


def estimated(offer: Offer, machines: Ints, rows: list[Ints]) -> Floats:
    """About the factor that other machines could carry, from what one machine more or less of each type changes, [rows]."""
    here = _reach(offer, machines)
    one = np.eye(len(machines), dtype=np.int64)
    more = np.array(
        [
            _reach(offer, machines + row) - here
            if (machines + row <= offer.available).all()
            else 0.0
            for row in one
        ]
    )
    less = np.array(
        [here - _reach(offer, machines - row) if (machines >= row).all() else 0.0 for row in one]
    )
    change = np.array(rows).reshape(-1, len(machines)) - machines
    return here + np.maximum(change, 0) @ more - np.maximum(-change, 0) @ less


def _reach(offer: Offer, machines: Ints) -> float:
    fluid = most_rate(offer.pools, machines.astype(np.float64)) if machines.any() else None
    return 0.0 if fluid is None else fluid.bound


def exchanges(offer: Offer, machines: Ints) -> list[Ints]:
    """One or two machines fewer, or exchanged for one or two of another type."""
    kinds = len(machines)
    rows: list[Ints] = []
    for a in range(kinds):
        for taken in (1, 2):
            if machines[a] < taken:
                continue
            less = machines.copy()
            less[a] -= taken
            rows.append(less)
            for b in range(kinds):
                for given in (1, 2):
                    if b != a and less[b] + given <= offer.available[b]:
                        more = less.copy()
                        more[b] += given
                        rows.append(more)
    return list(np.unique(np.array(rows), axis=0)) if rows else []


def most_throughput(offer: Offer, budget: float) -> Provisioned:
    """The fastest machines found within a budget."""
    alone = fastest_alone(offer, budget)
    fluid = fastest_machines(offer.pools, offer.price, offer.available, budget)
    best = (
        None
        if fluid is None
        else fastest_filled(offer, budget, np.round(fluid.machines).astype(np.int64))
    )
    plan = None if best is None else offer.plan(*best)
    if alone is not None and (plan is None or alone.rate > plan.rate):
        plan = alone
    if plan is None or not plan.rate > 0:
        raise too_little_money(budget, least_budget(offer))
    bound = None if fluid is None else max(fluid.bound * offer.load.spout_rate, plan.rate)
    return replace(plan, bound=bound, bound_of="rate", bound_kind="machines whole, work divisible")


def fastest_filled(offer: Offer, budget: float, machines: Ints) -> tuple[Ints, Filled] | None:
    """Fill the machines, then exchange some within the budget while that raises the factor."""
    first = offer.fill(machines, offer.steps)
    best = None if first is None else (machines, first[1])
    improved = True
    while improved and not offer.ended():
        improved, misses = False, 0
        here = machines if best is None else best[0]
        more = [here + row for row in np.eye(len(here), dtype=np.int64)]
        rows = [row for row in [*more, *exchanges(offer, here)] if (row <= offer.available).all()]
        rows = [row for row in rows if row.any() and offer.cost(row) <= budget * (1 + ENOUGH)]
        reach = estimated(offer, here, rows)
        for i in np.argsort(-reach, kind="stable").tolist():
            factor = 0.0 if best is None else best[1].factor
            if misses >= MOST_MISSES or offer.ended() or reach[i] <= factor:
                break
            fluid = most_rate(offer.pools, rows[i].astype(np.float64))
            if fluid is None or fluid.bound <= factor * SLACK:
                continue
            misses += 1
            found = offer.fill(rows[i], offer.steps)
            if found is not None and found[1].factor > factor * (1 + 1e-4):
                best, improved = (rows[i], found[1]), True
                break
    return best


def least_budget(offer: Offer) -> float:
    """The cost of the cheapest machines that carry anything at all."""
    with np.errstate(divide="ignore"):
        carries = np.where(
            offer.load.by_rate > 0,
            (offer.load.thread - offer.load.fixed) / offer.load.by_rate,
            np.inf,
        )
    tiny = LEAST * float(np.where(offer.load.fits, carries, 0.0).max(axis=1).min())
    return least_cost(offer, tiny * offer.load.spout_rate).cost


def largest(offer: Offer) -> float:
    """The largest rate for which machines can be rented, as far as it was found."""
    if np.isfinite(offer.available).all():
        everything = offer.fill(offer.available.astype(np.int64), offer.steps)
        together = (
            0.0
            if everything is None
            else offer.plan(offer.available.astype(np.int64), everything[1]).rate
        )
        together = largest_by_patterns(offer, together)
    else:
        together = 0.0
    try:
        return max(together, largest_rate(shop_of_offer(offer), mixed=True))
    except Unsupported:
        return together


def largest_by_patterns(offer: Offer, rate: float) -> float:
    """A rate that machines chosen by patterns carry, if it is above one that is known to work."""
    reach = _reach(offer, offer.available.astype(np.int64))
    low, high = rate / offer.load.spout_rate, reach
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        fluid = cheapest_machines(offer.pools, offer.price, offer.available, middle)
        found = None if fluid is None else by_patterns(offer, fluid)
        plan = None if found is None else offer.plan(*found)
        if plan is None or plan.rate < middle * offer.load.spout_rate * (1 - 1e-6):
            high = middle
        else:
            low, rate = middle, min(plan.rate, middle * offer.load.spout_rate)
    return rate


def shop_of_offer(offer: Offer) -> Shop:
    """The same market for one machine per task."""
    if offer.load.copied:
        raise Unsupported("rates depend on counts")
    return Shop(offer.workload, offer.load, market_of(offer.load), offer.kinds, offer.notes)


def cheapest_alone(offer: Offer, factor: float) -> Provisioned | None:
    """The cheapest plan of one machine per task that carries a factor; None if there is none."""
    return _alone(offer, lambda shop: cheapest(shop.market, factor))


def fastest_alone(offer: Offer, budget: float) -> Provisioned | None:
    """The fastest plan of one machine per task within a budget; None if there is none."""
    return _alone(offer, lambda shop: fastest(shop.market, budget))


def _alone(offer: Offer, choose: Callable[[Shop], Ints | None]) -> Provisioned | None:
    try:
        shop = shop_of_offer(offer)
        machines = choose(shop)
    except Unsupported:
        return None
    return None if machines is None else rented(shop, machines)

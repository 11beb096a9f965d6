"""Uniform: the same number of tasks for every module, on the best machines there are for them.

Source    H. Cao et al., Throughput optimization for Storm-based processing of stream data on
          clouds, 2020: STORM_DEFAULT, the same degree of parallelism for all modules.
Maturity  inspired
Guards    budget, availability and memory are kept; bandwidth is not looked at.
Differs   the paper runs STORM_DEFAULT on machines that others chose. Here it rents its own: all of
          one type where there are enough, the best the budget pays for; where there are not, the
          rest of the next worse types, in the order of the modules. Without option `parallelism` it
          takes the number of tasks that gives the highest rate.
"""

from __future__ import annotations

import numpy as np

from headrace.errors import Infeasible, InvalidInput
from headrace.model.arrays import Ints
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.model.sized import Provisioned, round_up
from headrace.model.workload import Workload
from headrace.provision.one_each import Shop, plan_one_each, rank_types, shop_of
from headrace.provision.refusals import budget_of, too_little_money


def uniform(
    workload: Workload, request: Request = DEFAULT_REQUEST, *, parallelism: int | None = None
) -> Provisioned:
    """The same number of tasks everywhere: as given, or the fastest within the budget."""
    budget = budget_of(request, "uniform")
    if parallelism is not None and parallelism < 1:
        raise InvalidInput(f"uniform: option parallelism is {parallelism}; it must be at least 1")
    shop = shop_of(workload, "uniform")
    least = shop.least_budget()
    best, best_factor = None, -1.0
    number = parallelism or 1
    while (machines := rent_best_level(shop, number, budget)) is not None:
        if shop.market.factor(machines) > best_factor:
            best, best_factor = machines, shop.market.factor(machines)
        if parallelism is not None or number >= int(shop.market.most.max()):
            break
        number += 1
    if best is None:
        cheap = [
            cost
            for level in range(len(shop.kinds))
            if (cost := level_cost(shop, number, level)) is not None
        ]
        if not cheap:
            tasks = number * len(shop.market.carries)
            message = (
                f"{tasks} tasks need {tasks} machines that fit; "
                f"{int(shop.market.available.sum())} are available"
            )
            raise Infeasible(
                message,
                resource="machines",
                needed=tasks,
                available=float(shop.market.available.sum()),
                fix="lower parallelism",
            )
        enough = max(least, min(cheap))
        raise too_little_money(budget, round_up(enough))
    return plan_one_each(shop, best, bound=shop.fluid_bound(budget), bound_of="rate", kind="fluid")


def rent_best_level(shop: Shop, number: int, budget: float) -> Ints | None:
    """Machines of the best level that the budget pays for; None if it pays for none, [C, Y]."""
    for level in range(len(shop.kinds) - 1, -1, -1):
        machines = fill_from_level(shop, number, level)
        if machines is not None and shop.market.cost(machines) <= budget * (1 + 1e-9):
            return machines
    return None


def level_cost(shop: Shop, number: int, level: int) -> float | None:
    """Cost of a level of machines for every module; None if there are not enough."""
    machines = fill_from_level(shop, number, level)
    return None if machines is None else shop.market.cost(machines)


def fill_from_level(shop: Shop, number: int, level: int) -> Ints | None:
    """`number` machines of a level for every module; None if there are not enough, [C, Y].

    Where a level runs out, the next worse one follows; after the worst, the better ones.
    """
    market = shop.market
    order = rank_types(shop).tolist()
    order = [*order[level::-1], *order[level + 1 :]]
    left = market.available.copy()
    machines = np.zeros(market.carries.shape, dtype=np.int64)
    for c in range(len(machines)):
        wanted = min(number, int(market.most[c]))
        for y in order:
            if market.carries[c, y] > 0:
                taken = min(wanted, int(left[y]))
                machines[c, y] += taken
                left[y] -= taken
                wanted -= taken
        if wanted:
            return None
    return machines

"""VM-GREEDY, shared evenly: the best machine for every module first, then more of the same.

Source    H. Cao et al., Throughput optimization for Storm-based processing of stream data on
          clouds, 2020, sections 5.1 and 6.3: the two sentences about VM-GREEDY, read without the
          mappings of tables 4 and 8.
Maturity  inspired
Guards    budget, availability and memory are kept; bandwidth is not looked at.
Differs   `vm-greedy` is the reading that the printed mappings show. Here every module first gets
          one machine, the best that leaves enough for the cheapest machines of the modules after
          it; then, in the same order, one more of its type, as often as the budget allows.
"""

from __future__ import annotations

from headrace.model.arrays import Ints
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.model.sized import Provisioned
from headrace.model.workload import Workload
from headrace.provision.one_each import (
    Shop,
    plan_one_each,
    rank_types,
    rent_worst_everywhere,
    shop_of,
    sort_downstream,
)
from headrace.provision.refusals import budget_of


def vm_greedy_even(workload: Workload, request: Request = DEFAULT_REQUEST) -> Provisioned:
    """Give every module the best machine affordable, then more of the same while money is left."""
    budget = budget_of(request, "vm-greedy-even")
    shop = shop_of(workload, "vm-greedy-even")
    machines = rent_worst_everywhere(shop, budget)
    order = sort_downstream(shop.load)
    for module in order:
        machines = give_the_best(shop, machines, module, budget)
    while (more := add_one_each(shop, machines, order, budget)) is not None:
        machines = more
    return plan_one_each(
        shop, machines, bound=shop.fluid_bound(budget), bound_of="rate", kind="fluid"
    )


def give_the_best(shop: Shop, machines: Ints, module: int, budget: float) -> Ints:
    """The same machines, with the best affordable one for a module."""
    for y in rank_types(shop)[::-1].tolist():
        tried = machines.copy()
        tried[module] = 0
        tried[module, y] = 1
        if shop.market.carries[module, y] > 0 and is_affordable(shop, tried, budget):
            return tried
    return machines


def add_one_each(shop: Shop, machines: Ints, order: list[int], budget: float) -> Ints | None:
    """One more machine for every module that can still have one; None if none can."""
    grown = machines
    for module in order:
        tried = grown.copy()
        tried[module, int(grown[module].argmax())] += 1
        if tried[module].sum() <= shop.market.most[module] and is_affordable(shop, tried, budget):
            grown = tried
    return None if grown is machines else grown


def is_affordable(shop: Shop, machines: Ints, budget: float) -> bool:
    """Whether there are that many machines, and the budget pays for them."""
    market = shop.market
    return bool((machines.sum(axis=0) <= market.available).all()) and market.cost(
        machines
    ) <= budget * (1 + 1e-9)

"""The proven best with one machine per task: most throughput for a budget, least cost for a rate.

Source    ours; the problem is STM-BC of H. Cao et al., Throughput optimization for Storm-based
          processing of stream data on clouds, 2020.
Maturity  ours
Guards    budget, availability and memory are kept; bandwidth is not looked at, so a plan may be
          slower than its bound.
Differs   the paper has no exact algorithm beyond trying everything. One machine type per component
          as there; option `mixed` allows several.
"""

from __future__ import annotations

import numpy as np

from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.model.sized import Provisioned
from headrace.model.workload import Workload
from headrace.provision.one_each import Shop, plan_one_each, shop_of
from headrace.provision.refusals import (
    budget_of,
    check_request,
    too_fast,
    too_little_money,
    too_little_money_for,
)
from headrace.solve.counts.dop import cheapest, fastest


def optimal(
    workload: Workload, request: Request = DEFAULT_REQUEST, *, mixed: bool = False
) -> Provisioned:
    """Rent the best machines, every task on one of its own."""
    check_request(request)
    budget, rate = request.budget, request.rate
    shop = shop_of(workload, "optimal")
    if rate is not None:
        machines = cheapest(shop.market, rate / shop.load.spout_rate, mixed=mixed)
        if machines is None:
            shop.least_budget()
            raise too_fast(rate, find_largest_rate_alone(shop, mixed))
        cost = shop.market.cost(machines)
        if budget is not None and cost > budget * (1 + 1e-9):
            raise too_little_money_for(rate, budget, cost)
        return plan_one_each(shop, machines, bound=cost, bound_of="cost", kind="exact")
    budget = budget_of(request, "optimal")
    machines = fastest(shop.market, budget, mixed=mixed)
    if machines is None:
        raise too_little_money(budget, shop.least_budget())
    best = shop.market.factor(machines) * shop.load.spout_rate
    return plan_one_each(shop, machines, bound=best, bound_of="rate", kind="exact")


def find_largest_rate_alone(shop: Shop, mixed: bool) -> float:
    """The largest rate with one machine per task, whatever it costs."""
    machines = fastest(shop.market, np.inf, mixed=mixed)
    return 0.0 if machines is None else shop.market.factor(machines) * shop.load.spout_rate

"""BOTM: widen the bottleneck, over and over, while the budget lasts.

Source    H. Cao et al., Throughput optimization for Storm-based processing of stream data on
          clouds, 2020, algorithms 1 and 2, eq. 2-6.
Maturity  faithful
Guards    budget, availability and memory are kept; bandwidth is not looked at.
Differs   throughput is the closed form of eq. 2-3, min over modules of DoP / time per tuple; the
          authors' code works with finish times, which go wrong for even and for unequal DoP. The
          bottleneck is found by the modules' own rates, not by those a slower module upstream
          leaves them. Availability is checked for every type, the cost is the plain sum. The
          spout's interval is no limit: the rate is what the machines sustain. Where the worst type
          runs out before every module has a machine, the next better one is taken.
"""

from __future__ import annotations

import numpy as np

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
)
from headrace.provision.refusals import budget_of


def botm(workload: Workload, request: Request = DEFAULT_REQUEST) -> Provisioned:
    """Algorithm 1: every module on the worst type, then widen the bottleneck while that helps."""
    budget = budget_of(request, "botm")
    shop = shop_of(workload, "botm")
    machines = rent_worst_everywhere(shop, budget)
    steps = 0
    while (better := select_vt(shop, machines, bottleneck(shop, machines), budget)) is not None:
        machines = better
        steps += 1
    return plan_one_each(
        shop, machines, bound=shop.fluid_bound(budget), bound_of="rate", kind="fluid", steps=steps
    )


def bottleneck(shop: Shop, machines: Ints) -> int:
    """The module that is slowest by itself; the first of equals."""
    own = np.where(machines > 0, shop.market.carries * np.maximum(machines, 1), np.inf).min(axis=1)
    return int(own.argmin())


def select_vt(shop: Shop, machines: Ints, module: int, budget: float) -> Ints | None:
    """Algorithm 2: the machines for a module that raise the throughput most; None if none do.

    Tried are one more machine of its type, and as many or fewer of each better type.
    """
    market = shop.market
    order = rank_types(shop).tolist()
    current = int(machines[module].argmax())
    number = int(machines[module, current])
    others = machines.copy()
    others[module] = 0
    spent, taken = market.cost(others), others.sum(axis=0)
    elsewhere = market.factor(machines, of=np.arange(len(machines)) != module)
    best, best_factor = None, market.factor(machines)
    for position in range(order.index(current), len(order)):
        y = order[position]
        for n in [number + 1] if y == current else range(number, 0, -1):
            if (
                n > market.most[module]
                or market.carries[module, y] == 0
                or taken[y] + n > market.available[y]
            ):
                continue
            factor = min(elsewhere, float(market.carries[module, y]) * n)
            if spent + n * float(market.price[y]) <= budget * (1 + 1e-9) and factor > best_factor:
                best, best_factor = (y, n), factor
    if best is None:
        return None
    others[module, best[0]] = best[1]
    return others

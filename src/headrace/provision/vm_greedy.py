"""VM-GREEDY: for one module after the other, as many of the best machines as the money buys.

Source    H. Cao et al., Throughput optimization for Storm-based processing of stream data on
          clouds, 2020, sections 5.1 ("as many high-end VM instances as possible within the
          budget") and 6.3 (modules "in a topologically sorted order"); tables 3, 4, 7 and 8.
Maturity  faithful
Guards    budget, availability and memory are kept; bandwidth is not looked at.
Differs   the algorithm is not printed; this one gives the machines and the cost of table 4 exactly.
          One worst machine stays reserved for every module that is still to come. Tables 4 and 8
          serve w2, w5 and w1 first, for a reason that is not given: option `first` names the
          modules to serve before the others (`first=w2,w5,w1`). Table 8 buys one vt4 fewer and one
          vt3 more than this, and leaves 0.1864 of its budget. `vm-greedy-even` is the reading of
          the text alone.
"""

from __future__ import annotations

from headrace.errors import InvalidInput
from headrace.model.arrays import Ints
from headrace.model.nearest import nearest
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


def vm_greedy(
    workload: Workload, request: Request = DEFAULT_REQUEST, *, first: str = ""
) -> Provisioned:
    """Give every module, in turn, as many of the best machines as it can afford."""
    budget = budget_of(request, "vm-greedy")
    shop = shop_of(workload, "vm-greedy")
    machines = rent_worst_everywhere(shop, budget)  # what is reserved for the modules to come
    for module in order_modules(shop, first):
        machines = give_the_most(shop, machines, module, budget)
    return plan_one_each(
        shop, machines, bound=shop.fluid_bound(budget), bound_of="rate", kind="fluid"
    )


def order_modules(shop: Shop, first: str) -> list[int]:
    """The modules named first, then the others down the stream."""
    names = shop.load.problem.components
    wanted = [name.strip() for name in first.split(",") if name.strip()]
    for name in wanted:
        if name not in names:
            raise InvalidInput(
                f"vm-greedy: option first names `{name}`{nearest(name, names)}; "
                f"there are {', '.join(names)}"
            )
    named = [names.index(name) for name in dict.fromkeys(wanted)]
    return [*named, *(c for c in sort_downstream(shop.load) if c not in named)]


def give_the_most(shop: Shop, machines: Ints, module: int, budget: float) -> Ints:
    """The same machines, with as many of the best affordable type as possible for a module."""
    market = shop.market
    others = machines.copy()
    others[module] = 0
    money = budget * (1 + 1e-9) - market.cost(others)
    for y in rank_types(shop)[::-1].tolist():
        left = int(market.available[y] - others[:, y].sum())
        number = min(left, int(market.most[module]), int(money / market.price[y]))
        if market.carries[module, y] > 0 and number > 0:
            others[module, y] = number
            return others
    return machines

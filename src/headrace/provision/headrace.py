"""Headrace's own provisioning: machines, counts and places chosen together, with a bound.

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

from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.model.sized import Provisioned
from headrace.model.workload import Workload
from headrace.provision.least_cost import rent_least_cost
from headrace.provision.most_throughput import rent_most_throughput
from headrace.provision.offer import ENOUGH, read_offer
from headrace.provision.optimal import optimal as one_machine_per_task
from headrace.provision.refusals import budget_of, check_request, too_little_money_for

# Components x types up to which several types per component are searched: more takes long, and
# mixed types help only where machines are scarce.
MOST_MIXED = 200


def headrace(workload: Workload, request: Request = DEFAULT_REQUEST) -> Provisioned:
    """Most throughput within a budget, or least cost for a rate (refused above a budget)."""
    check_request(request)
    budget, rate = request.budget, request.rate
    if workload.machine_per_task:
        few = len(workload.components) * len(workload.catalog) <= MOST_MIXED
        return one_machine_per_task(workload, request, mixed=few)
    offer = read_offer(workload, request)
    if rate is not None:
        plan = rent_least_cost(offer, rate)
        if budget is not None and plan.cost > budget * (1 + ENOUGH):
            raise too_little_money_for(rate, budget, plan.cost)
        return plan
    return rent_most_throughput(offer, budget_of(request, "headrace"))

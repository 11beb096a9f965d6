"""Headrace's own provisioning: machines, counts and places chosen together, with a bound.

Source    ours; an integer program over machines and divisible work gives the bound and the first
          machines; they are filled by the search of `size/headrace`, then exchanged for others as
          long as that helps. Last, tasks are taken away as long as the rate is carried.
Maturity  ours
Guards    budget, availability, CPU, memory and further resources, slots, worker heap, separations
          and `max_tasks` are never broken; no task is planned above one thread; bandwidth and the
          price of sending are kept at the rate given.
Differs   nothing to differ from. With `machine_per_task` it is the exact search of `optimal`, for
          small problems with mixed types. Otherwise the plan of one machine per task is among those
          it compares, so sharing machines never costs throughput.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.errors import InvalidInput
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.model.sized import Provisioned
from headrace.model.workload import Workload
from headrace.provision.least_cost import rent_least_cost
from headrace.provision.most_throughput import rent_most_throughput
from headrace.provision.offer import ENOUGH, Offer, read_offer
from headrace.provision.optimal import optimal as one_machine_per_task
from headrace.provision.refusals import budget_of, check_request, too_little_money_for
from headrace.solve.counts.fill import Filled, trim_tasks

# Components x types up to which several types per component are searched: more takes long, and
# mixed types help only where machines are scarce.
MOST_MIXED = 200


def headrace(
    workload: Workload, request: Request = DEFAULT_REQUEST, *, within: float = 0.0
) -> Provisioned:
    """Most throughput within a budget, or least cost for a rate (refused above a budget).

    Of counts whose rate within a budget is `within` that share of the best found, the fewest tasks.
    """
    check_request(request)
    if not 0 <= within < 1:
        raise InvalidInput(f"headrace: option within is {within:g}; it must be from 0 to below 1")
    budget, rate = request.budget, request.rate
    if workload.machine_per_task:
        few = len(workload.components) * len(workload.catalog) <= MOST_MIXED
        return one_machine_per_task(workload, request, mixed=few)
    offer = read_offer(workload, request)
    if rate is not None:
        plan = rent_least_cost(offer, rate)
        if budget is not None and plan.cost > budget * (1 + ENOUGH):
            raise too_little_money_for(rate, budget, plan.cost)
        return use_fewer_tasks(offer, plan, rate)
    plan = rent_most_throughput(offer, budget_of(request, "headrace"))
    return use_fewer_tasks(offer, plan, plan.rate * (1 - within))


def use_fewer_tasks(offer: Offer, plan: Provisioned, rate: float) -> Provisioned:
    """The plan with fewer tasks on its machines, or on some of them, if they carry the rate."""
    machines = np.array([plan.machines.get(kind, 0) for kind in offer.kinds], dtype=np.int64)
    load = offer.load_on(machines)
    if plan.components or load.copied or offer.is_time_up() or not 0 < rate < np.inf:
        return plan
    nodes, factor = len(load.problem.nodes), rate / load.spout_rate
    owner = np.repeat(np.arange(len(load.most)), [plan.tasks[c] for c in load.problem.components])
    x = np.bincount(owner * nodes + plan.assignment.node, minlength=len(load.most) * nodes)
    found = trim_tasks(
        load,
        x.reshape(-1, nodes),
        factor,
        deadline=offer.request.deadline,
        seed=offer.request.seed,
        steps=offer.request.steps,
    )
    if found is None or found.sum() >= x.sum():
        return plan
    fewer = offer.plan(machines, Filled(found, factor, np.inf))
    if fewer.rate < rate * (1 - ENOUGH):
        return plan
    known = {"bound": plan.bound, "bound_of": plan.bound_of, "bound_kind": plan.bound_kind}
    if plan.bound is not None and plan.bound_of == "cost":
        known["bound"] = min(plan.bound, fewer.cost)
    return replace(fewer, **known)

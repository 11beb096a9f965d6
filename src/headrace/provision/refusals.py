"""Requests for a budget, a rate or both: checked, and refused in words."""

from __future__ import annotations

import math

from headrace.errors import Infeasible, InvalidInput
from headrace.model.request import Request
from headrace.model.sized import round_down, round_up


def check_request(request: Request) -> None:
    """Raise unless the budget and the rate make sense."""
    for name, value in (("budget", request.budget), ("rate", request.rate)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise InvalidInput(f"the {name} is {value:g}; it must be above 0")
    if request.budget is None and request.rate is None:
        raise InvalidInput(
            "give a budget, for the most throughput within it, "
            "or a rate, for the cheapest machines that carry it"
        )


def budget_of(request: Request, by: str) -> float:
    """The budget to spend, for algorithms that cannot plan for a rate."""
    check_request(request)
    if request.budget is None:
        raise InvalidInput(
            f"{by} spends a budget and cannot plan for a rate: "
            "give a budget, or use optimal or headrace"
        )
    return request.budget


def too_little_money(budget: float, least: float) -> Infeasible:
    """The refusal of a budget that buys no complete plan."""
    enough = round_up(least)
    return Infeasible(
        f"the budget of {budget:g} buys no machine for every task; "
        f"the least budget that works is {enough:g}",
        resource="budget",
        needed=enough,
        available=budget,
        fix=f"raise the budget to {enough:g}",
    )


def too_little_money_for(rate: float, budget: float, least: float) -> Infeasible:
    """The refusal of a budget that does not pay for a rate."""
    enough = round_up(least)
    return Infeasible(
        f"machines for {rate:g} tuples/s cost {enough:g}; the budget is {budget:g}",
        resource="budget",
        needed=enough,
        available=budget,
        fix=f"raise the budget to {enough:g}, or lower the rate",
    )


def too_fast(rate: float, largest: float) -> Infeasible:
    """The refusal of a rate that all machines together do not carry."""
    works = round_down(largest)
    return Infeasible(
        f"the machines that can be rented do not carry {rate:g} tuples/s; "
        f"the largest rate that works is {works:g}",
        resource="rate",
        needed=rate,
        available=works,
        fix=f"lower the rate to {works:g}, or offer more machines in the catalog",
    )


def too_few_machines(tasks: int, machines: int) -> Infeasible:
    """The refusal of a catalog without a machine for every component."""
    return Infeasible(
        f"one task of each component needs {tasks} machines that fit; {machines} are available",
        resource="machines",
        needed=tasks,
        available=machines,
        fix=f"offer {tasks - machines} more machines in the catalog"
        if tasks > machines
        else "offer more of the types that fit",
    )

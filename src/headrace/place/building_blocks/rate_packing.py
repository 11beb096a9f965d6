"""A higher rate by packing: tasks as large as they would be at that rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from headrace.model.arrays import Ints
from headrace.model.problem import CPU, Problem
from headrace.solve.classes import Classes
from headrace.solve.instance import Instance
from headrace.solve.rate.costs import RateCosts, rate_costs
from headrace.solve.rate.full_nodes import fill_to_capacity
from headrace.solve.rate.speed import sustained_rate

JUST_ABOVE = 1e-6  # as a share


def fill_to_the_brim(
    problem: Problem, classes: Classes, x: Ints, deadline: Callable[[], bool] | None
) -> Ints:
    """Raise the rate a little again and again, as long as a plan that wastes so little is found."""
    low, costs = sustained_rate(problem, classes, x), rate_costs(problem, classes)
    if not 0 < low < np.inf or not np.isfinite(classes.instance.capacity[:, CPU]).all():
        return x
    while deadline is None or not deadline():
        found = fill_to_capacity(scale_to_rate(classes, costs, low * (1 + JUST_ABOVE)))
        reached = 0.0 if found is None else sustained_rate(problem, classes, found)
        if found is None or reached <= low:
            break
        x, low = found, reached
    return x


def scale_to_rate(classes: Classes, costs: RateCosts, rate: float) -> Instance:
    """The instance with tasks as large as they are at a given rate."""
    demand = classes.instance.demand.copy()
    demand[:, :, CPU] = rate * costs.grows + costs.fixed
    return replace(classes.instance, demand=demand)

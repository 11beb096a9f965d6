"""A higher rate by packing: tasks as large as they would be at that rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from headrace.model.arrays import Ints
from headrace.model.problem import CPU, Problem
from headrace.solve.classes import Classes
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.search import least_crossing_search
from headrace.solve.rate.costs import RateCosts, rate_costs
from headrace.solve.rate.full_nodes import fill_to_capacity
from headrace.solve.rate.speed import sustained_rate

PACKINGS, PACKING_STEPS = 8, 20_000  # rates tried, and steps of search for each
FIRST_STEP = 0.001  # how much higher the first rate tried is, as a share
LEAST_STEP = 1e-4  # a smaller step is not worth a try
JUST_ABOVE = 1e-6  # as a share


def pack_for_more_rate(
    problem: Problem, classes: Classes, x: Ints, seed: int, deadline: Callable[[], bool] | None
) -> Ints:
    """Look for a plan with a higher rate by packing tasks as large as they are at that rate.

    Each rate that is reached doubles the next step up, each miss halves it.
    """
    low = sustained_rate(problem, classes, x)
    room, count = classes.instance.capacity[:, CPU], classes.instance.count
    costs = rate_costs(problem, classes)
    grows, fixed = float(count @ costs.grows.min(axis=0)), float(count @ costs.fixed.min(axis=0))
    if not 0 < low < np.inf or not np.isfinite(room).all() or grows <= 0:
        return x
    high = (float(np.maximum(room, 0.0).sum()) - fixed) / grows
    x = fill_to_the_brim(problem, classes, costs, x, deadline)
    low, step = sustained_rate(problem, classes, x), FIRST_STEP
    for attempt in range(PACKINGS):
        rate = min(low * (1 + step), (low + high) / 2)
        if rate <= low * (1 + LEAST_STEP) or (deadline is not None and deadline()):
            break
        instance = scale_to_rate(classes, costs, rate)
        found = least_crossing_search(
            instance, starts=[x], steps=PACKING_STEPS, deadline=deadline, seed=seed + attempt
        )
        reached = 0.0 if found is None else sustained_rate(problem, classes, found.x)
        if found is not None and reached > low:
            x, low, step = found.x, reached, 2 * step
        else:
            high, step = rate, step / 2
    return x


def fill_to_the_brim(
    problem: Problem,
    classes: Classes,
    costs: RateCosts,
    x: Ints,
    deadline: Callable[[], bool] | None,
) -> Ints:
    """Raise the rate a little again and again, as long as a plan that wastes so little is found."""
    low = sustained_rate(problem, classes, x)
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

"""Anytime search for a plan with little crossing traffic, on counts of tasks per class and node.

The work grows with classes x nodes, not with tasks. A few constructions (`construct`) are repaired
where they overload a node; the best is annealed (`anneal`) for a number of steps that follows from
the problem's size. Of problems too large for many rounds of that, clusters of classes are placed
first, in the same way; their plan is the first one of the classes (`cycles`). Where nodes are of
few kinds and classes of several tasks, annealing only starts: the plan is then mixed from good
fills of single nodes (`mixing`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from headrace.solve.least_traffic.cycles import clusters_pay, plan_in_cycles
from headrace.solve.least_traffic.feasible import hopeless
from headrace.solve.least_traffic.mixing import mixing_pays, plan_by_mixing
from headrace.solve.least_traffic.progress import MANY_CELLS, OutOfTime, Search, new_search
from headrace.solve.least_traffic.stages import (
    ONE_COOLING,
    build_first_plans,
    drop_nodes,
    improve,
    take_start,
)
from headrace.solve.least_traffic.terms import terms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.model.arrays import Floats, Ints
    from headrace.solve.instance import Instance


STEPS_BEFORE_MIXING = 0.1  # share of the steps for the plan that fills are first taken from


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The best plan of a search."""

    x: Ints  # [C, N] tasks of a class on a node
    crossing: float  # inter-node tuples/s
    cost: float  # the same with the price of racks
    moving: float  # cost of the moves away from the current plan, in tuples/s; 0 without one
    nodes_used: int
    steps: int  # proposals made
    stopped: Literal["done", "deadline"]


def least_crossing_search(
    instance: Instance,
    *,
    starts: Sequence[Ints] = (),
    current: Ints | None = None,
    move_cost: Floats | None = None,
    steps: int | None = None,
    deadline: Callable[[], bool] | None = None,
    seed: int = 0,
    prefer: str = "traffic",
) -> Found | None:
    """Counts x[C, N] with little crossing traffic, or None if no plan was found.

    With a `current` plan, what moves away from it costs `move_cost` per task. `prefer` "traffic":
    least traffic, then fewest nodes; "nodes": fewest nodes, then least traffic. Never worse than
    the best feasible one of `starts`; with 0 steps a start is completed and repaired, no more (on
    few nodes, if that fails, plans are built from nothing). The same arguments give the same counts
    unless `deadline()` turns true, which `Found.stopped` then says.
    """
    if prefer not in ("traffic", "nodes"):
        raise ValueError(f"prefer {prefer!r} is neither traffic nor nodes")
    if hopeless(instance):
        return None
    search = new_search(instance, terms_of(instance, current, move_cost, prefer), seed, deadline)
    budget = default_steps(instance) if steps is None else steps
    stopped: Literal["done", "deadline"] = "done"
    try:
        for x in [*starts, *([current] if current is not None else [])]:
            take_start(search, x)
        if budget == 0 and starts and (search.found or instance.allowed.size >= MANY_CELLS):
            return result_of(search, stopped, current, move_cost) if search.found else None
        mixing = mixing_pays(search, budget)
        annealing = int(STEPS_BEFORE_MIXING * budget) if mixing else budget
        if current is None and clusters_pay(search.terms, annealing):
            plan_in_cycles(search, annealing)
        else:
            build_first_plans(search, annealing)
            if search.found:
                if prefer == "nodes":
                    drop_nodes(search, annealing)
                improve(search, annealing, ONE_COOLING)
        if mixing and search.found:
            plan_by_mixing(search, budget)
    except OutOfTime:
        stopped = "deadline"
    return result_of(search, stopped, current, move_cost) if search.found else None


def polish(instance: Instance, x: Ints, *, steps: int = 200_000, seed: int = 0) -> Found | None:
    """The counts x[C, N] after repair and a descent without heat; None if repair fails."""
    search = new_search(instance, terms_of(instance), seed, None)
    take_start(search, x)
    if not search.found:
        return None
    search.load(search.ledger.best)
    search.anneal(steps)
    return result_of(search, "done", None, None)


def default_steps(instance: Instance) -> int:
    """Proposals for a problem of this size: a second or two for a thousand nodes, less for few.

    Many classes need no more steps than few: clusters make up for it.
    """
    classes, nodes = instance.allowed.shape
    if nodes > 200:
        return int(np.clip(3_000 * min(classes, 600) + 1_000 * nodes, 2_000_000, 5_000_000))
    cells = classes * nodes
    most = 6_000_000 if cells < MANY_CELLS else 2_500_000
    # Of middling problems a short cooling misses the best plan more often than not.
    steps = max(15_000 * cells, min(250 * cells**2, 2_500_000))
    return int(np.clip(steps, 200_000, most))


def result_of(
    search: Search,
    stopped: Literal["done", "deadline"],
    current: Ints | None,
    move_cost: Floats | None,
) -> Found:
    """What a search found."""
    x = np.ascontiguousarray(search.ledger.best.T)
    moving = 0.0
    if current is not None and move_cost is not None:
        moving = float((move_cost * np.maximum(x - current, 0).sum(axis=1)).sum())
    used = int((x.sum(axis=0) > 0).sum())
    instance = search.instance
    return Found(x, instance.crossing(x), instance.cost(x), moving, used, search.made, stopped)

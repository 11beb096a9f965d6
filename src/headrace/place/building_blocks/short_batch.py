"""Counts with a short batch: searched from several sides."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from headrace.errors import HeadraceError
from headrace.model.arrays import Ints
from headrace.model.problem import Problem
from headrace.model.request import Request
from headrace.place.meng_style import meng_style
from headrace.place.mt_scheduler import mt_scheduler
from headrace.solve.classes import Classes
from headrace.solve.least_traffic.feasible import feasible
from headrace.solve.rate.costs import rate_costs
from headrace.solve.rate.speed import batch_time, improve_speed
from headrace.solve.rate.spread import spread_tasks

BATCH_STARTS = 2  # of tasks spread over more or fewer nodes
FEW_PAIRS, FEW_NODES = 100_000, 200  # up to which quick schedulers are quick


def shorten_batch(problem: Problem, classes: Classes, x: Ints, request: Request) -> Ints:
    """Counts with a short batch, from feasible ones.

    Plans between tasks packed together and tasks spread out are worse than both, so a search from
    one side never reaches the other: search from both, and from plans that fill nodes evenly.
    """
    costs = rate_costs(problem, classes)
    cores = np.where(np.isfinite(costs.cores), costs.cores, 1.0)
    improve = partial(
        improve_speed,
        problem,
        classes,
        seed=request.seed,
        steps=request.steps,
        deadline=request.deadline,
    )
    fast, even = improve(x, "rate"), improve(x, "balance")

    def seconds(counts: Ints) -> float:
        return batch_time(problem, classes, counts)

    spread = sorted(spread_tasks(classes.instance, costs.stage, cores), key=seconds)
    simple = simple_plans(problem, classes)
    starts = [x, *spread[:BATCH_STARTS], *sorted((fast, even, *simple), key=seconds)]
    found = list(starts)
    for start in starts:
        if request.deadline is not None and request.deadline():
            break
        found.append(improve(start, "batch"))
    return min(found, key=seconds)


def simple_plans(problem: Problem, classes: Classes) -> Iterator[Ints]:
    """Feasible counts of quick schedulers that even out load and transfers, of small problems.

    Where many nodes are equally slow, no single step makes a batch shorter, and such plans can be
    out of a search's reach.
    """
    if problem.pair_count > FEW_PAIRS or len(problem.nodes) > FEW_NODES:
        return
    for scheduler in (mt_scheduler, meng_style):
        try:
            plan = scheduler(problem)
        except HeadraceError:
            continue
        if not plan.refused and feasible(classes.instance, counts := classes.counts(plan.node)):
            yield counts

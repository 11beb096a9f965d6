"""Workers for tasks whose nodes came with their counts, on the same nodes or on others that have less to send."""

from __future__ import annotations

from collections.abc import Callable

from headrace.judge.thread_rate import thread_rate
from headrace.model.arrays import Ints
from headrace.model.problem import Assignment, Problem
from headrace.place.building_blocks.workers import workers_inside
from headrace.place.headrace import assigned
from headrace.solve.classes import classes_of
from headrace.solve.counts.fill import place_for_sending


def placed(
    problem: Problem,
    node: Ints,
    *,
    seed: int = 0,
    steps: int | None = None,
    deadline: Callable[[], bool] | None = None,
) -> Assignment:
    """Nodes and workers for the tasks: as given, or with less to send where that is no slower."""
    classes, x = place_for_sending(problem, node, seed=seed, steps=steps, deadline=deadline)
    better = assigned(problem, classes, x)
    plain = Assignment(node, workers_inside(problem, classes_of(problem), node))
    return (
        better
        if thread_rate(problem, better) >= thread_rate(problem, plain) * (1 - 1e-9)
        else plain
    )

"""Places for tasks that sizing has already put on nodes: as they are, or with less to send."""

from __future__ import annotations

from headrace.judge.thread_rate import thread_rate
from headrace.model.arrays import Ints
from headrace.model.problem import Assignment, Problem
from headrace.model.request import Request
from headrace.place.building_blocks.workers import workers_inside
from headrace.place.headrace import assign_tasks
from headrace.solve.classes import classes_of
from headrace.solve.counts.fill import place_for_sending


def place_sized_tasks(problem: Problem, node: Ints, request: Request) -> Assignment:
    """Nodes and workers: the nodes given, or others with less traffic where they are no slower."""
    classes, x = place_for_sending(
        problem, node, seed=request.seed, steps=request.steps, deadline=request.deadline
    )
    better = assign_tasks(problem, classes, x)
    plain = Assignment(node, workers_inside(problem, classes_of(problem), node))
    return (
        better
        if thread_rate(problem, better) >= thread_rate(problem, plain) * (1 - 1e-9)
        else plain
    )

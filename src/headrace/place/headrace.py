"""Headrace's own scheduler: anytime search on counts of tasks per node, every resource, pin and separation kept.

Source    ours; annealed local search over (class, node) counts from several constructions.
Maturity  ours
Guards    CPU, memory and further resources, slots, worker heap, pins and separations are never broken.
Differs   nothing to differ from. Local-or-shuffle counts as shuffle while searching; the judge counts what stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from headrace.errors import HeadraceError
from headrace.model.arrays import Bools, Ints
from headrace.model.problem import Assignment, Problem
from headrace.place.refusal import refusal
from headrace.place.topologies import used
from headrace.place.workers import workers_inside
from headrace.solve.classes import Classes, classes_of
from headrace.solve.search import least_crossing_search

Objective = Literal["traffic", "rate", "batch", "nodes", "balance"]


def headrace(
    problem: Problem,
    *,
    objective: Objective = "traffic",
    seed: int = 0,
    steps: int | None = None,
    deadline: Callable[[], bool] | None = None,
    move_cost: float = 0.0,
) -> Assignment:
    """Place all topologies together; with a current plan, moving a megabyte of state costs `move_cost` tuples/s."""
    classes = classes_of(problem)
    refused: dict[str, HeadraceError] = {}
    x = searched(problem, classes, objective, seed, steps, deadline, move_cost)
    if x is None:
        classes, refused = without_the_impossible(problem, classes)
        x = searched(problem, classes, objective, seed, steps, deadline, move_cost)
        assert x is not None, "what was found with less effort is found with more"
    return assigned(problem, classes, x, refused)


def searched(
    problem: Problem,
    classes: Classes,
    objective: Objective,
    seed: int,
    steps: int | None,
    deadline: Callable[[], bool] | None,
    move_cost: float,
) -> Ints | None:
    """Counts [classes, N] that are good for the objective; None if no plan was found."""
    current = None if problem.current is None else classes.counts(problem.current.node)
    cost = None if current is None else move_cost * problem.state_mb[classes.component]
    prefer = "nodes" if objective == "nodes" else "traffic"
    found = least_crossing_search(
        classes.instance, current=current, move_cost=cost, steps=steps, deadline=deadline, seed=seed, prefer=prefer
    )
    return None if found is None else found.x


def assigned(problem: Problem, classes: Classes, x: Ints, refused: dict[str, HeadraceError] | None = None) -> Assignment:
    """Nodes and workers for single tasks; as many as possible stay where they are."""
    current = None if problem.current is None else problem.current.node
    node = classes.nodes(x, current)
    return Assignment(node, workers_inside(problem, classes, node), refused or {})


def without_the_impossible(problem: Problem, classes: Classes) -> tuple[Classes, dict[str, HeadraceError]]:
    """Take topologies in by priority as long as a plan for them together is found; the others are refused, each with its reason."""
    refused: dict[str, HeadraceError] = {}
    if len(problem.topologies) == 1:
        raise refusal(problem, classes.instance)
    taken_in = np.zeros(len(problem.topologies), dtype=bool)
    plan = Assignment(np.full(problem.task_count, -1), np.full(problem.task_count, -1))
    for g in np.argsort(problem.priority, kind="stable").tolist():
        taken_in[g] = True
        some = only_some(classes, taken_in)
        found = least_crossing_search(some.instance, steps=0)
        if found is None:
            taken_in[g] = False
            alone = left_for(problem, plan, g)
            refused[problem.topologies[g]] = refusal(alone, classes_of(alone).instance)
        else:
            plan = assigned(problem, some, found.x)
    if not taken_in.any():
        raise next(iter(refused.values()))
    return only_some(classes, taken_in), refused


def only_some(classes: Classes, topologies: Bools) -> Classes:
    """The same classes, with nothing to place for the other topologies."""
    instance = classes.instance
    count = np.where(topologies[instance.group], instance.count, 0)
    return replace(classes, instance=replace(instance, count=count))


def left_for(problem: Problem, plan: Assignment, topology: int) -> Problem:
    """A topology alone, on what a plan of the others leaves."""
    placed = plan.node >= 0
    taken, slot_taken = problem.taken + used(problem, plan), problem.slot_taken.copy()
    slot_taken[plan.node[placed], plan.worker[placed]] = True
    return problem.only(topology, taken, slot_taken)

"""The proven least traffic between nodes; where the budget ends first, the best plan and a bound.

Source    ours; interchangeable tasks merged, an integer program over connected pieces and node
          patterns, column generation beyond that.
Maturity  exact
Guards    CPU, memory and further resources, slots, worker heap, pins and separations are never
          broken.
Differs   Eskandari's model (eq. 4.1-4.5) asks for the same optimum task by task and node by node,
          and so meets every plan many times over.
Objectives traffic
"""

from __future__ import annotations

from headrace.errors import Infeasible, Unsupported
from headrace.model.problem import Assignment, Problem
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.place.building_blocks.too_little_room import too_little_room
from headrace.place.headrace import assign_tasks
from headrace.solve.classes import classes_of
from headrace.solve.least_traffic.search import least_crossing_search
from headrace.solve.proof.exact import least_crossing

DEFAULT_STEPS = 2_000  # minutes at the most; small problems need a handful


def optimal(problem: Problem, request: Request = DEFAULT_REQUEST) -> Assignment:
    """Place all topologies together with the least traffic between nodes."""
    if request.objective != "traffic":
        raise Unsupported(
            f"optimal knows the objective traffic, not {request.objective}", fix="use headrace"
        )
    for s in problem.streams:
        if s.grouping == "local-or-shuffle":
            names = f"{problem.components[s.source]} -> {problem.components[s.target]}"
            raise Unsupported(
                f"optimal does not know local-or-shuffle ({names}): "
                "what crosses depends on workers",
                fix="use headrace",
            )
    classes = classes_of(problem)
    start = least_crossing_search(classes.instance, seed=request.seed, deadline=request.deadline)
    proof = least_crossing(
        classes.instance,
        start=None if start is None else start.x,
        steps=DEFAULT_STEPS if request.steps is None else request.steps,
        deadline=request.deadline,
    )
    if proof.infeasible:
        raise too_little_room(problem, classes.instance)
    if proof.x is None:
        raise Infeasible(
            "no plan found within the budget, and none proven impossible",
            fix="give more steps or seconds",
        )
    return assign_tasks(problem, classes, proof.x)

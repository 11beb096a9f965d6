"""The proven least traffic between nodes; where the budget ends first, the best plan and a bound.

Source    ours; interchangeable tasks merged, an integer program over connected pieces and node
          patterns, column generation beyond that. model=thesis: L. Eskandari, PhD thesis, eq.
          4.1-4.5.
Maturity  exact
Guards    CPU, memory and further resources, slots, worker heap, pins and separations are never
          broken.
Differs   Eskandari's model asks for the same optimum task by task and node by node, and so meets
          every plan many times over: model=thesis. There eq. 4.4 reads <=, which the thesis' own
          benchmarks need, the products of eq. 4.2 are linear terms that are worth the same, other
          resources, pins and separations are further rows, and where slots or heaps could matter it
          refuses. It has no limit but `seconds` and `steps` (nodes of branch and bound), and may
          take hours above 20 tasks.
Objectives traffic
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from headrace.errors import Infeasible, Unsupported
from headrace.model.problem import Assignment, Problem, StatedProof
from headrace.model.request import DEFAULT_REQUEST, Deadline, Request, seconds_left, share_of
from headrace.place.building_blocks.too_little_room import too_little_room
from headrace.place.headrace import assign_tasks
from headrace.solve.classes import classes_of
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.search import least_crossing_search
from headrace.solve.proof.exact import Proof, least_crossing
from headrace.solve.proof.task_by_task import least_crossing_by_task
from headrace.solve.symmetry import quotient

DEFAULT_STEPS = 2_000  # minutes at the most; small problems need a handful
# Above so many classes a proof is rarely in reach: most of the seconds are left for the bound.
PROVABLE_CLASSES, SHARE_BEYOND = 64, 0.25


def optimal(
    problem: Problem,
    request: Request = DEFAULT_REQUEST,
    *,
    model: Literal["classes", "thesis"] = "classes",
) -> Assignment:
    """Place all topologies together with the least traffic between nodes."""
    if request.objective != "traffic":
        raise Unsupported(
            f"optimal knows the objective traffic, not {request.objective}", fix="use headrace"
        )
    for s in problem.streams:
        if s.by_place:
            names = f"{problem.components[s.source]} -> {problem.components[s.target]}"
            raise Unsupported(
                f"optimal does not know {s.grouping} ({names}): "
                "what crosses depends on where tasks are",
                fix="use headrace",
            )
    classes = classes_of(problem)
    solve = solve_by_task if model == "thesis" else solve_by_classes
    proof = solve(classes.instance, request)
    if proof.infeasible:
        raise too_little_room(problem, classes.instance)
    if proof.x is None:
        raise Infeasible(
            "no plan found within the budget, and none proven impossible",
            fix="give more steps or seconds",
        )
    plan = assign_tasks(problem, classes, proof.x)
    if not proof.proven:
        return plan
    steps = max(request.steps or 0, DEFAULT_STEPS)
    return replace(plan, proof=StatedProof("inter_node_traffic", proof.bound, steps))


def solve_by_classes(instance: Instance, request: Request) -> Proof:
    """Our model: tasks and nodes that are alike are merged."""
    start = least_crossing_search(instance, seed=request.seed, deadline=request.deadline)
    share = 1.0 if len(instance.count) <= PROVABLE_CLASSES else SHARE_BEYOND
    proof = least_crossing(
        instance,
        start=None if start is None else start.x,
        steps=DEFAULT_STEPS if request.steps is None else request.steps,
        deadline=share_of(request.deadline, share),
    )
    if proof.stopped == "seconds" and isinstance(request.deadline, Deadline):
        request.deadline.passed = True  # the report says what stopped the proof
    return proof


def solve_by_task(instance: Instance, request: Request) -> Proof:
    """Eskandari's model: a variable for every task on every node."""
    too_large = instance.memory > instance.heap[instance.group]
    if too_large.any() or quotient(instance).slots_matter:
        raise Unsupported(
            "the thesis' model knows no slots and no worker heaps, and here nodes could run out",
            fix="use model=classes, or leave `worker_max_heap_mb` out",
        )
    proof = least_crossing_by_task(
        instance, nodes=request.steps, seconds=seconds_left(request.deadline)
    )
    if proof.stopped == "seconds" and request.deadline is not None:
        request.deadline()  # the solver cannot ask it, and the report says who stopped the search
    return proof

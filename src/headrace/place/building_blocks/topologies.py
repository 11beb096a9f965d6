"""Several topologies on one cluster, for schedulers that know one at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec

import numpy as np

from headrace.errors import HeadraceError, Infeasible, Unsupported
from headrace.model.arrays import Floats, totals
from headrace.model.problem import CPU, UNPLACED, Assignment, Bools, Problem

Options = ParamSpec("Options")
Scheduler = Callable[Concatenate[Problem, Options], Assignment]


def each_topology(scheduler: Scheduler[Options]) -> Scheduler[Options]:
    """Place topologies one after another, by priority, each on what the earlier ones leave."""

    @wraps(scheduler)
    def place(problem: Problem, *args: Options.args, **options: Options.kwargs) -> Assignment:
        if len(problem.topologies) == 1:
            return scheduler(problem, *args, **options)
        order = np.argsort(problem.priority, kind="stable").tolist()
        return place_in_turn(problem, order, lambda alone: scheduler(alone, *args, **options))

    return place


def slots_in_use(problem: Problem, assignment: Assignment) -> Bools:
    """Slots that an assignment takes, [N, most slots]."""
    in_use = np.zeros_like(problem.slot_taken)
    in_use[assignment.node, assignment.worker] = True
    return in_use


def place_in_turn(
    problem: Problem,
    order: Sequence[int],
    scheduler: Callable[[Problem], Assignment],
    closed: Callable[[Problem, Assignment], Bools] = slots_in_use,
) -> Assignment:
    """Place topologies in a given order, each on what the earlier ones leave.

    `closed` says which slots a topology closes to later ones. A topology that is refused does not
    stop the others; if all are refused, so is the problem.
    """
    node = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    worker = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    taken, slot_taken = problem.taken.copy(), problem.slot_taken.copy()
    refused: dict[str, HeadraceError] = {}
    notes: dict[str, None] = {}  # in order, each once
    owner = problem.topology[problem.component_of]
    for g in order:
        alone = problem.only(g, taken.copy(), slot_taken.copy())
        try:
            placed = scheduler(alone)
        except (Infeasible, Unsupported) as error:
            refused[problem.topologies[g]] = error
            continue
        node[owner == g], worker[owner == g] = placed.node, placed.worker
        notes |= dict.fromkeys(placed.notes)
        taken += sum_demand_by_node(alone, placed)
        slot_taken |= closed(alone, placed)
    if len(refused) == len(problem.topologies):
        raise next(iter(refused.values()))
    return Assignment(node, worker, refused, tuple(notes))


def sum_demand_by_node(problem: Problem, assignment: Assignment) -> Floats:
    """What an assignment takes on each node, [N, K]."""
    placed = assignment.node != UNPLACED
    node, c = assignment.node[placed], problem.component_of[placed]
    machine = problem.node_type[node]
    total = np.column_stack(
        [
            totals(node, problem.demand[c, k], len(problem.nodes))
            for k in range(len(problem.resources))
        ]
    )
    total[:, CPU] += totals(
        node,
        problem.cpu_fixed[c, machine] + problem.cpu_rate[c, machine] * problem.share[placed],
        len(problem.nodes),
    )
    return total

"""P-Scheduler: split the task graph over as few nodes as it needs, then over their workers.

Source    L. Eskandari, PhD thesis, chapter 7, algorithm 1, eq. 7.1-7.3; ceiling and T from section
          6.1.
Maturity  faithful
Guards    CPU up to the ceiling, memory and further resources, and slots are never overcommitted;
          the heap of a worker is kept where the node's slots allow it. Bandwidth, pins and
          separations are not looked at.
Differs   capacities are hard: METIS' nearly equal parts are only a start, and parts may be as
          unequal as capacities allow, so that 28 tasks fit on 7 nodes where the thesis found no
          plan; if tasks do not pack into n nodes, more are taken. On unequal nodes the largest are
          used, and n counts every resource. Where a node has fewer than ceil(t / T) slots, all its
          slots are used.
Ceiling   cpu
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.errors import Infeasible, InvalidInput
from headrace.judge.shortage import shortage
from headrace.model.arrays import TOLERANCE, Floats, Ints
from headrace.model.problem import CPU, Assignment, Problem
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.place.building_blocks.inside_node import second_level
from headrace.place.building_blocks.topologies import each_topology
from headrace.solve.cut.partition import partition


@each_topology
def p_scheduler(
    problem: Problem,
    request: Request = DEFAULT_REQUEST,
    *,
    alpha: float = 0.8,
    max_tasks_per_worker: int = 5,
) -> Assignment:
    """Algorithm 1: tasks to nodes, then the tasks of each node to its workers."""
    pairs = problem.task_pairs()
    room = node_capacity(problem, alpha)
    node = first_level(
        problem,
        pairs.source,
        pairs.target,
        pairs.tuples_per_s,
        demand_by_type(problem),
        room,
        request.seed,
    )
    if node is None:
        raise no_packing(problem, room, alpha)
    return second_level(problem, pairs, node, max_tasks_per_worker, request.seed)


def node_capacity(problem: Problem, alpha: float) -> Floats:
    """What a node may be filled to, CPU to the ceiling of eq. 7.2; raises if tasks cannot fit."""
    if not 0 < alpha <= 1:
        raise InvalidInput(
            f"alpha is {alpha:g}; the ceiling of a node's CPU must be above 0 and at most 1"
        )
    room = problem.free.copy()
    room[:, CPU] = np.maximum(alpha * problem.capacity[:, CPU] - problem.taken[:, CPU], 0.0)
    missing = shortage(
        replace(
            problem,
            capacity=room,
            taken=np.zeros_like(room),
            allowed=None,
            apart=np.zeros_like(problem.apart),
        )
    )
    if missing is not None:
        raise (
            _under_ceiling(missing, alpha)
            if missing.resource == problem.resources[CPU]
            else missing
        )
    return room


def first_level(
    problem: Problem,
    source: Ints,
    target: Ints,
    weight: Floats,
    demand: Floats,
    room: Floats,
    seed: int,
) -> Ints | None:
    """Lines 12-18: a node for each vertex, with little weight between nodes.

    None if the vertices do not pack into all nodes.
    """
    nodes = sort_by_capacity(problem, room)
    count, more = nodes_needed(demand.mean(axis=0).sum(axis=0), room[nodes]), 1
    while True:
        used = nodes[:count]
        part = partition(
            source, target, weight, demand, room[used], kind=problem.node_type[used], seed=seed
        )
        if part is not None:
            return used[part]
        if count == len(nodes):
            return None
        count, more = min(count + more, len(nodes)), 2 * more


def sort_by_capacity(problem: Problem, room: Floats) -> Ints:
    """Nodes with a free slot, largest first: by CPU, then by the other resources."""
    order = np.lexsort(-room.T[::-1])
    return order[problem.free_slots[order] > 0]


def nodes_needed(load: Floats, room: Floats) -> int:
    """Eq. 7.1, for every resource: how many of the first nodes have room for the load."""
    enough = np.cumsum(room, axis=0) * (1 + TOLERANCE) + TOLERANCE >= load
    return min(int((~enough).sum(axis=0).max()) + 1, len(room))


def demand_by_type(problem: Problem) -> Floats:
    """What every task needs on a machine of each type, [Y, T, K]."""
    return np.stack([problem.task_demand(y) for y in range(len(problem.types))])


def no_packing(problem: Problem, room: Floats, alpha: float) -> Infeasible:
    """The refusal where the totals suffice, but no way was found to pack the tasks."""
    open_room = room[problem.free_slots > 0].sum(axis=0)
    load = problem.mean_demand.sum(axis=0)
    k = int((load / np.maximum(open_room, 1e-12)).argmax())
    resource, needed, available = problem.resources[k], float(load[k]), float(open_room[k])
    message = (
        f"`{problem.topologies[0]}` needs {needed:g} {resource} of {available:g}, "
        "but its tasks were not found to pack into the nodes"
    )
    refusal = Infeasible(
        message,
        resource=resource,
        needed=needed,
        available=available,
        fix="add a node, or use headrace",
    )
    return _under_ceiling(refusal, alpha) if k == CPU else refusal


def _under_ceiling(refusal: Infeasible, alpha: float) -> Infeasible:
    """The refusal, with a word about the ceiling that helped to cause it."""
    if alpha == 1:
        return refusal
    return Infeasible(
        f"{refusal.message} (a node's CPU is filled to {alpha:.0%})",
        task=refusal.task,
        resource=refusal.resource,
        needed=refusal.needed,
        available=refusal.available,
        fix=f"{refusal.fix}; or raise alpha, which is {alpha:g}",
    )

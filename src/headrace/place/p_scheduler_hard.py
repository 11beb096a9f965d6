"""P-Scheduler under hard capacities: no part is ever larger than its node.

Source    ours; after L. Eskandari, PhD thesis, chapter 7, algorithm 1, eq. 7.1-7.3.
Maturity  ours
Guards    CPU up to the ceiling, memory and further resources, and slots are never overcommitted;
          the heap of a worker is kept where the node's slots allow it. Bandwidth, pins and
          separations are not looked at.
Differs   from p-scheduler, the published one: METIS' nearly equal parts are only a start for a
          search that may make them as unequal as capacities allow, so that 28 tasks fit on 7 nodes
          where the thesis found no plan; if tasks do not pack into n nodes, more are taken. On
          unequal nodes the largest are used, and n counts every resource. Where a node has fewer
          than ceil(t / T) slots, all its slots are used.
Ceiling   cpu
"""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.problem import Assignment, Problem
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.place.building_blocks.ceiling import (
    no_packing,
    node_capacity,
    nodes_needed,
    sort_by_capacity,
)
from headrace.place.building_blocks.inside_node import second_level
from headrace.place.building_blocks.topologies import each_topology
from headrace.solve.cut.partition import partition


@each_topology
def p_scheduler_hard(
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


def demand_by_type(problem: Problem) -> Floats:
    """What every task needs on a machine of each type, [Y, T, K]."""
    return np.stack([problem.task_demand(y) for y in range(len(problem.types))])

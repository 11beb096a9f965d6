"""I-Scheduler under hard capacities: every part that is fused fits its node, and fills it.

Source    ours; after L. Eskandari, PhD thesis, chapter 9, algorithms 4-5, eq. 9.1-9.4.
Maturity  ours
Guards    CPU up to the ceiling, memory and further resources, and slots are never overcommitted;
          the heap of a worker is kept where the node's slots allow it. Bandwidth, pins and
          separations are not looked at.
Differs   from i-scheduler, the published one: parts come from a search that keeps capacities; they
          are made full, as eq. 9.2 assumes, and fused fullest first, then by the traffic inside, as
          long as there are more than phi vertices. Nodes of one task end the fusing instead of
          dividing by zero; tasks and capacities are loads of every resource. Where nodes run out
          before the tasks, the first level of p-scheduler-hard takes over. Where a node has fewer
          than ceil(t / T) slots, all its slots are used. theta is for all topologies together.
Ceiling   cpu
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from headrace.model.arrays import TOLERANCE, Floats, Ints, totals
from headrace.model.problem import UNPLACED, Assignment, Pairs, Problem
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.place.building_blocks.ceiling import no_packing, node_capacity
from headrace.place.building_blocks.exact_model import (
    THETA_S,
    Fused,
    find_threshold,
    node_classes,
    share_theta,
    solve_model,
)
from headrace.place.building_blocks.inside_node import second_level
from headrace.place.building_blocks.topologies import each_topology
from headrace.place.p_scheduler_hard import demand_by_type, first_level
from headrace.solve.cut.partition import partition


@share_theta
@each_topology
def i_scheduler_hard(
    problem: Problem,
    request: Request = DEFAULT_REQUEST,
    *,
    alpha: float = 0.8,
    phi: int | None = None,
    max_tasks_per_worker: int = 5,
    table: str | None = None,
    theta: float = THETA_S,
) -> Assignment:
    """Algorithm 4: tasks to nodes by fusing and solving, then each node's tasks to its workers."""
    pairs, seed = problem.task_pairs(), request.seed
    room = node_capacity(problem, alpha)
    demand = demand_by_type(problem)
    phi = find_threshold(problem, theta, table) if phi is None else phi
    fused = fuse(problem, pairs, demand, room, phi, seed)
    node = None
    if fused is not None:
        node = (
            solve_model(problem, pairs, demand, room, fused.vertex, request)
            if fused.use_model
            else fused.node
        )
    if node is None:
        node = first_level(
            problem, pairs.source, pairs.target, pairs.tuples_per_s, demand, room, seed
        )
    if node is None:
        raise no_packing(problem, room, alpha)
    return second_level(problem, pairs, node, max_tasks_per_worker, seed)


def fuse(
    problem: Problem, pairs: Pairs, demand: Floats, room: Floats, phi: int, seed: int
) -> Fused | None:
    """Algorithms 4-5, lines 18-43: fuse parts made for the largest nodes first.

    None if nodes run out before the tasks.
    """
    vertex = np.arange(problem.task_count)
    node = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    use_model, fused = phi > 0, 0
    for nodes in node_classes(problem, room):
        unfused = np.flatnonzero(node == UNPLACED)
        if not len(unfused) or len(unfused) + fused <= phi:
            break
        load, capacity = demand[problem.node_type[nodes[0]]], room[nodes[0]]
        tasks = unfused[(load[unfused] <= capacity * (1 + TOLERANCE) + TOLERANCE).all(axis=1)]
        parts = graph_partition(pairs, tasks, load, capacity, seed)
        if use_model and (
            len(parts) + fused + len(unfused) - len(tasks) > phi or len(parts) == len(tasks)
        ):
            use_model, phi = False, 0
        left = len(unfused)
        for part, n in zip(parts, nodes.tolist(), strict=False):
            if left + fused <= phi:
                break
            vertex[part], node[part] = part[0], n
            left, fused = left - len(part), fused + 1
    unfused = int((node == UNPLACED).sum())
    if unfused and unfused + fused > phi:
        return None
    return Fused(np.unique(vertex, return_inverse=True)[1], node, use_model)


def graph_partition(
    pairs: Pairs, tasks: Ints, load: Floats, capacity: Floats, seed: int
) -> list[Ints]:
    """As few parts as fit on a node each (eq. 9.1): fullest first, then most traffic inside."""
    if not len(tasks):
        return []
    number = np.full(len(load), -1, dtype=np.int64)
    number[tasks] = np.arange(len(tasks))
    source, target = number[pairs.source], number[pairs.target]
    inside = (source >= 0) & (target >= 0)
    source, target, rate = source[inside], target[inside], pairs.tuples_per_s[inside]
    labels = (
        partition(source, target, rate, load[tasks], room, seed=seed)
        for room in part_capacities(load[tasks], capacity)
    )
    label = next((label for label in labels if label is not None), None)
    if label is None:
        return []
    a, b = label[source], label[target]
    count = int(label.max()) + 1
    kept = totals(a[a == b], rate[a == b], count)
    cut = totals(a[a != b], rate[a != b], count) + totals(b[a != b], rate[a != b], count)
    filled = np.max(
        [totals(label, column, count) for column in (load[tasks] / np.maximum(capacity, 1e-300)).T],
        axis=0,
    )
    order = np.lexsort([cut.round(9), -kept.round(9), -filled.round(9)])
    return [tasks[label == p] for p in order.tolist() if (label == p).any()]


def part_capacities(load: Floats, capacity: Floats) -> Iterator[Floats]:
    """Capacities of the parts to try: as few as eq. 9.1 says, then more, up to one per task."""
    tasks = len(load)
    count = min(
        max(
            1, math.ceil((load.sum(axis=0) / np.maximum(capacity, 1e-300)).max() * (1 - TOLERANCE))
        ),
        tasks,
    )
    # Fusing counts on full parts (eq. 9.2), so the last part gets only what the others leave;
    # uneven tasks cannot fill them quite.
    rest = (
        load.sum(axis=0)
        - (count - 1) * np.minimum(capacity, load.sum(axis=0))
        + np.ptp(load, axis=0)
    )
    yield np.vstack(
        [
            np.tile(capacity, (count - 1, 1)),
            np.where(rest > 0, np.minimum(rest, capacity), capacity),
        ]
    )
    more = 1
    while True:
        yield np.tile(capacity, (count, 1))
        if count == tasks:
            return
        count, more = min(count + more, tasks), 2 * more

"""I-Scheduler: fuse parts of the task graph until the rest is small enough to be solved exactly.

Source    L. Eskandari, PhD thesis, chapter 9, algorithms 4-5, eq. 9.1-9.4; ceiling and T from
          section 6.1.
Maturity  faithful
Guards    CPU up to the ceiling, memory and further resources, and slots are never overcommitted;
          the heap of a worker is kept where the node's slots allow it. Bandwidth, pins and
          separations are not looked at.
Differs   the number of parts to fuse counts fused tasks too (t + f - phi), as the worked example
          needs and line 34 does not; the loop also ends when every task is fused; nodes of one task
          end the fusing instead of dividing by zero; parts are made full, as eq. 9.2 assumes, and
          fused fullest first, then by the traffic inside; tasks and capacities are loads, not
          counts; phi comes from a table measured on our solver. Where nodes run out before the
          tasks, P-Scheduler's first level takes over. Where a node has fewer than ceil(t / T)
          slots, all its slots are used.
Ceiling   cpu
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import TOLERANCE, Floats, Ints, totals
from headrace.model.problem import UNPLACED, Assignment, Pairs, Problem
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.place.building_blocks.inside_node import second_level
from headrace.place.building_blocks.topologies import each_topology
from headrace.place.p_scheduler import (
    demand_by_type,
    first_level,
    no_packing,
    node_capacity,
    sort_by_capacity,
)
from headrace.solve.cut.graph import graph_of
from headrace.solve.cut.partition import partition
from headrace.solve.instance import Instance
from headrace.solve.proof.exact import least_crossing

# Seconds -> vertices that the exact model solves in them at the worst, measured on the
# micro-benchmarks' three layouts and two clusters with every rate and load different. Where tasks
# are alike it is much faster: 64 vertices in half a second.
SOLVED_IN_S: dict[float, int] = {4.0: 8, 8.0: 10, 20.0: 16, 60.0: 20}


@each_topology
def i_scheduler(
    problem: Problem,
    request: Request = DEFAULT_REQUEST,
    *,
    alpha: float = 0.8,
    phi: int | None = None,
    max_tasks_per_worker: int = 5,
    theta: float = 5.0,
) -> Assignment:
    """Algorithm 4: tasks to nodes by fusing and solving, then each node's tasks to its workers."""
    pairs, seed = problem.task_pairs(), request.seed
    room = node_capacity(problem, alpha)
    demand = demand_by_type(problem)
    fused = fuse(problem, pairs, demand, room, find_threshold(theta) if phi is None else phi, seed)
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


def find_threshold(theta: float) -> int:
    """The number of vertices that the exact model solves within theta seconds, as measured."""
    return max((size for seconds, size in SOLVED_IN_S.items() if seconds <= theta), default=0)


@dataclass(frozen=True, slots=True, eq=False)
class Fused:
    """The task graph after fusing."""

    vertex: Ints  # [T] the vertex a task is part of
    node: Ints  # [T] a node of the capacity its part was made for; UNPLACED if it was not fused
    use_model: bool  # few enough vertices for the exact model; if not, every task is fused


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


def node_classes(problem: Problem, room: Floats) -> list[Ints]:
    """Nodes of equal capacity and type, largest first."""
    classes: dict[tuple[float, ...], list[int]] = {}
    for n in sort_by_capacity(problem, room).tolist():
        classes.setdefault((*room[n].tolist(), int(problem.node_type[n])), []).append(n)
    return [np.array(nodes, dtype=np.int64) for nodes in classes.values()]


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


def solve_model(
    problem: Problem,
    pairs: Pairs,
    demand: Floats,
    room: Floats,
    vertex: Ints,
    request: Request,
) -> Ints | None:
    """The exact model over fused and unfused tasks: the node of each, [T].

    None if the vertices do not pack.
    """
    count = int(vertex.max()) + 1
    needs = np.stack(
        [
            np.column_stack([totals(vertex, column, count) for column in of_type.T])
            for of_type in demand
        ]
    )
    graph = graph_of(vertex[pairs.source], vertex[pairs.target], pairs.tuples_per_s, count)
    row = np.repeat(np.arange(count), np.diff(graph.first))
    once = row < graph.other
    a, b, weight = row[once], graph.other[once], graph.weight[once]
    instance = Instance(
        count=np.ones(count, dtype=np.int64),
        edge_a=a,
        edge_b=b,
        edge_weight=weight,
        demand=needs,
        node_type=problem.node_type,
        capacity=room,
        allowed=np.tile(problem.free_slots > 0, (count, 1)),
        apart=np.zeros(count, dtype=np.bool_),
        group=np.zeros(count, dtype=np.int64),
        slots=problem.free_slots,
        heap=np.array([np.inf]),
        memory=np.zeros(count),
    )
    node = first_level(problem, a, b, weight, needs, room, request.seed)
    if node is not None and (node[a] == node[b]).all():
        return node[vertex]  # nothing crosses
    start = None if node is None else np.eye(len(problem.nodes), dtype=np.int64)[node]
    solved = least_crossing(instance, start=start, steps=request.steps, deadline=request.deadline)
    return None if solved.x is None else solved.x.argmax(axis=1)[vertex]

"""I-Scheduler: fuse parts of the task graph until the rest is small enough to be solved exactly.

Source    L. Eskandari, PhD thesis, chapter 9, algorithms 4-5, eq. 9.1-9.4; ceiling and T from
          section 6.1.
Maturity  faithful
Guards    slots are never overcommitted; CPU may be where METIS' parts are larger than their nodes.
          Memory, bandwidth, pins and separations are not looked at; the heap of a worker is kept
          where the node's slots allow it.
Differs   METIS splits by recursive bisection, as in p-scheduler (its k-way method is
          partitioner=metis-kway), and its parts are fused in its order. The number of parts to
          fuse counts fused tasks too (t + f - phi), as the worked example needs and line 34 does
          not; nodes of one task end the fusing instead of dividing by zero; t falls by the tasks
          that were fused, not by alpha c. Tasks and capacities are CPU loads. Where the model has
          no plan or nodes run out above phi, all tasks are fused, and the nodes of the last class
          share what is left. phi comes from a table measured with `headrace lab calibrate` on our
          solver (option table: another such file). Where a node has fewer than ceil(t / T) slots,
          all its slots are used. theta is for all topologies together, and the model ends after
          300 steps of the solver. With hard capacities: i-scheduler-hard.
Ceiling   cpu
"""

from __future__ import annotations

import math

import numpy as np

from headrace.model.arrays import TOLERANCE, Floats, Ints
from headrace.model.problem import CPU, UNPLACED, Assignment, Pairs, Problem
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.place.building_blocks.ceiling import cpu_capacity
from headrace.place.building_blocks.exact_model import (
    THETA_S,
    Fused,
    find_threshold,
    node_classes,
    share_theta,
    solve_model,
)
from headrace.place.building_blocks.inside_node import second_level
from headrace.place.building_blocks.metis_parts import Partitioner, graph_partition
from headrace.place.building_blocks.topologies import each_topology


@share_theta
@each_topology
def i_scheduler(
    problem: Problem,
    request: Request = DEFAULT_REQUEST,
    *,
    alpha: float = 0.8,
    max_tasks_per_worker: int = 5,
    partitioner: Partitioner = "metis",
    phi: int | None = None,
    table: str | None = None,
    theta: float = THETA_S,
) -> Assignment:
    """Algorithm 4: tasks to nodes by fusing and solving, then each node's tasks to its workers."""
    pairs = problem.task_pairs()
    capacity = cpu_capacity(problem, alpha)
    if phi is None:
        phi = find_threshold(problem, theta, table) if theta > 0 else 0
    node = first_level(problem, pairs, capacity, phi, partitioner, request)
    return second_level(problem, pairs, node, max_tasks_per_worker, request.seed)


def first_level(
    problem: Problem,
    pairs: Pairs,
    capacity: Floats,
    phi: int,
    partitioner: Partitioner,
    request: Request,
) -> Ints:
    """Lines 18-50: the node of each task, by the exact model or by direct mapping, [T]."""
    fused = fuse(problem, pairs, capacity, phi, partitioner, request.seed)
    if fused.use_model:
        load = np.stack([problem.task_demand(y)[:, [CPU]] for y in range(len(problem.types))])
        node = solve_model(problem, pairs, load, capacity[:, None], fused.vertex, request)
        if node is not None:
            return node
        fused = fuse(problem, pairs, capacity, 0, partitioner, request.seed)
    return fused.node


def fuse(
    problem: Problem,
    pairs: Pairs,
    capacity: Floats,
    phi: int,
    partitioner: Partitioner,
    seed: int,
) -> Fused:
    """Lines 19-43: partition for the largest nodes first, and fuse as many parts as phi asks."""
    load = problem.mean_demand[:, CPU]
    vertex = np.arange(problem.task_count)
    node = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    use_model, fused = phi > 0, 0
    classes = node_classes(problem, capacity[:, None])
    for nodes in classes:
        unfused = np.flatnonzero(node == UNPLACED)
        if not len(unfused) or len(unfused) + fused <= phi:
            break
        c, q = float(capacity[nodes[0]]), len(nodes)
        k = parts_needed(float(load[unfused].sum()), c, len(unfused))  # eq. 9.1
        tasks_per_part = len(unfused) * c / max(float(load[unfused].sum()), 1e-300)
        if use_model and k > 1 and (k > phi or tasks_per_part <= 1):
            use_model, phi = False, 0
        if nodes is classes[-1] and not use_model:
            k = min(k, q)  # no other node is left
        parts = graph_partition(pairs, unfused, load, k, partitioner, seed)
        if use_model and k > 1:
            beta = math.ceil((len(unfused) + fused - phi) / (tasks_per_part - 1))  # eq. 9.3
            parts = parts[: min(beta, q)]  # eq. 9.4
        for part, n in zip(parts, nodes.tolist(), strict=False):
            vertex[part], node[part] = part[0], n
            fused += 1
    unfused = int((node == UNPLACED).sum())
    if use_model and unfused and unfused + fused > phi:
        return fuse(problem, pairs, capacity, 0, partitioner, seed)
    return Fused(np.unique(vertex, return_inverse=True)[1], node, use_model)


def parts_needed(load: float, capacity: float, tasks: int) -> int:
    """Eq. 9.1, as a load: how many nodes of this capacity it needs, at most one per task."""
    if capacity <= 0:
        return tasks
    return min(max(1, math.ceil(load / capacity * (1 - TOLERANCE))), tasks)

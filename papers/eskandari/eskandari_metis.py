"""P- and I-Scheduler with METIS' parts just as they come, as in the thesis.

Our own `p-scheduler` and `i-scheduler` keep capacities instead.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pymetis

from headrace.model.arrays import Ints
from headrace.model.problem import CPU, Problem
from headrace.model.request import DEFAULT_REQUEST
from headrace.place.i_scheduler import node_classes, solve_model
from headrace.place.p_scheduler import demand_by_type, node_capacity
from headrace.solve.cut.graph import graph_of


class Partition(NamedTuple):
    """What METIS makes of a task graph."""

    cost: int  # task pairs between parts
    largest: int  # tasks


def p_by_metis(problem: Problem, seed: int | None = None) -> Partition:
    """Section 7.3.3: as many parts as nodes are needed; nothing keeps a part within a node."""
    tasks = order_tasks(problem, seed)
    parts = recursive_bisection(
        problem, tasks, math.ceil(problem.task_count / int(np.median(problem.capacity[:, CPU])))
    )
    node = np.empty_like(tasks)
    for number, part in enumerate(parts):
        node[part] = number
    return Partition(crossing(problem, node), max(map(len, parts)))


def i_by_metis(problem: Problem, phi: int, seed: int | None = None) -> int | None:
    """Section 9.2.3: the cost, or None where a part is too large for its node.

    Tasks have load 1, and parts are fused in METIS' order. Fused tasks count towards phi, as in the
    worked example.
    """
    room = node_capacity(problem, 1.0)
    unfused, vertex, fused = order_tasks(problem, seed), np.arange(problem.task_count), 0
    for nodes in node_classes(problem, room):
        if len(unfused) + fused <= phi:
            break
        for part in recursive_bisection(
            problem, unfused, math.ceil(len(unfused) / room[nodes[0], CPU])
        )[: len(nodes)]:
            if len(unfused) + fused <= phi:
                break
            vertex[part], fused = part[0], fused + 1
            unfused = unfused[~np.isin(unfused, part)]
    vertex = np.unique(vertex, return_inverse=True)[1]
    node = solve_model(
        problem, problem.task_pairs(), demand_by_type(problem), room, vertex, DEFAULT_REQUEST
    )
    return None if node is None else crossing(problem, node)


def order_tasks(problem: Problem, seed: int | None) -> Ints:
    """The tasks as METIS gets them: as in the file, or shuffled, to see what the order changes."""
    tasks = np.arange(problem.task_count)
    return tasks if seed is None else np.random.default_rng(seed).permutation(tasks)


def recursive_bisection(problem: Problem, tasks: Ints, count: int) -> list[Ints]:
    """METIS' parts of some tasks.

    Its k-way method leaves parts of these small graphs empty, and does not give the thesis' costs.
    """
    if count == 1:
        return [tasks]
    pairs = problem.task_pairs()
    number = np.full(problem.task_count, -1)
    number[tasks] = np.arange(len(tasks))
    source, target = number[pairs.source], number[pairs.target]
    inside = (source >= 0) & (target >= 0)
    graph = graph_of(source[inside], target[inside], pairs.tuples_per_s[inside], len(tasks))
    answer = pymetis.part_graph(
        count, pymetis.CSRAdjacency(graph.first, graph.other), recursive=True
    )
    part = np.asarray(answer.vertex_part)
    return [tasks[part == p] for p in range(count)]


def crossing(problem: Problem, node: Ints) -> int:
    """Task pairs whose ends are on two nodes."""
    pairs = problem.task_pairs()
    return int((node[pairs.source] != node[pairs.target]).sum())

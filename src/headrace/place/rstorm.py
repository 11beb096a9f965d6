"""R-Storm: tasks breadth-first, each to the node that matches its needs best, near the first node.

Source    B. Peng et al., R-Storm: Resource-Aware Scheduling in Storm, Middleware 2015, algorithms
          1-4, from general knowledge of it.
Maturity  inspired
Guards    memory and slots are never overcommitted; CPU is a wish that may be exceeded, as in the
          paper; bandwidth, worker heap, pins and separations may be violated (the paper does not
          look at them).
Differs   memory and CPU are divided by the most that any node has free, so that no unit dominates;
          network distance to the reference node is 0 on it, 0.5 in its rack and 1 elsewhere, as in
          Storm 1.0; a resource without a stated limit matches every task. The reference node has
          the most memory and CPU among those that can hold the first task. One worker per node
          takes all its tasks. Further spouts, then what nothing feeds, then the rest, start the
          breadth-first search again.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from headrace.model.problem import CPU, MEMORY, Assignment, Bools, Floats, Problem
from headrace.place.building_blocks.no_room import fits, no_room
from headrace.place.building_blocks.operators import Operator, list_operators, take_turns
from headrace.place.building_blocks.slots import free_slots, refuse_without_slots
from headrace.place.building_blocks.topologies import each_topology

BOTH = [CPU, MEMORY]


@each_topology
def rstorm(
    problem: Problem,
    *,
    cpu_weight: float = 1.0,
    memory_weight: float = 1.0,
    network_weight: float = 1.0,
) -> Assignment:
    """Algorithm 1: a node for each task, in the order of task selection."""
    slotted = problem.free_slots > 0
    refuse_without_slots(problem, 1, int(slotted.sum()))
    need = np.stack(
        [problem.task_demand(y)[:, BOTH] for y in range(len(problem.types))]
    )  # [Y, T, 2]
    free = problem.free[:, BOTH].copy()
    scale = largest_stated(free)
    weight = np.array([cpu_weight, memory_weight])
    distance = np.zeros(len(problem.nodes))
    node = np.empty(problem.task_count, dtype=np.int64)
    for turn, task in enumerate(task_selection(list_operators(problem))):
        needed = need[problem.node_type, task]  # [N, 2]
        may = slotted & fits(needed[:, MEMORY], free[:, MEMORY])
        if not may.any():
            raise no_room(
                problem, task, ["memory_mb"], needed[:, [MEMORY]], free[:, [MEMORY]], slotted
            )
        if turn == 0:
            chosen = reference_node(problem, free / scale, may)
            distance = network_distance(problem, chosen)
        else:
            lack = np.where(np.isinf(free), 0.0, (needed - free) / scale)
            chosen = int(
                np.where(may, (lack**2) @ weight + network_weight * distance**2, np.inf).argmin()
            )
        node[task] = chosen
        free[chosen] -= needed[chosen]
    slot = np.array(
        [free_slots(problem, n)[0] if slotted[n] else -1 for n in range(len(problem.nodes))]
    )
    return Assignment(node, slot[node])


def task_selection(graph: list[Operator]) -> list[int]:
    """Algorithm 3: one task of each operator, in breadth-first order, until all are used up."""
    return list(take_turns([list(graph[o].tasks) for o in breadth_first(graph)]))


def breadth_first(graph: list[Operator]) -> list[int]:
    """Algorithm 2: from the first spout to children, then parents; then from the next start."""
    everyone = range(len(graph))
    starts = [
        *(o for o in everyone if graph[o].spout),
        *(o for o in everyone if not graph[o].parents),
        *everyone,
    ]
    seen: dict[int, None] = {}
    for start in starts:
        queue = deque([start])
        while queue:
            o = queue.popleft()
            if o not in seen:
                seen[o] = None
                queue.extend(graph[o].neighbours)
    return list(seen)


def largest_stated(free: Floats) -> Floats:
    """The most that a node with a limit has free of each resource; 1 where none has, [2]."""
    most = np.where(np.isfinite(free), free, 0.0).max(axis=0)
    return np.where(most > 0, most, 1.0)


def reference_node(problem: Problem, free: Floats, may: Bools) -> int:
    """Algorithm 4, first task: in the rack with most resources the node with most."""
    score = np.where(may, free.sum(axis=1), -np.inf)
    of_rack = np.bincount(problem.rack[may], score[may], len(problem.racks))
    racks = np.unique(problem.rack[may])
    best = racks[of_rack[racks].argmax()]
    return int(np.where(problem.rack == best, score, -np.inf).argmax())


def network_distance(problem: Problem, reference: int) -> Floats:
    """0 to the reference node, 0.5 within its rack, 1 to other racks, [N]."""
    distance = np.where(problem.rack == problem.rack[reference], 0.5, 1.0)
    distance[reference] = 0.0
    return distance

"""D-Storm: fill one node at a time with the tasks that add most traffic for what they need.

Source    X. Liu and R. Buyya, D-Storm, ICPADS 2017, from general knowledge of it and from what
          Eskandari (section 3.2) and Muhammad (section 2.2.3) say.
Maturity  inspired
Guards    CPU, memory, further resources and slots are never overcommitted; bandwidth, worker heap,
          pins and separations may be violated (the paper does not look at them).
Differs   the paper's priority is known in words only. Here it is (traffic with tasks on the open
          node + weight x traffic with tasks that have no node yet) / the mean share that the task
          needs of what the node has free; resources without a stated limit do not count. Nodes may
          differ, which the paper does not treat. All tasks of a node share one worker.
"""

from __future__ import annotations

import numpy as np

from headrace.errors import InvalidInput
from headrace.judge.shortage import shortage
from headrace.model.arrays import TOLERANCE, Floats, Ints
from headrace.model.problem import CPU, MEMORY, UNPLACED, Assignment, Problem
from headrace.place.building_blocks.greedy import first_best, limits, links_of, one_worker_per_node
from headrace.place.building_blocks.no_room import no_room
from headrace.place.building_blocks.slots import refuse_without_slots
from headrace.place.building_blocks.topologies import each_topology


@each_topology
def dstorm(problem: Problem, *, weight: float = 1.0) -> Assignment:
    """Fill the nodes with most resources first, each with the tasks of highest priority."""
    if weight < 0:
        raise InvalidInput(f"dstorm: option weight is {weight:g}; it cannot be negative")
    nodes = sort_by_resources(problem)
    refuse_without_slots(problem, 1, len(nodes))
    links = links_of(problem.task_pairs(), problem.task_count)
    node = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    total = links.total()
    potential = total.copy()  # traffic with tasks that have no node yet
    used = np.zeros_like(problem.free)
    for n in nodes.tolist():
        need = problem.task_demand(int(problem.node_type[n]))
        share = needed_share(need, problem.free[n])
        limit = limits(problem.free[n])
        gained = np.zeros(problem.task_count)  # traffic with tasks on this node
        fits = node == UNPLACED
        while True:
            fits &= (used[n] + need <= limit).all(axis=1)  # room only shrinks
            if not fits.any():
                break
            task = first_best(np.where(fits, (gained + weight * potential) / share, -1.0))
            node[task], fits[task] = n, False
            used[n] += need[task]
            other, rate = links.of(task)
            gained[other] += rate
            rest = potential[other] - rate
            potential[other] = np.where(rest > TOLERANCE * total[other], rest, 0.0)
    left_over = np.flatnonzero(node == UNPLACED)
    if len(left_over):
        task = int(left_over[0])
        demand = np.stack([problem.task_demand(y)[task] for y in range(len(problem.types))])[
            problem.node_type
        ]
        free, slotted = problem.free - used, problem.free_slots > 0
        raise shortage(problem) or no_room(problem, task, problem.resources, demand, free, slotted)
    return one_worker_per_node(problem, node)


def sort_by_resources(problem: Problem) -> Ints:
    """Nodes with a free slot, largest first: by the smaller share of CPU or memory, then mean."""
    nodes = np.flatnonzero(problem.free_slots > 0)
    free = problem.free[nodes][:, [CPU, MEMORY]]
    stated = np.isfinite(free)
    total = np.where(stated, free, 0.0).sum(axis=0)
    share = np.where(stated, free / np.where(total > 0, total, 1.0), 1.0)
    return nodes[np.lexsort((-share.mean(axis=1), -share.min(axis=1)))] if len(nodes) else nodes


def needed_share(need: Floats, free: Floats) -> Floats:
    """The share of a node that each task needs, as the mean over resources with a limit, [T].

    Never 0, so that it can divide.
    """
    known = np.isfinite(free) & (free > 0)
    if not known.any():
        return np.ones(len(need))
    return np.maximum((need[:, known] / free[known]).mean(axis=1), TOLERANCE)

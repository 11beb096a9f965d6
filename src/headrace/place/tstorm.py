"""T-Storm: busiest executors first, each to the node where least of its traffic leaves.

Source    J. Xu et al., T-Storm: Traffic-aware Online Scheduling in Storm, ICDCS 2014, from general
          knowledge of it and from what Eskandari (section 3.2), Muhammad (section 2.2.1) and
          Souravlas (section 2) say.
Maturity  inspired
Guards    CPU and slots are never overcommitted; memory, bandwidth, worker heap, pins and
          separations may be violated (the paper does not look at them).
Differs   the limit of executors per node, gamma x executors / nodes, is rounded up, and gives way
          where no node below it has CPU left; equal nodes keep their order in the file. Topologies
          are placed one after another, where the paper mixes them. Loads are taken as given: the
          paper's smoothing belongs to measuring. Eskandari describes it as packing that ignores who
          talks to whom: option choose=packing takes the first node with room, largest free CPU
          first.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from headrace.errors import InvalidInput
from headrace.judge.shortage import shortage
from headrace.model.arrays import TOLERANCE, totals
from headrace.model.problem import CPU, UNPLACED, Assignment, Problem
from headrace.place.building_blocks.greedy import (
    first_best,
    limits,
    links_of,
    one_worker_per_node,
    order_descending,
)
from headrace.place.building_blocks.no_room import no_room
from headrace.place.building_blocks.slots import refuse_without_slots
from headrace.place.building_blocks.topologies import each_topology


@each_topology
def tstorm(
    problem: Problem, *, gamma: float = 1.7, choose: Literal["traffic", "packing"] = "traffic"
) -> Assignment:
    """Place executors by their traffic; gamma 1 spreads them evenly, more uses fewer nodes."""
    if gamma <= 0:
        raise InvalidInput(f"tstorm: option gamma is {gamma:g}; it must be above 0")
    slotted = problem.free_slots > 0
    nodes = np.flatnonzero(slotted)
    refuse_without_slots(problem, 1, len(nodes))
    if choose == "packing":
        nodes = nodes[np.argsort(-problem.free[nodes, CPU], kind="stable")]
    executors = problem.task_count
    most = math.ceil(gamma * executors / len(nodes) - TOLERANCE)
    links = links_of(problem.task_pairs(), executors)
    load = np.stack([problem.task_cpu(y) for y in range(len(problem.types))])  # [Y, T]
    limit = limits(problem.free[:, CPU])
    used, count = np.zeros(len(problem.nodes)), np.zeros(len(problem.nodes), dtype=np.int64)
    node = np.full(executors, UNPLACED, dtype=np.int64)
    for executor in order_descending(links.total()).tolist():
        needed = load[problem.node_type, executor]
        has_cpu = used[nodes] + needed[nodes] <= limit[nodes]
        if not has_cpu.any():
            left = problem.free[:, CPU] - used
            raise shortage(problem) or no_room(
                problem, executor, ["cpu"], needed[:, None], left[:, None], slotted
            )
        below = has_cpu & (count[nodes] < most)
        may = below if below.any() else has_cpu
        if choose == "packing":
            chosen = int(nodes[may.argmax()])
        else:
            other, weight = links.of(executor)
            placed = node[other] != UNPLACED
            # What is not added to the traffic between nodes.
            stays = totals(node[other[placed]], weight[placed], len(problem.nodes))
            chosen = int(nodes[first_best(np.where(may, stays[nodes], -1.0))])
        node[executor] = chosen
        used[chosen] += needed[chosen]
        count[chosen] += 1
    return one_worker_per_node(problem, node)

"""RO-MOD's placement: tasks in blocks, as many in a row per node, node after node.

Source    S. Souravlas, S. Anastasiadou, A. Sifaleras, Mathematical modeling for further improving
          task scheduling on Big Data systems, 2023, eq. 1-3. What RO-MOD is about, the steps from
          one such placement to the next, is `move --by ro-mod`.
Maturity  faithful
Guards    slots are never overcommitted; CPU, memory, bandwidth, worker heap, pins and separations
          may be violated (the equation has nothing but numbers of tasks and nodes).
Differs   the source has as many tasks as nodes x t; where they do not divide, t is rounded up, so
          that no node has more than it must, and the last nodes have fewer tasks or none. Option
          `per_node` gives t; blocks then go round the nodes as often as needed. Tasks are numbered
          as Storm does, nodes in the order of the file. The source says nothing of workers: as many
          as the topology asks for, and the tasks of a node are dealt to its own in turn.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.errors import InvalidInput
from headrace.model.arrays import distinct
from headrace.model.problem import Assignment, Problem
from headrace.place.building_blocks.slots import refuse_without_slots
from headrace.place.building_blocks.topologies import each_topology
from headrace.place.storm_even import interleaved_slots, storm_order


@each_topology
def ro_mod(problem: Problem, *, per_node: int | None = None) -> Assignment:
    """Place task i on node floor(i / t) mod N."""
    if per_node is not None and per_node < 1:
        raise InvalidInput(f"ro-mod: option per_node is {per_node}; it must be at least 1")
    slots = interleaved_slots(problem)[: problem.worker_count(0)]
    refuse_without_slots(problem, 1, len(slots))
    nodes = distinct(slots[:, 0])
    t = per_node or math.ceil(problem.task_count / len(nodes))
    i = np.arange(problem.task_count)
    n = i // t % len(nodes)  # eq. 1
    on_node = i // t // len(nodes) * t + i % t  # eq. 3: L t + x, the task's number on its node
    node, worker = np.empty((2, problem.task_count), dtype=np.int64)
    order = storm_order(problem)
    node[order] = nodes[n]
    for k, place in enumerate(nodes.tolist()):
        own, mine = slots[slots[:, 0] == place, 1], n == k
        worker[order[mine]] = own[on_node[mine] % len(own)]
    return Assignment(node, worker)

"""Most room: each task, the largest first, to the node with the most CPU left.

Source    an example that comes with Headrace
Maturity  ours
Guards    slots are never overcommitted; CPU and memory may be.
Differs   nothing to differ from.
"""

from __future__ import annotations

import numpy as np

import headrace as hr
from headrace.model.plan import first_free_slots
from headrace.model.problem import CPU
from headrace.place.building_blocks.topologies import each_topology


@each_topology
def most_room(problem: hr.Problem, *, keep: float = 0.0) -> hr.Assignment:
    """Place one topology; `keep` is the share of every node's CPU that is left alone."""
    open_nodes = problem.free_slots > 0
    if not open_nodes.any():
        raise hr.Infeasible("no node has a free slot", resource="slots", needed=1, available=0)
    room = np.where(open_nodes, problem.free[:, CPU] * (1 - keep), -np.inf)
    need = problem.mean_demand[:, CPU]
    node = np.empty(problem.task_count, dtype=np.int64)
    for task in np.argsort(-need, kind="stable"):
        node[task] = room.argmax()
        room[node[task]] -= need[task]
    return hr.Assignment(node, first_free_slots(problem, node))

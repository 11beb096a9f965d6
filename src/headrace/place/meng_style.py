"""Meng-style: busiest tasks first, each near its neighbours while the nodes' load stays even.

Source    after Chen Meng-Meng et al., A Task Scheduling Approach for Real-Time Stream Processing,
          CCBD 2014: what its abstract and Souravlas (sections 2 and 4) say. A stand-in, not the
          authors' algorithm.
Maturity  inspired
Guards    slots are never overcommitted; CPU, memory, bandwidth, worker heap, pins and separations
          may be violated (load is evened out, not limited).
Differs   everything in detail is our reading: tasks by traffic; nodes whose load stays within (1 +
          imbalance) x the mean; of these the one with least traffic x hops, where hops are 0 on a
          node, 1 within a rack (one switch), 2 between racks; of equal ones the least loaded. Where
          no node stays within, the one least loaded afterwards. Load is CPU by what the node has
          free; where a node does not state its CPU all count alike, and where no task needs CPU,
          tasks are counted. One worker per node.
"""

from __future__ import annotations

import numpy as np

from headrace.errors import InvalidInput
from headrace.model.arrays import TOLERANCE, Floats, Ints, totals
from headrace.model.problem import CPU, UNPLACED, Assignment, Problem
from headrace.place.building_blocks.greedy import (
    first_best,
    links_of,
    one_worker_per_node,
    order_descending,
)
from headrace.place.building_blocks.slots import refuse_without_slots
from headrace.place.building_blocks.topologies import each_topology


@each_topology
def meng_style(problem: Problem, *, imbalance: float = 0.2) -> Assignment:
    """Place tasks in the order of their traffic, close to their neighbours and evenly."""
    if imbalance < 0:
        raise InvalidInput(f"meng-style: option imbalance is {imbalance:g}; it cannot be negative")
    nodes = np.flatnonzero(problem.free_slots > 0)
    refuse_without_slots(problem, 1, len(nodes))
    links = links_of(problem.task_pairs(), problem.task_count)
    points, strength, mean = loads(problem, nodes)
    most = (1 + imbalance) * mean * (1 + TOLERANCE)
    load = np.zeros(len(nodes))
    position = np.full(problem.task_count, UNPLACED, dtype=np.int64)  # in `nodes`
    rack = problem.rack[nodes]
    for task in order_descending(links.total()).tolist():
        other, weight = links.of(task)
        placed = position[other] != UNPLACED
        near = totals(position[other[placed]], weight[placed], len(nodes))
        # Traffic x hops is 2 for everything, less 1 for what stays in the rack, less 1 more for
        # what stays on the node.
        saved = near + totals(rack, near, len(problem.racks))[rack]
        after = load + points[problem.node_type[nodes], task] / strength
        even = after <= most
        if even.any():
            best = saved >= np.where(even, saved, -1.0).max() * (1 - TOLERANCE)
            after = np.where(even & best, after, np.inf)
        position[task] = first_best(-after)
        load[position[task]] = after[position[task]]
    return one_worker_per_node(problem, nodes[position])


def loads(problem: Problem, nodes: Ints) -> tuple[Floats, Floats, float]:
    """Points of every task by machine type [Y, T], what each node has free [nodes], mean load."""
    points = np.stack([problem.task_cpu(y) for y in range(len(problem.types))])
    total = float(problem.mean_demand[:, CPU].sum())
    if total == 0:
        points, total = np.ones_like(points), float(problem.task_count)
    strength = problem.free[nodes, CPU]
    if not (np.isfinite(strength) & (strength > 0)).all():
        strength = np.ones(len(nodes))
    return points, strength, total / float(strength.sum())

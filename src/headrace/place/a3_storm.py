"""A3-Storm: group executors by traffic, fill the most powerful nodes first.

Source    A. Muhammad, PhD thesis 2023, section 3.3, algorithms 4-6, eq. 3.1-3.2, tables 3.5-3.6.
Maturity  faithful
Guards    slots are never overcommitted; CPU, memory and bandwidth may be (the paper does not look
          at them).
Differs   affinity is measured to the pair that opened the slot: with the whole group, as the prose
          has it (option affinity=group), the worked example's tie of two would be one of three.
          Each pair is visited once; a group stops growing when nothing connected is left. Leftover
          executors go to slot counter mod workers: so do the pseudo-codes of algorithms 2, 5 and 7,
          and more of the published claims hold that way, though it breaks the limit per slot in all
          12 scenarios. Option leftovers=slots is the prose of section 3.3.1, "round-robin among the
          unassigned slots": first those that no pair opened, then those with room, so that the
          limit holds. Slots are ranked by the traffic inside them (option slot_traffic=incident
          counts all traffic of their executors). A node fact that is not known of every node with a
          free slot ranks none, and the report says so.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from headrace.model.arrays import Ints
from headrace.model.problem import Assignment, Pairs, Problem
from headrace.place.building_blocks.grouping import (
    Affinity,
    Leftovers,
    group_by_pairs,
    sort_by_traffic,
)
from headrace.place.building_blocks.node_power import (
    COMPUTATION_FACTS,
    computation_power,
    keep_common_facts,
    list_missing_facts,
    rank_nodes,
)
from headrace.place.building_blocks.slot_filling import SlotTraffic, fill_nodes, slots_by_traffic
from headrace.place.building_blocks.topologies import each_topology


@each_topology
def a3_storm(
    problem: Problem,
    *,
    alpha: float = 0.8,
    affinity: Affinity = "pair",
    leftovers: Leftovers = "modulo",
    slot_traffic: Literal["internal", "incident"] = "internal",
) -> Assignment:
    """Algorithm 4: executors to slots by traffic, then slots to nodes by computation power."""
    pairs = problem.task_pairs()
    slot_of = map_executors_to_slots(problem, pairs, problem.worker_count(0), affinity, leftovers)
    return map_slots_to_nodes(problem, pairs, slot_of, alpha, slot_traffic)


def map_executors_to_slots(
    problem: Problem, pairs: Pairs, workers: int, affinity: Affinity, leftovers: Leftovers
) -> Ints:
    """Algorithm 5: the slot of each executor, [T]."""
    executors = problem.task_count
    if workers == 1:
        return np.zeros(executors, dtype=np.int64)
    if workers >= executors:
        return np.arange(executors)
    return group_by_pairs(sort_by_traffic(pairs), executors, workers, affinity, leftovers)


def map_slots_to_nodes(
    problem: Problem, pairs: Pairs, slot_of: Ints, alpha: float, slot_traffic: SlotTraffic
) -> Assignment:
    """Algorithm 6: the busiest slot to the most powerful node, node after node."""
    ranked = slots_by_traffic(pairs, slot_of, slot_traffic)
    return fill_nodes(
        problem,
        slot_of,
        ranked,
        rank_nodes(problem, computation_power(keep_common_facts(problem), alpha)),
        list_missing_facts(problem, COMPUTATION_FACTS),
    )

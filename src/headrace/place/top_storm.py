"""TOP-Storm: group connected executors, fill the most powerful nodes first.

Source    A. Muhammad, PhD thesis 2023, section 3.2, algorithms 1-3, eq. 3.1-3.2, tables 3.1-3.4.
Maturity  faithful
Guards    slots are never overcommitted; CPU, memory, bandwidth, pins and separations may be
          violated (the paper does not look at them).
Differs   pairs are taken in the order of the file's streams (table 3.3 names a sort that the worked
          example rules out). Interaction is the number of connections with the whole group:
          section 3.2.1 explains its tie by connections with Bolt B, the third member (option
          affinity=pair: with the two executors that opened the slot, as the function's arguments
          say). Each pair is visited once; a group stops growing when nothing connected is left; no
          more groups than workers are opened. Leftover executors go to slot counter mod workers,
          as the pseudo-code has it, which can break the "maximum executor per slot" of table 3.3;
          option leftovers=slots keeps it (see A3-Storm). The "longest path" of sections 1.8 and 3.6
          is in no algorithm. A node fact that is not known of every node with a free slot ranks
          none, and the report says so.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.model.problem import Assignment, Ints, Problem
from headrace.place.building_blocks.grouping import Affinity, Leftovers, group_by_pairs
from headrace.place.building_blocks.node_power import (
    COMPUTATION_FACTS,
    computation_power,
    keep_common_facts,
    list_missing_facts,
    rank_nodes,
)
from headrace.place.building_blocks.slot_filling import fill_nodes, slots_by_size
from headrace.place.building_blocks.topologies import each_topology


@each_topology
def top_storm(
    problem: Problem,
    *,
    alpha: float = 0.8,
    affinity: Affinity = "group",
    leftovers: Leftovers = "modulo",
) -> Assignment:
    """Algorithm 1: executors to slots by connectivity, then slots to nodes by computation power."""
    slot_of = map_executors_to_slots(problem, problem.worker_count(0), affinity, leftovers)
    return map_slots_to_nodes(problem, slot_of, alpha)


def map_executors_to_slots(
    problem: Problem, workers: int, affinity: Affinity, leftovers: Leftovers
) -> Ints:
    """Algorithm 2: the slot of each executor; a connection counts once whatever it carries, [T]."""
    pairs = problem.task_pairs()
    connections = replace(pairs, tuples_per_s=np.ones(len(pairs)))
    return group_by_pairs(connections, problem.task_count, workers, affinity, leftovers)


def map_slots_to_nodes(problem: Problem, slot_of: Ints, alpha: float) -> Assignment:
    """Algorithm 3: the slot with most executors to the most powerful node, node after node."""
    return fill_nodes(
        problem,
        slot_of,
        slots_by_size(slot_of),
        rank_nodes(problem, computation_power(keep_common_facts(problem), alpha)),
        list_missing_facts(problem, COMPUTATION_FACTS),
    )

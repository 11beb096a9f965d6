"""BAN-Storm: group executors by traffic, fill the nodes strongest in what the topology needs most.

Source    A. Muhammad, PhD thesis 2023, section 3.4, algorithms 7-9, eq. 3.1 and 3.3, tables
          3.7-3.10.
Maturity  faithful
Guards    slots are never overcommitted; CPU, memory, bandwidth, pins and separations may be
          violated (the paper ranks by some, checks none).
Differs   traffic is measured to the pair that opened the slot (option affinity=group: to the whole
          group). Leftover executors go to slot counter mod workers, as the pseudo-code has it,
          which breaks the limit of a slot; option leftovers=slots keeps it (see A3-Storm, whose
          grouping this is). Slots are ranked by the traffic inside them (option
          slot_traffic=incident counts all traffic of their executors). Sockets count and full nodes
          are left out, as in algorithm 3. Scores are exact, so nodes b and d of table 3.9, sorted
          there by rounded scores, change places. A node fact that is not known of every node with a
          free slot ranks none, and the report says so.
"""

from __future__ import annotations

from headrace.model.problem import Assignment, Ints, Pairs, Problem
from headrace.place.building_blocks.grouping import (
    Affinity,
    Leftovers,
    group_by_pairs,
    sort_by_traffic,
)
from headrace.place.building_blocks.node_power import (
    NODE_FACTS,
    keep_common_facts,
    list_missing_facts,
    node_power,
    rank_nodes,
)
from headrace.place.building_blocks.slot_filling import SlotTraffic, fill_nodes, slots_by_traffic
from headrace.place.building_blocks.topologies import each_topology


@each_topology
def ban_storm(
    problem: Problem,
    *,
    bound_weight: float = 0.5,
    other_weight: float = 0.25,
    affinity: Affinity = "pair",
    leftovers: Leftovers = "modulo",
    slot_traffic: SlotTraffic = "internal",
) -> Assignment:
    """Algorithm 7: group executors by traffic, then map the groups to nodes, weighed by alg. 9."""
    pairs = problem.task_pairs()
    slot_of = group_by_pairs(
        sort_by_traffic(pairs), problem.task_count, problem.worker_count(0), affinity, leftovers
    )
    return physical_mapping(problem, pairs, slot_of, bound_weight, other_weight, slot_traffic)


def physical_mapping(
    problem: Problem,
    pairs: Pairs,
    slot_of: Ints,
    bound_weight: float,
    other_weight: float,
    slot_traffic: SlotTraffic,
) -> Assignment:
    """Algorithm 8: the busiest slot to the most powerful node, node after node."""
    ranked = slots_by_traffic(pairs, slot_of, slot_traffic)
    return fill_nodes(
        problem,
        slot_of,
        ranked,
        rank_nodes(problem, node_power(keep_common_facts(problem), bound_weight, other_weight)),
        list_missing_facts(problem, NODE_FACTS),
    )

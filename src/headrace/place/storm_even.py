"""Storm's default scheduler: deal tasks round-robin over slots, and slots round-robin over nodes.

Source    Apache Storm's EvenScheduler, as described by Eskandari, section 5.4, and Muhammad,
          section 1.2 (fig. 1.6-1.7).
Maturity  faithful
Guards    slots are never overcommitted; CPU, memory and bandwidth may be (the scheduler does not
          look at them).
Differs   nodes with equally many free slots keep their order in the file, where Storm orders them
          by an id that users do not choose.
"""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Ints
from headrace.model.problem import Assignment, Problem
from headrace.place.building_blocks.slots import refuse_without_slots
from headrace.place.building_blocks.topologies import each_topology


@each_topology
def storm_even(problem: Problem) -> Assignment:
    """Place task i, in Storm's numbering, in slot i modulo the slots in use."""
    slots = interleaved_slots(problem)[: problem.worker_count(0)]
    refuse_without_slots(problem, 1, len(slots))
    node, worker = (
        np.empty(problem.task_count, dtype=np.int64),
        np.empty(problem.task_count, dtype=np.int64),
    )
    order = storm_order(problem)
    node[order], worker[order] = slots[np.arange(len(order)) % len(slots)].T
    return Assignment(node, worker)


def storm_order(problem: Problem) -> Ints:
    """Tasks as Storm numbers them: components by name, then by number within the component, [T]."""
    by_name = sorted(range(len(problem.components)), key=lambda c: problem.components[c])
    return np.concatenate([np.arange(problem.first[c], problem.first[c + 1]) for c in by_name])


def interleaved_slots(problem: Problem) -> Ints:
    """Free slots as (node, slot): the first of every node, then the second, .., [slots, 2].

    Nodes with most free slots come first.
    """
    by_free = np.argsort(-problem.free_slots, kind="stable")
    free = ~problem.slot_taken[by_free]
    position, slot = np.nonzero(free)
    turn = np.cumsum(free, axis=1)[position, slot]  # which of its node's free slots it is
    order = np.lexsort((position, turn))
    return np.column_stack([by_free[position[order]], slot[order]]).astype(np.int64)

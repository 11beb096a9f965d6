"""Slots on nodes: rank the slots, then fill node after node (Muhammad, alg. 3, 6, 8 and 11)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from headrace.model.arrays import Floats, Ints, totals
from headrace.model.problem import Assignment, Pairs, Problem
from headrace.place.building_blocks.slots import free_slots, refuse_without_slots

SlotTraffic = Literal["internal", "incident"]


def slots_by_traffic(pairs: Pairs, slot_of: Ints, slot_traffic: SlotTraffic = "internal") -> Ints:
    """Non-empty slots, most traffic first: inside the slot, or all that its executors have."""
    a, b = slot_of[pairs.source], slot_of[pairs.target]
    count = int(slot_of.max()) + 1
    inside = totals(a[a == b], pairs.tuples_per_s[a == b], count)
    if slot_traffic == "incident":
        crosses = a != b
        inside += totals(a[crosses], pairs.tuples_per_s[crosses], count) + totals(
            b[crosses], pairs.tuples_per_s[crosses], count
        )
    return rank_slots(slot_of, inside)


def slots_by_need(slot_of: Ints, need: Floats, slots: Ints) -> Ints:
    """Slots whose executors need most first; those that need the same keep their order."""
    total = totals(slot_of, need, int(slot_of.max()) + 1)
    return slots[np.argsort(-total[slots], kind="stable")]


def slots_by_size(slot_of: Ints) -> Ints:
    """Non-empty slots, most executors first."""
    return rank_slots(slot_of, np.bincount(slot_of).astype(np.float64))


def rank_slots(slot_of: Ints, score: Floats) -> Ints:
    """Non-empty slots by score, highest first; equal ones keep their order."""
    order = np.argsort(-score, kind="stable")
    return order[np.bincount(slot_of, minlength=len(score))[order] > 0]


def fill_nodes(
    problem: Problem, slot_of: Ints, slots: Ints, nodes: Ints, notes: tuple[str, ...]
) -> Assignment:
    """Give the first node as many slots as it has free, then the next node, and so on."""
    room = [(n, s) for n in nodes.tolist() for s in free_slots(problem, n).tolist()]
    refuse_without_slots(problem, len(slots), len(room))
    place = np.full((int(slot_of.max()) + 1, 2), -1, dtype=np.int64)
    place[slots] = np.array(room[: len(slots)], dtype=np.int64).reshape(-1, 2)
    return Assignment(place[slot_of, 0], place[slot_of, 1], notes=notes)

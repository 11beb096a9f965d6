"""The knapsack of one node: which pattern of tasks is worth most to it.

    maximise  price @ y + traffic that y keeps together   over the patterns y the node has room for

`knapsack_search` finds the best patterns by branch and bound, with the bound of `knapsack_bound`;
`greedy_patterns` finds good ones quickly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.compiled import lean
from headrace.solve.slots import slots_fit
from headrace.solve.symmetry import Quotient

EPS = 1e-12


class Knapsack(NamedTuple):
    """One node of a class, and what it may hold: C classes, K resources."""

    weight: Floats  # [C, C]  between one task and one other task
    most: Ints  # [C]         tasks of a class that the node may hold
    demand: Floats  # [C, K]
    room: Floats  # [K]
    size: Floats  # [C]       demands as one number, positive
    total_size: float  # sizes of a pattern that fits never add up to more
    group: Ints  # [C]
    memory: Floats  # [C]
    heap: Floats  # [G]
    slots: int
    slots_matter: bool
    work: Floats  # [3, tasks]  scratch for counting slots


class KnapsackSearch(NamedTuple):
    """A search that can pause: by depth the choices made, what is left, which count is tried."""

    depth: Ints  # [1]         -1 when all is searched
    opened: Ints  # [1]        1 if the node at this depth has not been looked at
    nodes: Ints  # [1]         visited so far
    floor: Floats  # [1]       only patterns worth more are of interest
    upper: Floats  # [1]       no pattern is worth more
    split: Floats  # [C, C]    share of a pair's weight that its first end collects
    near: Ints  # [C, C]       neighbours by falling split for their size
    degree: Ints  # [C]
    pattern: Ints  # [C]
    branch: Ints  # [D]        class that is decided
    tasks: Ints  # [D]         how many of it
    worth: Floats  # [D]
    free_size: Floats  # [D]
    free: Floats  # [D, K]
    gain: Floats  # [D, C]     what one more task adds
    left: Ints  # [D, C]       tasks that may still be added
    order: Ints  # [D, C]      classes by falling value for their size
    value: Floats  # [C]       what one task of a class collects at most
    ratio: Floats  # [C]       the same for its size


def class_sizes(q: Quotient, j: int) -> tuple[Floats, float]:
    """One positive size per class [C] for all resources, and the most that a node has room for.

    The sizes of a pattern that fits a node of class j never add up to more.
    """
    # A resource counts as much as it is scarce in the whole cluster: one in plenty says nothing
    # about what fits.
    asked = (q.demand[j] * q.count[:, None]).sum(axis=0)
    scarcity = asked / np.maximum((q.room * q.nodes[:, None]).sum(axis=0), EPS)
    scale = (scarcity / max(scarcity.max(initial=0.0), EPS)) ** 4 / np.maximum(q.room[j], EPS)
    size = q.demand[j] @ scale
    total = float(np.maximum(q.room[j], 0.0) @ scale)
    least = 1e-6 * max(total, EPS)
    total += float((np.maximum(least - size, 0.0) * q.most[j]).sum())
    return np.maximum(size, least), total


def knapsack_of(q: Quotient, weight: Floats, j: int) -> Knapsack:
    """The knapsack of one node of class j."""
    size, total_size = class_sizes(q, j)
    return Knapsack(
        weight=weight,
        most=q.most[j],
        demand=np.ascontiguousarray(q.demand[j]),
        room=q.room[j],
        size=size,
        total_size=total_size,
        group=q.group,
        memory=q.memory,
        heap=q.heap,
        slots=int(q.slots[j]),
        slots_matter=q.slots_matter,
        work=np.zeros((3, int(q.most[j].sum()) + 1)),
    )


@lean
def has_slots(knapsack: Knapsack, pattern: Ints) -> bool:
    """Whether the slots of the node suffice for a pattern."""
    return not knapsack.slots_matter or slots_fit(
        pattern, knapsack.group, knapsack.memory, knapsack.heap, knapsack.slots, knapsack.work
    )

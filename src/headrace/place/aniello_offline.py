"""Aniello's offline scheduler: each component beside those that feed it, upstream ones first.

Source    L. Aniello, R. Baldoni, L. Querzoni, Adaptive Online Scheduling in Storm, DEBS 2013, as
          the authors' implementation does it.
Maturity  faithful
Guards    slots are never overcommitted; CPU, memory, bandwidth, worker heap, pins and separations
          may be violated (the scheduler looks at the graph alone).
Differs   the order of components is worked out, where the authors ask the user for it: topological,
          equal ones in file order, and a cycle is entered at the component that is fed from
          outside. Slots that stay empty are not put on nodes. Fewer free slots than `workers` are
          used as they are. Nodes with equally many free slots keep their order in the file.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.errors import InvalidInput
from headrace.model.arrays import TOLERANCE, Ints
from headrace.model.problem import Assignment, Problem
from headrace.place.building_blocks.operators import Operator, list_operators
from headrace.place.building_blocks.slots import free_slots, refuse_without_slots
from headrace.place.building_blocks.topologies import each_topology


@each_topology
def aniello_offline(
    problem: Problem, *, alfa: float = 0.0, beta: float = 1.0, epsilon: float = 0.5
) -> Assignment:
    """Executors to slots along the graph, then slots to nodes in turn.

    alfa lets slots be filled unevenly and beta spreads slots over more nodes; after the share
    epsilon of the components, empty slots come first. Each is from 0 to 1.
    """
    refuse_outside_unit("aniello-offline", alfa=alfa, beta=beta, epsilon=epsilon)
    available = int(problem.free_slots.sum())
    refuse_without_slots(problem, 1, available)
    slots = min(problem.worker_count(0), problem.task_count, available)
    slot_of = executors_to_slots(
        list_operators(problem), slots, most_in_one(problem.task_count, slots, alfa), epsilon
    )
    return slots_to_nodes(problem, slot_of, beta)


def refuse_outside_unit(name: str, **options: float) -> None:
    """Raise if an option is not between 0 and 1."""
    for key, value in options.items():
        if not 0 <= value <= 1:
            raise InvalidInput(f"{name}: option {key} is {value:g}; it must be between 0 and 1")


def most_in_one(things: int, places: int, slack: float) -> int:
    """The most things in one place: an even share at slack 0, all but one per other place at 1."""
    even = -(-things // places)
    return even + math.ceil(slack * ((things - places + 1) - even) - TOLERANCE)


def executors_to_slots(graph: list[Operator], slots: int, most: int, epsilon: float) -> Ints:
    """The slot of each executor, [T]: in turn the slots that hold an input, then the others."""
    slot_of = np.full(sum(len(operator.tasks) for operator in graph), -1, dtype=np.int64)
    count = [0] * slots
    holds: list[set[int]] = [set() for _ in range(slots)]  # operators in each slot
    for index, o in enumerate(sort_upstream_first(graph)):
        inputs = set(graph[o].parents)
        open_slots = [s for s in range(slots) if count[s] < most]
        primary = [s for s in open_slots if holds[s] & inputs]
        secondary = [s for s in open_slots if not holds[s] & inputs]
        if index >= int(epsilon * len(graph) + TOLERANCE):
            empty = [s for s in secondary if not count[s]]
            primary = empty[::-1] + primary
            secondary = [s for s in secondary if count[s]]
        turn = 0
        for executor in graph[o].tasks:
            ring = primary or secondary
            turn %= len(ring)
            slot = ring[turn]
            slot_of[executor] = slot
            count[slot] += 1
            holds[slot].add(o)
            if count[slot] < most:
                turn += 1
            else:
                ring.pop(turn)
    return slot_of


def sort_upstream_first(graph: list[Operator]) -> list[int]:
    """Operators in topological order; a cycle starts with one that is fed from outside."""
    order: dict[int, None] = {}
    waiting = dict.fromkeys(range(len(graph)))

    def rank(o: int) -> tuple[bool, bool, int]:
        missing = [p for p in graph[o].parents if p not in order and p != o]
        return bool(missing), len(missing) == len(graph[o].parents), o

    while waiting:
        chosen = min(waiting, key=rank)
        order[chosen] = None
        del waiting[chosen]
    return list(order)


def count_nodes_to_use(free: Ints, slots: int, beta: float) -> int:
    """How many nodes take the slots: the fewest that hold them at beta 0, all that can at 1."""
    room = np.cumsum(np.sort(free[free > 0])[::-1])
    fewest = int(np.searchsorted(room, slots)) + 1
    return fewest + math.ceil(beta * (min(len(room), slots) - fewest) - TOLERANCE)


def slots_to_nodes(problem: Problem, slot_of: Ints, beta: float) -> Assignment:
    """Deal slots in turn to the nodes with most free slots."""
    used, slot_of = np.unique(slot_of, return_inverse=True)
    by_free = np.argsort(-problem.free_slots, kind="stable")[
        : count_nodes_to_use(problem.free_slots, len(used), beta)
    ]
    per_node = [(n, free_slots(problem, n).tolist()) for n in by_free.tolist()]
    rounds = [
        (n, free[i])
        for i in range(max(len(free) for _, free in per_node))
        for n, free in per_node
        if i < len(free)
    ]
    node, worker = np.array(rounds, dtype=np.int64)[slot_of].T
    return Assignment(node.copy(), worker.copy())

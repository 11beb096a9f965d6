"""Counts where nodes must be filled to capacity: an integer program over the few ways to do so.

Where little room is left in all, no node may waste more of its CPU than that. So only few patterns
are possible, and a program that chooses among them is small, however many ways there are to deal
tasks out. It finds packings that a search by single moves and swaps misses.
"""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.problem import CPU
from headrace.solve.compiled import compiled
from headrace.solve.instance import Instance
from headrace.solve.slots import slots_fit
from headrace.solve.symmetry import Quotient, counts_of, quotient

MOST_TASKS, MOST_PATTERNS = 500, 2_000  # what takes a fraction of a second
MOST_VISITS = 200_000  # milliseconds: little is lost where it is in vain


def fill_to_capacity(instance: Instance) -> Ints | None:
    """Counts [C, N] that keep much traffic inside nodes, each of them full.

    None if there are none, or if there are too many ways to fill a node.
    """
    if instance.count.sum() > MOST_TASKS:
        return None
    q = quotient(instance)
    if not (q.demand[:, :, CPU] == q.demand[0, :, CPU]).all():
        return None  # what a node wastes is not defined where a task takes more of one node
    spare = float(q.nodes @ q.room[:, CPU] - q.count @ q.demand[0, :, CPU])
    if spare < 0:
        return None
    found = [full_patterns(q, j, spare) for j in range(len(q.nodes))]
    ways = [some for some in found if some is not None and len(some)]
    if len(ways) < len(found):
        return None
    chosen = choose_patterns(q, ways)
    return None if chosen is None else counts_of(instance, q, chosen)


def choose_patterns(q: Quotient, ways: list[Ints]) -> list[tuple[int, Ints]] | None:
    """A class and a pattern for every node, so that each task is placed once; None if impossible.

    ways[j] are the patterns of node class j, [F, C].
    """
    from headrace.solve.pattern_rows import pattern_rows
    from headrace.solve.proof.integer_program import Budget, IntegerProgram, maximise
    from headrace.solve.symmetry import traffic_inside

    patterns = np.concatenate(ways)
    node_class = np.repeat(np.arange(len(ways)), [len(some) for some in ways])
    kept = traffic_inside(q, patterns)
    every = np.concatenate([q.count, q.nodes]).astype(np.float64)  # task and node, exactly once
    rows = pattern_rows(patterns, node_class, len(ways))
    unit = max(float(kept.max(initial=0.0)), 1.0)
    program = IntegerProgram(kept, rows, every, every)
    solution = maximise(program, Budget(steps=1), unit=unit).solution
    if solution is None:
        return None
    return [
        (int(node_class[p]), patterns[p])
        for p in np.flatnonzero(solution)
        for _ in range(int(solution[p]))
    ]


def full_patterns(q: Quotient, j: int, spare: float) -> Ints | None:
    """What a node of class j may hold if it wastes at most `spare` CPU, [F, C]; None: too much."""
    order = np.argsort(-q.demand[j, :, CPU], kind="stable")
    found = np.zeros((MOST_PATTERNS, len(order)), dtype=np.int64)
    count = list_patterns(
        q.most[j, order], q.demand[j, order], q.room[j], spare, found, MOST_VISITS
    )
    if count < 0:
        return None
    patterns = np.zeros((count, len(order)), dtype=np.int64)
    patterns[:, order] = found[:count]
    if not q.slots_matter:
        return patterns
    work = np.zeros((3, int(q.count.sum()) + 1))
    fit = [slots_fit(y, q.group, q.memory, q.heap, int(q.slots[j]), work) for y in patterns]
    return patterns[np.array(fit, dtype=np.bool_)]


@compiled
def list_patterns(
    most: Ints, demand: Floats, room: Floats, spare: float, found: Ints, visits: int
) -> int:
    """Write every pattern that fits and leaves at most `spare` CPU into `found`; gives how many.

    Classes are taken from the largest to the smallest, and left as soon as the rest of them cannot
    fill the node any more. -1 if there are more patterns than rows, or it takes too many visits.
    """
    classes, resources = demand.shape
    rest = np.zeros(classes + 1)  # CPU that all classes from one on can add
    for i in range(classes - 1, -1, -1):
        rest[i] = rest[i + 1] + most[i] * demand[i, CPU]
    left = np.zeros((classes + 1, resources))
    left[0] = room
    pattern = np.zeros(classes, np.int64)
    pattern[0] = -1
    count = 0
    i = 0
    while i >= 0:
        visits -= 1
        if visits < 0:
            return -1
        pattern[i] += 1
        fits = pattern[i] <= most[i]
        for k in range(resources):
            left[i + 1, k] = left[i, k] - pattern[i] * demand[i, k]
            fits = fits and left[i + 1, k] >= 0.0
        if not fits:
            i -= 1
        elif left[i + 1, CPU] <= spare + rest[i + 1]:
            if i + 1 < classes:
                i += 1
                pattern[i] = -1
            elif count == len(found):
                return -1
            else:
                found[count] = pattern
                count += 1
    return count

"""Counts where nodes must be filled to the brim: an integer program over the few ways to do so.

Where little room is left in all, no node may waste more of its CPU than that. So few patterns come into question, and a program that chooses among
them is small, however many ways there are to deal tasks out. It finds packings that a search by single moves and swaps passes by.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array

from headrace.model.problem import CPU
from headrace.solve.instance import Floats, Instance, Ints
from headrace.solve.integer_program import Budget, IntegerProgram, maximise
from headrace.solve.patterns import kept_by
from headrace.solve.slots import slots_fit
from headrace.solve.symmetry import Quotient, counts_of, quotient

MOST_TASKS, MOST_PATTERNS, MOST_VISITS = 500, 2_000, 15_000  # what takes a fraction of a second, and less where it is in vain


def brimful_counts(instance: Instance) -> Ints | None:
    """Counts [C, N] that keep much traffic inside nodes; None if there are none, or if too many patterns come into question."""
    if instance.count.sum() > MOST_TASKS:
        return None
    q = quotient(instance)
    if not (q.demand[:, :, CPU] == q.demand[0, :, CPU]).all():
        return None  # what a node wastes is not defined where a task takes more of one than of another
    spare = float(q.nodes @ q.room[:, CPU] - q.count @ q.demand[0, :, CPU])
    if spare < 0:
        return None
    found = [fills(q, j, spare) for j in range(len(q.nodes))]
    if not all(found):
        return None
    patterns = np.array([y for some in found for y in some or ()], dtype=np.int64).reshape(-1, len(q.count))
    node_class = np.repeat(np.arange(len(found)), [len(some or ()) for some in found])
    kept = kept_by(q, patterns)
    rows, columns = np.nonzero(patterns.T)
    program = IntegerProgram(
        gain=kept,
        matrix=coo_array(
            (
                np.concatenate([patterns[columns, rows], np.ones(len(patterns))]).astype(np.float64),
                (np.concatenate([rows, len(q.count) + node_class]), np.concatenate([columns, np.arange(len(patterns))])),
            ),
            shape=(len(q.count) + len(q.nodes), len(patterns)),
        ).tocsr(),
        low=np.concatenate([q.count, q.nodes]).astype(np.float64),
        high=np.concatenate([q.count, q.nodes]).astype(np.float64),
    )
    solution = maximise(program, Budget(steps=1), unit=max(float(kept.max(initial=0.0)), 1.0)).solution
    if solution is None:
        return None
    return counts_of(
        instance, q, [(int(node_class[p]), patterns[p]) for p in np.flatnonzero(solution) for _ in range(int(solution[p]))]
    )


def fills(q: Quotient, j: int, spare: float) -> list[Ints] | None:
    """What a node of class j may hold if it wastes no more than `spare` CPU; None if that is too much to look through.

    Classes are taken from the largest to the smallest, and left as soon as the rest of them cannot fill the node any more.
    """
    order = np.argsort(-q.demand[j, :, CPU], kind="stable")
    most, demand = q.most[j, order].tolist(), q.demand[j, order]
    load = demand[:, CPU]
    rest = np.append(np.cumsum((most * load)[::-1])[::-1], 0.0)  # what all classes from one on can add
    found: list[Ints] = []
    pattern = np.zeros(len(order), dtype=np.int64)
    work = np.zeros((3, int(q.count.sum()) + 1))
    visits = 0

    def extend(i: int, room: Floats) -> bool:
        nonlocal visits
        visits += 1
        if visits > MOST_VISITS or len(found) > MOST_PATTERNS:
            return False
        if room[CPU] > spare + rest[i]:
            return True  # too much of it would stay empty
        if i == len(order):
            y = np.zeros_like(pattern)
            y[order] = pattern
            if not q.slots_matter or slots_fit(y, q.group, q.memory, q.heap, int(q.slots[j]), work):
                found.append(y)
            return True
        for k in range(most[i] + 1):
            left = room - k * demand[i]
            if (left < 0).any():
                break
            pattern[i] = k
            if not extend(i + 1, left):
                return False
        pattern[i] = 0
        return True

    return found if extend(0, q.room[j].copy()) else None

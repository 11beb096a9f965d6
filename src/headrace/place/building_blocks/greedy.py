"""For schedulers that place one task at a time: a task's traffic, room on nodes, ties."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import TOLERANCE, Floats, Ints
from headrace.model.problem import Assignment, Pairs, Problem
from headrace.place.building_blocks.slots import free_slots


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Traffic between two tasks, both directions added, listed with either of them.

    A task's traffic with itself is left out.
    """

    start: Ints  # [T + 1] links of task t are at start[t] .. start[t + 1] - 1
    other: Ints  # ascending
    weight: Floats  # tuples/s, above 0

    def of(self, task: int) -> tuple[Ints, Floats]:
        """The tasks that a task exchanges tuples with, and how many."""
        here = slice(int(self.start[task]), int(self.start[task + 1]))
        return self.other[here], self.weight[here]

    def total(self) -> Floats:
        """All traffic of each task, in and out, [T]."""
        return np.add.reduceat(np.append(self.weight, 0.0), self.start[:-1]) * (
            np.diff(self.start) > 0
        )


def links_of(pairs: Pairs, tasks: int) -> Links:
    """The links that directed pairs make."""
    from scipy.sparse import coo_array

    real = (pairs.source != pairs.target) & (pairs.tuples_per_s > 0)
    a, b, rate = pairs.source[real], pairs.target[real], pairs.tuples_per_s[real]
    both = coo_array(
        (np.tile(rate, 2), (np.concatenate([a, b]), np.concatenate([b, a]))), shape=(tasks, tasks)
    ).tocsr()
    both.sum_duplicates()
    return Links(
        both.indptr.astype(np.int64), both.indices.astype(np.int64), both.data.astype(np.float64)
    )


def limits(free: Floats) -> Floats:
    """The most that demands may add up to: what is free, and a margin for rounding."""
    return free + TOLERANCE * np.maximum(1.0, free)


def first_best(score: Floats) -> int:
    """Where the highest score is; of equal ones the first."""
    best = float(score.max())
    return int((score >= best - TOLERANCE * abs(best)).argmax())


def order_descending(score: Floats) -> Ints:
    """Positions by score, highest first; equal ones keep their order."""
    scale = float(np.abs(score).max(initial=0.0)) or 1.0
    return np.argsort(-np.round(score / scale, 9), kind="stable")


def one_worker_per_node(problem: Problem, node: Ints) -> Assignment:
    """All tasks of a node in its first free slot."""
    first = np.full(len(problem.nodes), -1, dtype=np.int64)
    for n in np.unique(node).tolist():
        first[n] = free_slots(problem, n)[0]
    return Assignment(node, first[node])

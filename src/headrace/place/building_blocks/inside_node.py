"""From nodes to workers: little traffic between the workers of a node (Eskandari, 7.3.4)."""

from __future__ import annotations

import math

import numpy as np

from headrace.errors import InvalidInput
from headrace.model.arrays import Floats, Ints, distinct
from headrace.model.problem import MEMORY, Assignment, Pairs, Problem
from headrace.place.building_blocks.slots import free_slots
from headrace.solve.cut.partition import partition

MANY_TASKS, MANY_TASKS_STARTS = 1_000, 2  # of a topology: above, nodes are split from fewer starts
LENIENT = 1e-6  # as a share: rounding must not ask for a heap too many


def second_level(
    problem: Problem, pairs: Pairs, node: Ints, max_tasks_per_worker: int, seed: int
) -> Assignment:
    """Algorithm 1, lines 20-26: on every node, workers of about equal size in its free slots."""
    if max_tasks_per_worker < 1:
        raise InvalidInput(f"max_tasks_per_worker is {max_tasks_per_worker}; it must be at least 1")
    worker = np.empty(problem.task_count, dtype=np.int64)
    starts = MANY_TASKS_STARTS if problem.task_count > MANY_TASKS else None
    by_node = np.argsort(node, kind="stable")
    position = np.empty_like(by_node)  # of a task among those of its node
    inside = np.flatnonzero(node[pairs.source] == node[pairs.target])
    inside = inside[np.argsort(node[pairs.source[inside]], kind="stable")]
    home = node[pairs.source[inside]]
    memory = problem.demand[problem.component_of, MEMORY]
    known: dict[tuple[object, ...], Ints] = {}  # many nodes hold alike tasks: split them once
    for n in np.unique(node).tolist():
        tasks = by_node[
            np.searchsorted(node, n, "left", sorter=by_node) : np.searchsorted(
                node, n, "right", sorter=by_node
            )
        ]
        position[tasks] = np.arange(len(tasks))
        here = inside[np.searchsorted(home, n, "left") : np.searchsorted(home, n, "right")]
        near = Pairs(
            position[pairs.source[here]],
            position[pairs.target[here]],
            pairs.tuples_per_s[here],
            pairs.bytes_per_s[here],
        )
        slots = free_slots(problem, n)
        ends = near.source.tobytes(), near.target.tobytes(), near.tuples_per_s.tobytes()
        content = (*ends, memory[tasks].tobytes(), len(slots))
        if content not in known:
            heap_mb, most = float(problem.worker_heap_mb[0]), max_tasks_per_worker
            known[content] = _parts(near, memory[tasks], heap_mb, most, len(slots), seed, starts)
        worker[tasks] = slots[known[content]]
    return Assignment(node, worker)


def _parts(
    pairs: Pairs,
    memory: Floats,
    heap_mb: float,
    max_tasks: int,
    slots: int,
    seed: int,
    starts: int | None,
) -> Ints:
    """The part of each task: ceil(t / T) parts (eq. 7.3), more only where a heap is too small."""
    tasks = len(memory)
    fewest = min(math.ceil(tasks / max_tasks), slots)
    graph = pairs.source, pairs.target, pairs.tuples_per_s
    most = slots if memory.sum() > heap_mb else fewest
    for count in range(max(fewest, heaps_needed(memory, heap_mb)), most + 1):
        capacity = np.tile([math.ceil(tasks / count), heap_mb], (count, 1))
        load = np.column_stack([np.ones(tasks), memory])
        part = partition(*graph, load, capacity, seed=seed, starts=starts)
        if part is not None:
            return part
    # No split within the heap was found in these slots; the judge reports it.
    capacity = np.full(fewest, math.ceil(tasks / fewest))
    part = partition(*graph, np.ones(tasks), capacity, seed=seed, starts=starts)
    if part is None:
        raise RuntimeError("parts of ceil(t / w) tasks always hold t tasks")
    return part


def heaps_needed(memory: Floats, heap_mb: float) -> int:
    """A number of heaps below which tasks certainly do not fit (Martello and Toth's bound L2).

    Of tasks above half a heap no two share one; what is at least `small` does not fit beside those
    above `heap - small`, so it needs what is left beside the others, or heaps of its own.
    """
    if not np.isfinite(heap_mb) or memory.sum() <= heap_mb:
        return 1
    heap_mb *= 1 + LENIENT
    half = memory[memory > heap_mb / 2]
    most = 1
    for small in [0.0, *distinct(memory[memory <= heap_mb / 2]).tolist()]:
        beside = half[half <= heap_mb - small]
        others = memory[(memory >= small) & (memory <= heap_mb / 2)]
        left = len(beside) * heap_mb - float(beside.sum())
        more = max(0, math.ceil((float(others.sum()) - left) / heap_mb))
        most = max(most, len(half) + more)
    return most

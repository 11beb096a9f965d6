"""Worker processes for tasks that have a node: one per topology and node, more for its heap."""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import TOLERANCE, Floats, Ints
from headrace.model.problem import MEMORY, UNPLACED, Problem
from headrace.place.building_blocks.slots import free_slots
from headrace.solve.classes import Classes
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.search import least_crossing_search
from headrace.solve.packing import fewest_bins, first_fit

STEPS = 20_000  # a node holds few tasks: enough to split them well


def workers_inside(problem: Problem, classes: Classes, node: Ints) -> Ints:
    """A slot for every task on its node, with little traffic between workers of a node, [T]."""
    worker = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    owner = problem.topology[problem.component_of]
    placed = np.flatnonzero(node != UNPLACED)
    key = node[placed] * len(problem.topologies) + owner[placed]
    order = placed[np.argsort(key, kind="stable")]
    starts = np.flatnonzero(np.diff(np.sort(key), prepend=-1))
    class_of = np.empty(problem.task_count, dtype=np.int64)
    class_of[classes.order] = np.repeat(np.arange(len(classes.component)), np.diff(classes.first))
    next_slot: dict[int, int] = {}
    for tasks in np.split(order, starts[1:]):
        n, g = int(node[tasks[0]]), int(owner[tasks[0]])
        slots = free_slots(problem, n)[next_slot.get(n, 0) :]
        part = _split(
            problem, classes.instance, tasks, class_of[tasks], float(problem.worker_heap_mb[g])
        )
        next_slot[n] = next_slot.get(n, 0) + int(part.max()) + 1
        worker[tasks] = slots[part] if part.max() < len(slots) else part
    return worker


def _split(
    problem: Problem, instance: Instance, tasks: Ints, class_of: Ints, heap_mb: float
) -> Ints:
    """The part of each task: within the heap, few parts, and little traffic between them."""
    memory = problem.demand[problem.component_of[tasks], MEMORY]
    most_mb = heap_mb * (1 + TOLERANCE)
    if memory.sum() <= most_mb:
        return np.zeros(len(tasks), dtype=np.int64)
    scratch = np.zeros((2, len(memory) + 1))
    bins = fewest_bins(np.sort(memory)[::-1].copy(), len(memory), most_mb, *scratch)
    kept, here = np.unique(class_of, return_inverse=True)
    number = np.full(len(instance.count), -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    inside = (number[instance.edge_a] >= 0) & (number[instance.edge_b] >= 0)
    small = Instance(
        count=np.bincount(here),
        edge_a=number[instance.edge_a[inside]],
        edge_b=number[instance.edge_b[inside]],
        edge_weight=instance.edge_weight[inside],
        demand=instance.memory[kept][None, :, None],
        node_type=np.zeros(bins, dtype=np.int64),
        capacity=np.full((bins, 1), heap_mb),
        allowed=np.ones((len(kept), bins), dtype=bool),
        apart=np.zeros(len(kept), dtype=bool),
        group=np.zeros(len(kept), dtype=np.int64),
        slots=np.ones(bins, dtype=np.int64),
        heap=np.array([np.inf]),
        memory=np.zeros(len(kept)),
    )
    found = least_crossing_search(small, steps=STEPS)
    if found is None:
        return _first_fit(memory, most_mb)
    part = np.empty(len(tasks), dtype=np.int64)
    for c in range(len(kept)):
        part[here == c] = np.repeat(np.arange(bins), found.x[c])
    _, part = np.unique(part, return_inverse=True)  # parts that stay empty take no slot
    return part


def _first_fit(memory: Floats, heap_mb: float) -> Ints:
    """The part of each task by first fit, largest first."""
    order = np.argsort(-memory, kind="stable")
    part = np.zeros(len(memory), dtype=np.int64)
    bin_of = np.zeros(len(memory))
    first_fit(memory[order], len(memory), heap_mb, np.zeros(len(memory)), bin_of)
    part[order] = bin_of.astype(np.int64)
    return part

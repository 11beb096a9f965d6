"""Worker processes for tasks that have a node: one per topology and node, more for its heap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import TOLERANCE, Floats, Ints
from headrace.model.problem import MEMORY, UNPLACED, Problem
from headrace.place.building_blocks.slots import free_slots
from headrace.solve.classes import Classes
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.search import least_crossing_search
from headrace.solve.packing import few_bins, first_fit
from headrace.solve.workers import LOOKS, split_tasks

MOST_TASKS = 300  # of a topology on a node that are split one by one, not by class
STEPS = 20_000  # of the search by class


def workers_inside(problem: Problem, classes: Classes, node: Ints) -> Ints:
    """A slot for every task on its node, with little traffic between workers of a node, [T].

    Nodes with the same content are split once.
    """
    worker = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    class_of = np.empty(problem.task_count, dtype=np.int64)
    class_of[classes.order] = np.repeat(np.arange(len(classes.component)), np.diff(classes.first))
    owner = problem.topology[problem.component_of]
    memory = problem.demand[problem.component_of, MEMORY]
    order, starts = _by_node_and_topology(problem, classes, node)
    neighbours = Neighbours.of(classes.instance)
    known: dict[bytes, Ints] = {}
    next_slot = np.zeros(len(problem.nodes), dtype=np.int64)
    for tasks in np.split(order, starts):
        if not len(tasks):
            continue
        n, heap_mb = int(node[tasks[0]]), float(problem.worker_heap_mb[owner[tasks[0]]])
        content = class_of[tasks].tobytes()
        part = known.get(content)
        if part is None:
            part = known[content] = _split(
                classes.instance, neighbours, memory[tasks], class_of[tasks], heap_mb
            )
        slots = free_slots(problem, n)[next_slot[n] :]
        used = int(part.max()) + 1
        next_slot[n] += used
        worker[tasks] = slots[part] if used <= len(slots) else part
    return worker


def _by_node_and_topology(problem: Problem, classes: Classes, node: Ints) -> tuple[Ints, Ints]:
    """Placed tasks, those of a node and topology together and by class; where each lot starts."""
    placed = classes.order[node[classes.order] != UNPLACED]
    owner = problem.topology[problem.component_of[placed]]
    key = node[placed] * len(problem.topologies) + owner
    order = np.argsort(key, kind="stable")
    return placed[order], np.flatnonzero(np.diff(key[order])) + 1


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Which classes exchange tuples with a class, and how many per pair of tasks."""

    first: Ints  # [classes + 1]
    other: Ints
    weight: Floats
    number: Ints  # [classes] scratch: the place of a class in a content, -1 outside

    @staticmethod
    def of(instance: Instance) -> Neighbours:
        """Both directions of every edge."""
        here = np.concatenate([instance.edge_a, instance.edge_b])
        there = np.concatenate([instance.edge_b, instance.edge_a])
        order = np.argsort(here, kind="stable")
        classes = len(instance.count)
        first = np.concatenate([[0], np.cumsum(np.bincount(here, minlength=classes))])
        weight = np.tile(instance.edge_weight, 2)
        weight[np.tile(instance.edge_a == instance.edge_b, 2)] /= 2  # a loop is there twice
        number = np.full(classes, -1, dtype=np.int64)
        return Neighbours(first, there[order], weight[order], number)

    def among(self, kept: Ints) -> Floats:
        """What a task of one class exchanges with a task of another, [K, K]."""
        pull = np.zeros((len(kept), len(kept)))
        self.number[kept] = np.arange(len(kept))
        for i, c in enumerate(kept.tolist()):
            edges = slice(self.first[c], self.first[c + 1])
            there = self.number[self.other[edges]]
            np.add.at(pull[i], there[there >= 0], self.weight[edges][there >= 0])
        self.number[kept] = -1
        return pull


def _split(
    instance: Instance, neighbours: Neighbours, memory: Floats, class_of: Ints, heap_mb: float
) -> Ints:
    """The worker of each task, numbered from 0: within the heap, few, little traffic between."""
    if memory.sum() <= heap_mb * (1 + TOLERANCE):
        return np.zeros(len(memory), dtype=np.int64)
    kept, here = np.unique(class_of, return_inverse=True)
    pull = neighbours.among(kept)
    if len(memory) <= MOST_TASKS:
        return split_tasks(memory, pull[np.ix_(here, here)], heap_mb)
    return _split_classes(instance, pull, memory, kept, here, heap_mb)


def _split_classes(
    instance: Instance, pull: Floats, memory: Floats, kept: Ints, here: Ints, heap_mb: float
) -> Ints:
    """The same by counts of classes, for nodes with very many tasks."""
    most_mb = heap_mb * (1 + TOLERANCE)
    load, bin_of = np.zeros((2, len(memory) + 1))
    bins = few_bins(np.sort(memory)[::-1].copy(), len(memory), most_mb, load, bin_of, LOOKS)
    edge_a, edge_b = np.nonzero(np.triu(pull))
    small = Instance(
        count=np.bincount(here),
        edge_a=edge_a,
        edge_b=edge_b,
        edge_weight=pull[edge_a, edge_b],
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
    part = np.empty(len(memory), dtype=np.int64)
    for c in range(len(kept)):
        part[here == c] = np.repeat(np.arange(bins), found.x[c])
    return np.unique(part, return_inverse=True)[1]  # parts that stay empty take no slot


def _first_fit(memory: Floats, heap_mb: float) -> Ints:
    """The part of each task by first fit, largest first."""
    order = np.argsort(-memory, kind="stable")
    part = np.zeros(len(memory), dtype=np.int64)
    bin_of = np.zeros(len(memory))
    first_fit(memory[order], len(memory), heap_mb, np.zeros(len(memory)), bin_of)
    part[order] = bin_of.astype(np.int64)
    return part

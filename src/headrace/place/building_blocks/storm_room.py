"""What is free on nodes and in workers while Storm's resource-aware scheduler places a topology."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from headrace.model.problem import MEMORY, UNPLACED, Bools, Floats, Ints, Problem
from headrace.place.building_blocks.no_room import fits


class Room:
    """What is free on every node and in every worker, and who sits where."""

    def __init__(self, problem: Problem) -> None:
        # What every task needs, by machine type, [Y, T, K].
        self.need = np.stack([problem.task_demand(y) for y in range(len(problem.types))])
        self.machine = problem.node_type
        self.free = problem.free.copy()
        # Left in each slot, [N, most slots].
        self.heap = np.where(problem.slot_taken, -np.inf, problem.worker_heap_mb[0])
        self.taken = problem.slot_taken  # by others, [N, most slots]
        self.slots = problem.free_slots  # that were free at first, [N]
        self.placed = np.zeros(len(problem.nodes), dtype=np.int64)  # executors on each node
        self.node = np.full(problem.task_count, UNPLACED, dtype=np.int64)
        self.worker = np.full(problem.task_count, UNPLACED, dtype=np.int64)
        self._tasks: defaultdict[int, list[int]] = defaultdict(list)  # by node, as they came
        self._empty = self.free.copy(), self.heap.copy()  # what was free and left at first

    def could_hold(self, task: int, nodes: Ints) -> Bools:
        """Nodes whose resources would do, workers aside."""
        enough = fits(self.need[self.machine[nodes], task], self.free[nodes])
        return np.asarray(enough.all(axis=1), dtype=bool)

    def has_place(self, task: int) -> bool:
        """Whether any worker of any node can hold a task."""
        needed = self.need[self.machine, task]
        workers = fits(needed[:, MEMORY], self.heap.max(axis=1, initial=-np.inf))
        return bool((workers & fits(needed, self.free).all(axis=1)).any())

    def take(self, task: int, node: int, skip: int = 0) -> bool:
        """Put a task into the first worker of a node that can hold it, if there is one.

        `skip`: the first workers of the node that are left out.
        """
        needed = self.need[self.machine[node], task]
        workers = fits(needed[MEMORY], self.heap[node])
        if skip > 0:
            workers[: np.flatnonzero(~self.taken[node])[skip]] = False
        if not workers.any() or not fits(needed, self.free[node]).all():
            return False
        self._put(task, node, int(workers.argmax()), needed)
        return True

    def rank(self, task: int) -> int:
        """How many workers of its node come before the one that holds a task."""
        node, worker = self.node[task], self.worker[task]
        return int(worker - np.count_nonzero(self.taken[node, :worker]))

    def take_beside(self, task: int, node: int, worker: int) -> bool:
        """Put a task into this worker, if it can hold it."""
        needed = self.need[self.machine[node], task]
        if (
            not fits(needed[MEMORY], self.heap[node, worker])
            or not fits(needed, self.free[node]).all()
        ):
            return False
        self._put(task, node, worker, needed)
        return True

    def take_back(self, task: int) -> int:
        """Take a task from its node, and those put there later; how many that is.

        What is left is summed up again: adding what was subtracted would not give the same numbers.
        """
        node = int(self.node[task])
        first = self._tasks[node].index(task)
        kept, gone = self._tasks[node][:first], self._tasks[node][first:]
        self.free[node], self.heap[node] = (amounts[node] for amounts in self._empty)
        for other in kept:
            needed = self.need[self.machine[node], other]
            self.free[node] -= needed
            self.heap[node, self.worker[other]] -= needed[MEMORY]
        self._tasks[node] = kept
        self.placed[node] -= len(gone)
        self.node[gone] = self.worker[gone] = UNPLACED
        return len(gone)

    def _put(self, task: int, node: int, worker: int, needed: Floats) -> None:
        self._tasks[node].append(task)
        self.node[task], self.worker[task] = node, worker
        self.placed[node] += 1
        self.free[node] -= needed
        self.heap[node, worker] -= needed[MEMORY]


class Racks:
    """Nodes rack by rack; a rack is sorted when it is first reached, and keeps that order."""

    def __init__(self, sorting: Iterator[Ints]) -> None:
        self._reached: list[Ints] = []
        self._sorting = sorting

    def __iter__(self) -> Iterator[Ints]:
        yield from self._reached
        for nodes in self._sorting:
            self._reached.append(nodes)
            yield nodes


def sort_nodes(
    problem: Problem, room: Room, *, counted: bool, task: int | None = None
) -> Iterator[Ints]:
    """Nodes rack by rack, those with most available resources first.

    `counted`: racks and nodes that hold most executors of the topology come before all others, and
    of those that are left the mean decides before the smaller share (Storm 2.3). Then a resource
    that `task` does not ask for counts against those that have it.
    """
    offer = np.where(np.isfinite(room.free), np.maximum(room.free, 0.0), 0.0)
    of_rack = np.zeros((len(problem.racks), offer.shape[1]))
    np.add.at(of_rack, problem.rack, offer)
    placed = np.bincount(problem.rack, room.placed, len(problem.racks)).astype(np.int64)
    unwanted = np.zeros(offer.shape[1], dtype=bool)
    if task is not None:
        unwanted[MEMORY + 1 :] = room.need[0, task, MEMORY + 1 :] == 0

    def sort(free: Floats, placed: Ints) -> Ints:
        least, mean = availability(free, unwanted)
        keys = (-least, -mean, -placed) if counted else (-mean, -least)
        return np.lexsort(keys)

    for rack in sort(of_rack, placed):
        nodes = np.flatnonzero(problem.rack == rack)
        yield nodes[sort(offer[nodes], room.placed[nodes])]


def availability(free: Floats, unwanted: Bools) -> tuple[Floats, Floats]:
    """Smallest and mean percentage of what all nodes, or racks, have free together."""
    total = free.sum(axis=0)
    known = total > 0
    if not known.any():
        return np.full(len(free), 100.0), np.full(len(free), 100.0)
    share = (np.where(unwanted, -free, free) / np.where(known, total, 1.0))[:, known]
    return share.min(axis=1) * 100.0, share.sum(axis=1) * 100.0 / known.sum()

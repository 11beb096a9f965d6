"""What a plan survives: what is left on its fullest node, more rate, and the loss of a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from headrace.judge.traffic import Traffic, Workers
from headrace.judge.use import Use
from headrace.model.arrays import TOLERANCE, Floats, Ints, totals
from headrace.model.headroom import BANDWIDTH
from headrace.model.problem import CPU, MEMORY, UNPLACED, Assignment, Problem

# Tasks, and components x nodes, up to which lost nodes are looked at: beyond it takes seconds.
MOST_TASKS, MOST_CELLS = 1_000_000, 50_000_000
NOT_LOOKED_AT = "too large to look at the loss of each node"


@dataclass(frozen=True, slots=True)
class Survival:
    """What may happen to a plan without anything being overloaded."""

    rate: float | None  # factor of the rates it was made for; None: nothing limits it
    any_node: bool | None  # whether any one node may be lost; None: not looked at
    node: str | None = None  # whose tasks found no room on the others


def headroom_left(problem: Problem, sent: Traffic, used: Use) -> dict[str, float]:
    """The share of each resource that is free on the fullest node that the plan uses it on.

    Below 0 where that is overloaded. Resources without a limit, or without use, are left out.
    """
    mbps = np.maximum(sent.out_bytes, sent.in_bytes) * 8 / 1e6
    columns = [
        (name, used.resources[:, k], problem.taken[:, k], problem.capacity[:, k])
        for k, name in enumerate(problem.resources)
    ]
    columns.append((BANDWIDTH, mbps, np.zeros(len(mbps)), problem.bandwidth_mbps))
    left: dict[str, float] = {}
    for name, ours, taken, capacity in columns:
        here = (ours > 0) & (capacity > 0) & np.isfinite(capacity)
        if here.any():
            share = (ours[here] + taken[here]) / capacity[here]
            left[name] = round(1 - float(share.max()), 12)  # 0.2, not 0.19999999999999996
    return left


def broken_headroom(problem: Problem, left: Mapping[str, float]) -> list[str]:
    """A line for every resource of which the fullest node has less left than was asked for."""
    return [
        f"headroom: the fullest node has {100 * left[name]:.3g} % of its {name} left, "
        f"{100 * asked:g} % were asked for"
        for name, asked in problem.headroom.items()
        if name in left and left[name] < asked - TOLERANCE
    ]


def survival(
    problem: Problem, assignment: Assignment, workers: Workers, used: Use, rate: float | None
) -> Survival:
    """The rate given, and whether any node may be lost, where that can be looked at."""
    cells = len(problem.tasks) * len(problem.nodes)
    if problem.task_count > MOST_TASKS or cells > MOST_CELLS:
        return Survival(rate, None)
    node = find_fatal_loss(problem, assignment, workers, used)
    return Survival(rate, node is None, node)


def find_fatal_loss(
    problem: Problem, assignment: Assignment, workers: Workers, used: Use
) -> str | None:
    """A node whose tasks do not fit on the others while those stay as they are; None if all do.

    A quick packing: components with the largest tasks first, each on the first nodes with room.
    Where it finds no place a longer search might. Bandwidth is not looked at.
    """
    spare, survived = Spare(problem, assignment, workers, used), set[bytes]()
    for n in np.argsort(-used.resources[:, CPU], kind="stable").tolist():
        if used.tasks[n] and (alike := spare.describe(n)) not in survived:
            if not spare.take_over(n):
                return problem.nodes[n]
            survived.add(alike)
    return None


class Spare:
    """The room that a plan leaves on its nodes, and who may use it."""

    def __init__(
        self, problem: Problem, assignment: Assignment, workers: Workers, used: Use
    ) -> None:
        self.problem = problem
        nodes, count = len(problem.nodes), len(problem.tasks)
        placed = np.flatnonzero(assignment.node != UNPLACED)
        owner, node = problem.component_of[placed], assignment.node[placed]
        here = np.bincount(node * count + owner, minlength=count * nodes)
        self.here = here.reshape(nodes, count)  # [N, C] tasks
        # The largest task of a component is what is looked for room for, instead of each.
        self.share = np.zeros(count)
        np.maximum.at(self.share, problem.component_of, problem.share)
        free = problem.capacity - problem.taken - used.resources
        self.free = np.ascontiguousarray(np.maximum(free, 0.0).T)  # [K, N]
        self.slots = np.maximum(problem.free_slots - used.workers, 0)
        self.heap = heap_left(problem, assignment, workers)  # [G, N] MB, -inf: no worker
        self.size = self.size_of_tasks()

    def size_of_tasks(self) -> Floats:
        """What the largest task of each component needs on each machine type, [C, K, Y]."""
        problem = self.problem
        need = np.repeat(problem.demand[:, :, None], len(problem.types), axis=2)
        need[:, CPU] += problem.cpu_fixed + problem.cpu_rate * self.share[:, None]
        return need

    def describe(self, n: int) -> bytes:
        """What a node holds, has left and may be used for: of two alike ones either may be lost."""
        allowed = self.problem.allowed
        facts = [self.here[n], np.round(self.free[:, n], 6), self.slots[n], self.heap[:, n]]
        facts += [self.problem.node_type[n], *([] if allowed is None else [allowed[:, n]])]
        return b"".join(fact.tobytes() for fact in facts)

    def take_over(self, lost: int) -> bool:
        """Whether the other nodes have room for all tasks of a node."""
        components = np.flatnonzero(self.here[lost])
        machine, topology = self.problem.node_type[lost], self.problem.topology
        largest = np.argsort(-self.size[components, CPU, machine], kind="stable")
        free, slots = self.free.copy(), self.slots.copy()
        heap = {g: self.heap[g].copy() for g in topology[components].tolist()}
        slots[lost] = 0
        for row in heap.values():
            row[lost] = -np.inf
        return all(
            self.place(c, int(self.here[lost, c]), free, slots, heap[int(topology[c])])
            for c in components[largest].tolist()
        )

    def place(self, c: int, tasks: int, free: Floats, slots: Ints, heap: Floats) -> bool:
        """Put tasks of a component on the first nodes with room; False if some are left.

        `heap` [N] is what the roomiest worker of its topology has left on each node.
        """
        problem, g = self.problem, int(self.problem.topology[c])
        size = self.size[c][:, problem.node_type]  # [K, N]
        with np.errstate(divide="ignore", invalid="ignore"):
            fit = np.where(size > 0, free * (1 + TOLERANCE) / size, np.inf).min(axis=0)
        memory, most = float(problem.demand[c, MEMORY]), float(problem.worker_heap_mb[g])
        fit = np.minimum(fit, tasks_in_workers(heap, slots, memory, most))
        if problem.allowed is not None:
            fit[~problem.allowed[c]] = 0
        if problem.apart[c]:
            fit = np.where(self.here[:, c] > 0, 0, np.minimum(fit, 1))
        many = np.minimum(np.floor(fit + TOLERANCE), tasks).astype(np.int64)
        before = np.cumsum(many) - many
        put = np.clip(tasks - before, 0, many)
        if int(put.sum()) < tasks:
            return False
        chosen = np.flatnonzero(put)
        free[:, chosen] -= size[:, chosen] * put[chosen]
        for n, k in zip(chosen.tolist(), put[chosen].tolist(), strict=True):
            fill_workers(heap, slots, n, k, memory, most)
        return True


def heap_left(problem: Problem, assignment: Assignment, workers: Workers) -> Floats:
    """Megabytes that the roomiest worker of each topology has left on each node, [G, N].

    Infinite where its heap has no limit, -infinite where it has no worker.
    """
    left = np.full((len(problem.topologies), len(problem.nodes)), -np.inf)
    placed = np.flatnonzero(assignment.node != UNPLACED)
    component, worker = problem.component_of[placed], workers.of_task[placed]
    owner = np.zeros(len(workers.node), dtype=np.int64)
    owner[worker] = problem.topology[component]
    used = totals(worker, problem.demand[component, MEMORY], len(workers.node))
    np.maximum.at(left, (owner, workers.node), problem.worker_heap_mb[owner] - used)
    return left


def tasks_in_workers(heap: Floats, slots: Ints, memory: float, most: float) -> Floats:
    """How many tasks of so much memory the roomiest worker and free slots of each node take, [N].

    `heap` [N] is what that worker has left, `most` what a new one may hold.
    """
    if memory <= 0 or not np.isfinite(most):
        return np.where((heap > -np.inf) | (slots > 0), np.inf, 0.0)
    in_worker = np.floor(np.maximum(heap, 0.0) * (1 + TOLERANCE) / memory)
    return in_worker + slots * np.floor(most * (1 + TOLERANCE) / memory)


def fill_workers(heap: Floats, slots: Ints, n: int, tasks: int, memory: float, most: float) -> None:
    """Put tasks into the roomiest worker of a node, then into new ones."""
    if memory <= 0 or not np.isfinite(most):
        if heap[n] == -np.inf:
            slots[n], heap[n] = slots[n] - 1, most
        return
    inside = min(tasks, int(max(heap[n], 0.0) * (1 + TOLERANCE) / memory))
    heap[n] -= inside * memory if inside else 0.0
    each = int(most * (1 + TOLERANCE) / memory)
    new = -(-(tasks - inside) // each) if tasks > inside else 0
    if new:
        slots[n] -= new
        heap[n] = max(heap[n], most - (tasks - inside - (new - 1) * each) * memory)

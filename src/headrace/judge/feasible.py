"""May this plan run? Every broken rule by name, with all numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headrace.judge.traffic import Traffic, Workers
from headrace.judge.use import Use
from headrace.model.arrays import TOLERANCE, distinct, totals
from headrace.model.problem import MEMORY, UNPLACED, Assignment, Problem


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule the plan breaks."""

    kind: str
    node: str
    resource: str
    needed: float
    available: float
    message: str
    task: str | None = None


def violations(
    problem: Problem, assignment: Assignment, workers: Workers, sent: Traffic, used: Use
) -> list[Violation]:
    """All broken rules: resources, bandwidth, slots, worker heap, pins, separations, in order."""
    return [
        *_overloads(problem, used),
        *_bandwidth(problem, sent),
        *_slots(problem, workers),
        *_shared_slots(problem, assignment, workers),
        *_heap(problem, assignment, workers),
        *_pins(problem, assignment),
        *_apart(problem, assignment),
    ]


def exceeds(needed: float, available: float) -> bool:
    """Whether a need exceeds what there is by more than rounding."""
    return needed > available + TOLERANCE * max(1.0, abs(available))


def _overloads(problem: Problem, used: Use) -> Iterator[Violation]:
    free = problem.capacity - problem.taken
    excess = used.resources > free + TOLERANCE * np.maximum(
        1.0, np.where(np.isfinite(free), np.abs(free), 1.0)
    )
    for n, k in np.argwhere(excess & (used.resources > 0)).tolist():
        needed, available = float(used.resources[n, k]), float(free[n, k])
        message = (
            f"node {problem.nodes[n]}: {problem.resources[k]} needed {needed:g}, free {available:g}"
        )
        yield Violation(
            "overload", problem.nodes[n], problem.resources[k], needed, available, message
        )


def _bandwidth(problem: Problem, sent: Traffic) -> Iterator[Violation]:
    for way, load in (("out", sent.out_bytes), ("in", sent.in_bytes)):
        mbps = load * 8 / 1e6
        for n in np.flatnonzero(mbps > problem.bandwidth_mbps * (1 + TOLERANCE)).tolist():
            needed, available = float(mbps[n]), float(problem.bandwidth_mbps[n])
            message = (
                f"node {problem.nodes[n]}: bandwidth {way} needed {needed:g} Mbit/s, "
                f"there is {available:g}"
            )
            yield Violation(
                "overload", problem.nodes[n], f"bandwidth {way}", needed, available, message
            )


def _slots(problem: Problem, workers: Workers) -> Iterator[Violation]:
    for n, slot in zip(workers.node.tolist(), workers.slot.tolist(), strict=True):
        name, count = problem.nodes[n], int(problem.slots[n])
        if slot >= count:
            has = f"it has {count} slots (0 to {count - 1})"
            message = f"node {name}: worker {slot} does not exist, {has}"
            yield Violation("no such slot", name, "slots", slot + 1, count, message)
        elif problem.slot_taken[n, slot]:
            yield Violation(
                "slot taken", name, "slots", 1, 0, f"node {name}: slot {slot} is taken by others"
            )


def _shared_slots(
    problem: Problem, assignment: Assignment, workers: Workers
) -> Iterator[Violation]:
    if len(problem.topologies) == 1:
        return
    placed = np.flatnonzero(assignment.node != UNPLACED)
    owner = problem.topology[problem.component_of[placed]]
    count = len(problem.topologies)
    worker, topology = np.divmod(distinct(workers.of_task[placed] * count + owner), count)
    shared, holders = np.unique(worker, return_counts=True)
    for w in shared[holders > 1].tolist():
        names = ", ".join(problem.topologies[g] for g in topology[worker == w])
        node = problem.nodes[workers.node[w]]
        message = f"node {node}: slot {workers.slot[w]} holds {names}; a slot holds one topology"
        yield Violation("slot shared", node, "slots", float((worker == w).sum()), 1, message)


def _heap(problem: Problem, assignment: Assignment, workers: Workers) -> Iterator[Violation]:
    if not np.isfinite(problem.worker_heap_mb).any():
        return
    placed = np.flatnonzero(assignment.node != UNPLACED)
    component = problem.component_of[placed]
    memory = totals(workers.of_task[placed], problem.demand[component, MEMORY], len(workers.node))
    limit = np.full(len(workers.node), np.inf)
    np.minimum.at(
        limit, workers.of_task[placed], problem.worker_heap_mb[problem.topology[component]]
    )
    for w in np.flatnonzero(memory > limit * (1 + TOLERANCE)).tolist():
        node, needed, available = problem.nodes[workers.node[w]], float(memory[w]), float(limit[w])
        message = (
            f"node {node}: worker {workers.slot[w]} needs {needed:g} MB, "
            f"worker_max_heap_mb is {available:g}"
        )
        yield Violation("worker heap", node, "memory_mb", needed, available, message)


def _pins(problem: Problem, assignment: Assignment) -> Iterator[Violation]:
    if problem.allowed is None:
        return
    placed = assignment.node != UNPLACED
    wrong = np.flatnonzero(placed & ~problem.allowed[problem.component_of, assignment.node])
    for t in wrong.tolist():
        node, task = problem.nodes[assignment.node[t]], problem.task_name(t)
        c = int(problem.component_of[t])
        may = ", ".join(problem.nodes[n] for n in np.flatnonzero(problem.allowed[c]))
        yield Violation(
            "pinned", node, "nodes", 1, 0, f"task {task} is on {node}; it may run on {may}", task
        )


def _apart(problem: Problem, assignment: Assignment) -> Iterator[Violation]:
    for c in np.flatnonzero(problem.apart).tolist():
        node = assignment.node[problem.tasks_of(c)]
        where, count = np.unique(node[node != UNPLACED], return_counts=True)
        for n, k in zip(where[count > 1].tolist(), count[count > 1].tolist(), strict=True):
            name = problem.nodes[n]
            message = (
                f"node {name}: {k} tasks of {problem.components[c]}, which are to be kept apart"
            )
            yield Violation("apart", name, "apart", k, 1, message)

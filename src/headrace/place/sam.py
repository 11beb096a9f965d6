"""SAM: full bundles of a component's threads get slots of their own, the rest the tightest fit.

Source    A. Shukla, Y. Simmhan, Model-driven Scheduling for Distributed Stream Processing Systems,
          JPDC 2018, its mapping (slot-aware mapping), from general knowledge of it.
Maturity  inspired
Guards    CPU, memory, further resources and slots are never overcommitted; bandwidth, worker heap,
          pins and separations may be violated.
Differs   a bundle is derived from the demands: as many tasks as fill a slot, where the paper reads
          it off measured thread counts. A slot is a core, 100 points: a node has as many as its
          free CPU makes, each with an equal share of all it has free, spread over its worker slots;
          a node that does not state its CPU has one per worker slot. A task larger than a slot gets
          several on one node. Best fit is the least sum of the shares of CPU and memory left. Nodes
          with most slots come first. What fits no slot as a bundle is placed task by task.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.errors import Infeasible, InvalidInput
from headrace.judge.shortage import shortage
from headrace.model.arrays import TOLERANCE, Bools, Floats, Ints
from headrace.model.problem import CPU, MEMORY, Assignment, Problem
from headrace.place.aniello_offline import sort_upstream_first
from headrace.place.building_blocks.greedy import first_best, limits
from headrace.place.building_blocks.operators import list_operators
from headrace.place.building_blocks.slots import free_slots, refuse_without_slots
from headrace.place.building_blocks.topologies import each_topology


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """The cores of all nodes, node after node, and what is in them; S of them."""

    node: Ints  # [S]
    worker: Ints  # [S]
    machine: Ints  # [S] machine type of the node
    capacity: Floats  # [S, K] inf where the file does not say
    need: Floats  # [Y, T, K]
    used: Floats  # [S, K] grows as tasks come
    empty: Bools  # [S]
    whole: Bools  # [S] held by a full bundle alone

    def fitting(self, tasks: list[int]) -> Bools:
        """Slots that can take all these tasks as well, [S]."""
        need = self.need[:, tasks].sum(axis=1)[self.machine]
        return ~self.whole & (self.used + need <= limits(self.capacity)).all(axis=1)

    def left(self) -> Floats:
        """Free shares of CPU and memory in each slot, added up; without a limit they are 0, [S]."""
        stated = np.isfinite(self.capacity) & (self.capacity > 0)
        share = 1 - self.used / np.where(stated, self.capacity, 1.0)
        return np.where(stated, share, 0.0)[:, [CPU, MEMORY]].sum(axis=1)

    def put(self, slot: int, tasks: list[int]) -> None:
        """Count tasks as being in a slot."""
        self.used[slot] += self.need[self.machine[slot], tasks].sum(axis=0)
        self.empty[slot] = False


@each_topology
def sam(problem: Problem, *, slot_cpu: float = 100.0) -> Assignment:
    """Full bundles in topological order to empty slots; then the partial ones by best fit."""
    if slot_cpu <= 0:
        raise InvalidInput(f"sam: option slot_cpu is {slot_cpu:g}; it must be above 0")
    refuse_without_slots(problem, 1, int(problem.free_slots.sum()))
    slots = slots_of(problem, slot_cpu)
    slot_of = np.full(problem.task_count, -1, dtype=np.int64)
    graph = list_operators(problem)
    partial = [
        place_full_bundles(problem, slots, list(graph[o].tasks), slot_of)
        for o in sort_upstream_first(graph)
    ]
    granted = count_granted_slots(problem, slots)
    for tasks in partial:
        granted = place_by_best_fit(problem, slots, tasks, slot_of, granted)
    return Assignment(slots.node[slot_of], slots.worker[slot_of])


def slots_of(problem: Problem, slot_cpu: float) -> Slots:
    """Every node cut into cores, nodes with most cores first."""
    workers, cpu = problem.free_slots, problem.free[:, CPU]
    made_by_cpu = np.maximum(np.where(np.isfinite(cpu), cpu, 0.0) * (1 + TOLERANCE) // slot_cpu, 1)
    cores: Ints = np.where(
        workers == 0, 0, np.where(np.isfinite(cpu), made_by_cpu, workers)
    ).astype(np.int64)
    order = np.argsort(-cores, kind="stable")
    node = np.repeat(order, cores[order])
    worker = [
        spread_cores(free_slots(problem, n), int(cores[n]))
        for n in order[cores[order] > 0].tolist()
    ]
    capacity = problem.free[node] / cores[node, None]
    capacity[np.isinf(capacity[:, CPU]), CPU] = slot_cpu
    return Slots(
        node=node,
        worker=np.concatenate(worker),
        machine=problem.node_type[node],
        capacity=capacity,
        need=np.stack([problem.task_demand(y) for y in range(len(problem.types))]),
        used=np.zeros_like(capacity),
        empty=np.ones(len(node), dtype=bool),
        whole=np.zeros(len(node), dtype=bool),
    )


def spread_cores(workers: Ints, cores: int) -> Ints:
    """A worker slot for each core; where slots are fewer, neighbouring cores share, [cores]."""
    return workers[np.arange(cores) * min(len(workers), cores) // cores]


def place_full_bundles(
    problem: Problem, slots: Slots, tasks: list[int], slot_of: Ints
) -> list[int]:
    """Give every full bundle of an operator an empty slot; returns the tasks that fill none."""
    while tasks:
        may = slots.fitting(tasks[:1]) & slots.empty
        if not may.any():
            if not larger_than_a_slot(slots, tasks[0]):
                break
            give_several_slots(problem, slots, tasks[0], slot_of)
            tasks = tasks[1:]
            continue
        slot = int(may.argmax())
        need, limit = slots.need[slots.machine[slot], tasks], limits(slots.capacity[slot])
        bundle = int((np.cumsum(need, axis=0) <= limit).all(axis=1).sum())
        if bundle == len(tasks) and (need.sum(axis=0) + need[-1] <= limit).all():
            break  # one more like the last would fit in as well
        slots.put(slot, tasks[:bundle])
        slots.whole[slot] = True
        slot_of[tasks[:bundle]] = slot
        tasks = tasks[bundle:]
    return tasks


def larger_than_a_slot(slots: Slots, task: int) -> bool:
    """Whether no slot could hold a task even if it were empty."""
    return not (slots.need[slots.machine, task] <= limits(slots.capacity)).all(axis=1).any()


def give_several_slots(problem: Problem, slots: Slots, task: int, slot_of: Ints) -> None:
    """Give a task larger than a slot several, on the first node that has them empty."""
    for n in dict.fromkeys(slots.node.tolist()):
        empty = np.flatnonzero((slots.node == n) & slots.empty)
        need = slots.need[problem.node_type[n], task]
        enough = (need <= limits(np.cumsum(slots.capacity[empty], axis=0))).all(axis=1)
        if enough.any():
            taken = empty[: int(enough.argmax()) + 1]
            slots.empty[taken], slots.whole[taken] = False, True
            slots.used[taken] += need / len(taken)
            slot_of[task] = taken[0]
            return
    raise no_slot_fits(problem, slots, task)


def count_granted_slots(problem: Problem, slots: Slots) -> int:
    """How many of the first slots cover what all tasks need; at least up to the last bundle."""
    enough = (limits(np.cumsum(slots.capacity, axis=0)) >= problem.mean_demand.sum(axis=0)).all(
        axis=1
    )
    by_need = int(enough.argmax()) + 1 if enough.any() else len(enough)
    return max(by_need, int(np.flatnonzero(slots.whole).max(initial=0)) + 1)


def place_by_best_fit(
    problem: Problem, slots: Slots, tasks: list[int], slot_of: Ints, granted: int
) -> int:
    """Put a partial bundle into the fullest granted slot with room, or else grant one more."""
    if not tasks:
        return granted
    may = slots.fitting(tasks)
    if not may.any():
        if len(tasks) == 1:
            raise no_slot_fits(problem, slots, tasks[0])
        for task in tasks:
            granted = place_by_best_fit(problem, slots, [task], slot_of, granted)
        return granted
    if not may[:granted].any():
        granted = int(may.argmax()) + 1
    slot = first_best(np.where(may[:granted], -slots.left()[:granted], -np.inf))
    slots.put(slot, tasks)
    slot_of[tasks] = slot
    return granted


def no_slot_fits(problem: Problem, slots: Slots, task: int) -> Infeasible:
    """The refusal where no slot can take a task."""
    missing = shortage(problem)
    if missing is not None:
        return missing
    name, largest = problem.task_name(task), float(slots.capacity[:, CPU].max())
    needed = float(problem.mean_demand[task, CPU])
    message = (
        f"no slot has room for `{name}`, which needs {needed:g} cpu: "
        f"{len(slots.node)} slots of up to {largest:g} cpu, "
        f"of which {int(slots.whole.sum())} hold full bundles alone and the others are too full"
    )
    return Infeasible(
        message,
        task=name,
        resource="slots",
        needed=needed,
        available=largest,
        fix="add a node, or raise option slot_cpu",
    )

"""Room on nodes while tasks move one at a time: where a task may go without an overload."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.errors import Infeasible
from headrace.judge.traffic import Workers, traffic
from headrace.judge.use import SendPrice, use
from headrace.model.arrays import TOLERANCE, Bools, Floats, Ints
from headrace.model.problem import CPU, MEMORY, UNPLACED, Assignment, Problem

SLACK = TOLERANCE / 2  # what fits here fits for the judge, whatever the rounding


@dataclass(frozen=True, slots=True)
class Place:
    """A slot on a node."""

    node: int
    slot: int


@dataclass(frozen=True, slots=True)
class Lack:
    """What a node is short of to take a task."""

    node: int
    resource: str
    needed: float
    available: float

    @property
    def missing(self) -> float:
        """How much more it would need."""
        return self.needed - self.available


class Room:
    """Where every task is, and what is left on every node; changes as tasks move.

    A node that is overloaded already may lose tasks, but takes none: no move makes anything worse.
    """

    def __init__(self, problem: Problem, plan: Assignment, extra: Floats | None = None) -> None:
        self.problem = problem
        self.node, self.slot = plan.node.copy(), plan.worker.copy()
        by_type = [problem.task_demand(y) for y in range(len(problem.types))]
        self.need = np.stack(by_type)  # [Y, T, K]
        self.limit = problem.capacity - problem.taken + (0.0 if extra is None else extra)  # [N, K]
        self.component = problem.component_of
        self.topology = problem.topology[self.component]  # [T]
        self.memory = problem.demand[self.component, MEMORY]  # [T]
        slots = max(problem.slot_taken.shape[1], int(plan.worker.max(initial=0)) + 1)
        self.usable = np.zeros((len(problem.nodes), slots), dtype=bool)
        self.usable[:, : problem.slot_taken.shape[1]] = ~problem.slot_taken
        self.free = self.limit.copy()
        self.in_slot = np.zeros(
            (len(problem.nodes), slots, len(problem.topologies)), dtype=np.int64
        )
        self.slot_memory = np.zeros((len(problem.nodes), slots))
        self.of_component = np.zeros((len(problem.tasks), len(problem.nodes)), dtype=np.int64)
        for t in np.flatnonzero(plan.node != UNPLACED).tolist():
            self._add(t, Place(int(plan.node[t]), int(plan.worker[t])), 1)
        self.slack = SLACK * np.maximum(
            1.0, np.where(np.isfinite(self.limit), np.abs(self.limit), 1.0)
        )

    def _add(self, task: int, place: Place, sign: int) -> None:
        n, s = place.node, place.slot
        self.free[n] -= sign * self.need[self.problem.node_type[n], task]
        self.in_slot[n, s, self.topology[task]] += sign
        self.slot_memory[n, s] += sign * self.memory[task]
        self.of_component[self.component[task], n] += sign

    def place_of(self, task: int) -> Place | None:
        """Where a task is now."""
        return (
            None
            if self.node[task] == UNPLACED
            else Place(int(self.node[task]), int(self.slot[task]))
        )

    def put(self, task: int, place: Place | None) -> Place | None:
        """Move a task; returns where it was."""
        before = self.place_of(task)
        if before is not None:
            self._add(task, before, -1)
        if place is not None:
            self._add(task, place, 1)
        self.node[task], self.slot[task] = (
            (place.node, place.slot) if place is not None else (UNPLACED, UNPLACED)
        )
        return before

    def plan(self) -> Assignment:
        """Where all tasks are now."""
        return Assignment(self.node.copy(), self.slot.copy())

    def on(self, node: int) -> list[int]:
        """The tasks of a node."""
        return np.flatnonzero(self.node == node).tolist()

    def takes(self, tasks: Ints, node: Ints, slot: Ints) -> Bools:
        """Which of the tasks could go to their place now, [tasks]."""
        stays = self.node[tasks] == node
        need = self.need[self.problem.node_type[node], tasks]
        ok = stays | ((need <= self.free[node] + self.slack[node]) | (need == 0)).all(axis=1)
        c = self.component[tasks]
        ok &= stays | ~(self.problem.apart[c] & (self.of_component[c, node] > 0))
        if self.problem.allowed is not None:
            ok &= stays | self.problem.allowed[c, node]
        return ok & self._slot_takes(tasks, node, slot)

    def takes_task(self, task: int, place: Place) -> bool:
        """Whether a task could go to a place now."""
        one = np.array([task]), np.array([place.node]), np.array([place.slot])
        return bool(self.takes(*one)[0])

    def _slot_takes(self, tasks: Ints, node: Ints, slot: Ints) -> Bools:
        g = self.topology[tasks]
        others = self.in_slot[node, slot].sum(axis=-1) - self.in_slot[node, slot, g]
        heap = self.problem.worker_heap_mb[g]
        full = np.isfinite(heap) & (
            self.slot_memory[node, slot] + self.memory[tasks] > heap * (1 + SLACK)
        )
        return self.usable[node, slot] & (others == 0) & ~full

    def nodes_for(self, task: int) -> Bools:
        """Nodes with the resources for a task, whatever their slots, [N]."""
        need = self.need[self.problem.node_type, task]
        ok = ((need <= self.free + self.slack) | (need == 0)).all(axis=1)
        c = self.component[task]
        if self.problem.apart[c]:
            ok &= self.of_component[c] == 0
        if self.problem.allowed is not None:
            ok &= self.problem.allowed[c]
        if self.node[task] != UNPLACED:
            ok[self.node[task]] = True
        return ok

    def spare(self) -> Floats:
        """The share of each node that is free, of the resource it has least of, [N]."""
        limited = np.isfinite(self.limit) & (self.limit > 0)
        return np.where(limited, self.free / np.where(limited, self.limit, 1.0), 1.0).min(axis=1)

    def slot_for(self, task: int, node: int, wanted: int | None = None) -> int | None:
        """A slot that takes a task: the one wanted, else one of its topology, else an empty one."""
        slots = np.arange(self.usable.shape[1])
        ok = self._slot_takes(np.full(len(slots), task), np.full(len(slots), node), slots)
        if wanted is not None and wanted < len(ok) and ok[wanted]:
            return wanted
        mine = self.in_slot[node, :, self.topology[task]] > 0
        for choice in (ok & mine, ok):
            if choice.any():
                return int(choice.argmax())
        return None

    def lacks(self, task: int, node: int) -> list[Lack]:
        """What a node is short of to take a task; empty if it has the resources."""
        problem, c, name = self.problem, self.component[task], self.problem.resources
        pinned_away = problem.allowed is not None and not problem.allowed[c, node]
        if pinned_away or (problem.apart[c] and self.of_component[c, node] > 0):
            return [Lack(node, "pins" if pinned_away else "apart", 1, 0)]
        need, free = self.need[problem.node_type[node], task], self.free[node]
        found = [
            Lack(node, name[k], float(need[k]), float(free[k]))
            for k in np.flatnonzero((need > free + self.slack[node]) & (need > 0)).tolist()
        ]
        if not found and self.slot_for(task, node) is None:
            found = [Lack(node, "slots", 1, 0)]
        return found


class Network:
    """Keeps bandwidth, and the CPU that sending costs, from getting worse.

    It asks the judge, where the problem has such limits at all.
    """

    def __init__(self, problem: Problem) -> None:
        price = SendPrice.of(problem)
        sized = any(s.bytes > 0 for s in problem.streams) or bool(
            (problem.pairs.bytes_per_s > 0).any()
        )
        self.problem = problem
        self.limits = price.stated or (sized and bool(np.isfinite(problem.bandwidth_mbps).any()))

    def excess(self, plan: Assignment) -> Floats:
        """By how much every node is over: CPU points, Mbit/s out, Mbit/s in, [N, 3]."""
        problem = self.problem
        workers = Workers.of(plan)
        sent = traffic(problem, plan, workers)
        cpu = use(problem, plan, workers, sent).resources[:, CPU]
        load = np.column_stack([cpu, sent.out_bytes * 8 / 1e6, sent.in_bytes * 8 / 1e6])
        limit = np.column_stack(
            [
                problem.capacity[:, CPU] - problem.taken[:, CPU],
                problem.bandwidth_mbps,
                problem.bandwidth_mbps,
            ]
        )
        return np.maximum(0.0, load - limit * (1 + np.sign(limit) * SLACK))

    def allows(self, before: Assignment, after: Assignment) -> bool:
        """Whether a change leaves no node more over its limits than it was."""
        if not self.limits or (after.node == UNPLACED).any() or (before.node == UNPLACED).any():
            return True
        return bool((self.excess(after) <= self.excess(before) * (1 + SLACK) + SLACK).all())


def refuse_full(problem: Problem, old: Assignment, new: Assignment) -> None:
    """Raise if the new plan itself overloads a node that receives a task: no order reaches it."""
    room = Room(problem, new)
    for t in np.flatnonzero((new.node != UNPLACED) & (old.node != new.node)).tolist():
        place = Place(int(new.node[t]), int(new.worker[t]))
        room.put(t, None)
        if not room.takes_task(t, place):
            lack = room.lacks(t, place.node)
            need = (
                f"{lack[0].needed:g} {lack[0].resource}, {max(0.0, lack[0].available):g} free"
                if lack
                else f"slot {place.slot}"
            )
            name, node = problem.task_name(t), problem.nodes[place.node]
            raise Infeasible(
                f"the new plan itself breaks a rule: {name} does not fit on {node} ({need}); "
                "proven: no order can end there",
                task=name,
                resource=lack[0].resource if lack else "slots",
                needed=lack[0].needed if lack else 1.0,
                available=max(0.0, lack[0].available) if lack else 0.0,
                fix="make a plan that fits",
            )
        room.put(t, place)

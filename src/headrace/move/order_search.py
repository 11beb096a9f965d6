"""The search for a safe order: straight home where that fits, the largest gain per megabyte first; detours where nobody can."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.move.change import task_state_mb
from headrace.move.gains import Gains
from headrace.move.room import Network, Place, Room
from headrace.move.shuffle import walk_home

HEATS = (0.01, 0.03, 0.1, 0.3)  # chances to send a task away from home, tried in turn
WALKS = 8  # per heat; the cheapest one is taken
LARGEST_GROUP, SEEDS = 8, 20  # tasks in a group, groups tried per node
LOOKAHEAD = 300  # open moves up to which groups are looked at where no single move gains


@dataclass(frozen=True, slots=True)
class Hop:
    """A task to a place."""

    task: int
    place: Place


class Search:
    """The order as it grows."""

    def __init__(
        self,
        problem: Problem,
        old: Assignment,
        new: Assignment,
        max_moves: int | None,
        max_mb: float | None,
        seed: int,
        extra: Floats | None = None,
    ) -> None:
        self.problem, self.old, self.new, self.seed = problem, old, new, seed
        self.room, self.gains, self.network = Room(problem, old, extra), Gains(problem, old, new.node), Network(problem)
        self.mb = task_state_mb(problem)
        self.moves_left = math.inf if max_moves is None else max_moves
        self.mb_left = math.inf if max_mb is None else max_mb
        self.limited = max_moves is not None or max_mb is not None
        self.hops: list[Hop] = []
        self.stepped_aside = np.zeros(problem.task_count, dtype=bool)

    def open(self) -> Bools:
        """Tasks that are not at their place, [T]."""
        new, room = self.new, self.room
        return (new.node != UNPLACED) & ((room.node != new.node) | (room.slot != new.worker))

    def run(self) -> None:
        """Move until everybody is home, a limit is reached or nobody can move."""
        self._start_the_lost()
        while self.moves_left >= 1:
            waiting = np.flatnonzero(self.open())
            if not len(waiting) or not (self._one_move(waiting) or self._other_slot(waiting) or self._detour()):
                return

    def _do(self, hop: Hop) -> bool:
        """Take a hop, unless the network forbids it."""
        t, target = hop.task, hop.place.node
        before = self.room.plan() if self.network.limits else None
        was = self.room.put(t, hop.place)
        if before is not None and not self.network.allows(before, self.room.plan()):
            self.room.put(t, was)
            return False
        moved = was is None or was.node != target
        if moved:
            self.gains.move(t, target)
        self.hops.append(hop)
        self.moves_left -= 1
        self.mb_left -= float(self.mb[t]) if moved and was is not None else 0.0
        return True

    def _affordable(self, tasks: Ints) -> Bools:
        inside = (self.room.node[tasks] == self.new.node[tasks]) | (self.room.node[tasks] == UNPLACED)
        return inside | (self.mb[tasks] <= self.mb_left)

    def _start_the_lost(self) -> None:
        """Tasks that run nowhere start at their place if they fit there, else wherever they fit, the largest first."""
        room, new = self.room, self.new
        lost = np.flatnonzero((room.node == UNPLACED) & (new.node != UNPLACED))
        size = (room.need.max(axis=0)[lost] / np.maximum(room.limit.max(axis=0), 1e-9)).max(axis=1, initial=0.0)
        for t in lost[np.argsort(-size, kind="stable")].tolist():
            if self.moves_left < 1:
                return
            place = self._place_for(t)
            if place is not None:
                self._do(Hop(t, place))

    def _place_for(self, task: int) -> Place | None:
        """Its place, else the node with the most room."""
        room, target = self.room, int(self.new.node[task])
        nodes = room.nodes_for(task)
        spare = (room.free / np.maximum(room.limit, 1e-9)).min(axis=1)
        for n in sorted(np.flatnonzero(nodes).tolist(), key=lambda n: (n != target, -spare[n], n)):
            slot = room.slot_for(task, n, int(self.new.worker[task]) if n == target else None)
            if slot is not None:
                return Place(n, slot)
        return None

    def _one_move(self, waiting: Ints) -> bool:
        """The move straight home with the largest gain per megabyte; those that lose come last, the least loss first."""
        new = self.new
        fits = self.room.takes(waiting, new.node[waiting], new.worker[waiting]) & self._affordable(waiting)
        ready = waiting[fits]
        if not len(ready):
            return False
        gain, order = self._ranked(ready)
        if gain[order[0]] <= 0 and len(waiting) <= LOOKAHEAD and self._group(ready):
            return True
        if self.limited and gain[order[0]] <= 0:
            return False  # the rest of a partial move would only cost
        return any(self._do(Hop(t, Place(int(new.node[t]), int(new.worker[t])))) for t in ready[order].tolist())

    def _ranked(self, tasks: Ints) -> tuple[Floats, Ints]:
        """Gains, and the tasks from best to worst."""
        lost = self.room.node[tasks] == UNPLACED
        gain = self.gains.of(tasks)
        worth = np.where(gain > 0, gain / np.maximum(self.mb[tasks], 1e-9), gain)
        return gain, np.lexsort((tasks, self.mb[tasks], -worth, ~lost))

    def _group(self, ready: Ints) -> bool:
        """Where no single move gains, a few to one node may do so together: take the best such group."""
        best: tuple[float, list[int]] = (0.0, [])
        for n in np.unique(self.new.node[ready]).tolist():
            members = ready[self.new.node[ready] == n]
            for seed in members[:SEEDS].tolist():
                worth, group = self._grown(seed, members)
                if worth > best[0] * (1 + 1e-9):
                    best = (worth, group)
        # Each of them fits alone; the room for all is seen on the way.
        taken = 0
        for t in best[1]:
            place = Place(int(self.new.node[t]), int(self.new.worker[t]))
            if self.moves_left >= 1 and bool(self.room.takes(np.array([t]), np.array([place.node]), np.array([place.slot]))[0]):
                taken += self._do(Hop(t, place))
        return taken > 0

    def _grown(self, seed: int, members: Ints) -> tuple[float, list[int]]:
        """The best gain per megabyte of a group that starts with a task and takes in the best next one, while it gains in all."""
        before = self.gains.snapshot()
        trial: list[int] = []
        best, group, total, cost = 0.0, list[int](), 0.0, 0.0
        rest, task = members, seed
        while len(trial) < min(LARGEST_GROUP, self.moves_left):
            total += float(self.gains.of(np.array([task]))[0])
            cost += float(self.mb[task])
            if cost > self.mb_left:
                break
            trial.append(task)
            self.gains.move(task, int(self.new.node[task]))
            if total / max(cost, 1e-9) > best:
                best, group = total / max(cost, 1e-9), list(trial)
            rest = rest[rest != task]
            if not len(rest):
                break
            task = int(rest[int(np.argmax(self.gains.of(rest)))])
        self.gains.restore(before)
        return best, group

    def _other_slot(self, waiting: Ints) -> bool:
        """Onto the right node into another worker, where only the slot is missing: what is left then costs no transfer."""
        for t in waiting[self._affordable(waiting)].tolist():
            n = int(self.new.node[t])
            if self.room.node[t] != n and self.room.nodes_for(t)[n]:
                if self.limited and self.gains.of(np.array([t]))[0] <= 0:
                    continue
                slot = self.room.slot_for(t, n)
                if slot is not None and self._do(Hop(t, Place(n, slot))):
                    return True
        return self._free_a_slot(waiting)

    def _free_a_slot(self, waiting: Ints) -> bool:
        """Topologies of one node that want each other's slot: a task in the way goes to another slot, each task at most once."""
        room, new = self.room, self.new
        for t in waiting[room.node[waiting] == new.node[waiting]].tolist():
            n, wanted = int(room.node[t]), int(new.worker[t])
            in_the_way = (room.node == n) & (room.slot == wanted) & (room.topology != room.topology[t]) & ~self.stepped_aside
            for e in np.flatnonzero(in_the_way).tolist():
                here = room.put(e, None)
                room.usable[n, wanted] = False  # anywhere but where it is in the way
                slot = room.slot_for(e, n)
                room.usable[n, wanted] = True
                room.put(e, here)
                self.stepped_aside[e] = True
                if slot is not None and self._do(Hop(e, Place(n, slot))):
                    return True
        return False

    def _detour(self) -> bool:
        """Nobody can go straight home: walk until one more is home than now; the cheapest of several walks."""
        if self.limited:
            return False
        home = self.new.node
        away = int(((home != UNPLACED) & (self.room.node != home)).sum())
        if not away:
            return False
        part = int((home != UNPLACED).sum())
        for heat in HEATS:
            steps, found = max(20_000, 400 * part), list[tuple[float, list[Hop]]]()
            for k in range(WALKS):
                walk = walk_home(self.room, home, steps=steps, heat=heat, seed=self.seed * 1009 + k)
                if not walk.away:
                    hops = self._placed(walk.task.tolist(), walk.node.tolist(), away)
                    if hops is not None:
                        found.append((float(sum(self.mb[walk.task])), hops))
            if found:
                hops = min(found, key=lambda each: (each[0], len(each[1])))[1]
                return all(self._do(hop) for hop in hops)
        return False

    def _placed(self, tasks: list[int], nodes: list[int], away: int) -> list[Hop] | None:
        """The walk, with slots, up to where one more is home than now; None if a slot is missing or the network forbids it."""
        room, new = self.room, self.new
        done: list[tuple[int, Place | None]] = []
        hops: list[Hop] = []
        before = room.plan()
        for t, n in zip(tasks, nodes, strict=True):
            slot = room.slot_for(t, n, int(new.worker[t]) if n == new.node[t] else None)
            if slot is None:
                break
            hops.append(Hop(t, Place(n, slot)))
            done.append((t, room.put(t, hops[-1].place)))
            after = room.plan() if self.network.limits else before
            if not self.network.allows(before, after):
                break
            before = after
            if int(((new.node != UNPLACED) & (room.node != new.node)).sum()) < away:
                break
        good = int(((new.node != UNPLACED) & (room.node != new.node)).sum()) < away
        for t, was in reversed(done):
            room.put(t, was)
        return hops if good else None

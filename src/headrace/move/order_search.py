"""The search for a safe order: tasks go straight home by gain per megabyte, or by detours."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.ranges import task_state_mb
from headrace.move.gains import Gains
from headrace.move.room import Network, Place, Room
from headrace.move.shuffle import walk_home

# Chances to send a task away from home, tried in turn: on short walks, then on long ones.
SHORT, LONG = (0.01, 0.03, 0.1, 0.3), (0.1, 0.4)
LONGER = 25  # a long walk has so many times the steps
TRIES = 8  # short walks at each chance, of which the cheapest is taken; of long ones a quarter
LARGEST_GROUP, SEEDS = 8, 20  # tasks in a group, groups tried per node
DEPTH, CHOICES = 3, 6  # moves in a row, and how many are looked at for each of them
EXCHANGES = 100  # pairs of tasks that are looked at, where one makes room for the other
LOOKAHEAD = 300  # open moves up to which groups are looked at where no single move gains


@dataclass(frozen=True, slots=True)
class Hop:
    """A task to a place."""

    task: int
    place: Place


class OrderSearch:
    """The order as it grows; a task's home is its place in the new plan."""

    def __init__(
        self,
        problem: Problem,
        old: Assignment,
        new: Assignment,
        max_moves: int | None,
        max_mb: float | None,
        seed: int,
        extra: Floats | None = None,
        *,
        thorough: bool = True,
    ) -> None:
        self.problem, self.old, self.new, self.seed = problem, old, new, seed
        self.thorough = thorough  # whether long walks are tried before giving up
        self.room = Room(problem, old, extra)
        self.gains = Gains(problem, old, new.node)
        self.network = Network(problem)
        self.mb = task_state_mb(problem)
        self.moves_left = math.inf if max_moves is None else max_moves
        self.mb_left = math.inf if max_mb is None else max_mb
        self.limited = max_moves is not None or max_mb is not None
        self.hops: list[Hop] = []

    def tasks_away(self) -> Bools:
        """Tasks that are not at their place, [T]."""
        new, room = self.new, self.room
        return (new.node != UNPLACED) & ((room.node != new.node) | (room.slot != new.worker))

    def run(self) -> None:
        """Move until all tasks are home, a limit is reached or none can move."""
        self._start_missing()
        while self.moves_left >= 1:
            waiting = np.flatnonzero(self.tasks_away())
            if not len(waiting) or not (
                self._move_one(waiting) or self._move_some(waiting) or self._take_detour()
            ):
                return

    def do(self, hop: Hop) -> bool:
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
        inside = (self.room.node[tasks] == self.new.node[tasks]) | (
            self.room.node[tasks] == UNPLACED
        )
        return inside | (self.mb[tasks] <= self.mb_left)

    def _start_missing(self) -> None:
        """Start tasks that run nowhere, the largest first: at home, or else where they fit."""
        room, new = self.room, self.new
        lost = np.flatnonzero((room.node == UNPLACED) & (new.node != UNPLACED))
        size = (room.need.max(axis=0)[lost] / np.maximum(room.limit.max(axis=0), 1.0)).max(
            axis=1, initial=0.0
        )
        for t in lost[np.argsort(-size, kind="stable")].tolist():
            if self.moves_left < 1:
                return
            place = self._place_for(t)
            if place is not None:
                self.do(Hop(t, place))

    def _place_for(self, task: int) -> Place | None:
        """Its home if it fits there, else the node with the most room."""
        room, target = self.room, int(self.new.node[task])
        nodes = room.nodes_for(task)
        spare = room.spare()
        for n in sorted(np.flatnonzero(nodes).tolist(), key=lambda n: (n != target, -spare[n], n)):
            slot = room.slot_for(task, n, int(self.new.worker[task]) if n == target else None)
            if slot is not None:
                return Place(n, slot)
        return None

    def _move_one(self, waiting: Ints) -> bool:
        """Move the task home that gains most per megabyte, or loses least; whether one could."""
        new = self.new
        fits = self.room.takes(waiting, new.node[waiting], new.worker[waiting]) & self._affordable(
            waiting
        )
        ready = waiting[fits]
        if not len(ready):
            return False
        gain, order = self._rank(ready)
        if gain[order[0]] <= 0 and len(waiting) <= LOOKAHEAD and self._move_group(ready):
            return True
        if self.limited:  # what gains nothing would only cost, but what runs nowhere has to start
            order = order[(gain[order] > 0) | (self.room.node[ready[order]] == UNPLACED)]
        return any(self.do(self._hop_home(t)) for t in ready[order].tolist())

    def _hop_home(self, task: int) -> Hop:
        return Hop(task, Place(int(self.new.node[task]), int(self.new.worker[task])))

    def _rank(self, tasks: Ints) -> tuple[Floats, Ints]:
        """Gains, and the tasks from best to worst."""
        lost = self.room.node[tasks] == UNPLACED
        gain = self.gains.of(tasks)
        worth = np.where(gain > 0, gain / np.maximum(self.mb[tasks], 1e-9), gain)
        return gain, np.lexsort((tasks, self.mb[tasks], -worth, ~lost))

    def _move_group(self, ready: Ints) -> bool:
        """Move a few tasks to one node that gain together where none gains alone; whether any."""
        best: tuple[float, list[int]] = (0.0, [])
        for n in np.unique(self.new.node[ready]).tolist():
            members = ready[self.new.node[ready] == n]
            for seed in members[:SEEDS].tolist():
                worth, group = self._grow_group(seed, members)
                if worth > best[0] * (1 + 1e-9):
                    best = (worth, group)
        # Each of them fits alone; the room for all is seen on the way.
        taken = 0
        for t in best[1]:
            hop = self._hop_home(t)
            if self.moves_left >= 1 and self.room.takes_task(t, hop.place):
                taken += self.do(hop)
        return taken > 0

    def _grow_group(self, seed: int, members: Ints) -> tuple[float, list[int]]:
        """The best gain per megabyte of a group grown from a task by the best next one."""
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

    def _move_some(self, waiting: Ints) -> bool:
        """With a limit: make a few moves that gain in a row where no single one does."""
        if not self.limited:
            return False
        ways = self._best_in_a_row(waiting, DEPTH), self._best_exchange(waiting)
        return self.do_all(max(ways, key=lambda way: way[0])[1])

    def _best_in_a_row(
        self, waiting: Ints, depth: int, gained: float = 0.0, mb: float = 0.0
    ) -> tuple[float, list[Hop]]:
        """The best gain per megabyte of a few moves home in a row, and the hops; 0 if none gain."""
        best: tuple[float, list[Hop]] = (0.0, [])
        if not min(depth, self.moves_left):
            return best
        new = self.new
        fits = self.room.takes(waiting, new.node[waiting], new.worker[waiting]) & (
            mb + self.mb[waiting] <= self.mb_left
        )
        ready = waiting[fits]
        for t in ready[self._rank(ready)[1]][:CHOICES].tolist():
            hop, cost = self._hop_home(t), mb + float(self.mb[t])
            before, was = self.gains.snapshot(), self.room.put(t, hop.place)
            total = gained + self.gains.move(t, hop.place.node)
            self.moves_left -= 1
            worth, following = self._best_in_a_row(waiting[waiting != t], depth - 1, total, cost)
            self.moves_left += 1
            for value, hops in ((total / max(cost, 1e-9), [hop]), (worth, [hop, *following])):
                if value > best[0] * (1 + 1e-9):
                    best = (value, hops)
            self.room.put(t, was)
            self.gains.restore(before)
        return best

    def _best_exchange(self, waiting: Ints) -> tuple[float, list[Hop]]:
        """The best gain per megabyte of two tasks, one making room for the other, and the hops."""
        best: tuple[float, list[Hop]] = (0.0, [])
        node, new = self.room.node, self.new
        leaving = waiting[node[waiting] != new.node[waiting]]
        alone = self.gains.of(leaving)
        # Each counts on the other where it is now, so two gain together no more than both alone.
        pairs = [
            (i, j)
            for i, t in enumerate(leaving.tolist())
            for j in np.flatnonzero(node[leaving] == new.node[t]).tolist()
        ]
        pairs = sorted(
            (pair for pair in pairs if alone[pair[0]] + alone[pair[1]] > 0),
            key=lambda p: -alone[p[0]] - alone[p[1]],
        )
        for i, j in pairs[:EXCHANGES]:
            t, u = int(leaving[i]), int(leaving[j])
            gain = self._gain_together(t, u)
            hops = self._make_way(u, t) if gain > 0 else []
            mb = self._sum_mb(hops)
            worth = (
                gain / max(mb, 1e-9)
                if hops and len(hops) <= self.moves_left and mb <= self.mb_left
                else 0.0
            )
            if worth > best[0] * (1 + 1e-9):
                best = (worth, hops)
        return best

    def _gain_together(self, t: int, u: int) -> float:
        before = self.gains.snapshot()
        gain = self.gains.move(t, int(self.new.node[t])) + self.gains.move(u, int(self.new.node[u]))
        self.gains.restore(before)
        return gain

    def _make_way(self, u: int, t: int) -> list[Hop]:
        """Hops that bring u, straight or by a third node, and t home; empty if they do not fit."""
        room, home = self.room, [self._hop_home(u), self._hop_home(t)]
        parking = np.flatnonzero(
            room.nodes_for(u) & (np.arange(len(self.problem.nodes)) != room.node[u])
        )
        ways = [home]
        for n in parking[np.argsort(-room.spare()[parking], kind="stable")][:3].tolist():
            slot = room.slot_for(u, n)
            if slot is not None:
                ways.append([Hop(u, Place(n, slot)), home[1], home[0]])
        return next((way for way in ways if self._fits(way)), [])

    def _fits(self, hops: list[Hop]) -> bool:
        """Whether the hops fit one after another."""
        done: list[tuple[int, Place | None]] = []
        for hop in hops:
            if not self.room.takes_task(hop.task, hop.place):
                break
            done.append((hop.task, self.room.put(hop.task, hop.place)))
        for task, place in reversed(done):
            self.room.put(task, place)
        return len(done) == len(hops)

    def _take_detour(self) -> bool:
        """Where no task can go straight home, take the cheapest of some walks, in part."""
        if self.limited:
            return False
        away, part = int(self.tasks_away().sum()), int((self.new.node != UNPLACED).sum())
        steps, tries = max(20_000, 400 * part), TRIES if part <= LOOKAHEAD else 2
        kinds = [(steps, heat, tries) for heat in SHORT]
        if self.thorough:
            kinds += [(LONGER * steps, heat, max(1, tries // 4)) for heat in LONG]
        for steps, heat, tries in kinds:
            found: list[tuple[float, list[Hop]]] = []
            for k in range(tries):
                walk = walk_home(
                    self.room, self.new, steps=steps, heat=heat, seed=self.seed * 1009 + k
                )
                if not walk.away:
                    columns = walk.task.tolist(), walk.node.tolist(), walk.slot.tolist()
                    hops = [Hop(t, Place(n, s)) for t, n, s in zip(*columns, strict=True)]
                    found.append(
                        (self._sum_mb(hops), self._cut_walk(hops, away - max(1, away // 20)))
                    )
            for _, hops in sorted(found, key=lambda each: (each[0], len(each[1]))):
                if self.do_all(hops):
                    return True
        return False

    def _sum_mb(self, hops: list[Hop]) -> float:
        """Megabytes that hops transfer."""
        node, mb = self.room.node.copy(), 0.0
        for hop in hops:
            if node[hop.task] not in (hop.place.node, UNPLACED):
                mb += float(self.mb[hop.task])
            node[hop.task] = hop.place.node
        return mb

    def _cut_walk(self, hops: list[Hop], wanted: int) -> list[Hop]:
        """The first hops of a walk, up to where only so many tasks are away."""
        away = self.tasks_away()
        for i, hop in enumerate(hops):
            t = hop.task
            there = hop.place.node == self.new.node[t] and hop.place.slot == self.new.worker[t]
            away[t] = not there
            if int(away.sum()) <= wanted:
                return hops[: i + 1]
        return hops

    def do_all(self, hops: list[Hop]) -> bool:
        """Take all hops or none; whether there were any and they were allowed."""
        before, left = self.gains.snapshot(), (self.moves_left, self.mb_left)
        done: list[tuple[int, Place | None]] = []
        for hop in hops:
            was = self.room.place_of(hop.task)
            if not self.do(hop):
                for task, place in reversed(done):
                    self.room.put(task, place)
                self.gains.restore(before)
                self.moves_left, self.mb_left = left
                del self.hops[len(self.hops) - len(done) :]
                return False
            done.append((hop.task, was))
        return bool(hops)

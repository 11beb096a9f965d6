"""What moving a single task to its place gains in traffic, kept up to date while tasks move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Floats, Ints, totals
from headrace.model.problem import UNPLACED, Assignment, Problem


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A stream as one of its ends sees it.

    A task exchanges mine[its position] x theirs with the tasks of the other end.
    """

    mine: Floats  # [tasks of this end]
    others: slice
    theirs: Floats  # [tasks of the other end] tuples/s


class Gains:
    """Traffic of every task with the node it is on and with the node it is to go to.

    Local-or-shuffle counts as shuffle here, for the order only: reported figures are the judge's.
    """

    def __init__(self, problem: Problem, plan: Assignment, target: Ints) -> None:
        self.first, self.component = problem.first, problem.component_of
        self.node, self.target = plan.node.copy(), target
        self.links: list[list[Link]] = [[] for _ in problem.components]
        for s in problem.streams:
            a, b = problem.tasks_of(s.source), problem.tasks_of(s.target)
            gets = s.received(b.stop - b.start)
            self.links[s.source].append(Link(problem.share[a], b, s.tuples_per_s * gets))
            self.links[s.target].append(Link(gets, a, s.tuples_per_s * problem.share[a]))
        pairs = problem.pairs
        apart = pairs.source != pairs.target
        one, two = pairs.source[apart], pairs.target[apart]
        one, two = np.concatenate([one, two]), np.concatenate([two, one])
        key, where = np.unique(one * problem.task_count + two, return_inverse=True)
        self.other = key % problem.task_count
        self.rate = totals(where, np.tile(pairs.tuples_per_s[apart], 2), len(key))
        self.start = np.searchsorted(key, np.arange(problem.task_count + 1) * problem.task_count)
        self.here, self.there = self._with_all(self.node), self._with_all(target)  # [T]

    def _with_all(self, node: Ints) -> Floats:
        """Tuples/s, both ways, of every task with the others on the node given for it, [T]."""
        total = np.zeros(len(node))
        known, most = node != UNPLACED, int(max(self.node.max(initial=0), node.max(initial=0))) + 1
        for c, links in enumerate(self.links):
            tasks = slice(int(self.first[c]), int(self.first[c + 1]))
            for link in links:
                now = self.node[link.others]
                on_node = totals(now[now != UNPLACED], link.theirs[now != UNPLACED], most)
                total[tasks] += np.where(known[tasks], link.mine * on_node[node[tasks]], 0.0)
                if link.others == tasks:  # a task is not its own neighbour
                    total[tasks] -= np.where(
                        known[tasks] & (node[tasks] == now), link.mine * link.theirs, 0.0
                    )
        one = np.repeat(np.arange(len(node)), np.diff(self.start))
        together = known[one] & (node[one] == self.node[self.other])
        return total + totals(one[together], self.rate[together], len(node))

    def _with(self, task: int, node: int) -> float:
        """Tuples/s, both ways, of a task with the others on a node."""
        if node == UNPLACED:
            return 0.0
        at, total = task - int(self.first[self.component[task]]), 0.0
        for link in self.links[self.component[task]]:
            there = self.node[link.others] == node
            if link.others.start <= task < link.others.stop:
                there[task - link.others.start] = False
            total += float(link.mine[at] * link.theirs[there].sum())
        span = slice(int(self.start[task]), int(self.start[task + 1]))
        return total + float(self.rate[span][self.node[self.other[span]] == node].sum())

    def move(self, task: int, node: int) -> float:
        """Note that a task is now on a node, and return what that gains.

        For a task that ran nowhere, that is its traffic with the others there.
        """
        was, at = int(self.node[task]), task - int(self.first[self.component[task]])
        before = float(self.here[task])
        self.node[task] = node
        self.here[task] = self.there[task] if node == self.target[task] else self._with(task, node)
        own = self.here[task], self.there[task]
        for link in self.links[self.component[task]]:
            self._shift(link.others, link.mine[at] * link.theirs, was, node)
        span = slice(int(self.start[task]), int(self.start[task + 1]))
        self._shift(self.other[span], self.rate[span], was, node)
        self.here[task], self.there[task] = own  # not its own neighbour
        return float(own[0]) - before

    def _shift(self, tasks: Ints | slice, rate: Floats, was: int, now: int) -> None:
        """Note that so much of these tasks' traffic is with another node than before."""
        for exchanged, place in ((self.here, self.node[tasks]), (self.there, self.target[tasks])):
            if was == UNPLACED:
                exchanged[tasks] += rate * (place == now)
            else:
                exchanged[tasks] += rate * ((place == now).astype(np.float64) - (place == was))

    def of(self, tasks: Ints) -> Floats:
        """Tuples/s less between nodes if each task alone went to its target, [tasks].

        0 for tasks that run nowhere or have arrived.
        """
        stays = (self.node[tasks] == UNPLACED) | (self.node[tasks] == self.target[tasks])
        return np.where(stays, 0.0, self.there[tasks] - self.here[tasks])

    def snapshot(self) -> tuple[Ints, Floats, Floats]:
        """A copy to come back to after trying something."""
        return self.node.copy(), self.here.copy(), self.there.copy()

    def restore(self, snapshot: tuple[Ints, Floats, Floats]) -> None:
        """Go back to a snapshot."""
        self.node[:], self.here[:], self.there[:] = snapshot

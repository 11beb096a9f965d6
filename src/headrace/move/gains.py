"""What moving a single task gains: tuples/s less between nodes, kept up to date while tasks move."""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Floats, Ints, totals
from headrace.model.problem import UNPLACED, Assignment, Problem


class Gains:
    """Traffic per stream and node. Local-or-shuffle counts as shuffle here, for the order only: reported figures are the judge's."""

    def __init__(self, problem: Problem, plan: Assignment) -> None:
        self.problem, self.node = problem, plan.node.copy()
        n, placed = len(problem.nodes), plan.node != UNPLACED
        self.emits: list[Floats] = []  # per stream, [tasks of source]
        self.gets: list[Floats] = []  # per stream, [tasks of target]
        self.out: list[Floats] = []  # per stream, [N]
        self.into: list[Floats] = []  # per stream, [N]
        for s in problem.streams:
            a, b = problem.tasks_of(s.source), problem.tasks_of(s.target)
            self.emits.append(s.tuples_per_s * problem.share[a])
            self.gets.append(s.received(b.stop - b.start))
            self.out.append(totals(self.node[a][placed[a]], self.emits[-1][placed[a]], n))
            self.into.append(totals(self.node[b][placed[b]], self.gets[-1][placed[b]], n))
        pairs = problem.pairs
        other = pairs.source != pairs.target
        self.one = np.concatenate([pairs.source[other], pairs.target[other]])
        self.two = np.concatenate([pairs.target[other], pairs.source[other]])
        self.rate = np.concatenate([pairs.tuples_per_s[other]] * 2)

    def move(self, task: int, node: int) -> None:
        """Note that a task now stands on a node."""
        problem, was = self.problem, int(self.node[task])
        c = int(problem.component_of[task])
        at = task - int(problem.first[c])
        for i, s in enumerate(problem.streams):
            for mine, amount, total in ((s.source == c, self.emits[i], self.out[i]), (s.target == c, self.gets[i], self.into[i])):
                if mine:
                    total[node] += amount[at]
                    if was != UNPLACED:
                        total[was] -= amount[at]
        self.node[task] = node

    def of(self, tasks: Ints, target: Ints) -> Floats:
        """Tuples/s less between nodes if each task alone went to its target, [tasks]; they all stand somewhere now."""
        problem = self.problem
        gain = np.zeros(len(tasks))
        component, here = problem.component_of[tasks], self.node[tasks]
        at = tasks - problem.first[component]
        for i, s in enumerate(problem.streams):
            sends, receives = component == s.source, component == s.target
            out, into = self.out[i], self.into[i]
            k = np.flatnonzero(sends)
            gain[k] += self.emits[i][at[k]] * (into[target[k]] - into[here[k]])
            k = np.flatnonzero(receives)
            gain[k] += self.gets[i][at[k]] * (out[target[k]] - out[here[k]])
            k = np.flatnonzero(sends & receives & (target != here))
            gain[k] += 2 * self.emits[i][at[k]] * self.gets[i][at[k]]  # what it sends itself goes along
        if len(self.one):
            position = np.full(problem.task_count, -1, dtype=np.int64)
            position[tasks] = np.arange(len(tasks))
            e = np.flatnonzero(position[self.one] >= 0)
            p, there = position[self.one[e]], self.node[self.two[e]]
            together = (there == target[p]).astype(np.float64) - (there == here[p])
            gain += totals(p, self.rate[e] * together, len(tasks))
        return gain

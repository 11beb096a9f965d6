"""T3-Scheduler: fill node after node, the largest first, with operators that exchange most.

Source    L. Eskandari, PhD thesis, chapter 8, algorithms 2-3; ceiling and T from section 6.1.
Maturity  faithful
Guards    CPU up to the ceiling, memory and further resources, and slots are never overcommitted;
          the heap of a worker is kept where the node's slots allow it. Bandwidth, pins and
          separations are not looked at.
Differs   what the thesis leaves open: the neighbour of highest weight is the one that exchanges
          most with all groups of the node (neighbour=edge: the one with the heaviest edge to a
          single group). Ties go to the first in the file; the thesis says at random, which is
          ties=random, with the seed. Without an edge left, the heaviest group starts; a node that
          is not full but has no neighbours left takes a new starting pair; of a pair that does not
          fit or whose one side is used up, tasks come alone; tasks left over when every node was
          visited go, largest first, to the node with room that they exchange most with. Where a
          node has fewer than ceil(t / T) slots, all its slots are used.
Ceiling   cpu
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from headrace.model.arrays import TOLERANCE, Bools, Floats, Ints, totals
from headrace.model.problem import UNPLACED, Assignment, Pairs, Problem
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.place.building_blocks.ceiling import no_packing, node_capacity, sort_by_capacity
from headrace.place.building_blocks.inside_node import second_level
from headrace.place.building_blocks.topologies import each_topology
from headrace.solve.cut.graph import Graph, graph_of

AT_ONCE = 4096  # pairs of two groups that are looked at together

Neighbour = Literal["sum", "edge"]
Ties = Literal["first", "random"]


@each_topology
def t3_scheduler(
    problem: Problem,
    request: Request = DEFAULT_REQUEST,
    *,
    alpha: float = 0.8,
    max_tasks_per_worker: int = 5,
    neighbour: Neighbour = "sum",
    ties: Ties = "first",
) -> Assignment:
    """Algorithm 2: choose a node, find its sub-graph, then split that over the node's workers."""
    pairs = problem.task_pairs()
    room = node_capacity(problem, alpha)
    simplified = construct_simplified_graph(problem, pairs)
    simplified.neighbour = neighbour
    simplified.rng = np.random.default_rng(request.seed) if ties == "random" else None
    node = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    order = sort_nodes(problem, room, simplified.rng)
    for n in order.tolist():
        if not simplified.unassigned.any():
            break
        node[first_level(simplified, problem.task_demand(int(problem.node_type[n])), room[n])] = n
    if not fill_gaps(problem, simplified.graph, room, order, node):
        raise no_packing(problem, room, alpha)
    return second_level(problem, pairs, node, max_tasks_per_worker, request.seed)


@dataclass(slots=True, eq=False)
class SimplifiedGraph:
    """Operators as groups of their tasks without a node (section 8.2.2); shrinks as it goes."""

    graph: Graph  # of single tasks
    load: Floats  # [T] for choosing the heaviest group
    group: Ints  # [T]
    unassigned: Bools  # [T]
    edge: Ints  # [E] pair of groups a < b, as a * groups + b
    weight: Floats  # [E]
    pairs: Ints  # [E] task pairs left of it: rounding could leave some weight without a pair
    ranked: dict[tuple[int, int], tuple[Ints, Ints]] = field(
        default_factory=dict[tuple[int, int], tuple[Ints, Ints]]
    )
    neighbour: Neighbour = "sum"
    rng: np.random.Generator | None = None  # decides ties; None: the first wins

    @property
    def groups(self) -> int:
        return int(self.group.max()) + 1

    def tasks(self, group: int) -> Ints:
        """The tasks of a group that have no node yet."""
        return np.flatnonzero(self.unassigned & (self.group == group))

    def find_starting_point(self) -> tuple[int, int] | None:
        """The pair of groups that exchange most."""
        if not self.pairs.any():
            return None
        heaviest = pick_largest(np.where(self.pairs > 0, self.weight, -1.0), self.rng)
        a, b = divmod(int(self.edge[heaviest]), self.groups)
        return a, b

    def heaviest_group(self) -> int:
        """The group with the largest load, for when nothing communicates any more."""
        present = np.bincount(self.group[self.unassigned], minlength=self.groups) > 0
        load = totals(self.group[self.unassigned], self.load[self.unassigned], self.groups)
        return pick_largest(np.where(present, load, -1.0), self.rng)

    def task_pairs(self, a: int, b: int) -> Iterator[tuple[Ints, Ints]]:
        """Pairs of unassigned tasks of two groups, the highest rate first, some at a time."""
        if (a, b) not in self.ranked:
            tasks = self.tasks(a)
            row, other, rate = rows(self.graph, tasks)
            between = self.group[other] == b
            pairs = np.flatnonzero(between)
            pairs = pairs if self.rng is None else self.rng.permutation(pairs)
            order = pairs[np.argsort(-rate[pairs], kind="stable")]
            self.ranked[a, b] = row[order], other[order]
        left, right = self.ranked[a, b]
        was_open, leading = self.unassigned.copy(), True
        for start in range(0, len(left), AT_ONCE):  # most are never looked at
            some = slice(start, start + AT_ONCE)
            is_open = was_open[left[some]] & was_open[right[some]]
            if leading and is_open.any():  # what comes before is used up for good
                self.ranked[a, b], leading = (left[start:], right[start:]), False
            if not leading:
                yield left[some][is_open], right[some][is_open]

    def mark_assigned(self, tasks: Ints) -> None:
        """Update the groups and the weights between them."""
        row, other, rate = rows(self.graph, tasks)
        entering = np.zeros(len(self.group), dtype=np.bool_)
        entering[tasks] = True
        gone = (
            self.unassigned[other]
            & (self.group[row] != self.group[other])
            & (~entering[other] | (row < other))
        )
        a, b = self.group[row[gone]], self.group[other[gone]]
        edge = np.searchsorted(self.edge, np.minimum(a, b) * self.groups + np.maximum(a, b))
        self.weight -= totals(edge, rate[gone], len(self.edge))
        self.pairs -= np.bincount(edge, minlength=len(self.edge))
        self.unassigned[tasks] = False


@dataclass(slots=True, eq=False)
class SubGraph:
    """The tasks a node has got so far."""

    demand: Floats  # [T, K] on this node
    left: Floats  # [K]
    tasks: list[int]
    rate: Floats  # [T] tuples/s between a task and the sub-graph
    highest: Floats  # [T] of its single pairs

    def fits(self, tasks: Ints) -> bool:
        return bool((self.demand[tasks].sum(axis=0) <= self.left).all())

    def fitting(self, tasks: Ints) -> Ints:
        """Those of the tasks that fit by themselves."""
        return tasks[(self.demand[tasks] <= self.left).all(axis=1)]


def pick_largest(values: Floats, rng: np.random.Generator | None) -> int:
    """Where the largest value is; of equal ones the first, or any."""
    if rng is None:
        return int(values.argmax())
    return int(rng.choice(np.flatnonzero(values == values.max())))


def sort_nodes(problem: Problem, room: Floats, rng: np.random.Generator | None) -> Ints:
    """Section 8.2.3: the largest node first; of equal ones the first in the file, or any."""
    order = sort_by_capacity(problem, room)
    if rng is None:
        return order
    return order[np.lexsort([rng.permutation(len(order)), *-room[order].T[::-1]])]


def construct_simplified_graph(problem: Problem, pairs: Pairs) -> SimplifiedGraph:
    """Section 8.2.2: one group for each operator, weights added up."""
    graph = graph_of(pairs.source, pairs.target, pairs.tuples_per_s, problem.task_count)
    _, operator = np.unique(problem.operator, return_inverse=True)
    group = operator.astype(np.int64)[problem.component_of]
    row = np.repeat(np.arange(problem.task_count), np.diff(graph.first))
    a, b = group[row], group[graph.other]
    up = a < b
    edge, which = np.unique(a[up] * (int(group.max()) + 1) + b[up], return_inverse=True)
    weight = totals(which, graph.weight[up], len(edge))
    count = np.bincount(which, minlength=len(edge))
    unassigned = np.ones(problem.task_count, dtype=np.bool_)
    return SimplifiedGraph(graph, problem.mean_demand[:, 0], group, unassigned, edge, weight, count)


def first_level(simplified: SimplifiedGraph, demand: Floats, capacity: Floats) -> list[int]:
    """Algorithm 2, lines 12-20: the tasks of one node."""
    count = len(demand)
    sub_graph = SubGraph(
        demand, capacity * (1 + TOLERANCE) + TOLERANCE, [], np.zeros(count), np.zeros(count)
    )
    while simplified.unassigned.any() and group_selection(simplified, sub_graph):
        pass
    return sub_graph.tasks


def group_selection(simplified: SimplifiedGraph, sub_graph: SubGraph) -> bool:
    """Algorithm 3: add a group, two groups or some of their tasks; whether the node has room."""
    neighbour = find_neighbour(simplified, sub_graph)
    if neighbour is None:
        pair = simplified.find_starting_point()
        if pair is not None:
            both = np.concatenate([simplified.tasks(pair[0]), simplified.tasks(pair[1])])
            if sub_graph.fits(both):
                add_tasks(simplified, sub_graph, both)
                return True
            return group_pair_partitioning(simplified, sub_graph, *pair)
        neighbour = simplified.heaviest_group()
    tasks = simplified.tasks(neighbour)
    if sub_graph.fits(tasks):
        add_tasks(simplified, sub_graph, tasks)
        return True
    group_partitioning(simplified, sub_graph, tasks)
    return False


def find_neighbour(simplified: SimplifiedGraph, sub_graph: SubGraph) -> int | None:
    """The group of highest weight beside the sub-graph: by the sum of its edges, or by one."""
    near = np.flatnonzero(simplified.unassigned & (sub_graph.highest > 0))
    if not len(near):
        return None
    weight = (
        totals(simplified.group[near], sub_graph.rate[near], simplified.groups)
        if simplified.neighbour == "sum"
        else heaviest_edges(simplified, sub_graph, near)
    )
    return pick_largest(weight, simplified.rng)


def heaviest_edges(simplified: SimplifiedGraph, sub_graph: SubGraph, near: Ints) -> Floats:
    """The heaviest edge of each group to a single group of the sub-graph, [groups]."""
    inside = np.zeros(len(simplified.group), dtype=np.bool_)
    inside[sub_graph.tasks] = True
    row, other, rate = rows(simplified.graph, near)
    row, other, rate = row[inside[other]], other[inside[other]], rate[inside[other]]
    edge = simplified.group[row] * simplified.groups + simplified.group[other]
    weight = totals(edge, rate, simplified.groups**2)
    return weight.reshape(simplified.groups, simplified.groups).max(axis=1)


def group_pair_partitioning(
    simplified: SimplifiedGraph, sub_graph: SubGraph, a: int, b: int
) -> bool:
    """Section 8.2.4: add task pairs of two groups by rate while they fit; whether any did."""
    before = len(sub_graph.tasks)
    for left, right in simplified.task_pairs(a, b):
        position = 0
        while len(left := left[position:]):
            right = right[position:]
            may = addable(simplified, sub_graph, left, right)
            if not may.any():
                break
            position = int(may.argmax())
            add_pair(simplified, sub_graph, a, b, int(left[position]), int(right[position]))
            position += 1
        if not len(sub_graph.fitting(np.concatenate([simplified.tasks(a), simplified.tasks(b)]))):
            break
    if len(sub_graph.tasks) == before:  # no pair fits, but a single task may
        alone = sub_graph.fitting(np.concatenate([simplified.tasks(a), simplified.tasks(b)]))
        if not len(alone):
            return False
        add_tasks(simplified, sub_graph, alone[:1])
    return True


def addable(simplified: SimplifiedGraph, sub_graph: SubGraph, left: Ints, right: Ints) -> Bools:
    """Which pairs bring something: both tasks are new and fit, or one is, and fits alone."""
    new_left, new_right = simplified.unassigned[left], simplified.unassigned[right]
    demand = sub_graph.demand
    together = (demand[left] + demand[right] <= sub_graph.left).all(axis=1)
    alone_left = new_left & (demand[left] <= sub_graph.left).all(axis=1)
    alone_right = new_right & (demand[right] <= sub_graph.left).all(axis=1)
    return np.where(new_left & new_right, together, alone_left | alone_right)


def add_pair(
    simplified: SimplifiedGraph, sub_graph: SubGraph, a: int, b: int, left: int, right: int
) -> None:
    """Add what is new of a pair; if the other end is taken, with a partner that is new and fits."""
    new = [task for task in (left, right) if simplified.unassigned[task]]
    if len(new) == 1:
        partners = simplified.tasks(b if simplified.group[new[0]] == a else a)
        new += best_partner(simplified.graph, sub_graph, new[0], partners, simplified.rng)
    add_tasks(simplified, sub_graph, np.array(new))


def best_partner(
    graph: Graph,
    sub_graph: SubGraph,
    task: int,
    partners: Ints,
    rng: np.random.Generator | None,
) -> list[int]:
    """The partner with the highest rate that fits together with the task; none if none does."""
    fits = partners[
        (sub_graph.demand[partners] + sub_graph.demand[task] <= sub_graph.left).all(axis=1)
    ]
    _, other, rate = rows(graph, np.array([task]))
    joined = np.isin(other, fits)
    return [int(other[joined][pick_largest(rate[joined], rng)])] if joined.any() else []


def group_partitioning(simplified: SimplifiedGraph, sub_graph: SubGraph, tasks: Ints) -> None:
    """Section 8.2.4: add a group's tasks by their rate to the sub-graph until none fits."""
    while len(tasks := sub_graph.fitting(tasks)):
        best = tasks[sub_graph.highest[tasks] == sub_graph.highest[tasks].max()]
        task = best[pick_largest(sub_graph.rate[best], simplified.rng)]
        add_tasks(simplified, sub_graph, np.array([task]))
        tasks = tasks[tasks != task]


def add_tasks(simplified: SimplifiedGraph, sub_graph: SubGraph, tasks: Ints) -> None:
    """Give tasks to the node."""
    simplified.mark_assigned(tasks)
    sub_graph.tasks += tasks.tolist()
    sub_graph.left -= sub_graph.demand[tasks].sum(axis=0)
    _, other, rate = rows(simplified.graph, tasks)
    np.add.at(sub_graph.rate, other, rate)
    np.maximum.at(sub_graph.highest, other, rate)


def rows(graph: Graph, tasks: Ints) -> tuple[Ints, Ints, Floats]:
    """All pairs of some tasks: task, partner, rate."""
    size = graph.first[tasks + 1] - graph.first[tasks]
    skip = np.repeat(graph.first[tasks] - np.concatenate([[0], np.cumsum(size)[:-1]]), size)
    entry = np.arange(len(skip)) + skip
    return np.repeat(tasks, size), graph.other[entry], graph.weight[entry]


def fill_gaps(problem: Problem, graph: Graph, room: Floats, order: Ints, node: Ints) -> bool:
    """Place leftover tasks, largest first, beside those they exchange most with; did all fit?"""
    demand = {int(y): problem.task_demand(int(y)) for y in np.unique(problem.node_type)}
    left = room * (1 + TOLERANCE) + TOLERANCE
    for n in np.unique(node[node != UNPLACED]).tolist():
        left[n] -= demand[int(problem.node_type[n])][node == n].sum(axis=0)
    over = np.flatnonzero(node == UNPLACED)
    size = (problem.mean_demand / np.maximum(room[order].sum(axis=0), 1e-12)).max(axis=1)
    for task in over[np.argsort(-size[over], kind="stable")].tolist():
        need = np.stack([demand[int(y)][task] for y in problem.node_type[order]])
        fits = (need <= left[order]).all(axis=1)
        if not fits.any():
            return False
        _, other, rate = rows(graph, np.array([task]))
        placed = node[other] != UNPLACED
        pull = totals(node[other[placed]], rate[placed], len(room))[order]
        n = int(order[np.where(fits, pull, -1.0).argmax()])
        node[task] = n
        left[n] -= demand[int(problem.node_type[n])][task]
    return True

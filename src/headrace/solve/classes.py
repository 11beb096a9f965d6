"""From a problem to the instance the kernels take: alike tasks become one class with a count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headrace.errors import Unsupported
from headrace.model.arrays import Bools, Floats, Ints, distinct, totals
from headrace.model.problem import CPU, MEMORY, UNPLACED, Problem, Stream
from headrace.solve.instance import Instance

MOST_EDGES = 20_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The instance, and which tasks each of its classes stands for."""

    instance: Instance
    order: Ints  # [T] tasks, class by class
    first: Ints  # [classes + 1] where each class starts in `order`
    component: Ints  # [classes]

    def counts(self, node: Ints) -> Ints:
        """Placed tasks of each class on each node under an assignment, [classes, N]."""
        nodes = len(self.instance.node_type)
        owner = np.repeat(np.arange(len(self.component)), np.diff(self.first))
        where = node[self.order]
        placed = where != UNPLACED
        flat = np.bincount(
            owner[placed] * nodes + where[placed], minlength=len(self.component) * nodes
        )
        return flat.reshape(len(self.component), nodes)

    def nodes(self, x: Ints, current: Ints | None = None) -> Ints:
        """A node for every task under the counts x[classes, N], [T].

        Tasks stay on their current node where the counts allow it.
        """
        node = np.full(len(self.order), UNPLACED, dtype=np.int64)
        for c in range(len(self.component)):
            tasks = self.order[self.first[c] : self.first[c + 1]]
            left = x[c].copy()
            if not left.any():
                continue  # its topology was refused
            open_tasks = tasks
            if current is not None:
                open_tasks = _stay(node, tasks, current, left)
            node[open_tasks] = np.repeat(np.arange(len(left)), left)
        return node


def _stay(node: Ints, tasks: Ints, current: Ints, left: Ints) -> Ints:
    """Keep tasks where they are as long as the counts last; the others."""
    stays = np.zeros(len(tasks), dtype=bool)
    for n in distinct(current[tasks]).tolist():
        if n != UNPLACED:
            here = np.flatnonzero(current[tasks] == n)[: left[n]]
            stays[here] = True
            left[n] -= len(here)
    node[tasks[stays]] = current[tasks[stays]]
    return tasks[~stays]


def classes_of(problem: Problem, *, at_least: bool = False) -> Classes:
    """Group tasks of a component that have the same demand and the same traffic with everybody.

    Local-or-shuffle and load-aware count as shuffle; with `at_least` they count as nothing, so that
    no plan can cross less than the instance says.
    """
    alone = np.zeros(problem.task_count, dtype=bool)
    alone[problem.pairs.source] = alone[problem.pairs.target] = True
    members: list[Ints] = []
    component: list[int] = []
    of_component: list[list[int]] = []
    for c in range(len(problem.components)):
        groups = _interchangeable(problem, c, alone)
        of_component.append(list(range(len(members), len(members) + len(groups))))
        members += groups
        component += [c] * len(groups)
    order = np.concatenate(members)
    first = np.concatenate([[0], np.cumsum([len(group) for group in members])])
    owner = np.array(component, dtype=np.int64)
    representative = order[first[:-1]]
    streams = [s for s in problem.streams if not (at_least and s.by_place)]
    edge_a, edge_b, weight = _edges(problem, streams, of_component, representative, order, first)
    demand, capacity, apart = _keep_apart(
        problem, owner, _demand(problem, owner, problem.share[representative])
    )
    instance = Instance(
        count=np.diff(first),
        edge_a=edge_a,
        edge_b=edge_b,
        edge_weight=weight,
        demand=demand,
        node_type=problem.node_type,
        capacity=capacity,
        allowed=_allowed(problem, owner),
        apart=apart,
        group=problem.topology[owner],
        slots=problem.free_slots,
        heap=problem.worker_heap_mb,
        memory=problem.demand[owner, MEMORY],
    )
    return Classes(instance, order, first, owner)


def _interchangeable(problem: Problem, component: int, alone: Bools) -> list[Ints]:
    """The tasks of a component in groups nobody could tell apart; those of measured pairs alone."""
    span = problem.tasks_of(component)
    tasks = np.arange(span.start, span.stop)
    uneven = [
        s.received(len(tasks)) for s in problem.streams if s.target == component and not s.even
    ]
    if problem.task_share is None and not uneven and not alone[span].any():
        return [tasks]
    number = np.where(alone[span], np.arange(1, len(tasks) + 1), 0)
    key = np.column_stack([problem.share[span], *uneven, number])
    _, start, group = np.unique(np.round(key, 15), axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(start))  # groups in the order of their first task
    return [tasks[rank[group.ravel()] == g] for g in range(len(start))]


def _demand(problem: Problem, owner: Ints, share: Floats) -> Floats:
    demand = np.repeat(problem.demand[owner][None], len(problem.types), axis=0)
    demand[:, :, CPU] += (problem.cpu_fixed[owner] + problem.cpu_rate[owner] * share[:, None]).T
    return demand


def _keep_apart(problem: Problem, owner: Ints, demand: Floats) -> tuple[Floats, Floats, Bools]:
    """Demand, capacity and `apart` by class.

    A component of several classes is kept apart by a resource that every node has one of.
    """
    apart = problem.apart[owner]
    capacity = problem.free
    for c in np.flatnonzero(
        problem.apart & (np.bincount(owner, minlength=len(problem.apart)) > 1)
    ).tolist():
        demand = np.concatenate(
            [
                demand,
                np.broadcast_to((owner == c).astype(np.float64)[:, None], (*demand.shape[:2], 1)),
            ],
            axis=2,
        )
        capacity = np.column_stack([capacity, np.ones(len(capacity))])
    return demand, capacity, apart


def _allowed(problem: Problem, owner: Ints) -> Bools:
    has_slot = problem.free_slots > 0
    if problem.allowed is None:
        return np.tile(has_slot, (len(owner), 1))
    return problem.allowed[owner] & has_slot


def _edges(
    problem: Problem,
    streams: Sequence[Stream],
    of_component: Sequence[Sequence[int]],
    representative: Ints,
    order: Ints,
    first: Ints,
) -> tuple[Ints, Ints, Floats]:
    """Class pairs (a <= b) and the traffic, both ways, between one task of each."""
    size = sum(len(of_component[s.source]) * len(of_component[s.target]) for s in streams) + len(
        problem.pairs
    )
    if size > MOST_EDGES:
        raise Unsupported(
            f"the measured shares leave {size:,} different task pairs; "
            f"the most it takes is {MOST_EDGES:,}",
            resource="task pairs",
            needed=size,
            available=MOST_EDGES,
            fix="give shares to fewer components",
        )
    a_parts: list[Ints] = []
    b_parts: list[Ints] = []
    weights: list[Floats] = []
    for s in streams:
        source, target = np.array(of_component[s.source]), np.array(of_component[s.target])
        received = s.received(int(problem.tasks[s.target]))[
            representative[target] - problem.first[s.target]
        ]
        rate = s.tuples_per_s * np.outer(problem.share[representative[source]], received)
        a_parts.append(np.repeat(source, len(target)))
        b_parts.append(np.tile(target, len(source)))
        weights.append(rate.ravel())
    if len(problem.pairs):
        class_of = np.empty(problem.task_count, dtype=np.int64)
        class_of[order] = np.repeat(np.arange(len(first) - 1), np.diff(first))
        apart = problem.pairs.source != problem.pairs.target
        a_parts.append(class_of[problem.pairs.source[apart]])
        b_parts.append(class_of[problem.pairs.target[apart]])
        weights.append(problem.pairs.tuples_per_s[apart])
    if not weights:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
    a, b, weight = np.concatenate(a_parts), np.concatenate(b_parts), np.concatenate(weights)
    # Two tasks of one class are each other's source and target: both directions count for the pair.
    weight = np.where(a == b, 2 * weight, weight)
    low, high = np.minimum(a, b), np.maximum(a, b)
    edges, which = np.unique(low * len(representative) + high, return_inverse=True)
    total = totals(which, weight, len(edges))
    kept = total > 0
    return edges[kept] // len(representative), edges[kept] % len(representative), total[kept]

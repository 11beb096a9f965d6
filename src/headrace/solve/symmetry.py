"""An instance without its symmetry: alike tasks become one class, alike nodes one node class."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.arrays import TOLERANCE, Bools, Floats, Ints, distinct
from headrace.solve.instance import Instance


@dataclass(frozen=True, slots=True, eq=False)
class Quotient:
    """An instance without its symmetry: C task classes, J node classes, K resources.

    A pattern is what one node holds, a vector of C counts; a solution says how many nodes of a
    class get which pattern.
    """

    count: Ints  # [C]
    edge_a: Ints  # [E]  class pairs, as in Instance
    edge_b: Ints  # [E]
    edge_weight: Floats  # [E]
    demand: Floats  # [J, C, K]  of one task on a node of the class
    room: Floats  # [J, K]       capacity with the tolerance added; finite
    most: Ints  # [J, C]         tasks of a class that one node can hold if it holds nothing else
    apart: Bools  # [C]
    group: Ints  # [C]
    memory: Floats  # [C]
    slots: Ints  # [J]
    heap: Floats  # [G]          with the tolerance added
    nodes: Ints  # [J]           nodes in the class
    slots_matter: bool  # False where no node can run out of slots
    task_members: list[Ints]  # [C]  classes of the instance in each merged class
    node_members: list[Ints]  # [J]  nodes of the instance in each node class

    def weights(self) -> Floats:
        """Traffic between one task of a class and another of a class, as a symmetric matrix."""
        weight = np.zeros((len(self.count), len(self.count)))
        weight[self.edge_a, self.edge_b] = self.edge_weight
        weight[self.edge_b, self.edge_a] = self.edge_weight
        return weight


def quotient(instance: Instance) -> Quotient:
    """The instance with interchangeable tasks and interchangeable nodes merged."""
    task_members = _alike_tasks(instance)
    node_members = _alike_nodes(instance)
    first = np.array([members[0] for members in task_members], dtype=np.int64)
    node = np.array([members[0] for members in node_members], dtype=np.int64)
    count = np.array([instance.count[members].sum() for members in task_members], dtype=np.int64)
    edge_a, edge_b, edge_weight = _merged_edges(instance, task_members)

    demand = instance.demand[instance.node_type[node]][:, first]
    # A capacity above what all tasks need is as good as none.
    needed = (demand * count[None, :, None]).sum(axis=1)
    room = np.minimum(instance.capacity[node] * (1 + TOLERANCE), needed + 1.0)
    heap = instance.heap * (1 + TOLERANCE)
    # A lone task is apart anyway, whatever it is merged with.
    apart = instance.apart[first] & (instance.count[first] > 1)
    slots = instance.slots[node]
    group, memory = instance.group[first], instance.memory[first]
    most = _most(count, demand, room, apart)
    most[
        ~instance.allowed[np.ix_(first, node)].T | (memory > heap[group]) | (slots[:, None] < 1)
    ] = 0
    return Quotient(
        count=count,
        edge_a=edge_a,
        edge_b=edge_b,
        edge_weight=edge_weight,
        demand=demand,
        room=room,
        most=most,
        apart=apart,
        group=group,
        memory=memory,
        slots=slots,
        heap=heap,
        nodes=np.array([len(members) for members in node_members], dtype=np.int64),
        slots_matter=_slots_matter(count, group, memory, heap, slots),
        task_members=task_members,
        node_members=node_members,
    )


def traffic_inside(q: Quotient, patterns: Ints | Floats) -> Floats:
    """Traffic that each of the patterns [P, C] keeps inside its node."""
    y = patterns.astype(np.float64)
    a, b = q.edge_a, q.edge_b
    pairs = np.where(a == b, y[:, a] * (y[:, a] - 1) / 2, y[:, a] * y[:, b])
    return pairs @ q.edge_weight


def restrict_classes(q: Quotient, chosen: Ints) -> Quotient:
    """The same with the chosen classes alone."""
    number = np.full(len(q.count), -1, dtype=np.int64)
    number[chosen] = np.arange(len(chosen))
    edges = (number[q.edge_a] >= 0) & (number[q.edge_b] >= 0)
    demand, count = q.demand[:, chosen], q.count[chosen]
    return replace(
        q,
        count=count,
        edge_a=number[q.edge_a[edges]],
        edge_b=number[q.edge_b[edges]],
        edge_weight=q.edge_weight[edges],
        demand=demand,
        room=np.minimum(q.room, (demand * count[None, :, None]).sum(axis=1) + 1.0),
        most=q.most[:, chosen],
        apart=q.apart[chosen],
        group=q.group[chosen],
        memory=q.memory[chosen],
        task_members=[q.task_members[c] for c in chosen],
    )


def merge_node_classes(q: Quotient, parts: list[Ints]) -> Quotient:
    """Node classes put together: each node gets the most that one of its part has."""
    return replace(
        q,
        demand=np.array([q.demand[p].min(axis=0) for p in parts]),
        room=np.array([q.room[p].max(axis=0) for p in parts]),
        most=np.array([q.most[p].max(axis=0) for p in parts]),
        slots=np.array([q.slots[p].max() for p in parts]),
        nodes=np.array([q.nodes[p].sum() for p in parts]),
        node_members=[np.concatenate([q.node_members[j] for j in p]) for p in parts],
    )


def patterns_of(q: Quotient, x: Ints) -> list[tuple[int, Ints]]:
    """(node class, pattern) of every node under the counts x[C, N] of the instance."""
    merged = np.array(
        [x[members].sum(axis=0) for members in q.task_members], dtype=np.int64
    ).reshape(-1, x.shape[1])
    return [(j, merged[:, node]) for j, nodes in enumerate(q.node_members) for node in nodes]


def counts_of(instance: Instance, q: Quotient, patterns: list[tuple[int, Ints]]) -> Ints:
    """Counts x[C, N] of the instance for the patterns; what is alike is dealt out in its order."""
    x = np.zeros((len(instance.count), len(instance.node_type)), dtype=np.int64)
    left = instance.count.copy()
    dealt = [0] * len(q.nodes)
    for j, pattern in patterns:
        node = q.node_members[j][dealt[j]]
        dealt[j] += 1
        for c in np.flatnonzero(pattern):
            wanted = int(pattern[c])
            for member in q.task_members[c]:
                taken = min(wanted, int(left[member]))
                x[member, node] += taken
                left[member] -= taken
                wanted -= taken
                if not wanted:
                    break
    return x


def _alike_nodes(instance: Instance) -> list[Ints]:
    # Types that ask the same are one.
    number: dict[bytes, int] = {}
    asks = np.array([number.setdefault(d.tobytes(), len(number)) for d in instance.demand])
    facts = np.column_stack(
        [
            asks[instance.node_type].astype(np.float64),
            instance.slots.astype(np.float64),
            instance.capacity + 0.0,  # -0.0 is 0.0
        ]
    )
    allowed = np.packbits(instance.allowed, axis=0).T
    keys = np.concatenate([facts.view(np.uint8).reshape(len(facts), -1), allowed], axis=1)
    alike: dict[bytes, list[int]] = defaultdict(list)
    for n, key in enumerate(np.ascontiguousarray(keys).view(f"V{keys.shape[1]}").ravel().tolist()):
        alike[key].append(n)
    return [np.array(nodes, dtype=np.int64) for nodes in alike.values()]


def _alike_tasks(instance: Instance) -> list[Ints]:
    """Classes whose tasks can be exchanged one for one without changing anything.

    Being alike is transitive.
    """
    classes = len(instance.count)
    around: list[dict[int, float]] = [{} for _ in range(classes)]
    inside = np.zeros(classes)  # weight between two tasks of the class
    for a, b, weight in zip(
        instance.edge_a.tolist(),
        instance.edge_b.tolist(),
        instance.edge_weight.tolist(),
        strict=True,
    ):
        if weight == 0.0:
            continue
        if a == b:
            inside[a] = weight
        else:
            around[a][b] = around[a].get(b, 0.0) + weight
            around[b][a] = around[a][b]
    kind = _kinds(instance)
    single = instance.count == 1  # a lone task has no weight to its own class that could disagree
    leader = list(range(classes))

    def find(c: int) -> int:
        while leader[c] != c:
            c = leader[c]
        return c

    strangers: dict[tuple[int, frozenset[tuple[int, float]]], int] = {}
    for c in range(classes):
        if kind[c] >= 0 and (single[c] or inside[c] == 0.0):
            leader[c] = strangers.setdefault((int(kind[c]), frozenset(around[c].items())), c)
    for a in range(classes):
        for b, weight in around[a].items():
            if not (a < b and kind[a] == kind[b] >= 0 and len(around[a]) == len(around[b])):
                continue
            if not ((single[a] or inside[a] == weight) and (single[b] or inside[b] == weight)):
                continue
            if all(c == b or around[b].get(c) == w for c, w in around[a].items()):
                low, high = sorted((find(a), find(b)))
                leader[high] = low

    members: dict[int, list[int]] = defaultdict(list)
    for c in range(classes):
        if instance.count[c] > 0:
            members[find(c)].append(c)
    return [np.array(classes, dtype=np.int64) for _, classes in sorted(members.items())]


def _kinds(instance: Instance) -> Ints:
    """For each class the number of those that ask for the same room; -1 if it must stay alone."""
    kind = np.full(len(instance.count), -1, dtype=np.int64)
    number: dict[tuple[bytes, ...], int] = {}
    for c in range(len(kind)):
        if instance.apart[c] and instance.count[c] > 1:
            continue
        asks = (instance.demand[:, c], instance.allowed[c], instance.group[c], instance.memory[c])
        kind[c] = number.setdefault(tuple(np.asarray(part).tobytes() for part in asks), len(number))
    return kind


def _merged_edges(instance: Instance, task_members: list[Ints]) -> tuple[Ints, Ints, Floats]:
    of_class = np.full(len(instance.count), -1, dtype=np.int64)
    for c, members in enumerate(task_members):
        of_class[members] = c
    a, b = of_class[instance.edge_a], of_class[instance.edge_b]
    # A lone task has no partner in its class: its own loop, if one is given, means nothing.
    means = (a >= 0) & (b >= 0) & (instance.edge_weight != 0)
    means &= (instance.edge_a != instance.edge_b) | (instance.count[instance.edge_a] > 1)
    pairs = np.unique(
        np.stack([np.minimum(a, b)[means], np.maximum(a, b)[means], np.flatnonzero(means)], axis=1),
        axis=0,
    )
    first = np.ones(len(pairs), dtype=np.bool_)
    first[1:] = (pairs[1:, :2] != pairs[:-1, :2]).any(axis=1)
    pairs = pairs[first]
    return pairs[:, 0], pairs[:, 1], instance.edge_weight[pairs[:, 2]]


def _most(count: Ints, demand: Floats, room: Floats, apart: Bools) -> Ints:
    with np.errstate(divide="ignore", invalid="ignore"):
        fitting = np.where(
            demand > 0,
            np.floor(room[:, None, :] / demand),
            np.where(room[:, None, :] >= 0, np.inf, 0),
        )
    most = np.minimum(fitting.min(axis=2, initial=np.inf), count[None, :])
    return np.where(apart[None, :], np.minimum(most, 1), np.maximum(most, 0)).astype(np.int64)


def _slots_matter(count: Ints, group: Ints, memory: Floats, heap: Floats, slots: Ints) -> bool:
    """Whether some node with a free slot could run out of slots when every task goes there."""
    if not len(count):
        return False
    present = distinct(group)
    # Each bin but one is more than half full in any sensible packing, so twice the volume is
    # enough.
    with np.errstate(invalid="ignore"):
        volume = np.array([(memory * count)[group == g].sum() / heap[g] for g in present])
    needed = np.where(volume > 1, np.ceil(2 * volume), 1).sum()
    return bool((slots[slots > 0] < needed).any())

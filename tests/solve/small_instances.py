"""Small random instances with every kind of constraint, and what brute force knows about them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from headrace.model.arrays import Ints
from headrace.solve.instance import Instance


def small_instance(seed: int) -> Instance:
    """At most 6 tasks in 4 classes on 3 nodes; about one in six has no solution."""
    rng = np.random.default_rng(seed)
    classes, nodes, types, resources, groups = (
        int(rng.integers(low, high)) for low, high in ((1, 5), (1, 4), (1, 3), (1, 3), (1, 3))
    )
    count = np.minimum(rng.integers(1, 4, classes), 6 - classes)
    count = np.maximum(count, 1)
    while count.sum() > 6:
        count[count.argmax()] -= 1
    alike = rng.random() < 0.4  # equal numbers everywhere make symmetry
    a, b = np.triu_indices(classes)
    present = rng.random(len(a)) < 0.7
    whole = rng.random() < 0.5
    weight = (
        rng.integers(1, 4, len(a)).astype(np.float64) if whole else rng.uniform(0.1, 5.0, len(a))
    )
    demand = rng.integers(1, 4, (types, classes, resources)).astype(np.float64)
    if alike:
        weight[:] = 1.0
        demand[:] = 1.0
    capacity = rng.integers(4, 12, (nodes, resources)).astype(np.float64)
    capacity[rng.random(capacity.shape) < 0.1] = np.inf
    memory = rng.integers(0, 4, classes).astype(np.float64)
    heap = np.where(rng.random(groups) < 0.5, np.inf, rng.integers(3, 6, groups).astype(np.float64))
    return Instance(
        count=count.astype(np.int64),
        edge_a=a[present].astype(np.int64),
        edge_b=b[present].astype(np.int64),
        edge_weight=weight[present],
        demand=demand,
        node_type=rng.integers(0, types, nodes),
        capacity=capacity,
        allowed=np.ones((classes, nodes), dtype=np.bool_)
        if alike
        else rng.random((classes, nodes)) < 0.95,
        apart=rng.random(classes) < 0.15,
        group=rng.integers(0, groups, classes),
        slots=rng.integers(1 if groups == 1 else 0, 4, nodes)
        if rng.random() < 0.5
        else np.full(nodes, 4, dtype=np.int64),
        heap=heap,
        memory=memory,
    )


def fits(instance: Instance, x: Ints) -> bool:
    """Whether the counts satisfy everything, by the definitions and without any shortcut."""
    if (x < 0).any() or (x.sum(axis=1) != instance.count).any() or (x[~instance.allowed] > 0).any():
        return False
    if (x[instance.apart] > 1).any():
        return False
    for n in range(x.shape[1]):
        if not x[:, n].any():
            continue
        load = x[:, n] @ instance.demand[instance.node_type[n]]
        if (load > instance.capacity[n] * (1 + 1e-9)).any():
            return False
        needed = 0
        for g in np.unique(instance.group[x[:, n] > 0]):
            memory = [
                m
                for c, m in enumerate(instance.memory.tolist())
                if instance.group[c] == g
                for _ in range(x[c, n])
            ]
            needed += fewest_bins(memory, float(instance.heap[g]))
        if needed > instance.slots[n]:
            return False
    return True


def fewest_bins(sizes: list[float], heap: float) -> float:
    for bins in range(1, len(sizes) + 1):
        for choice in product(range(bins), repeat=len(sizes)):
            loads = [0.0] * bins
            for size, b in zip(sizes, choice, strict=True):
                loads[b] += size
            if max(loads) <= heap * (1 + 1e-9):
                return bins
    return np.inf


def least_by_brute_force(instance: Instance) -> float:
    """The least crossing traffic over all counts that fit; inf if there are none."""
    nodes = len(instance.node_type)
    best = np.inf
    for rows in product(*(list(spread(int(n), nodes)) for n in instance.count)):
        x = np.array(rows, dtype=np.int64)
        crossing = instance.crossing(x)
        if crossing < best and fits(instance, x):
            best = crossing
    return best


def spread(tasks: int, nodes: int) -> Iterator[tuple[int, ...]]:
    if nodes == 1:
        yield (tasks,)
        return
    for here in range(tasks + 1):
        for rest in spread(tasks - here, nodes - 1):
            yield (here, *rest)

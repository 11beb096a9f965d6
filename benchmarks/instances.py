"""Instances that the benchmarks and the tests of the exact solver share."""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Floats
from headrace.solve.instance import Instance

HOMOGENEOUS = (4,) * 10
HETEROGENEOUS = (6, 6, 6, 4, 4, 4, 2, 2, 2, 2)
CLUSTERS = {"HOM": HOMOGENEOUS, "HET": HETEROGENEOUS}


def microbenchmark(layout: str, tasks: int, cluster: str | tuple[int, ...]) -> Instance:
    """Eskandari, section 6.2: all loads and all task-pair rates are 1, one class per task.

    `layout` is linear, diamond or star; `cluster` is HOM, HET or the capacities themselves.
    """
    operators, joined = _layout(layout, tasks)
    owner = np.repeat(np.arange(len(operators)), operators)
    linked = np.zeros((len(operators), len(operators)), dtype=np.bool_)
    for a, b in joined:
        linked[a, b] = linked[b, a] = True
    weight = np.triu(linked[np.ix_(owner, owner)], 1).astype(np.float64)
    capacity = np.array(
        CLUSTERS[cluster] if isinstance(cluster, str) else cluster, dtype=np.float64
    )
    return _one_class_per_task(weight, np.ones(tasks), capacity)


def unsymmetric(seed: int, shape: str, *, tasks: int = 50, nodes: int = 8) -> Instance:
    """Unequal loads, rates and nodes: loads 5..50, capacities 3:2:1 with a quarter to spare.

    `shape` is sparse (a random graph of average degree 4) or operators (components in a DAG, all
    task pairs of adjacent components joined).
    """
    rng = np.random.default_rng([seed, {"sparse": 0, "operators": 1}[shape]])
    load = rng.uniform(5.0, 50.0, tasks)
    capacity = np.array([(3.0, 2.0, 1.0)[n % 3] for n in range(nodes)])
    capacity *= 1.25 * load.sum() / capacity.sum()
    weight = _sparse(rng, tasks) if shape == "sparse" else _operators(rng, tasks)
    return _one_class_per_task(weight, load, capacity)


def _layout(layout: str, tasks: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Tasks per operator, and which operators communicate."""
    if layout == "linear":
        operators = [2] * (tasks // 2)
        return operators, [(i, i + 1) for i in range(len(operators) - 1)]
    if layout == "diamond":
        inner = (tasks - 8) // 2
        return [4, 4] + [2] * inner, [(end, 2 + i) for i in range(inner) for end in (0, 1)]
    if layout == "star":
        outer = (tasks - 4) // 2
        return [4] + [2] * outer, [(0, 1 + i) for i in range(outer)]
    raise ValueError(f"layout {layout!r} is none of linear, diamond, star")


def _sparse(rng: np.random.Generator, tasks: int) -> Floats:
    """A random spanning tree, so that no task is idle, and random pairs up to mean degree 4."""
    weight = np.zeros((tasks, tasks))
    for b in range(1, tasks):
        weight[rng.integers(b), b] = rng.uniform(1.0, 100.0)
    while np.count_nonzero(weight) < 2 * tasks:
        a, b = sorted(rng.choice(tasks, 2, replace=False))
        if not weight[a, b]:
            weight[a, b] = rng.uniform(1.0, 100.0)
    return weight


def _operators(rng: np.random.Generator, tasks: int) -> Floats:
    """Components of 1..8 tasks in a chain with some shortcuts; rates of task pairs are unequal."""
    owner = np.repeat(np.arange(tasks), rng.integers(1, 9, tasks))[:tasks]
    components = int(owner[-1]) + 1
    joined = [(a, a + 1) for a in range(components - 1)]
    joined += [
        (a, b)
        for a in range(components)
        for b in range(a + 2, components)
        if rng.random() < 1.0 / components
    ]
    weight = np.zeros((tasks, tasks))
    for a, b in joined:
        block = np.ix_(owner == a, owner == b)
        shares = rng.uniform(0.2, 1.0, weight[block].shape)
        weight[block] = rng.uniform(100.0, 1000.0) * shares / shares.sum()
    return weight


def _one_class_per_task(weight: Floats, load: Floats, capacity: Floats) -> Instance:
    tasks, nodes = len(load), len(capacity)
    edge_a, edge_b = np.nonzero(weight)
    return Instance(
        count=np.ones(tasks, dtype=np.int64),
        edge_a=edge_a.astype(np.int64),
        edge_b=edge_b.astype(np.int64),
        edge_weight=weight[edge_a, edge_b],
        demand=load[None, :, None],
        node_type=np.zeros(nodes, dtype=np.int64),
        capacity=capacity[:, None],
        allowed=np.ones((tasks, nodes), dtype=np.bool_),
        apart=np.zeros(tasks, dtype=np.bool_),
        group=np.zeros(tasks, dtype=np.int64),
        slots=np.ones(nodes, dtype=np.int64),
        heap=np.array([np.inf]),
        memory=np.zeros(tasks),
    )

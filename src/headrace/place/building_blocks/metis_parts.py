"""METIS' parts of a task graph, just as they come: nearly equal, and larger than a node at times.

The thesis names the k-way method. Recursive bisection is what gives its costs and its parts of 5;
the k-way method of today leaves parts of such small graphs empty.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.problem import Pairs
from headrace.solve.cut.graph import graph_of
from headrace.solve.cut.metis import label_with_metis

Partitioner = Literal["metis", "metis-kway"]  # recursive bisection, or the k-way method


def graph_partition(
    pairs: Pairs, tasks: Ints, load: Floats, count: int, partitioner: Partitioner, seed: int
) -> list[Ints]:
    """Some of the tasks in `count` parts of nearly equal load, in METIS' order, without empty ones.

    load[T] are the weights of vertices, the traffic between two tasks that of their edge.
    """
    count = min(count, len(tasks))
    if count <= 1:
        return [tasks] if len(tasks) else []
    number = np.full(len(load), -1, dtype=np.int64)
    number[tasks] = np.arange(len(tasks))
    source, target = number[pairs.source], number[pairs.target]
    inside = (source >= 0) & (target >= 0)
    graph = graph_of(source[inside], target[inside], pairs.tuples_per_s[inside], len(tasks))
    part = label_with_metis(
        graph, load[tasks], np.ones(count), recursive=partitioner == "metis", seed=seed
    )
    return [tasks[part == p] for p in range(count) if (part == p).any()]

"""Weighted undirected graphs as rows of neighbours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Floats, Ints


class Graph(NamedTuple):
    """An undirected graph of V vertices and E edges; every edge is in two rows."""

    first: Ints  # [V + 1] where a vertex' row begins
    other: Ints  # [2 E]
    weight: Floats  # [2 E]


def graph_of(source: Ints, target: Ints, weight: Floats, vertices: int) -> Graph:
    """The undirected graph of weighted pairs.

    Equal pairs and both directions add up, loops are left out. Neighbours are in ascending order.
    """
    from scipy.sparse import csr_array

    keep = (source != target) & (weight > 0)
    one_way = csr_array((weight[keep], (source[keep], target[keep])), shape=(vertices, vertices))
    rows = csr_array(one_way + one_way.T)
    rows.sort_indices()
    return Graph(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data.astype(np.float64)
    )


def crossing(graph: Graph, label: Ints) -> float:
    """Weight of the edges between different parts; label[V] is the part of a vertex."""
    apart = np.repeat(label, np.diff(graph.first)) != label[graph.other]
    return float(graph.weight[apart].sum()) / 2

"""Exact for few tasks of few classes: the best over all ways to fill one node after another.

Only counts matter: how many tasks of each class the nodes so far hold. For every such vector the
most traffic that these nodes can keep inside is known; one more node adds the best of its patterns.
"""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.instance import Instance
from headrace.solve.symmetry import Quotient, quotient, traffic_inside

MOST_PATTERNS = 3_000  # patterns of all nodes together
MOST_WORK = 10_000_000  # vectors of counts x patterns, some hundredths of a second


def least_crossing_by_counts(instance: Instance) -> float | None:
    """The least traffic between nodes; inf where no plan fits, None where there are too many."""
    q = quotient(instance)
    if q.slots_matter or not len(q.count) or not q.most.any(axis=0).all():
        return None
    fits = (np.einsum("c,jck->jk", q.count, q.demand) <= q.room).all(axis=1)
    if (fits & (q.most >= q.count).all(axis=1)).any():
        return 0.0  # one node holds everything
    vectors = float(np.prod(q.count + 1.0))
    patterns = float(q.nodes @ np.prod(np.minimum(q.most, q.count) + 1.0, axis=1))
    if patterns > MOST_PATTERNS or patterns * vectors > MOST_WORK:
        return None
    kept = np.full(tuple(q.count + 1), -np.inf)
    kept[(0,) * kept.ndim] = 0.0
    for j in range(len(q.nodes)):
        ways = _patterns(q, j)
        worth = traffic_inside(q, ways)
        for _ in range(int(q.nodes[j])):
            kept = _with_one_node(kept, ways, worth)
    total = float(traffic_inside(q, q.count[None])[0])
    crossing = total - float(kept[tuple(q.count)])
    return crossing if crossing > 1e-12 * total else 0.0  # below is rounding


def _patterns(q: Quotient, node_class: int) -> Ints:
    """Every way to fill one node of a class, [P, C]."""
    most = np.minimum(q.most[node_class], q.count)
    ways = np.indices(tuple(most + 1)).reshape(len(most), -1).T
    fits = (ways @ q.demand[node_class] <= q.room[node_class]).all(axis=1)
    return ways[fits]


def _with_one_node(kept: Floats, ways: Ints, worth: Floats) -> Floats:
    """The most that can be kept with one more node, for every vector of counts."""
    best = np.full_like(kept, -np.inf)
    for way, more in zip(ways.tolist(), worth.tolist(), strict=True):
        after = tuple(slice(n, None) for n in way)
        before = tuple(slice(None, size - n) for n, size in zip(way, kept.shape, strict=True))
        np.maximum(best[after], kept[before] + more, out=best[after])
    return best

"""What of a topology is enough for a bound: its connected parts, and the busiest classes of each.

Without a class, nothing more crosses between the others: their nodes have more room. So a bound on
what crosses between some classes is one for all, and it is nearly as good if those that are left
out exchange little. A few classes have few patterns; a bound of them takes milliseconds.
"""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Ints
from headrace.solve.symmetry import Quotient, restrict_classes

CORE_SIZES = (6, 10, 16, 26, 44)  # classes; besides, all there are


def connected_parts(q: Quotient) -> list[Quotient]:
    """Classes that exchange something, directly or through others, together."""
    label, before = np.arange(len(q.count)), np.zeros(0)
    while not np.array_equal(label, before):
        before = label.copy()
        least = np.minimum(label[q.edge_a], label[q.edge_b])
        np.minimum.at(label, q.edge_a, least)
        np.minimum.at(label, q.edge_b, least)
        label = label[label]
    linked = np.unique(label[q.edge_a])
    return [restrict_classes(q, np.flatnonzero(label == part)) for part in linked]


def cores_of(q: Quotient) -> list[Ints]:
    """Ever more of the classes, those of the busiest streams first; at last all."""
    a, b, n = q.edge_a, q.edge_b, q.count
    traffic = q.edge_weight * np.where(a == b, n[a] * (n[a] - 1) / 2, n[a] * n[b])
    busiest = np.argsort(-traffic, kind="stable")
    ends = list(zip(a[busiest].tolist(), b[busiest].tolist(), strict=True))
    cores: list[Ints] = []
    for size in CORE_SIZES:
        chosen: set[int] = set()
        for stream in ends:
            if len(chosen | set(stream)) <= size:
                chosen |= set(stream)
        if len(chosen) < len(n) and (not cores or len(chosen) > len(cores[-1])):
            cores.append(np.array(sorted(chosen), dtype=np.int64))
    return [*cores, np.arange(len(n))]

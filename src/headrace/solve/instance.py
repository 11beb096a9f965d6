"""What searches and proofs get: classes of interchangeable tasks, their traffic, room on nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints

EDGES_AT_ONCE = 256  # whose counts are looked at together: they should fit a cache


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """Place `count[c]` tasks of every class on nodes so that little traffic crosses between nodes.

    C classes, N nodes, Y machine types, K resources, E edges, G groups (topologies).
    A solution is an integer matrix x[C, N] of how many tasks of a class are on a node.
    """

    count: Ints  # [C]      tasks of each class
    edge_a: Ints  # [E]     class pair (a <= b), each pair once
    edge_b: Ints  # [E]
    edge_weight: Floats  # [E]   tuples/s, both ways, between ONE task of a and ONE other of b
    demand: Floats  # [Y, C, K]  what one task of a class takes on a machine of a type
    node_type: Ints  # [N]
    capacity: Floats  # [N, K]   what is free on a node; may be inf
    allowed: Bools  # [C, N]     False where a class is not permitted (pins)
    apart: Bools  # [C]          no two tasks of this class on one node
    group: Ints  # [C]           topology of a class; a slot holds one topology
    slots: Ints  # [N]           free slots; a topology present on a node takes at least one of them
    heap: Floats  # [G]          memory one slot of a topology may hold; inf: does not matter
    memory: Floats  # [C]        memory of one task, counted against `heap`
    rack: Ints | None = None  # [N]
    rack_price: float = 0.0  # of a tuple between racks, beyond the 1 of one between nodes

    @property
    def total_weight(self) -> float:
        """All traffic between tasks: what crosses if no two that talk are together."""
        a, b = self.edge_a, self.edge_b
        pairs = np.where(
            a == b, self.count[a] * (self.count[a] - 1) / 2, self.count[a] * self.count[b]
        )
        return float((self.edge_weight * pairs).sum())

    def kept(self, x: Ints) -> float:
        """Traffic that stays inside nodes under the counts x[C, N]; the rest crosses."""
        together = np.zeros(len(self.edge_a))
        for first in range(0, len(self.edge_a), EDGES_AT_ONCE):
            some = slice(first, first + EDGES_AT_ONCE)
            together[some] = np.einsum("en,en->e", x[self.edge_a[some]], x[self.edge_b[some]])
        same = self.edge_a == self.edge_b
        together[same] = (together[same] - x[self.edge_a[same]].sum(axis=1)) / 2
        return float((self.edge_weight * together).sum())

    def crossing(self, x: Ints) -> float:
        """Inter-node traffic of the counts x[C, N]."""
        return self.total_weight - self.kept(x)

    def cost(self, x: Ints) -> float:
        """The same, and what traffic between racks costs beyond that."""
        if self.rack is None or not self.rack_price:
            return self.crossing(x)
        by_rack = np.stack(
            [x[:, self.rack == r].sum(axis=1) for r in range(self.rack.max() + 1)], 1
        )
        return self.crossing(x) + self.rack_price * self.crossing(by_rack)

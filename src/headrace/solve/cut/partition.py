"""Splits a weighted graph into parts of hard capacity so that little weight crosses between them.

Several starts (METIS', and parts grown one after another) are annealed with moves and swaps. An
over-full part is never returned.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headrace.model.arrays import TOLERANCE, Floats, Ints
from headrace.solve.cut.graph import Graph, crossing, graph_of
from headrace.solve.cut.labelling import (
    NOBODY,
    Parts,
    Prices,
    anneal_parts,
    grow_parts,
    new_labelling,
)
from headrace.solve.cut.metis import label_with_metis

SMALL, MIDDLING = 200, 1_000  # vertices up to which a graph is searched thoroughly, and well
HEATED = 5_000  # vertices up to which starts are annealed; METIS' answer to more is only polished


def partition(
    source: Ints,
    target: Ints,
    weight: Floats,
    load: Floats,
    capacities: Floats,
    *,
    kind: Ints | None = None,
    seed: int = 0,
    starts: int | None = None,
) -> Ints | None:
    """The part of each vertex, [V]; None if no labelling within the capacities was found.

    Pairs count in both directions and add up. `load` is [V], [V, K] with several resources, or [Y,
    V, K] where it depends on the `kind` [P] of the part; `capacities` is [P] or [P, K]. No part
    stays empty unless there are too few vertices that fit.
    """
    vertices = load.shape[1] if load.ndim == 3 else len(load)
    if vertices == 0:
        return np.zeros(0, dtype=np.int64)
    if len(capacities) == 0:
        return None
    parts = _parts(load, capacities, kind)
    if _hopeless(parts):
        return None
    if len(parts.kind) == 1:
        return np.zeros(vertices, dtype=np.int64)
    if starts is None:
        starts = 8 if vertices <= SMALL else 4 if vertices <= HEATED else 1
    partitioner = _Partitioner(graph_of(source, target, weight, vertices), parts, seed)
    for label in partitioner.starts(starts):
        partitioner.refine(label)
    if partitioner.best is None:
        partitioner.pack()
    return partitioner.best


def _parts(load: Floats, capacities: Floats, kind: Ints | None) -> Parts:
    capacities = np.asarray(capacities, dtype=np.float64).reshape(len(capacities), -1)
    load = np.asarray(load, dtype=np.float64)
    if load.ndim < 3:
        load = load.reshape(1, len(load), -1)
    unit = load.mean(axis=(0, 1))
    unit[unit <= 0] = 1.0
    load = load / unit
    # A capacity above what all need together is as good as none.
    needed = load.max(axis=0).sum(axis=0)
    room = np.minimum(capacities / unit * (1 + TOLERANCE) + TOLERANCE, needed + 1.0)
    kinds = np.zeros(len(capacities), dtype=np.int64) if kind is None else kind.astype(np.int64)
    return Parts(np.ascontiguousarray(load), kinds, np.ascontiguousarray(room))


def _hopeless(parts: Parts) -> bool:
    """Whether the sum, or a vertex by itself, already shows that nothing fits."""
    if (parts.load.min(axis=0).sum(axis=0) > parts.room.sum(axis=0)).any():
        return True
    alike = np.unique(np.column_stack([parts.kind, parts.room]), axis=0)
    fits = [(parts.load[int(kind)] <= room).all(axis=1) for kind, *room in alike.tolist()]
    return not bool(np.any(fits, axis=0).all())


class _Partitioner:
    """The best labelling so far, and what it takes to look for a better one."""

    def __init__(self, graph: Graph, parts: Parts, seed: int) -> None:
        self.graph, self.parts = graph, parts
        self.rng = np.random.default_rng(seed)
        self.total = float(graph.weight.sum()) / 2
        self.prices = Prices(1.0, overload=1e4 * (1 + self.total), empty=10 * (1 + self.total))
        self.best: Ints | None = None
        self.least = np.inf

    def starts(self, number: int) -> Iterator[Ints]:
        """Labellings to begin with, which may overfill parts: METIS' and grown ones in turn."""
        vertices, parts = self.parts.load.shape[1], len(self.parts.kind)
        for i in range(number):
            if i % 2 == 0 or vertices > HEATED:
                yield self._metis(int(self.rng.integers(1, 2**31)))
            else:
                yield self._grow(self.rng.permutation(vertices), self.rng.permutation(parts))

    def refine(self, label: Ints) -> None:
        """Anneal a labelling; too large a one is only improved step by step."""
        vertices = len(label)
        # Proposals per vertex, and the first temperature in shares of what an average vertex
        # exchanges: the fewer, the cooler.
        proposals, heat = (
            (400, 0.3) if vertices <= MIDDLING else (100, 0.05) if vertices <= HEATED else (20, 0.0)
        )
        self._anneal(label, vertices * proposals, self.prices, heat * self.total / vertices)

    def pack(self) -> None:
        """Look for any labelling that fits, then refine it."""
        vertices = self.parts.load.shape[1]
        largest_first = np.argsort(-self.parts.load.max(axis=(0, 2)), kind="stable")
        start = (
            self._grow(largest_first, np.arange(len(self.parts.kind)))
            if vertices <= HEATED
            else next(self.starts(1))
        )
        steps = min(max(300_000, 1_000 * vertices), 20_000_000)
        self._anneal(start, steps, Prices(0.0, 1.0, 0.0), 1.0)
        if self.best is not None:
            self.refine(self.best)

    def _metis(self, seed: int) -> Ints:
        """METIS' labelling; it gets one load per vertex, of the resource scarcest for it."""
        total = np.maximum(self.parts.room.sum(axis=0), TOLERANCE)
        load = (self.parts.load.mean(axis=0) / total).max(axis=1)
        room = (self.parts.room / total).min(axis=1) + TOLERANCE
        return label_with_metis(self.graph, load, room, recursive=len(load) <= MIDDLING, seed=seed)

    def _grow(self, seeds: Ints, order: Ints) -> Ints:
        label = np.full(len(seeds), NOBODY, dtype=np.int64)
        fill, pull = np.zeros_like(self.parts.room), np.zeros(len(seeds))
        grow_parts(self.graph, self.parts, label, fill, pull, seeds, order)
        return label

    def _anneal(self, label: Ints, steps: int, prices: Prices, hot: float) -> None:
        labelling = new_labelling(label, self.parts)
        rng = self.rng.integers(0, 2**64, size=1, dtype=np.uint64)
        anneal_parts(self.graph, self.parts, labelling, rng, steps, prices, hot)
        if labelling.best[0] == NOBODY:
            return
        empty = len(self.parts.kind) - len(np.unique(labelling.best))
        cost = crossing(self.graph, labelling.best) + self.prices.empty * empty
        if cost < self.least:
            self.best, self.least = labelling.best, cost

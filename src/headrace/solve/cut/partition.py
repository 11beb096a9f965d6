"""Splits a weighted graph into parts of hard capacity so that little weight crosses between them.

Several starts (METIS', and parts grown one after another) are annealed with moves and swaps.
Overload has a price beyond all weight, so that one kernel both repairs a start that overfills a
part and refines it; an over-full part is never returned.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import NamedTuple, cast

import numpy as np
import pymetis
from numpy.typing import NDArray
from scipy.sparse import csr_array

from headrace.model.arrays import TOLERANCE, Floats, Ints
from headrace.solve.chance import pick, random_share
from headrace.solve.compiled import kernel

NOBODY = cast(
    "int", np.int64(-1)
)  # no vertex, no part; numba would compile a version of its own for a bare -1
HEATED = 5_000  # vertices up to which starts are grown and annealed; METIS' answer to larger graphs is only polished


class Graph(NamedTuple):
    """An undirected graph as rows of neighbours; every edge stands in two rows."""

    first: Ints  # [V + 1] where a vertex' row begins
    other: Ints  # [2 E]
    weight: Floats  # [2 E]


class Parts(NamedTuple):
    """What vertices need and parts have, in units of an average vertex; Y kinds of parts, P parts, K resources."""

    load: Floats  # [Y, V, K]
    kind: Ints  # [P]
    room: Floats  # [P, K] finite


class State(NamedTuple):
    """A labelling under way."""

    label: Ints  # [V]
    fill: Floats  # [P, K]
    size: Ints  # [P] vertices
    begin: Ints  # [P + 1] the vertices of each part, as they stood when last listed
    member: Ints  # [V]
    pull: Floats  # [P] scratch
    best: Ints  # [V] the best labelling without overload; NOBODY before there is one


class Prices(NamedTuple):
    """What a labelling costs."""

    weight: float  # of a unit of crossing weight
    overload: float  # of an average vertex too much in a part
    empty: float  # of an empty part


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
    search = _Search(graph_of(source, target, weight, vertices), parts, seed)
    for label in search.starts(
        starts or (8 if vertices <= 200 else 4 if vertices <= HEATED else 1)
    ):
        search.refine(label)
    if search.best is None:
        search.pack()
    return search.best


def graph_of(source: Ints, target: Ints, weight: Floats, vertices: int) -> Graph:
    """The undirected graph of weighted pairs; equal pairs and both directions add up, loops are left out."""
    keep = (source != target) & (weight > 0)
    one_way = csr_array((weight[keep], (source[keep], target[keep])), shape=(vertices, vertices))
    rows = cast("csr_array", (one_way + one_way.T).tocsr())
    rows.sort_indices()  # `_between` looks edges up
    return Graph(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data.astype(np.float64)
    )


def crossing(graph: Graph, label: Ints) -> float:
    """Weight of the edges between different parts."""
    return (
        float(graph.weight[np.repeat(label, np.diff(graph.first)) != label[graph.other]].sum()) / 2
    )


def _parts(load: Floats, capacities: Floats, kind: Ints | None) -> Parts:
    capacities = np.asarray(capacities, dtype=np.float64).reshape(len(capacities), -1)
    load = np.asarray(load, dtype=np.float64)
    if load.ndim < 3:
        load = load.reshape(1, len(load), -1)
    unit = load.mean(axis=(0, 1))
    unit[unit <= 0] = 1.0
    load = load / unit
    needed = load.max(axis=0).sum(
        axis=0
    )  # a capacity above what all need together is as good as none
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


class _Search:
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
                yield _metis(
                    self.graph,
                    self.parts,
                    recursive=vertices <= 1_000,
                    seed=int(self.rng.integers(1, 2**31)),
                )
            else:
                yield self._grown(self.rng.permutation(vertices), self.rng.permutation(parts))

    def refine(self, label: Ints) -> None:
        """Anneal a labelling; too large a one is only improved step by step."""
        vertices = len(label)
        # Proposals per vertex, and the first temperature in parts of what an average vertex
        # exchanges: the fewer, the cooler.
        proposals, heat = (
            (400, 0.3) if vertices <= 1_000 else (100, 0.05) if vertices <= HEATED else (20, 0.0)
        )
        self._anneal(label, vertices * proposals, self.prices, heat * self.total / vertices)

    def pack(self) -> None:
        """Look for any labelling that fits, then refine it."""
        vertices = self.parts.load.shape[1]
        largest_first = np.argsort(-self.parts.load.max(axis=(0, 2)), kind="stable")
        start = (
            self._grown(largest_first, np.arange(len(self.parts.kind)))
            if vertices <= HEATED
            else next(self.starts(1))
        )
        self._anneal(
            start, min(max(300_000, 1_000 * vertices), 20_000_000), Prices(0.0, 1.0, 0.0), 1.0
        )
        if self.best is not None:
            self.refine(self.best)

    def _grown(self, seeds: Ints, order: Ints) -> Ints:
        label = np.full(len(seeds), NOBODY, dtype=np.int64)
        grow(
            self.graph,
            self.parts,
            label,
            np.zeros_like(self.parts.room),
            np.zeros(len(seeds)),
            seeds,
            order,
        )
        return label

    def _anneal(self, label: Ints, steps: int, prices: Prices, hot: float) -> None:
        parts, vertices = len(self.parts.kind), len(label)
        state = State(
            label=label.copy(),
            fill=np.zeros_like(self.parts.room),
            size=np.zeros(parts, dtype=np.int64),
            begin=np.zeros(parts + 1, dtype=np.int64),
            member=np.zeros(vertices, dtype=np.int64),
            pull=np.zeros(parts),
            best=np.full(vertices, NOBODY, dtype=np.int64),
        )
        rng = self.rng.integers(0, 2**64, size=1, dtype=np.uint64)
        anneal(self.graph, self.parts, state, rng, steps, prices, hot)
        if state.best[0] == NOBODY:
            return
        empty = parts - len(np.unique(state.best))
        cost = crossing(self.graph, state.best) + self.prices.empty * empty
        if cost < self.least:
            self.best, self.least = state.best, cost


def _metis(graph: Graph, parts: Parts, *, recursive: bool, seed: int) -> Ints:
    """METIS' labelling with parts in the ratio of their room; METIS knows whole numbers and here one load per vertex."""
    total = np.maximum(parts.room.sum(axis=0), TOLERANCE)
    share = (parts.load.mean(axis=0) / total).max(
        axis=1
    )  # of the resource that is scarcest for the vertex
    room = (parts.room / total).min(axis=1) + TOLERANCE
    with _silence():
        answer = pymetis.part_graph(
            len(room),
            pymetis.CSRAdjacency(graph.first, graph.other),
            vweights=_whole(share),
            eweights=_whole(graph.weight),
            tpwgts=(room / room.sum()).tolist(),
            recursive=recursive,
            options=pymetis.Options(seed=seed),
        )
    return np.asarray(answer.vertex_part, dtype=np.int64)


@contextmanager
def _silence() -> Generator[None]:
    """Keep standard output to ourselves: METIS prints its complaints about tiny graphs there, past Python."""
    c_library = ctypes.CDLL(None)
    sys.stdout.flush()
    c_library.fflush(None)
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        c_library.fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _whole(values: Floats) -> Ints:
    """The values as whole numbers of at least 1, on average about 1000."""
    return np.maximum(
        1, np.rint(values * (1_000 * len(values) / max(float(values.sum()), 1e-300)))
    ).astype(np.int64)


@kernel
def grow(
    graph: Graph, parts: Parts, label: Ints, fill: Floats, pull: Floats, seeds: Ints, order: Ints
) -> None:
    """Fill part after part, from the first free seed on, always with the vertex most connected to the part that still fits.

    What fits nowhere goes to the last part.
    """
    for p in order:
        for v in range(len(label)):
            pull[v] = 0.0
        while True:
            chosen = NOBODY
            for v in seeds:
                better = label[v] == NOBODY and (chosen == NOBODY or pull[v] > pull[chosen])
                if better and _excess(parts, fill, p, v, NOBODY) == 0.0:
                    chosen = v
            if chosen == NOBODY:
                break
            label[chosen] = p
            _add(parts, fill, p, chosen, 1.0)
            for e in range(graph.first[chosen], graph.first[chosen + 1]):
                pull[graph.other[e]] += graph.weight[e]
    for v in range(len(label)):
        if label[v] == NOBODY:
            label[v] = order[-1]


@kernel
def anneal(
    graph: Graph,
    parts: Parts,
    state: State,
    rng: NDArray[np.uint64],
    steps: int,
    prices: Prices,
    hot: float,
) -> None:
    """Propose moves, and swaps where a move is refused, while the temperature falls to a hundredth of `hot`; keep the best."""
    label, fill, vertices = state.label, state.fill, len(state.label)
    _relieve(graph, parts, state)
    cost, least = 0.0, np.inf  # against what we begin with
    overfull = 0  # parts
    unsaved = False  # the labelling at hand is the best there was, and not copied yet
    heat = hot
    for step in range(steps):
        if step % vertices == 0:
            overfull = _take_stock(parts, state)
            heat = hot * 0.01 ** (step / steps)
        if overfull == 0 and cost < least:
            least, unsaved = cost, True
        u = pick(rng, vertices)
        a = int(label[u])
        degree = graph.first[u + 1] - graph.first[u]
        if degree > 0 and random_share(rng) < 0.8:
            b = int(label[graph.other[graph.first[u] + pick(rng, degree)]])
        else:
            b = pick(rng, len(parts.kind))
        if a == b:
            continue
        most = (
            -heat * np.log(1.0 - random_share(rng)) if heat > 0.0 else 0.0
        )  # the worst change that is still accepted
        excess_a, excess_b = (
            _excess(parts, fill, a, NOBODY, NOBODY),
            _excess(parts, fill, b, NOBODY, NOBODY),
        )
        v = NOBODY
        change = _pull(graph, label, u, a) - _pull(graph, label, u, b)
        after_a, after_b = _excess(parts, fill, a, NOBODY, u), _excess(parts, fill, b, u, NOBODY)
        worse = prices.weight * change + prices.overload * (after_a + after_b - excess_a - excess_b)
        worse += prices.empty * (int(state.size[a] == 1) - int(state.size[b] == 0))
        if worse > most:
            if state.begin[b + 1] == state.begin[b]:
                continue
            v = int(state.member[state.begin[b] + pick(rng, state.begin[b + 1] - state.begin[b])])
            if label[v] != b:
                continue
            change += (
                _pull(graph, label, v, b) - _pull(graph, label, v, a) + 2.0 * _between(graph, u, v)
            )
            after_a, after_b = _excess(parts, fill, a, v, u), _excess(parts, fill, b, u, v)
            worse = prices.weight * change + prices.overload * (
                after_a + after_b - excess_a - excess_b
            )
            if worse > most:
                continue
        if unsaved and worse > 0.0:
            _save(state)
            unsaved = False
        _move(parts, state, u, b)
        if v != NOBODY:
            _move(parts, state, v, a)
        cost += worse
        overfull += int(after_a > 0) + int(after_b > 0) - int(excess_a > 0) - int(excess_b > 0)
    if unsaved or (overfull == 0 and cost < least):
        _save(state)


@kernel
def _relieve(graph: Graph, parts: Parts, state: State) -> None:
    """Move vertices out of overfull parts, each to the part that can take it and exchanges most with it."""
    _take_stock(parts, state)
    for v, a in enumerate(state.label):
        if _excess(parts, state.fill, a, NOBODY, NOBODY) == 0.0:
            continue
        state.pull[:] = 0.0
        for e in range(graph.first[v], graph.first[v + 1]):
            state.pull[state.label[graph.other[e]]] += graph.weight[e]
        chosen = NOBODY
        for b in range(len(state.pull)):
            if (chosen == NOBODY or state.pull[b] > state.pull[chosen]) and _excess(
                parts, state.fill, b, v, NOBODY
            ) == 0.0:
                chosen = b
        if chosen != NOBODY:
            _move(parts, state, v, chosen)


@kernel
def _take_stock(parts: Parts, state: State) -> int:
    """List the vertices of each part, add up loads anew so that rounding does not build up, and count the overfull parts."""
    state.size[:] = 0
    state.fill[:] = 0.0
    for v, p in enumerate(state.label):
        state.size[p] += 1
        _add(parts, state.fill, p, v, 1.0)
    state.begin[0] = 0
    overfull = 0
    for p in range(len(state.size)):
        state.begin[p + 1] = state.begin[p] + state.size[p]
        state.size[p] = 0
        overfull += int(_excess(parts, state.fill, p, NOBODY, NOBODY) > 0)
    for v, p in enumerate(state.label):
        state.member[state.begin[p] + state.size[p]] = v
        state.size[p] += 1
    return overfull


@kernel
def _excess(parts: Parts, fill: Floats, part: int, entering: int, leaving: int) -> float:
    """What a part holds beyond its room, all resources together, after a vertex has come and another gone."""
    excess = 0.0
    for k in range(fill.shape[1]):
        held = fill[part, k]
        if entering != NOBODY:
            held += parts.load[parts.kind[part], entering, k]
        if leaving != NOBODY:
            held -= parts.load[parts.kind[part], leaving, k]
        excess += max(0.0, held - parts.room[part, k])
    return excess


@kernel
def _pull(graph: Graph, label: Ints, vertex: int, part: int) -> float:
    """Weight between a vertex and a part."""
    total = 0.0
    for e in range(graph.first[vertex], graph.first[vertex + 1]):
        if label[graph.other[e]] == part:
            total += graph.weight[e]
    return total


@kernel
def _between(graph: Graph, u: int, v: int) -> float:
    """Weight of the edge between two vertices; 0 without one."""
    low, high = graph.first[u], graph.first[u + 1]
    while low < high:
        middle = (low + high) // 2
        if graph.other[middle] < v:
            low = middle + 1
        else:
            high = middle
    return float(graph.weight[low]) if low < graph.first[u + 1] and graph.other[low] == v else 0.0


@kernel
def _move(parts: Parts, state: State, vertex: int, part: int) -> None:
    old = state.label[vertex]
    _add(parts, state.fill, old, vertex, -1.0)
    _add(parts, state.fill, part, vertex, 1.0)
    state.size[old] -= 1
    state.size[part] += 1
    state.label[vertex] = part


@kernel
def _add(parts: Parts, fill: Floats, part: int, vertex: int, sign: float) -> None:
    for k in range(fill.shape[1]):
        fill[part, k] += sign * parts.load[parts.kind[part], vertex, k]


@kernel
def _save(state: State) -> None:
    for v in range(len(state.label)):
        state.best[v] = state.label[v]

"""A labelling of a graph's vertices by parts, grown, relieved and annealed in compiled code.

Overload has a price beyond all weight, so one kernel both repairs a labelling that overfills a part
and refines it.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.chance import Rng, pick, random_share
from headrace.solve.compiled import inlined, kernel
from headrace.solve.cut.graph import Graph

# No vertex, no part; for a bare -1 numba would compile a version of its own.
NOBODY = cast("int", np.int64(-1))
ALONG_EDGE = 0.8  # chance that a vertex is tried in the part of a neighbour, not in any part
COOLED = 0.01  # the last temperature, as a share of the first


class Parts(NamedTuple):
    """What vertices need and parts have, in units of an average vertex.

    V vertices, Y kinds of parts, P parts, K resources.
    """

    load: Floats  # [Y, V, K]
    kind: Ints  # [P]
    room: Floats  # [P, K] finite


class Labelling(NamedTuple):
    """A part for every vertex, and what follows from it."""

    label: Ints  # [V]
    fill: Floats  # [P, K]
    size: Ints  # [P] vertices
    begin: Ints  # [P + 1] the vertices of each part, as they were when last listed
    member: Ints  # [V]
    pull: Floats  # [P] scratch
    best: Ints  # [V] the best labelling without overload; NOBODY before there is one


class Prices(NamedTuple):
    """What a labelling costs."""

    weight: float  # of a unit of crossing weight
    overload: float  # of an average vertex too much in a part
    empty: float  # of an empty part


def new_labelling(label: Ints, parts: Parts) -> Labelling:
    """The labelling to anneal from; everything but `label` is worked out by the kernel."""
    count, vertices = len(parts.kind), len(label)
    return Labelling(
        label=label.copy(),
        fill=np.zeros_like(parts.room),
        size=np.zeros(count, dtype=np.int64),
        begin=np.zeros(count + 1, dtype=np.int64),
        member=np.zeros(vertices, dtype=np.int64),
        pull=np.zeros(count),
        best=np.full(vertices, NOBODY, dtype=np.int64),
    )


@kernel
def grow_parts(
    graph: Graph, parts: Parts, label: Ints, fill: Floats, pull: Floats, seeds: Ints, order: Ints
) -> None:
    """Fill part after part, in the given order, from the first free seed on.

    Next comes the vertex most connected to the part that still fits. What fits nowhere goes to the
    last part.
    """
    for p in order:
        for v in range(len(label)):
            pull[v] = 0.0
        while True:
            chosen = NOBODY
            for v in seeds:
                better = label[v] == NOBODY and (chosen == NOBODY or pull[v] > pull[chosen])
                if better and excess(parts, fill, p, v, NOBODY) == 0.0:
                    chosen = v
            if chosen == NOBODY:
                break
            label[chosen] = p
            add_load(parts, fill, p, chosen, 1.0)
            for e in range(graph.first[chosen], graph.first[chosen + 1]):
                pull[graph.other[e]] += graph.weight[e]
    for v in range(len(label)):
        if label[v] == NOBODY:
            label[v] = order[-1]


@kernel
def anneal_parts(
    graph: Graph,
    parts: Parts,
    labelling: Labelling,
    rng: Rng,
    steps: int,
    prices: Prices,
    hot: float,
) -> None:
    """Propose moves, and swaps where a move is refused, while the temperature falls from `hot`.

    The best labelling without overload ends up in `labelling.best`.
    """
    label, vertices = labelling.label, len(labelling.label)
    relieve_parts(graph, parts, labelling)
    cost, least = 0.0, np.inf  # against what we begin with
    overfull = 0  # parts
    unsaved = False  # the labelling at hand is the best there was, and not copied yet
    heat = hot
    for step in range(steps):
        if step % vertices == 0:
            overfull = take_stock(parts, labelling)
            heat = hot * COOLED ** (step / steps)
        if overfull == 0 and cost < least:
            least, unsaved = cost, True
        u, b = pick_step(graph, parts, label, rng)
        a = int(label[u])
        if a == b:
            continue
        # The worst change that is still accepted.
        most = -heat * np.log(1.0 - random_share(rng)) if heat > 0.0 else 0.0
        v, worse, more_overfull = weigh_step(graph, parts, labelling, rng, prices, u, b, most)
        if worse > most:
            continue
        if unsaved and worse > 0.0:
            save_best(labelling)
            unsaved = False
        move_vertex(parts, labelling, u, b)
        if v != NOBODY:
            move_vertex(parts, labelling, v, a)
        cost += worse
        overfull += more_overfull
    if unsaved or (overfull == 0 and cost < least):
        save_best(labelling)


@inlined
def pick_step(graph: Graph, parts: Parts, label: Ints, rng: Rng) -> tuple[int, int]:
    """A vertex, and the part it could go to: mostly that of a neighbour."""
    u = pick(rng, len(label))
    degree = graph.first[u + 1] - graph.first[u]
    if degree > 0 and random_share(rng) < ALONG_EDGE:
        return u, int(label[graph.other[graph.first[u] + pick(rng, degree)]])
    return u, pick(rng, len(parts.kind))


@inlined
def weigh_step(
    graph: Graph,
    parts: Parts,
    labelling: Labelling,
    rng: Rng,
    prices: Prices,
    u: int,
    b: int,
    most: float,
) -> tuple[int, float, int]:
    """What it costs to move vertex u to part b or, if that is more than `most`, to swap it.

    Gives the vertex that comes back (or NOBODY), the cost (inf if there is none to swap with) and
    the change in the number of overfull parts.
    """
    label, fill = labelling.label, labelling.fill
    a = int(label[u])
    excess_a = excess(parts, fill, a, NOBODY, NOBODY)
    excess_b = excess(parts, fill, b, NOBODY, NOBODY)
    before = int(excess_a > 0) + int(excess_b > 0)
    v = NOBODY
    change = pull_of(graph, label, u, a) - pull_of(graph, label, u, b)
    after_a, after_b = excess(parts, fill, a, NOBODY, u), excess(parts, fill, b, u, NOBODY)
    worse = prices.weight * change + prices.overload * (after_a + after_b - excess_a - excess_b)
    worse += prices.empty * (int(labelling.size[a] == 1) - int(labelling.size[b] == 0))
    if worse > most:
        begin, end = labelling.begin[b], labelling.begin[b + 1]
        if begin == end:
            return NOBODY, np.inf, 0
        v = int(labelling.member[begin + pick(rng, end - begin)])
        if label[v] != b:  # it has left since the vertices were listed
            return NOBODY, np.inf, 0
        back = pull_of(graph, label, v, b) - pull_of(graph, label, v, a)
        change += back + 2.0 * edge_weight(graph, u, v)
        after_a, after_b = excess(parts, fill, a, v, u), excess(parts, fill, b, u, v)
        worse = prices.weight * change + prices.overload * (after_a + after_b - excess_a - excess_b)
    return v, worse, int(after_a > 0) + int(after_b > 0) - before


@kernel
def relieve_parts(graph: Graph, parts: Parts, labelling: Labelling) -> None:
    """Move vertices out of overfull parts, to the part with room that they exchange most with."""
    take_stock(parts, labelling)
    label, fill, pull = labelling.label, labelling.fill, labelling.pull
    for v, a in enumerate(label):
        if excess(parts, fill, a, NOBODY, NOBODY) == 0.0:
            continue
        pull[:] = 0.0
        for e in range(graph.first[v], graph.first[v + 1]):
            pull[label[graph.other[e]]] += graph.weight[e]
        chosen = NOBODY
        for b in range(len(pull)):
            better = chosen == NOBODY or pull[b] > pull[chosen]
            if better and excess(parts, fill, b, v, NOBODY) == 0.0:
                chosen = b
        if chosen != NOBODY:
            move_vertex(parts, labelling, v, chosen)


@kernel
def take_stock(parts: Parts, labelling: Labelling) -> int:
    """List the vertices of each part, add up the loads and count the overfull parts.

    Loads are added up again and again so that rounding does not build up.
    """
    size, fill, begin = labelling.size, labelling.fill, labelling.begin
    size[:] = 0
    fill[:] = 0.0
    for v, p in enumerate(labelling.label):
        size[p] += 1
        add_load(parts, fill, p, v, 1.0)
    begin[0] = 0
    overfull = 0
    for p in range(len(size)):
        begin[p + 1] = begin[p] + size[p]
        size[p] = 0
        overfull += int(excess(parts, fill, p, NOBODY, NOBODY) > 0)
    for v, p in enumerate(labelling.label):
        labelling.member[begin[p] + size[p]] = v
        size[p] += 1
    return overfull


@kernel
def excess(parts: Parts, fill: Floats, part: int, entering: int, leaving: int) -> float:
    """What a part holds beyond its room, all resources together.

    A vertex may have come and another gone; NOBODY where none has.
    """
    total = 0.0
    for k in range(fill.shape[1]):
        held = fill[part, k]
        if entering != NOBODY:
            held += parts.load[parts.kind[part], entering, k]
        if leaving != NOBODY:
            held -= parts.load[parts.kind[part], leaving, k]
        total += max(0.0, held - parts.room[part, k])
    return total


@kernel
def pull_of(graph: Graph, label: Ints, vertex: int, part: int) -> float:
    """Weight between a vertex and a part."""
    total = 0.0
    for e in range(graph.first[vertex], graph.first[vertex + 1]):
        if label[graph.other[e]] == part:
            total += graph.weight[e]
    return total


@kernel
def edge_weight(graph: Graph, u: int, v: int) -> float:
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
def move_vertex(parts: Parts, labelling: Labelling, vertex: int, part: int) -> None:
    """Give a vertex another part."""
    old = labelling.label[vertex]
    add_load(parts, labelling.fill, old, vertex, -1.0)
    add_load(parts, labelling.fill, part, vertex, 1.0)
    labelling.size[old] -= 1
    labelling.size[part] += 1
    labelling.label[vertex] = part


@kernel
def add_load(parts: Parts, fill: Floats, part: int, vertex: int, sign: float) -> None:
    """Add a vertex to what a part holds, or with sign -1 take it away."""
    for k in range(fill.shape[1]):
        fill[part, k] += sign * parts.load[parts.kind[part], vertex, k]


@kernel
def save_best(labelling: Labelling) -> None:
    """Copy the labelling at hand to `best`."""
    for v in range(len(labelling.label)):
        labelling.best[v] = labelling.label[v]

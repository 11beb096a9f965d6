"""A layered layout of a directed graph: sources on the left, edges point to the right.

Only edges that close a cycle point back. Longest-path layers, barycentre ordering, then heights: in
each layer as near as possible to the neighbours without overlap, which in the least-squares sense
is isotonic regression.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

SWEEPS = 12
BEND_HEIGHT = 16.0  # room that a passing edge takes in a layer

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where vertices are and edges pass. `y` is the middle of a vertex."""

    layer: list[int]  # per vertex
    y: list[float]  # per vertex
    bends: list[list[float]]  # per edge: its y in each layer that it passes, from left to right
    back: list[bool]  # per edge: closes a cycle, so it does not point to the right


def lay_out(height: Sequence[float], edges: Sequence[Edge], *, gap: float) -> Layout:
    """Lay out vertices of these heights with `gap` between them."""
    count = len(height)
    order, back = _break_cycles(count, edges)
    forward = [edge for edge, closes in zip(edges, back, strict=True) if not closes]
    layer = _assign_layers(order, forward)

    # Every layer an edge passes gets a bend, which is ordered and placed like a vertex.
    size, chains = [*height], list[list[int]]()
    at = [*layer]
    for (a, b), closes in zip(edges, back, strict=True):
        passed = [] if closes else range(layer[a] + 1, layer[b])
        chains.append([len(size) + i for i in range(len(passed))])
        size += [BEND_HEIGHT] * len(passed)
        at += passed
    left: list[list[int]] = [[] for _ in size]
    right: list[list[int]] = [[] for _ in size]
    for (a, b), chain, closes in zip(edges, chains, back, strict=True):
        if not closes:
            for u, v in zip([a, *chain], [*chain, b], strict=True):
                right[u].append(v)
                left[v].append(u)

    rows = _order_rows(at, left, right)
    y = _heights(rows, left, right, size, gap)
    return Layout(layer, y[:count], [[y[bend] for bend in chain] for chain in chains], back)


def assign_layers(count: int, edges: Sequence[Edge]) -> list[int]:
    """The layer of every vertex, as `lay_out` has it."""
    order, back = _break_cycles(count, edges)
    return _assign_layers(order, [e for e, closes in zip(edges, back, strict=True) if not closes])


def _break_cycles(count: int, edges: Sequence[Edge]) -> tuple[list[int], list[bool]]:
    """A topological order of the vertices, and the edges left out for it: depth-first search."""
    targets: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for e, (a, b) in enumerate(edges):
        targets[a].append((b, e))
    fed = {b for a, b in edges if a != b}
    done: list[int] = []
    open_, seen = set[int](), set[int]()
    back = [False] * len(edges)

    def visit(vertex: int) -> None:
        seen.add(vertex)
        open_.add(vertex)
        for target, e in targets[vertex]:
            back[e] = target in open_
            if target not in seen:
                visit(target)
        open_.remove(vertex)
        done.append(vertex)

    for vertex in sorted(range(count), key=lambda v: v in fed):
        if vertex not in seen:
            visit(vertex)
    return done[::-1], back


def _assign_layers(order: Sequence[int], edges: Sequence[Edge]) -> list[int]:
    layer = [0] * len(order)
    targets: dict[int, list[int]] = {}
    for a, b in edges:
        targets.setdefault(a, []).append(b)
    fed = {b for _, b in edges}
    for vertex in order:
        for target in targets.get(vertex, ()):
            layer[target] = max(layer[target], layer[vertex] + 1)
    for vertex in order:
        if vertex not in fed and vertex in targets:
            # A source comes right before what it feeds first.
            layer[vertex] = min(layer[target] for target in targets[vertex]) - 1
    alone = sorted(vertex for vertex in order if vertex not in fed and vertex not in targets)
    columns = max(max(layer, default=0) + 1, math.ceil(math.sqrt(len(alone))))
    for i, vertex in enumerate(alone):
        layer[vertex] = i % columns
    return layer


def _order_rows(
    at: Sequence[int], left: Sequence[list[int]], right: Sequence[list[int]]
) -> list[list[int]]:
    """Vertices of each layer from top to bottom, with the fewest crossings the sweeps find."""
    rows: list[list[int]] = [[] for _ in range(max(at, default=0) + 1)]
    loose_last = sorted(range(len(at)), key=lambda v: not (left[v] or right[v]))
    for vertex in loose_last:
        rows[at[vertex]].append(vertex)
    best, fewest = rows, _crossings(rows, right)
    for sweep in range(SWEEPS):
        side = left if sweep % 2 == 0 else right
        rows = [[*row] for row in rows]
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            place = {v: i for other in rows for i, v in enumerate(other)}
            row.sort(key=lambda v: _mean([float(place[w]) for w in side[v]], float(place[v])))
        crossings = _crossings(rows, right)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _crossings(rows: Sequence[Sequence[int]], right: Sequence[Sequence[int]]) -> int:
    place = {v: i for row in rows for i, v in enumerate(row)}
    total = 0
    for row in rows:
        ends = [sorted(place[w] for w in right[v]) for v in row]
        passed: list[int] = []
        for end in ends:
            total += sum(other > mine for mine in end for other in passed)
            passed += end
    return total


def _heights(
    rows: Sequence[Sequence[int]],
    left: Sequence[list[int]],
    right: Sequence[list[int]],
    size: Sequence[float],
    gap: float,
) -> list[float]:
    y = [0.0] * len(size)
    for row in rows:
        for vertex, at in zip(
            row, _spread([0.0] * len(row), [size[v] for v in row], gap), strict=True
        ):
            y[vertex] = at
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            wanted = [_mean([y[w] for w in (*left[v], *right[v])], y[v]) for v in row]
            for vertex, at in zip(row, _spread(wanted, [size[v] for v in row], gap), strict=True):
                y[vertex] = at
    return y


def _spread(wanted: Sequence[float], size: Sequence[float], gap: float) -> list[float]:
    """The places nearest to those wanted with `gap` between: pool adjacent violators."""
    offset = [0.0]
    for above, below in pairwise(size):
        offset.append(offset[-1] + (above + below) / 2 + gap)
    pools: list[tuple[float, int]] = []  # mean, members
    for want, shift in zip(wanted, offset, strict=False):
        mean, members = want - shift, 1
        while pools and pools[-1][0] > mean:
            before, others = pools.pop()
            mean = (mean * members + before * others) / (members + others)
            members += others
        pools.append((mean, members))
    level = [mean for mean, members in pools for _ in range(members)]
    return [value + shift for value, shift in zip(level, offset, strict=False)]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise

"""Exact for symmetric instances: a program over connected pieces and the ways to fill a node.

What a node holds falls into connected pieces; only pieces keep traffic, and whether pieces fit
together depends on nothing but how many tasks of each kind (equal in demand, pins, group and
memory) they have. So one program chooses how often each piece is cut out of the topology, and how
many nodes of a class offer which multiset of piece shapes. It knows neither tasks nor nodes by
name: the symmetry that defeats task-to-node models does not occur in it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Ints
from headrace.solve.proof.integer_program import IntegerProgram
from headrace.solve.slots import slots_fit
from headrace.solve.symmetry import Quotient, traffic_inside

Shape = tuple[int, ...]  # tasks of each kind


@dataclass(frozen=True, slots=True, eq=False)
class PieceModel:
    """The program, and what its variables mean.

    First how often each of P pieces is used, then how many nodes get each of F fills.
    """

    program: IntegerProgram
    pieces: Ints  # [P, C]
    piece_shape: Ints  # [P]     index into the shapes that fills are made of
    fill_class: Ints  # [F]      node class
    fill_shapes: Ints  # [F, S]  pieces of each shape that the fill has room for


def piece_model(
    q: Quotient, *, piece_limit: int = 4_000, shape_limit: int = 60, fill_limit: int = 4_000
) -> PieceModel | None:
    """The program for an instance; None where pieces, shapes or fills would exceed the limits."""
    kind = _kinds(q)
    room = _Room(q, kind)
    pieces = _connected_pieces(q, room, piece_limit)
    if pieces is None:
        return None
    shapes_of_pieces = [room.shape(piece) for piece in pieces]
    shapes = sorted(set(shapes_of_pieces))
    if len(shapes) > shape_limit:
        return None
    fills = [
        (j, fill)
        for j in range(len(q.nodes))
        for fill in _maximal_fills(room, j, shapes, fill_limit) or [None]
    ]
    if len(fills) > fill_limit or any(fill is None for _, fill in fills):
        return None
    index = {shape: s for s, shape in enumerate(shapes)}
    counts = np.array(pieces, dtype=np.int64).reshape(-1, len(q.count))
    piece_shape = np.array([index[shape] for shape in shapes_of_pieces], dtype=np.int64)
    fill_class = np.array([j for j, _ in fills], dtype=np.int64)
    fill_shapes = np.array([fill for _, fill in fills], dtype=np.int64).reshape(
        len(fills), len(shapes)
    )
    program = _program(q, counts, piece_shape, fill_class, fill_shapes)
    return PieceModel(program, counts, piece_shape, fill_class, fill_shapes)


def node_patterns(model: PieceModel, solution: Ints) -> list[tuple[int, Ints]]:
    """(node class, pattern) of every node that the solution uses; pieces fill nodes in order."""
    pieces = len(model.pieces)
    waiting: dict[int, list[int]] = defaultdict(list)
    for p in np.flatnonzero(solution[:pieces]):
        waiting[int(model.piece_shape[p])] += [int(p)] * int(solution[p])
    patterns: list[tuple[int, Ints]] = []
    for f in np.flatnonzero(solution[pieces:]):
        for _ in range(int(solution[pieces + f])):
            pattern = np.zeros(model.pieces.shape[1], dtype=np.int64)
            for s in np.flatnonzero(model.fill_shapes[f]):
                for _ in range(int(model.fill_shapes[f, s])):
                    if waiting[int(s)]:
                        pattern += model.pieces[waiting[int(s)].pop(0)]
            patterns.append((int(model.fill_class[f]), pattern))
    return patterns


def _kinds(q: Quotient) -> Ints:
    """For each class the number of its kind: those that ask a node for the same.

    A class that keeps its tasks apart is a kind of its own.
    """
    number: dict[tuple[object, ...], int] = {}
    return np.array(
        [
            number.setdefault(
                (
                    q.demand[:, c].tobytes(),
                    (q.most[:, c] > 0).tobytes(),
                    int(q.group[c]) if q.slots_matter else 0,
                    float(q.memory[c]) if q.slots_matter else 0.0,
                    c if q.apart[c] else -1,
                ),
                len(number),
            )
            for c in range(len(q.count))
        ],
        dtype=np.int64,
    )


class _Room:
    """Whether so many tasks of each kind fit on a node of a class, remembered."""

    def __init__(self, q: Quotient, kind: Ints) -> None:
        self.q = q
        self.kinds = int(kind.max()) + 1 if len(kind) else 0
        self.kind = kind.tolist()
        self.example = np.array([self.kind.index(k) for k in range(self.kinds)], dtype=np.int64)
        there_are = np.bincount(kind, q.count, self.kinds).astype(np.int64)[kind]
        self.most = np.where(q.most > 0, np.where(q.apart[None, :], 1, there_are[None, :]), 0)[
            :, self.example
        ]
        self.known: dict[tuple[int, Shape], bool] = {}

    def shape(self, piece: tuple[int, ...]) -> Shape:
        shape = [0] * self.kinds
        for c, tasks in enumerate(piece):
            shape[self.kind[c]] += tasks
        return tuple(shape)

    def fits(self, j: int, shape: Shape) -> bool:
        fits = self.known.get((j, shape))
        if fits is None:
            fits = self.known[j, shape] = self._fits(j, np.array(shape, dtype=np.int64))
        return fits

    def fits_somewhere(self, shape: Shape) -> bool:
        return any(self.fits(j, shape) for j in range(len(self.q.nodes)))

    def _fits(self, j: int, shape: Ints) -> bool:
        q, c = self.q, self.example
        if (shape > self.most[j]).any() or (shape @ q.demand[j, c] > q.room[j]).any():
            return False
        return not q.slots_matter or slots_fit(
            shape,
            q.group[c],
            q.memory[c],
            q.heap,
            int(q.slots[j]),
            np.zeros((3, int(shape.sum()) + 1)),
        )


def _connected_pieces(q: Quotient, room: _Room, limit: int) -> list[tuple[int, ...]] | None:
    """Every connected set of tasks that fits on some node, as counts per class; None above `limit`.

    Each connected set has a member without which it is still connected, so growing by one task at a
    time reaches all.
    """
    classes = len(q.count)
    near: list[set[int]] = [set() for _ in range(classes)]
    for a, b in zip(q.edge_a.tolist(), q.edge_b.tolist(), strict=True):
        near[a].add(b)
        near[b].add(a)
    count = q.count.tolist()
    single = [tuple(int(c == d) for d in range(classes)) for c in range(classes)]
    frontier = [piece for piece in single if room.fits_somewhere(room.shape(piece))]
    pieces = list(frontier)
    while frontier:
        grown: dict[tuple[int, ...], None] = {}  # keeps the order, which a set would not promise
        for piece in frontier:
            support = [c for c in range(classes) if piece[c]]
            reach = set[int]().union(*(near[c] for c in support))
            for c in sorted(reach):
                if piece[c] < count[c]:
                    grown[(*piece[:c], piece[c] + 1, *piece[c + 1 :])] = None
        frontier = [piece for piece in grown if room.fits_somewhere(room.shape(piece))]
        pieces += frontier
        if len(pieces) > limit:
            return None
    return pieces


def _maximal_fills(room: _Room, j: int, shapes: list[Shape], limit: int) -> list[list[int]] | None:
    """The multisets of shapes that fill one node of class j; None above `limit`.

    No further shape fits into any of them.
    """
    usable = [s for s, shape in enumerate(shapes) if room.fits(j, shape)]
    fills: list[list[int]] = []
    visits = 0

    def extend(position: int, total: Shape, fill: list[int]) -> bool:
        nonlocal visits
        visits += 1
        if visits > 20 * limit or len(fills) > limit:
            return False
        maximal = True
        for at, s in enumerate(usable):
            more = tuple(have + add for have, add in zip(total, shapes[s], strict=True))
            if room.fits(j, more):
                maximal = False
                if at >= position:
                    fill[s] += 1
                    if not extend(at, more, fill):
                        return False
                    fill[s] -= 1
        if maximal:
            fills.append(fill.copy())
        return True

    total = (0,) * room.kinds
    return fills if extend(0, total, [0] * len(shapes)) else None


def _program(
    q: Quotient, pieces: Ints, piece_shape: Ints, fill_class: Ints, fill_shapes: Ints
) -> IntegerProgram:
    """Most traffic kept, with each task in one piece, each piece in a fill, each fill on a node."""
    from scipy.sparse import coo_array

    classes, shapes, node_classes = len(q.count), fill_shapes.shape[1], len(q.nodes)
    p, c = np.nonzero(pieces)
    f, s = np.nonzero(fill_shapes)
    fills = np.arange(len(fill_class))
    row = np.concatenate([c, classes + piece_shape, classes + s, classes + shapes + fill_class])
    column = np.concatenate([p, np.arange(len(pieces)), len(pieces) + f, len(pieces) + fills])
    value = np.concatenate(
        [pieces[p, c], np.ones(len(pieces)), -fill_shapes[f, s], np.ones(len(fills))]
    )
    rows, columns = classes + shapes + node_classes, len(pieces) + len(fills)
    return IntegerProgram(
        gain=np.concatenate([traffic_inside(q, pieces), np.zeros(len(fills))]),
        matrix=coo_array((value.astype(np.float64), (row, column)), shape=(rows, columns)).tocsr(),
        low=np.concatenate([q.count, np.full(shapes + node_classes, -np.inf)]).astype(np.float64),
        high=np.concatenate([q.count, np.zeros(shapes), q.nodes]).astype(np.float64),
    )

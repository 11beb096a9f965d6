"""First plans: nodes filled one by one with connected pieces of the operator graph.

What is left then goes where it fits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.solve.chance import Rng, pick, random_share
from headrace.solve.compiled import NONE, ONE, ZERO, inlined, kernel
from headrace.solve.least_traffic.state import State, overload_after, put, room
from headrace.solve.least_traffic.terms import Terms

BY_TRAFFIC, TIGHTEST, ROOMIEST = 0, 1, 2  # how `settle` chooses among the nodes that have room
# What else counts there:
NEW_NODE = 0.1  # taken off for a node not yet in use: keeps the number of nodes low
TRAFFIC = 4.0  # for traffic kept, over what an average plan keeps for the size
SPACE = 0.1  # taken off for space that stays free, where traffic decides
BLUR = 1e-3  # of chance, among nodes that are alike

PIECES_BESIDE = 4  # further pieces tried on a node beside the first one
SHARE_AT_ONCE = 8  # a piece takes at most this fraction of a node's room for a class at once


class Recipe(NamedTuple):
    """One way to build a plan."""

    cut_weight: float  # traffic a node's piece loses to the unplaced rest, against traffic it keeps
    noise: float  # how much growth rates are blurred
    tries: int  # pieces tried per node
    partial: bool  # fill what is left of a node with pieces that do not fit as a whole
    manner: int  # of `settle`
    by_pieces: bool  # False: pack by size alone


class Bench(NamedTuple):
    """Scratch of a construction."""

    left: Ints  # [C]      tasks not yet placed
    frontier: Ints  # [C]
    marked: Bools  # [C]
    added: Ints  # [A, 2]  (class, tasks) put on the node at hand
    row: Ints  # [C]       best content of the node so far
    part: Ints  # [C]      connected part of the operator graph a class belongs to
    part_left: Ints  # [P] tasks of a part not yet placed


def new_bench(terms: Terms) -> Bench:
    """Scratch for constructions over these terms."""
    classes = len(terms.wanted)
    part = np.zeros(classes, np.int64)
    parts = label_parts(terms.start, terms.other, part, np.zeros(classes, np.int64))
    return Bench(
        left=np.zeros(classes, np.int64),
        frontier=np.zeros(classes, np.int64),
        marked=np.zeros(classes, np.bool_),
        added=np.zeros((256 * 64 + 64 * classes, 2), np.int64),
        row=np.zeros(classes, np.int64),
        part=part,
        part_left=np.zeros(parts, np.int64),
    )


@kernel
def label_parts(start: Ints, other: Ints, part: Ints, stack: Ints) -> int:
    """Number the connected parts of the class graph."""
    part[:] = -1
    parts = 0
    for c in range(part.shape[0]):
        if part[c] >= 0:
            continue
        part[c] = parts
        stack[0] = c
        height = 1
        while height > 0:
            height -= 1
            e = stack[height]
            for i in range(start[e], start[e + 1]):
                if part[other[i]] < 0:
                    part[other[i]] = parts
                    stack[height] = other[i]
                    height += 1
        parts += 1
    return parts


@kernel
def build_plan(
    terms: Terms,
    state: State,
    bench: Bench,
    recipe: Recipe,
    nodes_in_order: Ints,
    classes_in_order: Ints,
    rng: Rng,
) -> None:
    """Complete the plan in `state`; `bench.left` says what is missing.

    Nodes may end up overloaded; pins are never broken.
    """
    nodes, classes = state.x.shape
    left = bench.left
    bench.part_left[:] = 0
    for c in range(classes):
        bench.part_left[bench.part[c]] += left[c]
    density = traffic_per_size(terms)

    # What few nodes may take goes first, before others fill those nodes.
    for i in range(classes):
        c = classes_in_order[i]
        permitted = 0
        for n in range(nodes):
            if terms.allowed[n, c]:
                permitted += 1
        if permitted < nodes or (terms.apart[c] and 2 * left[c] > permitted):
            settle(terms, state, bench, c, recipe.manner, density, rng)

    if recipe.by_pieces:
        for i in range(nodes):
            fill_node(terms, state, bench, recipe, nodes_in_order[i], rng)
    for i in range(classes):
        settle(terms, state, bench, classes_in_order[i], recipe.manner, density, rng)


@kernel
def traffic_per_size(terms: Terms) -> float:
    """What a size of tasks sends to one node of many, on average."""
    total = 0.0
    mass = 0.0
    for c in range(terms.wanted.shape[0]):
        mass += terms.wanted[c] * terms.size[0, c]
        for i in range(terms.start[c], terms.start[c + 1]):
            total += terms.wanted[c] * terms.wanted[terms.other[i]] * terms.weight[i] / 2
    return total / max(mass, 1e-300) / max(1, terms.limit.shape[0])


@kernel
def settle(
    terms: Terms, state: State, bench: Bench, c: int, manner: int, density: float, rng: Rng
) -> None:
    """Place what is left of class c where it fits best; what fits nowhere overloads some node."""
    while bench.left[c] > 0:
        n, k = best_node(terms, state, c, bench.left[c], manner, density, rng)
        if n < 0:
            n, k = least_bad_node(terms, state, c, bench.left[c])
            if n < 0:
                return
        place(terms, state, bench, c, n, k)


@kernel
def best_node(
    terms: Terms, state: State, c: int, left: int, manner: int, density: float, rng: Rng
) -> tuple[int, int]:
    """The best node with room for tasks of class c, and for how many of them; NONE if none has."""
    best = -np.inf
    at = NONE
    many = ZERO
    for n in range(terms.limit.shape[0]):
        if not terms.allowed[n, c]:
            continue
        k = room_with_slots(terms, state, c, n, left)
        if k == 0:
            continue
        score = node_score(terms, state, c, n, k, manner, density) + BLUR * random_share(rng)
        if score > best:
            best, at, many = score, n, k
    return at, many


@inlined
def node_score(
    terms: Terms, state: State, c: int, n: int, k: int, manner: int, density: float
) -> float:
    """How well k tasks of class c do on node n."""
    y = terms.node_type[n]
    free = 0.0
    for r in range(terms.unit.shape[0]):
        if terms.limit[n, r] < np.inf:
            left = terms.limit[n, r] - state.used[n, r] - k * terms.demand[y, c, r]
            free += left * terms.unit[r]
    score = 0.0 if state.tasks[n] > 0 else -NEW_NODE
    if manner == BY_TRAFFIC:
        traffic = k * state.pull[n, c] / (k * terms.size[y, c])
        return score + (traffic / max(density, 1e-300) * TRAFFIC - SPACE * free)
    return score - free if manner == TIGHTEST else score + free


@kernel
def least_bad_node(terms: Terms, state: State, c: int, left: int) -> tuple[int, int]:
    """The node that tasks of class c overload least, and how many go there; NONE if none may."""
    nodes = terms.limit.shape[0]
    best = -np.inf
    at = NONE
    k = ONE if terms.apart[c] else max(ONE, left // max(ONE, nodes))
    for n in range(nodes):
        if terms.allowed[n, c] and not (terms.apart[c] and state.x[n, c] > 0):
            score = state.over[n] - overload_after(terms, state, n, c, k, c, ZERO)
            if score > best:
                best, at = score, n
    return at, k


@kernel
def fill_node(terms: Terms, state: State, bench: Bench, recipe: Recipe, n: int, rng: Rng) -> None:
    """Put the best of several pieces on node n, with further pieces that fit beside it."""
    classes = state.x.shape[1]
    left = bench.left
    best = -np.inf
    bench.row[:] = 0
    open_classes = 0
    for c in range(classes):
        if left[c] > 0 and terms.allowed[n, c]:
            open_classes += 1
    every = open_classes <= recipe.tries
    c = NONE
    for _ in range(min(open_classes, recipe.tries)):
        if every:
            c += 1
            while left[c] == 0 or not terms.allowed[n, c]:
                c += 1
        else:
            c = pick(rng, classes)
            while left[c] == 0 or not terms.allowed[n, c]:
                c = (c + 1) % classes
        end = grow_piece(terms, state, bench, n, c, recipe.noise, rng, ZERO)
        if end == 0:
            continue
        end = add_pieces(terms, state, bench, recipe, n, end, rng)
        value = worth(terms, state, bench, n, recipe.cut_weight)
        if value > best:
            best = value
            bench.row[:] = 0
            for i in range(end):
                bench.row[bench.added[i, 0]] += bench.added[i, 1]
        take_back(terms, state, bench, n, ZERO, end)
    for c in range(classes):
        if bench.row[c] > 0:
            place(terms, state, bench, c, n, bench.row[c])


@kernel
def grow_piece(
    terms: Terms,
    state: State,
    bench: Bench,
    n: int,
    seed: int,
    noise: float,
    rng: Rng,
    added: int,
) -> int:
    """Grow a connected piece from class `seed` on node n until nothing adjacent fits.

    What is put there is noted from `bench.added[added]` on; gives the end of the notes.
    """
    left, frontier, marked = bench.left, bench.frontier, bench.marked
    frontier[0] = seed
    marked[seed] = True
    width = 1
    c = seed
    while c >= 0:
        k = 0
        if added < bench.added.shape[0]:
            k = room_with_slots(terms, state, c, n, left[c])
            # A fraction of the room at a time: two adjacent classes then grow in step, which keeps
            # their product large.
            whole = room(terms, state, c, n, terms.wanted[c])
            k = min(k, max(1, whole // SHARE_AT_ONCE))
        if k == 0:
            for i in range(width):
                if frontier[i] == c:
                    width -= 1
                    frontier[i] = frontier[width]
                    break  # blocked: stays marked, leaves the frontier
        else:
            place(terms, state, bench, c, n, k)
            bench.added[added, 0] = c
            bench.added[added, 1] = k
            added += 1
            for i in range(terms.start[c], terms.start[c + 1]):
                e = terms.other[i]
                if not marked[e] and left[e] > 0:
                    marked[e] = True
                    frontier[width] = e
                    width += 1
        c = most_attracted(terms, state, bench, n, width, noise, rng)
    marked[:] = False
    return added


@inlined
def most_attracted(
    terms: Terms, state: State, bench: Bench, n: int, width: int, noise: float, rng: Rng
) -> int:
    """The class of the frontier with most traffic to node n for its size; NONE if none has any."""
    y = terms.node_type[n]
    c = NONE
    best = 0.0
    for i in range(width):
        e = bench.frontier[i]
        if bench.left[e] > 0 and state.pull[n, e] > 0.0:
            rate = state.pull[n, e] / terms.size[y, e]
            if noise > 0.0:
                rate *= 1.0 + noise * random_share(rng)
            if rate > best:
                best = rate
                c = e
    return c


@kernel
def add_pieces(
    terms: Terms, state: State, bench: Bench, recipe: Recipe, n: int, end: int, rng: Rng
) -> int:
    """Put pieces that need no other node beside what is on node n; gives the end of the notes."""
    classes = state.x.shape[1]
    for _ in range(PIECES_BESIDE):
        e = pick(rng, classes)
        looked = 0
        while looked < classes and (
            bench.left[e] == 0 or not terms.allowed[n, e] or room(terms, state, e, n, ONE) == 0
        ):
            e = (e + 1) % classes
            looked += 1
        if looked == classes:
            break
        further = grow_piece(terms, state, bench, n, e, recipe.noise, rng, end)
        if bench.part_left[bench.part[e]] > 0 and not recipe.partial:
            take_back(terms, state, bench, n, end, further)
        else:
            end = further
    return end


@kernel
def worth(terms: Terms, state: State, bench: Bench, n: int, cut_weight: float) -> float:
    """Kept traffic of node n less the weighted traffic to unplaced tasks, per size."""
    y = terms.node_type[n]
    value = 0.0
    size = 0.0
    for i in range(state.contents[n]):
        c = int(state.content[n, i])
        k = state.x[n, c]
        size += k * terms.size[y, c]
        value += k * (state.pull[n, c] - terms.own[c]) / 2
        lost = bench.left[c] * terms.own[c]
        for j in range(terms.start[c], terms.start[c + 1]):
            lost += bench.left[terms.other[j]] * terms.weight[j]
        value -= cut_weight * k * lost
    return value / size if size > 0.0 else -np.inf


@kernel
def take_back(terms: Terms, state: State, bench: Bench, n: int, first: int, last: int) -> None:
    """Undo what is noted from `first` to `last` for node n, the last one first."""
    for i in range(last - 1, first - 1, -1):
        place(terms, state, bench, bench.added[i, 0], n, -bench.added[i, 1])


@inlined
def place(terms: Terms, state: State, bench: Bench, c: int, n: int, k: int) -> None:
    """Put k of the tasks that are left of class c on node n (k < 0: take them back)."""
    put(terms, state, c, n, k)
    bench.left[c] -= k
    bench.part_left[bench.part[c]] -= k


@kernel
def room_with_slots(terms: Terms, state: State, c: int, n: int, k: int) -> int:
    """How many of k tasks of class c fit on node n with its slots; halved until they do."""
    if not terms.allowed[n, c]:
        return 0
    if terms.apart[c]:
        k = min(k, 1 - state.x[n, c])
    k = room(terms, state, c, n, k)
    if terms.slotted:
        while k > 0 and overload_after(terms, state, n, c, k, c, ZERO) > 0.0:
            k //= 2
    return k


def classes_by_size(terms: Terms, rng: np.random.Generator, noise: float) -> Ints:
    """Classes, largest task first; ties and, with noise, neighbours in random order."""
    largest = terms.size.max(axis=0) * (1 + noise * rng.random(len(terms.wanted)))
    return np.argsort(-largest, kind="stable").astype(np.int64)


def nodes_by_size(terms: Terms, rng: np.random.Generator, noise: float) -> Ints:
    """Nodes, roomiest first."""
    reach: Floats = (np.where(np.isfinite(terms.limit), terms.limit, 0.0) * terms.unit).sum(axis=1)
    reach = reach * (1 + noise * rng.random(len(reach)))
    return np.argsort(-reach, kind="stable").astype(np.int64)

"""First plans: nodes are filled one by one with connected pieces of the operator graph, the rest goes where it fits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.model.arrays import Bools, Floats, Ints
from headrace.solve.chance import pick, random_share
from headrace.solve.compiled import NONE, ONE, ZERO, kernel
from headrace.solve.least_traffic.fit import State, Terms, overload_after, put, room

BY_TRAFFIC, TIGHTEST, ROOMIEST = 0, 1, 2  # how `settle` chooses among the nodes that have room


class Recipe(NamedTuple):
    """One way to build a plan."""

    cut_weight: float  # traffic a node's piece loses to the unplaced rest, against traffic it keeps
    noise: float  # how much growth rates are blurred
    tries: int  # pieces tried per node
    partial: bool  # fill what is left of a node with pieces that do not fit as a whole
    manner: int  # of `settle`
    grown: bool  # False: pack by size alone


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
def room_with_slots(terms: Terms, state: State, c: int, n: int, k: int) -> int:
    """How many of k tasks of class c fit on node n, everything considered (halving where slots bind)."""
    if not terms.allowed[n, c]:
        return 0
    if terms.apart[c]:
        k = min(k, 1 - state.x[n, c])
    k = room(terms, state, c, n, k)
    if terms.slotted:
        while k > 0 and overload_after(terms, state, n, c, k, c, ZERO) > 0.0:
            k //= 2
    return k


@kernel
def fill(
    terms: Terms,
    state: State,
    bench: Bench,
    n: int,
    seed: int,
    noise: float,
    rng: NDArray[np.uint64],
    added: int,
) -> int:
    """Grow a connected piece from class `seed` on node n until nothing adjacent fits; gives the end of `bench.added`."""
    y = terms.node_type[n]
    left, frontier, marked = bench.left, bench.frontier, bench.marked
    frontier[0] = seed
    marked[seed] = True
    width = 1
    c = seed
    while c >= 0:
        k = 0
        if added < bench.added.shape[0]:
            k = room_with_slots(terms, state, c, n, left[c])
            # An eighth of the room at a time: two adjacent classes then grow in step, which keeps
            # their product large.
            whole = room(terms, state, c, n, terms.wanted[c])
            k = min(k, max(1, whole // 8))
        if k == 0:
            for i in range(width):
                if frontier[i] == c:
                    width -= 1
                    frontier[i] = frontier[width]
                    break  # blocked: stays marked, leaves the frontier
        else:
            put(terms, state, c, n, k)
            left[c] -= k
            bench.part_left[bench.part[c]] -= k
            bench.added[added, 0] = c
            bench.added[added, 1] = k
            added += 1
            for i in range(terms.start[c], terms.start[c + 1]):
                e = terms.other[i]
                if not marked[e] and left[e] > 0:
                    marked[e] = True
                    frontier[width] = e
                    width += 1
        c = -1
        best = 0.0
        for i in range(width):
            e = frontier[i]
            if left[e] > 0 and state.pull[n, e] > 0.0:
                rate = state.pull[n, e] / terms.size[y, e]
                if noise > 0.0:
                    rate *= 1.0 + noise * random_share(rng)
                if rate > best:
                    best = rate
                    c = e
    marked[:] = False
    return added


@kernel
def undo(terms: Terms, state: State, bench: Bench, n: int, first: int, last: int) -> None:
    """Take back what `fill` put on node n."""
    for i in range(last - 1, first - 1, -1):
        c, k = bench.added[i, 0], bench.added[i, 1]
        put(terms, state, c, n, -k)
        bench.left[c] += k
        bench.part_left[bench.part[c]] += k


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
def settle(
    terms: Terms,
    state: State,
    bench: Bench,
    c: int,
    manner: int,
    traffic_per_size: float,
    rng: NDArray[np.uint64],
) -> None:
    """Place the tasks of class c that are left wherever they fit best; what fits nowhere overloads the least bad node."""
    nodes = terms.limit.shape[0]
    left = bench.left
    while left[c] > 0:
        best = -np.inf
        at = NONE
        many = ZERO
        for n in range(nodes):
            if not terms.allowed[n, c]:
                continue
            k = room_with_slots(terms, state, c, n, left[c])
            if k == 0:
                continue
            y = terms.node_type[n]
            free = 0.0
            for r in range(terms.unit.shape[0]):
                if terms.limit[n, r] < np.inf:
                    free += (
                        terms.limit[n, r] - state.used[n, r] - k * terms.demand[y, c, r]
                    ) * terms.unit[r]
            # A small preference for open nodes keeps the number of nodes low.
            score = 0.0 if state.tasks[n] > 0 else -0.1
            if manner == BY_TRAFFIC:
                score += (
                    k
                    * state.pull[n, c]
                    / (k * terms.size[y, c])
                    / max(traffic_per_size, 1e-300)
                    * 4.0
                    - 0.1 * free
                )
            elif manner == TIGHTEST:
                score -= free
            else:
                score += free
            score += 1e-3 * random_share(rng)
            if score > best:
                best, at, many = score, n, k
        if at < 0:
            many = max(1, left[c] // max(1, nodes))
            for n in range(nodes):
                if terms.allowed[n, c] and not (terms.apart[c] and state.x[n, c] > 0):
                    k = 1 if terms.apart[c] else many
                    score = state.over[n] - overload_after(terms, state, n, c, k, c, ZERO)
                    if score > best:
                        best, at = score, n
            if at < 0:
                return
            if terms.apart[c]:
                many = 1
        put(terms, state, c, at, many)
        left[c] -= many
        bench.part_left[bench.part[c]] -= many


@kernel
def build(
    terms: Terms,
    state: State,
    bench: Bench,
    recipe: Recipe,
    nodes_in_order: Ints,
    classes_in_order: Ints,
    rng: NDArray[np.uint64],
) -> None:
    """Complete the plan in `state`; `bench.left` says what is missing. Nodes may end up overloaded, pins never broken."""
    nodes, classes = state.x.shape
    left = bench.left
    part_left = bench.part_left
    part_left[:] = 0
    for c in range(classes):
        part_left[bench.part[c]] += left[c]
    total = 0.0
    mass = 0.0
    for c in range(classes):
        mass += terms.wanted[c] * terms.size[0, c]
        for i in range(terms.start[c], terms.start[c + 1]):
            total += terms.wanted[c] * terms.wanted[terms.other[i]] * terms.weight[i] / 2
    density = total / max(mass, 1e-300) / max(1, nodes)

    # What few nodes may take goes first, before others fill those nodes.
    for i in range(classes):
        c = classes_in_order[i]
        permitted = 0
        for n in range(nodes):
            if terms.allowed[n, c]:
                permitted += 1
        if permitted < nodes or (terms.apart[c] and 2 * left[c] > permitted):
            settle(terms, state, bench, c, recipe.manner, density, rng)

    if recipe.grown:
        for i in range(nodes):
            n = nodes_in_order[i]
            grow_node(terms, state, bench, recipe, n, rng)
    for i in range(classes):
        settle(terms, state, bench, classes_in_order[i], recipe.manner, density, rng)


@kernel
def grow_node(
    terms: Terms, state: State, bench: Bench, recipe: Recipe, n: int, rng: NDArray[np.uint64]
) -> None:
    """Put the best of several grown pieces on node n, then further pieces that fit beside it."""
    classes = state.x.shape[1]
    left, part, part_left = bench.left, bench.part, bench.part_left
    best = -np.inf
    bench.row[:] = 0
    open_classes = 0
    for c in range(classes):
        if left[c] > 0 and terms.allowed[n, c]:
            open_classes += 1
    if open_classes == 0:
        return
    every = open_classes <= recipe.tries
    tries = min(open_classes, recipe.tries)
    c = NONE
    for _ in range(tries):
        if every:
            c += 1
            while left[c] == 0 or not terms.allowed[n, c]:
                c += 1
        else:
            c = pick(rng, classes)
            while left[c] == 0 or not terms.allowed[n, c]:
                c = (c + 1) % classes
        end = fill(terms, state, bench, n, c, recipe.noise, rng, ZERO)
        if end == 0:
            continue
        for _ in range(4):  # beside it, pieces that need no other node
            e = pick(rng, classes)
            looked = 0
            while looked < classes and (
                left[e] == 0 or not terms.allowed[n, e] or room(terms, state, e, n, ONE) == 0
            ):
                e = (e + 1) % classes
                looked += 1
            if looked == classes:
                break
            further = fill(terms, state, bench, n, e, recipe.noise, rng, end)
            if part_left[part[e]] > 0 and not recipe.partial:
                undo(terms, state, bench, n, end, further)
            else:
                end = further
        value = worth(terms, state, bench, n, recipe.cut_weight)
        if value > best:
            best = value
            bench.row[:] = 0
            for i in range(end):
                bench.row[bench.added[i, 0]] += bench.added[i, 1]
        undo(terms, state, bench, n, ZERO, end)
    for c in range(classes):
        k = bench.row[c]
        if k > 0:
            put(terms, state, c, n, k)
            left[c] -= k
            part_left[part[c]] -= k


def sizes_descending(terms: Terms, rng: np.random.Generator, noise: float) -> Ints:
    """Classes, largest task first; ties and, with noise, neighbours in random order."""
    largest = terms.size.max(axis=0) * (1 + noise * rng.random(len(terms.wanted)))
    return np.argsort(-largest, kind="stable").astype(np.int64)


def nodes_descending(terms: Terms, rng: np.random.Generator, noise: float) -> Ints:
    """Nodes, roomiest first."""
    reach: Floats = (np.where(np.isfinite(terms.limit), terms.limit, 0.0) * terms.unit).sum(axis=1)
    reach = reach * (1 + noise * rng.random(len(reach)))
    return np.argsort(-reach, kind="stable").astype(np.int64)

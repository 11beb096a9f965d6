"""Quadratic knapsack: the patterns of one node that are worth most, by branch and bound.

    maximise  price @ y + traffic that y keeps together     over the patterns y that the node has
    room for

Bound: after Caprara, Pisinger and Toth (Exact solution of the quadratic knapsack problem, 1999),
here for counts and several resources. Each pair's weight is split between its two ends. What a task
collects is a fractional knapsack over its neighbours in the room that it leaves; what all collect
is a fractional knapsack over the tasks. The split that makes the bound least is sought by
subgradient steps. Several resources count as one, their weighted sum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.compiled import compiled, lean
from headrace.solve.slots import slots_fit
from headrace.solve.symmetry import Quotient

EPS = 1e-12
SPLIT_ROUNDS = 150
NEVER = -1e300


class Node(NamedTuple):
    """One node of a class, and what it may hold: C classes, K resources."""

    weight: Floats  # [C, C]  between one task and one other task
    most: Ints  # [C]         tasks of a class that the node may hold
    demand: Floats  # [C, K]
    room: Floats  # [K]
    size: Floats  # [C]       demands as one number, positive
    total_size: float  # sizes of a pattern that fits never add up to more
    group: Ints  # [C]
    memory: Floats  # [C]
    heap: Floats  # [G]
    slots: int
    slots_matter: bool
    work: Floats  # [3, tasks]  scratch for counting slots


class Search(NamedTuple):
    """A search under way, so that it can pause: by depth the choices made, what is left, and which count is tried."""

    depth: Ints  # [1]         -1 when all is searched
    opened: Ints  # [1]        1 if the node at this depth has not been looked at
    nodes: Ints  # [1]         visited so far
    floor: Floats  # [1]       only patterns worth more are of interest
    upper: Floats  # [1]       no pattern is worth more
    split: Floats  # [C, C]    part of a pair's weight that its first end collects
    near: Ints  # [C, C]       neighbours by falling split for their size
    degree: Ints  # [C]
    pattern: Ints  # [C]
    branch: Ints  # [D]        class that is decided
    tasks: Ints  # [D]         how many of it
    worth: Floats  # [D]
    free_size: Floats  # [D]
    free: Floats  # [D, K]
    gain: Floats  # [D, C]     what one more task adds
    left: Ints  # [D, C]       tasks that may still be added
    order: Ints  # [D, C]      classes by falling value for their size
    value: Floats  # [C]       what one task of a class collects at most
    ratio: Floats  # [C]       the same for its size


def sizes(q: Quotient, j: int) -> tuple[Floats, float]:
    """One positive size per class [C] for all resources, and what the sizes of a pattern that fits a node of class j never exceed."""
    # A resource counts as much as it is scarce in the whole cluster: a plenty one tells nothing
    # about what fits.
    asked = (q.demand[j] * q.count[:, None]).sum(axis=0)
    scarcity = asked / np.maximum((q.room * q.nodes[:, None]).sum(axis=0), EPS)
    scale = (scarcity / max(scarcity.max(initial=0.0), EPS)) ** 4 / np.maximum(q.room[j], EPS)
    size = q.demand[j] @ scale
    total = float(np.maximum(q.room[j], 0.0) @ scale)
    least = 1e-6 * max(total, EPS)
    total += float((np.maximum(least - size, 0.0) * q.most[j]).sum())
    return np.maximum(size, least), total


def node_of(q: Quotient, weight: Floats, j: int) -> Node:
    """The knapsack of one node of class j."""
    size, total_size = sizes(q, j)
    return Node(
        weight=weight,
        most=q.most[j],
        demand=np.ascontiguousarray(q.demand[j]),
        room=q.room[j],
        size=size,
        total_size=total_size,
        group=q.group,
        memory=q.memory,
        heap=q.heap,
        slots=int(q.slots[j]),
        slots_matter=q.slots_matter,
        work=np.zeros((3, int(q.most[j].sum()) + 1)),
    )


def open_search(node: Node, price: Floats, floor: float) -> Search:
    """A search for the patterns worth more than `floor`."""
    classes, resources = node.demand.shape
    depth = classes + 2
    usable = node.most > 0
    linked = (node.weight > 0) & usable[:, None] & usable[None, :]
    search = Search(
        depth=np.zeros(1, dtype=np.int64),
        opened=np.ones(1, dtype=np.int64),
        nodes=np.zeros(1, dtype=np.int64),
        floor=np.array([floor]),
        upper=np.array([np.inf]),
        split=node.weight / 2,
        near=np.argsort(~linked, axis=1, kind="stable"),
        degree=linked.sum(axis=1),
        pattern=np.zeros(classes, dtype=np.int64),
        branch=np.zeros(depth, dtype=np.int64),
        tasks=np.zeros(depth, dtype=np.int64),
        worth=np.zeros(depth),
        free_size=np.zeros(depth),
        free=np.zeros((depth, resources)),
        gain=np.zeros((depth, classes)),
        left=np.zeros((depth, classes), dtype=np.int64),
        order=np.tile(np.arange(classes), (depth, 1)),
        value=np.zeros(classes),
        ratio=np.zeros(classes),
    )
    search.gain[0] = price
    search.left[0] = node.most
    search.free[0] = node.room
    search.free_size[0] = node.total_size
    search.upper[0] = optimise_split(node, search, SPLIT_ROUNDS)
    return search


@lean
def advance(
    node: Node, search: Search, every: bool, found: Ints, worth_found: Floats, node_limit: int
) -> int:
    """Search on for so many nodes; writes patterns worth more than the floor into `found` and returns how many there were.

    With `every`, all such patterns are written, and the search pauses when `found` is full.
    Without, the floor rises to the best pattern yet, and `found` keeps the latest. Ends with
    search.depth == -1.
    """
    hits, most_found = 0, len(found)
    last = search.nodes[0] + node_limit
    depth = search.depth[0]
    opened = search.opened[0] == 1
    while depth >= 0:
        if opened:
            if search.nodes[0] >= last or (every and hits == most_found):
                break
            search.nodes[0] += 1
            opened = False
            if not look(node, search, depth):
                depth -= 1
                continue
        c = search.branch[depth]
        search.tasks[depth] -= 1
        n = search.tasks[depth]
        if n < 0:
            depth -= 1
            continue
        search.pattern[c] = n
        if not descend(node, search, depth):
            continue
        if (
            n > 0
            and node.slots_matter
            and not slots_fit(
                search.pattern, node.group, node.memory, node.heap, node.slots, node.work
            )
        ):
            continue
        depth += 1
        opened = True
        if n > 0 and search.worth[depth] > search.floor[0]:
            for d in range(len(search.pattern)):
                found[hits % most_found, d] = search.pattern[d]
            worth_found[hits % most_found] = search.worth[depth]
            hits += 1
            if not every:
                search.floor[0] = search.worth[depth]
    search.depth[0] = depth
    search.opened[0] = 1 if opened else 0
    return hits


@lean
def look(node: Node, search: Search, depth: int) -> bool:
    """Whether something worth more than the floor may lie below; sets which class to decide next."""
    gain, left, order = search.gain[depth], search.left[depth], search.order[depth]
    room = float(search.free_size[depth])
    more = collect(
        gain,
        left,
        search.split,
        search.near,
        search.degree,
        node.size,
        room,
        search.value,
        search.ratio,
        order,
    )
    if search.worth[depth] + more <= search.floor[0]:
        return False
    c = costliest_to_leave_out(search.value, left, order, node.size, room)
    search.branch[depth] = c
    if c >= 0:
        search.tasks[depth] = left[c] + 1
    return c >= 0


@lean
def descend(node: Node, search: Search, depth: int) -> bool:
    """Set up the next depth for the count that is tried at this one; False if its tasks do not fit."""
    child = depth + 1
    c, n = search.branch[depth], search.tasks[depth]
    classes, resources = node.demand.shape
    for k in range(resources):
        search.free[child, k] = search.free[depth, k] - n * node.demand[c, k]
        if n > 0 and search.free[child, k] < 0.0:
            return False
    search.worth[child] = (
        search.worth[depth] + n * search.gain[depth, c] + node.weight[c, c] * n * (n - 1) / 2
    )
    search.free_size[child] = max(search.free_size[depth] - n * node.size[c], 0.0)
    for d in range(classes):
        search.order[child, d] = search.order[depth, d]
        search.gain[child, d] = search.gain[depth, d] + n * node.weight[c, d]
        tasks = search.left[depth, d]
        for k in range(resources):
            while tasks > 0 and tasks * node.demand[d, k] > search.free[child, k]:
                tasks -= 1
        search.left[child, d] = tasks
    search.left[child, c] = 0
    return True


@lean
def collect(
    gain: Floats,
    left: Ints,
    split: Floats,
    near: Ints,
    degree: Ints,
    size: Floats,
    room: float,
    value: Floats,
    ratio: Floats,
    order: Ints,
) -> float:
    """Upper bound on what `left` tasks of each class can add in the room.

    Leaves behind the value that one task of a class collects at most, and the classes in the order
    of value for size.
    """
    classes = len(gain)
    for c in range(classes):
        if left[c] == 0:
            value[c] = NEVER
            continue
        free = room - size[c]
        total = gain[c]
        for k in range(degree[c]):
            d = near[c, k]
            tasks = left[d] - (1 if d == c else 0)
            if tasks <= 0:
                continue
            needed = tasks * size[d]
            if needed <= free:
                total += tasks * split[c, d]
                free -= needed
            elif size[c] + size[d] <= room + EPS:  # else the two never meet here
                total += split[c, d] * max(free, 0.0) / size[d]
                break
        value[c] = total
    for c in range(classes):
        ratio[c] = value[c] / size[c]
    for k in range(1, classes):  # insertion sort: the parent's order is nearly right
        c = order[k]
        m = k
        while m > 0 and ratio[order[m - 1]] < ratio[c]:
            order[m] = order[m - 1]
            m -= 1
        order[m] = c
    total = 0.0
    free = room
    for k in range(classes):
        c = order[k]
        if value[c] <= 0.0:
            break
        needed = left[c] * size[c]
        if needed > free:
            total += float(value[c] * free / size[c])
            break
        total += float(left[c] * value[c])
        free -= needed
    return total


@lean
def costliest_to_leave_out(
    value: Floats, left: Ints, order: Ints, size: Floats, room: float
) -> int:
    """The class without which the bound falls most, so that one of its two sides is soon cut off; -1 if nothing is left."""
    price_of_room = 0.0
    free = room
    for c in order:
        if value[c] <= 0.0:
            break
        free -= left[c] * size[c]
        if free < 0.0:
            price_of_room = value[c] / size[c]
            break
    best, chosen = -np.inf, -1
    for c in order:
        if left[c] > 0 and (value[c] - price_of_room * size[c]) * left[c] > best:
            best = (value[c] - price_of_room * size[c]) * left[c]
            chosen = c
    return chosen


@lean
def sort_neighbours(split: Floats, size: Floats, near: Ints, degree: Ints) -> None:
    """Put the neighbours of every class in the order of falling split for their size."""
    for c in range(len(size)):
        for k in range(1, degree[c]):
            d = near[c, k]
            ratio = split[c, d] / size[d]
            m = k
            while m > 0 and split[c, near[c, m - 1]] / size[near[c, m - 1]] < ratio:
                near[c, m] = near[c, m - 1]
                m -= 1
            near[c, m] = d


@compiled
def optimise_split(node: Node, search: Search, rounds: int) -> float:
    """Lower the bound at the root by moving weight to the end that counts it less often; returns the best bound, sets its split."""
    weight, size, room = node.weight, node.size, node.total_size
    gain, left, order, degree = search.gain[0], search.left[0], search.order[0], search.degree
    split, near, target = search.split, search.near, search.floor[0]
    classes = len(gain)
    value, ratio = search.value, search.ratio
    counted = np.zeros((classes, classes))
    best = np.inf
    best_split = split.copy()
    pace = 1.0
    stale = 0
    for _ in range(rounds):
        sort_neighbours(split, size, near, degree)
        bound = collect(gain, left, split, near, degree, size, room, value, ratio, order)
        stale += 1
        if best - bound > 1e-9 * abs(bound):
            best = bound
            best_split[:] = split
            stale = 0
        if stale == 4:
            pace *= 0.5
            stale = 0
        if best <= target or pace < 0.02:
            break
        count_pairs(left, near, degree, size, room, value, order, counted)
        norm = 0.0
        for c in range(classes):
            for k in range(degree[c]):
                d = near[c, k]
                if d > c:
                    norm += (counted[c, d] - counted[d, c]) ** 2
        if norm <= EPS:
            break
        step = pace * max(bound - target, 1e-3 * abs(bound)) / norm
        for c in range(classes):
            for k in range(degree[c]):
                d = near[c, k]
                if d > c:
                    moved = split[c, d] - step * (counted[c, d] - counted[d, c])
                    split[c, d] = min(max(moved, 0.0), weight[c, d])
                    split[d, c] = weight[c, d] - split[c, d]
    split[:] = best_split
    sort_neighbours(split, size, near, degree)
    return best


@lean
def count_pairs(
    left: Ints,
    near: Ints,
    degree: Ints,
    size: Floats,
    room: float,
    value: Floats,
    order: Ints,
    counted: Floats,
) -> None:
    """counted[c, d] = how often the solution behind the bound counts a pair (c, d) at its end c."""
    counted[:] = 0.0
    outer = room
    for c in order:
        if value[c] <= 0.0 or outer <= 0.0:
            break
        share = min(float(left[c]), outer / size[c])
        outer -= share * size[c]
        free = room - size[c]
        for k in range(degree[c]):
            d = near[c, k]
            tasks = left[d] - (1 if d == c else 0)
            if tasks <= 0 or (tasks * size[d] > free and size[c] + size[d] > room + EPS):
                continue
            part = min(float(tasks), max(free, 0.0) / size[d])
            free -= part * size[d]
            counted[c, d] = share * part
            if part < tasks:
                break


@compiled
def grow(node: Node, price: Floats, found: Ints, worth_found: Floats) -> None:
    """Good patterns by greed and exchange: found[c], worth worth_found[c], grown from one task of class c (-inf if none fits).

    The node is filled even where a task costs more than it brings, for its neighbours may come
    after it; exchange sorts that out.
    """
    classes = len(price)
    weight, size = node.weight, node.size
    for seed in range(classes):
        worth_found[seed] = -np.inf
        if node.most[seed] == 0:
            continue
        pattern = found[seed]
        pattern[:] = 0
        gain = price.copy()
        free = node.room.copy()
        total = 0.0
        filling = True
        entering, leaving = seed, -1
        for _ in range(
            8 * classes
        ):  # exchanges always gain, the limit only guards against rounding
            if leaving >= 0:
                pattern[leaving] -= 1
                total -= gain[leaving] - weight[leaving, leaving]
                gain -= weight[leaving]
                free += node.demand[leaving]
            if entering >= 0:
                total += gain[entering]
                pattern[entering] += 1
                gain += weight[entering]
                free -= node.demand[entering]
            entering, leaving = -1, -1
            best = -np.inf if filling else 0.0
            for c in range(classes):
                if gain[c] > best * size[c] and can_exchange(node, pattern, free, c, -1):
                    best = gain[c] / size[c]
                    entering = c
            if entering >= 0:
                continue
            filling = False
            best = 1e-9 * abs(total)
            for d in range(classes):
                if pattern[d] == 0:
                    continue
                lost = gain[d] - weight[d, d]
                if -lost > best:
                    best = -lost
                    entering, leaving = -1, d
                for c in range(classes):
                    if (
                        c != d
                        and gain[c] - weight[c, d] - lost > best
                        and can_exchange(node, pattern, free, c, d)
                    ):
                        best = gain[c] - weight[c, d] - lost
                        entering, leaving = c, d
            if leaving < 0:
                break
        worth_found[seed] = total


@lean
def can_exchange(node: Node, pattern: Ints, free: Floats, entering: int, leaving: int) -> bool:
    """Whether one task may enter when one of class `leaving` (-1: none) goes."""
    if pattern[entering] >= node.most[entering]:
        return False
    for k in range(len(free)):
        room = free[k] + (node.demand[leaving, k] if leaving >= 0 else 0.0)
        if node.demand[entering, k] > room:
            return False
    if not node.slots_matter:
        return True
    pattern[entering] += 1
    if leaving >= 0:
        pattern[leaving] -= 1
    fits = slots_fit(pattern, node.group, node.memory, node.heap, node.slots, node.work)
    pattern[entering] -= 1
    if leaving >= 0:
        pattern[leaving] += 1
    return fits

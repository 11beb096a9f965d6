"""Quadratic knapsack: the patterns of one node that are worth most, by branch and bound.

    maximise  sum_c price[c] y[c] + sum_{pairs} weight y y     over the patterns y that one node has room for

Bound (Caprara, Pisinger and Toth 1999, for counts and in surrogate form for several resources): each pair's weight is split between its two
ends; what an end can collect is a fractional knapsack over its neighbours in the room it leaves, and the whole a fractional knapsack over what
the ends collect. The split is optimised by subgradient once per search.
"""

from __future__ import annotations

import numpy as np

from headrace.solve.instance import Bools, Floats, Ints
from headrace.solve.slots import compiled, slots_fit

import os
EPS = 1e-12
RULE=int(os.environ.get('RULE','0'))
LEVELS=int(os.environ.get('LEVELS','12'))
ROUNDS=int(os.environ.get('ROUNDS','10'))


@compiled
def collect(
    gain: Floats, left: Ints, split: Floats, near: Ints, degree: Ints, size: Floats, room: float, value: Floats, order: Ints
) -> float:
    """Upper bound on what the classes can still add in the room; leaves the value per task and its ratio order behind.

    left[c] tasks of class c may still be taken; near[c] lists its neighbours by falling split / size.
    """
    classes = len(gain)
    for c in range(classes):
        if left[c] == 0:
            value[c] = -1e300
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
    # Insertion sort: the order of the parent is nearly right.
    for k in range(1, classes):
        c = order[k]
        ratio = value[c] / size[c]
        m = k
        while m > 0 and value[order[m - 1]] / size[order[m - 1]] < ratio:
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
        if needed <= free:
            total += left[c] * value[c]
            free -= needed
        else:
            total += value[c] * free / size[c]
            break
    return total


@compiled
def sort_neighbours(split: Floats, weight: Floats, size: Floats, near: Ints, degree: Ints) -> None:
    """near[c, :degree[c]] = the neighbours of c by falling split / size."""
    classes = len(size)
    for c in range(classes):
        n = degree[c]
        for k in range(1, n):
            d = near[c, k]
            ratio = split[c, d] / size[d]
            m = k
            while m > 0 and split[c, near[c, m - 1]] / size[near[c, m - 1]] < ratio:
                near[c, m] = near[c, m - 1]
                m -= 1
            near[c, m] = d


@compiled
def optimise_split(
    gain: Floats, left: Ints, weight: Floats, split: Floats, near: Ints, degree: Ints, size: Floats, room: float, target: float, rounds: int
) -> float:
    """Improve the split by subgradient steps; returns the best bound, whose split is the one left behind."""
    classes = len(gain)
    value = np.zeros(classes)
    order = np.arange(classes)
    best = np.inf
    best_split = split.copy()
    taken = np.zeros((classes, classes))
    pace = 1.0
    stale = 0
    for _ in range(rounds):
        sort_neighbours(split, weight, size, near, degree)
        bound = collect(gain, left, split, near, degree, size, room, value, order)
        if best - bound > 1e-9 * abs(bound):
            best = bound
            best_split[:] = split
            stale = 0
        else:
            stale += 1
            if stale >= 4:
                pace *= 0.5
                stale = 0
        if best <= target or pace < 0.02:
            break
        # taken[c, d]: how often the bound's solution counts a pair at the end c
        taken[:] = 0.0
        free_outer = room
        for k in range(classes):
            c = order[k]
            if value[c] <= 0.0 or free_outer <= 0.0:
                break
            share = min(float(left[c]), free_outer / size[c])
            free_outer -= share * size[c]
            free = room - size[c]
            for m in range(degree[c]):
                d = near[c, m]
                tasks = left[d] - (1 if d == c else 0)
                if tasks <= 0 or free <= 0.0 or (tasks * size[d] > free and size[c] + size[d] > room + EPS):
                    continue
                part = min(float(tasks), free / size[d])
                free -= part * size[d]
                taken[c, d] = share * part
                if part < tasks:
                    break
        norm = 0.0
        for c in range(classes):
            for m in range(degree[c]):
                d = near[c, m]
                if d > c:
                    difference = taken[c, d] - taken[d, c]
                    norm += difference * difference
        if norm <= EPS:
            break
        step = pace * max(bound - target, 1e-3 * abs(bound)) / norm
        for c in range(classes):
            for m in range(degree[c]):
                d = near[c, m]
                if d > c:
                    moved = split[c, d] - step * (taken[c, d] - taken[d, c])
                    moved = min(max(moved, 0.0), weight[c, d])
                    split[c, d] = moved
                    split[d, c] = weight[c, d] - moved
    split[:] = best_split
    sort_neighbours(split, weight, size, near, degree)
    return best


@compiled
def search(
    price: Floats,
    weight: Floats,
    most: Ints,
    demand: Floats,
    room: Floats,
    apart: Bools,
    group: Ints,
    memory: Floats,
    heap: Floats,
    slots: int,
    slots_matter: bool,
    size: Floats,
    total_size: float,
    floor: float,
    enumerate_all: bool,
    found: Ints,
    found_value: Floats,
    node_limit: int,
) -> tuple[int, float, int, bool]:
    """Patterns worth more than `floor`; (how many found, upper bound on the best, nodes visited, whether all was searched).

    With enumerate_all every such pattern goes into `found` (and the search stops when it is full); else only ever better ones, and
    `found` is a ring that holds the last.
    """
    classes, resources = len(price), len(room)
    ring = len(found)
    near = np.zeros((classes, classes), np.int64)
    degree = np.zeros(classes, np.int64)
    split = np.zeros((classes, classes))
    for c in range(classes):
        if most[c] == 0:
            continue
        for d in range(classes):
            if weight[c, d] > 0.0 and most[d] > 0:
                near[c, degree[c]] = d
                degree[c] += 1
                split[c, d] = weight[c, d] / 2
    depth_limit = classes + 1
    gain = np.zeros((depth_limit + 1, classes))
    left = np.zeros((depth_limit + 1, classes), np.int64)
    order = np.zeros((depth_limit + 1, classes), np.int64)
    free = np.zeros((depth_limit + 1, resources))
    free_size = np.zeros(depth_limit + 1)
    worth = np.zeros(depth_limit + 1)
    branch = np.zeros(depth_limit + 1, np.int64)
    tasks = np.zeros(depth_limit + 1, np.int64)
    value = np.zeros(classes)
    pattern = np.zeros(classes, np.int64)

    gain[0] = price
    left[0] = most
    order[0] = np.arange(classes)
    free[0] = room
    free_size[0] = total_size
    levels = min(classes, LEVELS)
    splits = np.zeros((levels + 1, classes, classes))
    nears = np.zeros((levels + 1, classes, classes), np.int64)
    root = optimise_split(price, most, weight, split, near, degree, size, total_size, floor, 150)
    splits[0] = split
    nears[0] = near
    if root <= floor:
        return 0, root, 1, True
    best = floor
    hits = 0
    nodes = 0
    depth = 0
    opened = True
    while depth >= 0:
        if opened:
            nodes += 1
            if nodes > node_limit:
                return hits, root, nodes, False
            level = min(max(depth - 1, 0), levels)
            bound = worth[depth] + collect(
                gain[depth], left[depth], splits[level], nears[level], degree, size, free_size[depth], value, order[depth]
            )
            if bound > best and 0 < depth <= levels:
                splits[depth] = splits[level]
                nears[depth] = nears[level]
                bound = worth[depth] + optimise_split(
                    gain[depth], left[depth], weight, splits[depth], nears[depth], degree, size, free_size[depth], best - worth[depth], ROUNDS
                )
                if bound > best:
                    collect(gain[depth], left[depth], splits[depth], nears[depth], degree, size, free_size[depth], value, order[depth])
            if bound <= best:
                depth -= 1
                opened = False
                continue
            # Take the class that adds most for its size.
            c = order[depth, 0]
            if RULE == 1:
                top = -1e300
                for k in range(classes):
                    d = order[depth, k]
                    if left[depth, d] > 0 and value[d] * left[depth, d] > top:
                        top = value[d] * left[depth, d]
                        c = d
            elif RULE == 3:
                fr = free_size[depth]
                ratio = 0.0
                for k in range(classes):
                    d = order[depth, k]
                    if value[d] <= 0.0:
                        break
                    fr -= left[depth, d] * size[d]
                    if fr < 0.0:
                        ratio = value[d] / size[d]
                        break
                top = -1e300
                for k in range(classes):
                    d = order[depth, k]
                    if left[depth, d] > 0 and (value[d] - ratio * size[d]) * left[depth, d] > top:
                        top = (value[d] - ratio * size[d]) * left[depth, d]
                        c = d
            elif RULE == 4:
                top = -1e300
                for k in range(classes):
                    d = order[depth, k]
                    if left[depth, d] > 0 and gain[depth, d] > top:
                        top = gain[depth, d]
                        c = d
            if left[depth, c] == 0:
                depth -= 1
                opened = False
                continue
            branch[depth] = c
            tasks[depth] = left[depth, c] + 1
            opened = False
        c = branch[depth]
        tasks[depth] -= 1
        n = tasks[depth]
        if n < 0:
            depth -= 1
            continue
        # child: exactly n tasks of class c
        child = depth + 1
        fits = True
        for k in range(resources):
            free[child, k] = free[depth, k] - n * demand[c, k]
            if free[child, k] < 0.0:
                fits = False
        if not fits:
            continue
        pattern[c] = n
        if n > 0 and slots_matter and not slots_fit(pattern, group, memory, heap, slots):
            continue
        free_size[child] = max(free_size[depth] - n * size[c], 0.0)
        worth[child] = worth[depth] + n * gain[depth, c] + weight[c, c] * n * (n - 1) / 2
        if n > 0 and worth[child] > best:
            at = hits % ring
            found[at] = pattern
            found_value[at] = worth[child]
            hits += 1
            if enumerate_all:
                if hits == ring:
                    return hits, root, nodes, False
            else:
                best = worth[child]
        order[child] = order[depth]
        for d in range(classes):
            gain[child, d] = gain[depth, d] + n * weight[c, d]
            allowed = left[depth, d]
            if allowed > 0:
                for k in range(resources):
                    while allowed > 0 and allowed * demand[d, k] > free[child, k]:
                        allowed -= 1
            left[child, d] = allowed
        left[child, c] = 0
        depth = child
        opened = True
    return hits, (root if enumerate_all else best), nodes, True


@compiled
def grow(
    price: Floats,
    weight: Floats,
    most: Ints,
    demand: Floats,
    room: Floats,
    group: Ints,
    memory: Floats,
    heap: Floats,
    slots: int,
    slots_matter: bool,
    size: Floats,
    found: Ints,
    found_value: Floats,
) -> None:
    """Good patterns by greed and exchange, one from each class as a seed: found[c], worth found_value[c] (-inf if none)."""
    classes, resources = len(price), len(room)
    for seed in range(classes):
        found_value[seed] = -np.inf
        if most[seed] == 0:
            continue
        pattern = found[seed]
        pattern[:] = 0
        gain = price.copy()
        free = room.copy()
        total = 0.0
        entering, leaving = seed, -1
        for _ in range(8 * classes):
            if leaving >= 0:
                pattern[leaving] -= 1
                total -= gain[leaving] - weight[leaving, leaving]
                gain -= weight[leaving]
                free += demand[leaving]
            if entering >= 0:
                total += gain[entering]
                pattern[entering] += 1
                gain += weight[entering]
                free -= demand[entering]
            best = 1e-9
            entering, leaving = -1, -1
            best_add = 0.0
            for c in range(classes):
                if gain[c] <= 0.0 or pattern[c] >= most[c] or gain[c] / size[c] <= best_add:
                    continue
                fits = True
                for k in range(resources):
                    if demand[c, k] > free[k]:
                        fits = False
                if fits and slots_matter:
                    pattern[c] += 1
                    fits = slots_fit(pattern, group, memory, heap, slots)
                    pattern[c] -= 1
                if fits:
                    best_add = gain[c] / size[c]
                    entering = c
            if entering >= 0:
                continue
            for d in range(classes):
                if pattern[d] == 0:
                    continue
                lost = gain[d] - weight[d, d]
                if -lost > best:
                    best = -lost
                    entering, leaving = -1, d
                for c in range(classes):
                    if c == d or pattern[c] >= most[c] or gain[c] - weight[c, d] - lost <= best:
                        continue
                    fits = True
                    for k in range(resources):
                        if demand[c, k] > free[k] + demand[d, k]:
                            fits = False
                    if fits and slots_matter:
                        pattern[c] += 1
                        pattern[d] -= 1
                        fits = slots_fit(pattern, group, memory, heap, slots)
                        pattern[c] -= 1
                        pattern[d] += 1
                    if fits:
                        best = gain[c] - weight[c, d] - lost
                        entering, leaving = c, d
            if leaving < 0:
                break
        found_value[seed] = total

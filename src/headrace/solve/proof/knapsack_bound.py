"""How much the tasks of one node can gain at most.

After Caprara, Pisinger and Toth (Exact solution of the quadratic knapsack problem, 1999), here for
counts and several resources, which count as one, their weighted sum. Each pair's weight is split
between its two ends. What a task collects is a fractional knapsack over its neighbours in the room
that it leaves; what all collect is a fractional knapsack over the tasks. The split that makes the
bound least is looked for by subgradient steps.
"""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.compiled import compiled, lean
from headrace.solve.proof.knapsack import EPS, Knapsack, KnapsackSearch

NEVER = -1e300  # value of a class of which no task is left
PATIENCE = 4  # rounds without progress before the steps are halved
SLOWEST = 0.02  # length of a step, against the first, at which to stop


@lean
def bound_gain(
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
    """The class without which the bound falls most; -1 if nothing is left.

    To decide it first cuts off one of its two sides soon.
    """
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
def optimise_split(knapsack: Knapsack, search: KnapsackSearch, rounds: int) -> float:
    """Lower the bound at the root by moving weight to the end that counts it less often.

    Gives the best bound and sets its split.
    """
    weight, size, room = knapsack.weight, knapsack.size, knapsack.total_size
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
        bound = bound_gain(gain, left, split, near, degree, size, room, value, ratio, order)
        stale += 1
        if best - bound > 1e-9 * abs(bound):
            best = bound
            best_split[:] = split
            stale = 0
        if stale == PATIENCE:
            pace *= 0.5
            stale = 0
        if best <= target or pace < SLOWEST:
            break
        count_pairs(left, near, degree, size, room, value, order, counted)
        norm = imbalance(near, degree, counted)
        if norm <= EPS:
            break
        step = pace * max(bound - target, 1e-3 * abs(bound)) / norm
        move_split(split, weight, near, degree, counted, step)
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


@lean
def imbalance(near: Ints, degree: Ints, counted: Floats) -> float:
    """Squares of how much more often pairs count at one end than at the other, added up."""
    total = 0.0
    for c in range(len(degree)):
        for k in range(degree[c]):
            d = near[c, k]
            if d > c:
                total += (counted[c, d] - counted[d, c]) ** 2
    return total


@lean
def move_split(
    split: Floats, weight: Floats, near: Ints, degree: Ints, counted: Floats, step: float
) -> None:
    """Move weight of every pair away from the end that counts it more often."""
    for c in range(len(degree)):
        for k in range(degree[c]):
            d = near[c, k]
            if d > c:
                moved = split[c, d] - step * (counted[c, d] - counted[d, c])
                split[c, d] = min(max(moved, 0.0), weight[c, d])
                split[d, c] = weight[c, d] - split[c, d]

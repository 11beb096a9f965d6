"""A lower bound on crossing traffic for instances of any size, in a second.

Prices on the tasks let every node choose for itself (Lagrangian relaxation of "each task once");
what the best node of a class can keep at these prices is bounded as in `knapsack`: each pair's
weight is split between its ends, and y tasks of a class collect at most y times a fractional
knapsack over their neighbours in the room that all y leave. As a function of y, made concave, these
sums are then shared out by a greedy fill of the node. Any prices and any split give a valid bound;
subgradient steps look for good ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.compiled import compiled, lean
from headrace.solve.instance import Instance
from headrace.solve.proof.integer_program import Budget
from headrace.solve.proof.knapsack import class_sizes
from headrace.solve.symmetry import Quotient, merge_node_classes, quotient, traffic_inside

WORK = 100_000_000  # additions and comparisons by default, about a second
FEWEST_ROUNDS, MOST_ROUNDS = 50, 3_000
MOST_NODE_CLASSES = 12  # beyond, similar ones are replaced by one that has the room of all
PATIENCE = 40  # rounds without progress before the steps become smaller
GRID = 24  # counts of a class at which its sum is evaluated


class Relaxation(NamedTuple):
    """The arrays of one instance: C classes, J node classes, D directed pairs of classes."""

    wanted: Ints  # [C]        tasks to place
    nodes: Ints  # [J]
    most: Ints  # [J, C]
    size: Floats  # [J, C]
    room: Floats  # [J]
    inside: Floats  # [C]      weight between two tasks of the class
    first: Ints  # [C + 1]     directed pairs of class c: first[c] .. first[c + 1]
    other: Ints  # [D]         the far end
    weight: Floats  # [D]
    back: Ints  # [D]          the same pair seen from the far end


class Point(NamedTuple):
    """The prices and the split that are tried, and what the nodes choose at them."""

    price: Floats  # [C]
    split: Floats  # [J, D]    share of the pair's weight that the near end collects
    order: Ints  # [J, D]      the pairs of each class by falling split for the far end's size
    used: Floats  # [C]        tasks that the nodes choose at these prices
    counted: Floats  # [J, D]  how often the nodes count a pair at its near end


def crossing_bound(
    instance: Instance, *, steps: int | None = None, deadline: Callable[[], bool] | None = None
) -> tuple[float, str]:
    """A bound that no feasible plan's crossing traffic is below, and its kind.

    The kind is `lagrangian`, or `trivial` where that finds nothing above 0. Where the steps or the
    deadline end the rounds early, the bound is weaker but still valid.
    """
    q = quotient(instance)
    total = float(traffic_inside(q, q.count[None])[0])
    bound = total - most_kept_at_all(q, steps=steps, deadline=deadline)
    return (bound, "lagrangian") if bound > 0.0 else (0.0, "trivial")


def most_kept_at_all(
    q: Quotient, *, steps: int | None = None, deadline: Callable[[], bool] | None = None
) -> float:
    """Traffic that no plan keeps more of inside nodes; between 0 and all there is."""
    total = float(traffic_inside(q, q.count[None])[0])
    if total <= 0.0 or not len(q.nodes):
        return total
    relaxation = _relaxation(few_node_classes(q))
    kept = _least_upper_bound(
        relaxation, total, Budget(_rounds(relaxation) if steps is None else steps, deadline)
    )
    return float(np.clip(kept + 1e-9 * total, 0.0, total))


def few_node_classes(q: Quotient) -> Quotient:
    """The instance with few node classes; nodes put together each get the most that one has."""
    classes = len(q.nodes)
    if classes <= MOST_NODE_CLASSES:
        return q
    by_room = np.lexsort((*q.room.T, q.most.sum(axis=1)))
    return merge_node_classes(q, np.array_split(by_room, MOST_NODE_CLASSES))


def _relaxation(q: Quotient) -> Relaxation:
    classes = len(q.count)
    own = q.edge_a == q.edge_b
    a, b, weight = q.edge_a[~own], q.edge_b[~own], q.edge_weight[~own]
    near, far = np.concatenate([a, b]), np.concatenate([b, a])
    order = np.lexsort((far, near))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    back = np.concatenate([place[len(a) :], place[: len(a)]])[order]
    inside = np.zeros(classes)
    inside[q.edge_a[own]] = q.edge_weight[own]
    measured = [class_sizes(q, j) for j in range(len(q.nodes))]
    return Relaxation(
        wanted=q.count,
        nodes=q.nodes,
        most=q.most,
        size=np.array([size for size, _ in measured]),
        room=np.array([room for _, room in measured]),
        inside=inside,
        first=np.searchsorted(near[order], np.arange(classes + 1)).astype(np.int64),
        other=far[order],
        weight=np.concatenate([weight, weight])[order],
        back=back,
    )


def _rounds(r: Relaxation) -> int:
    """As many rounds as the default work allows."""
    # A round looks at every neighbour of every grid point, and sorts.
    points = np.minimum(r.most, GRID)
    work = (points * (np.diff(r.first) + 10)).sum()
    return int(np.clip(WORK // max(int(work), 1), FEWEST_ROUNDS, MOST_ROUNDS))


def _least_upper_bound(r: Relaxation, total: float, budget: Budget) -> float:
    """The least upper bound on the traffic kept that the budget allows to find."""
    node_classes, pairs = len(r.nodes), len(r.other)
    point = Point(
        # All of it would let no node gain anything: the trivial bound.
        price=0.9 * _half_of_incident(r),
        split=np.tile(r.weight / 2, (node_classes, 1)),
        order=np.tile(np.arange(pairs), (node_classes, 1)),
        used=np.zeros(len(r.wanted)),
        counted=np.zeros((node_classes, pairs)),
    )
    best, best_price, best_split = np.inf, point.price.copy(), point.split.copy()
    ambition, stale = 0.1, 0
    while not budget.spent():
        budget.spend()
        value = evaluate(r, point)
        stale = 0 if value < best - 0.01 * total * ambition else stale + 1
        if value < best:
            best, best_price, best_split = value, point.price.copy(), point.split.copy()
        if stale == PATIENCE:
            stale = 0
            ambition /= 2
            point.price[:], point.split[:] = best_price, best_split
            if ambition < 1e-4:
                break
            continue
        step(r, point, value - best + ambition * max(best, 0.05 * total))
    return min(best, total)


def _half_of_incident(r: Relaxation) -> Floats:
    pairs = np.add.reduceat(np.append(r.weight * r.wanted[r.other], 0.0), r.first[:-1]) * (
        np.diff(r.first) > 0
    )
    return (pairs + r.inside * np.maximum(r.wanted - 1, 0)) / 2


def step(r: Relaxation, point: Point, hoped: float) -> None:
    """Move prices and split against their subgradients, to lower the bound by `hoped`."""
    excess = r.wanted - point.used
    norm = float(excess @ excess)
    if norm > 0:
        point.price[:] -= 0.5 * hoped / norm * excess
    lean = (point.counted - point.counted[:, r.back]) * r.nodes[:, None]
    norm = float((lean * lean).sum()) / 2
    if norm > 0:
        moved = point.split - 0.5 * hoped / norm * lean
        point.split[:] = np.clip(moved, 0.0, r.weight)


@compiled
def evaluate(r: Relaxation, point: Point) -> float:
    """Upper bound on the traffic kept at these prices; leaves behind what the nodes choose."""
    classes, node_classes = len(r.wanted), len(r.nodes)
    most_segments = classes * (GRID + 1)
    slope, tasks, of_class = (
        np.empty(most_segments),
        np.empty(most_segments),
        np.empty(most_segments, np.int64),
    )
    grid_y, grid_f = np.empty(GRID + 2), np.empty(GRID + 2)
    chosen = np.empty(classes)
    point.used[:] = 0.0
    total = 0.0
    for c in range(classes):
        total += point.price[c] * r.wanted[c]
    for j in range(node_classes):
        size, room = r.size[j], r.room[j]
        segments = 0
        for c in range(classes):
            if r.most[j, c] == 0:
                continue
            sort_pairs(point.split[j], point.order[j], r.first[c], r.first[c + 1], r.other, size)
            corners = concave_sum(r, point, j, c, grid_y, grid_f)
            for k in range(1, corners):
                tasks[segments] = grid_y[k] - grid_y[k - 1]
                slope[segments] = (
                    (grid_f[k] - grid_f[k - 1]) / tasks[segments] - point.price[c]
                ) / size[c]
                of_class[segments] = c
                segments += 1
        chosen[:] = 0.0
        free = room
        kept = 0.0
        for k in np.argsort(-slope[:segments]):
            if slope[k] <= 0.0 or free <= 0.0:
                break
            c = of_class[k]
            taken = min(tasks[k], free / size[c])
            kept += taken * slope[k] * size[c]
            free -= taken * size[c]
            chosen[c] += taken
        total += r.nodes[j] * kept
        for c in range(classes):
            point.used[c] += r.nodes[j] * chosen[c]
            count_neighbours(r, point, j, c, chosen[c])
    return total


@lean
def sort_pairs(
    split: Floats, order: Ints, first: int, last: int, other: Ints, size: Floats
) -> None:
    """Sort order[first:last] by falling split for the far end's size; it was nearly so before."""
    for k in range(first + 1, last):
        pair = order[k]
        ratio = split[pair] / size[other[pair]]
        m = k
        while m > first and split[order[m - 1]] / size[other[order[m - 1]]] < ratio:
            order[m] = order[m - 1]
            m -= 1
        order[m] = pair


@lean
def neighbours_fit(r: Relaxation, point: Point, j: int, c: int, room: float) -> float:
    """The most that one task of class c collects from neighbours that fit in the room."""
    size, most = r.size[j], r.most[j]
    free = room
    total = 0.0
    for k in range(r.first[c], r.first[c + 1]):
        pair = point.order[j, k]
        d = r.other[pair]
        needed = most[d] * size[d]
        if needed <= free:
            total += most[d] * point.split[j, pair]
            free -= needed
        else:
            total += point.split[j, pair] * max(free, 0.0) / size[d]
            break
    return total


@lean
def concave_sum(r: Relaxation, point: Point, j: int, c: int, grid_y: Floats, grid_f: Floats) -> int:
    """The number of corners of a concave function above what y tasks of class c collect."""
    most, size, room = r.most[j, c], r.size[j, c], r.room[j]
    points = min(most, GRID)
    grid_y[0], grid_f[0] = 0.0, 0.0
    corners = 1
    before = 0
    for k in range(1, points + 1):
        y = (most * k) // points
        # Between two grid points the room is taken that the fewer tasks leave: too much, never too
        # little.
        collected = r.inside[c] / 2 * (y - 1) + neighbours_fit(
            r, point, j, c, room - size * (before + 1)
        )
        before = y
        f = y * collected
        while corners > 1:
            rise = (grid_f[corners - 1] - grid_f[corners - 2]) * (y - grid_y[corners - 1])
            if (f - grid_f[corners - 1]) * (grid_y[corners - 1] - grid_y[corners - 2]) < rise:
                break
            corners -= 1
        grid_y[corners], grid_f[corners] = y, f
        corners += 1
    return corners


@lean
def count_neighbours(r: Relaxation, point: Point, j: int, c: int, chosen: float) -> None:
    """counted[j, pair] for the pairs of class c when so many of its tasks are chosen."""
    size, most = r.size[j], r.most[j]
    free = r.room[j] - size[c] * max(chosen, 1.0)
    for k in range(r.first[c], r.first[c + 1]):
        pair = point.order[j, k]
        d = r.other[pair]
        part = 0.0
        if chosen > 0.0 and free > 0.0:
            part = min(float(most[d]), free / size[d])
            free -= part * size[d]
        point.counted[j, pair] = chosen * part

"""The best patterns of a node by branch and bound, class by class, in steps that can pause."""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.compiled import lean
from headrace.solve.proof.knapsack import Knapsack, KnapsackSearch, has_slots
from headrace.solve.proof.knapsack_bound import bound_gain, costliest_to_leave_out, optimise_split

SPLIT_ROUNDS = 150


def start_search(knapsack: Knapsack, price: Floats, floor: float) -> KnapsackSearch:
    """A search for the patterns worth more than `floor`."""
    classes, resources = knapsack.demand.shape
    depth = classes + 2
    usable = knapsack.most > 0
    linked = (knapsack.weight > 0) & usable[:, None] & usable[None, :]
    search = KnapsackSearch(
        depth=np.zeros(1, dtype=np.int64),
        opened=np.ones(1, dtype=np.int64),
        nodes=np.zeros(1, dtype=np.int64),
        floor=np.array([floor]),
        upper=np.array([np.inf]),
        split=knapsack.weight / 2,
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
    search.left[0] = knapsack.most
    search.free[0] = knapsack.room
    search.free_size[0] = knapsack.total_size
    search.upper[0] = optimise_split(knapsack, search, SPLIT_ROUNDS)
    return search


@lean
def advance_search(
    knapsack: Knapsack,
    search: KnapsackSearch,
    every: bool,
    found: Ints,
    worth_found: Floats,
    node_limit: int,
) -> int:
    """Search on for so many nodes; gives how many patterns worth more than the floor it `found`.

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
            if not open_node(knapsack, search, depth):
                depth -= 1
                continue
        c = search.branch[depth]
        search.tasks[depth] -= 1
        n = search.tasks[depth]
        if n < 0:
            depth -= 1
            continue
        search.pattern[c] = n
        if not descend(knapsack, search, depth):
            continue
        if n > 0 and not has_slots(knapsack, search.pattern):
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
def open_node(knapsack: Knapsack, search: KnapsackSearch, depth: int) -> bool:
    """Choose the class to decide next; False if nothing below can be worth more than the floor."""
    gain, left, order = search.gain[depth], search.left[depth], search.order[depth]
    room = float(search.free_size[depth])
    more = bound_gain(
        gain,
        left,
        search.split,
        search.near,
        search.degree,
        knapsack.size,
        room,
        search.value,
        search.ratio,
        order,
    )
    if search.worth[depth] + more <= search.floor[0]:
        return False
    c = costliest_to_leave_out(search.value, left, order, knapsack.size, room)
    search.branch[depth] = c
    if c >= 0:
        search.tasks[depth] = left[c] + 1
    return c >= 0


@lean
def descend(knapsack: Knapsack, search: KnapsackSearch, depth: int) -> bool:
    """Set up the next depth for the count that is tried here; False if its tasks do not fit."""
    child = depth + 1
    c, n = search.branch[depth], search.tasks[depth]
    classes, resources = knapsack.demand.shape
    for k in range(resources):
        search.free[child, k] = search.free[depth, k] - n * knapsack.demand[c, k]
        if n > 0 and search.free[child, k] < 0.0:
            return False
    search.worth[child] = (
        search.worth[depth] + n * search.gain[depth, c] + knapsack.weight[c, c] * n * (n - 1) / 2
    )
    search.free_size[child] = max(search.free_size[depth] - n * knapsack.size[c], 0.0)
    for d in range(classes):
        search.order[child, d] = search.order[depth, d]
        search.gain[child, d] = search.gain[depth, d] + n * knapsack.weight[c, d]
        tasks = search.left[depth, d]
        for k in range(resources):
            while tasks > 0 and tasks * knapsack.demand[d, k] > search.free[child, k]:
                tasks -= 1
        search.left[child, d] = tasks
    search.left[child, c] = 0
    return True

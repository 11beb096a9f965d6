"""The last step of a search for few nodes, on small problems: an integer program that packs."""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.request import Request
from headrace.solve import highs
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.search import least_crossing_search

MOST_CELLS = 600  # classes x nodes, that take a fraction of a second
BRANCHES = 200  # of branch and bound: a number, so that answers do not vary with the clock


def drop_more_nodes(instance: Instance, x: Ints, request: Request) -> Ints:
    """Counts [C, N] on fewer nodes than x, where a program finds any; else x.

    The search takes one node away after another; the program looks at all of them at once.
    """
    used = int((x.sum(axis=0) > 0).sum())
    small = instance.allowed.size <= MOST_CELLS and request.steps is None
    if not small or used <= least_nodes(instance):
        return x
    fewer = pack_on_fewer(instance, used - 1)
    if fewer is None:
        return x
    # Rounding and the heaps of slots are not the program's: the search mends them.
    again = least_crossing_search(
        instance,
        starts=(fewer,),
        deadline=request.deadline,
        seed=request.seed,
        prefer="nodes",
    )
    return again.x if again is not None and again.nodes_used < used else x


def least_nodes(instance: Instance) -> int:
    """A number of nodes below which some resource is not enough, whichever nodes they are."""
    least = 1
    for k in range(instance.capacity.shape[1]):
        needed = float((instance.demand[:, :, k].min(axis=0) * instance.count).sum())
        room = np.cumsum(np.sort(instance.capacity[:, k])[::-1])
        least = max(least, int(np.searchsorted(room, needed * (1 - 1e-9))) + 1)
    return least


def pack_on_fewer(instance: Instance, most: int) -> Ints | None:
    """Counts on the fewest nodes, at most so many; None if there are none or they take too long.

    Variables are the tasks of a class on a node, whether a node is used, and a topology's slots
    on a node.
    """
    from scipy.sparse import coo_array

    classes, nodes = instance.allowed.shape
    groups = len(instance.heap)
    cell = np.arange(classes * nodes).reshape(classes, nodes)
    used = cell.size + np.arange(nodes)
    slot = cell.size + nodes + np.arange(groups * nodes).reshape(groups, nodes)
    entries: list[tuple[int, int, float]] = []
    low: list[float] = []
    high: list[float] = []

    def add_row(columns: Ints, weights: Floats, least: float, greatest: float) -> None:
        row = len(low)
        entries.extend((row, int(c), float(w)) for c, w in zip(columns, weights, strict=True))
        low.append(least)
        high.append(greatest)

    for c in range(classes):
        add_row(cell[c], np.ones(nodes), instance.count[c], instance.count[c])
    for n in range(nodes):
        for k in np.flatnonzero(np.isfinite(instance.capacity[n])):
            taken = instance.demand[instance.node_type[n], :, k]
            columns, room = np.append(cell[:, n], used[n]), -float(instance.capacity[n, k])
            add_row(columns, np.append(taken, room), -np.inf, 0.0)
        taken = np.append(np.ones(groups), -float(instance.slots[n]))
        add_row(np.append(slot[:, n], used[n]), taken, -np.inf, 0.0)
        for c in range(classes):  # a task needs a slot of its topology
            pair = np.array([cell[c, n], slot[instance.group[c], n]])
            add_row(pair, np.array([1.0, -float(instance.count[c])]), -np.inf, 0.0)
        for g in np.flatnonzero(np.isfinite(instance.heap)):
            own = np.flatnonzero(instance.group == g)
            taken = np.append(instance.memory[own], -float(instance.heap[g]))
            add_row(np.append(cell[own, n], slot[g, n]), taken, -np.inf, 0.0)
    add_row(used, np.ones(nodes), 0.0, most)
    row, column, weight = zip(*entries, strict=True)
    variables = cell.size + nodes + slot.size
    matrix = coo_array((weight, (row, column)), shape=(len(low), variables))
    greatest = np.where(instance.allowed, instance.count[:, None], 0)
    greatest = np.where(instance.apart[:, None], np.minimum(greatest, 1), greatest)
    cost = np.zeros(variables)
    cost[used] = 1.0
    limits = np.concatenate([greatest.ravel(), np.ones(nodes), np.tile(instance.slots, groups)])
    found = highs.solve_integer_program(
        cost,
        integrality=np.ones(variables),
        bounds=highs.bounds(np.zeros(variables), limits),
        constraints=highs.rows(matrix.tocsr(), np.array(low), np.array(high)),
        options={"node_limit": BRANCHES},
    )
    if found.x is None:
        return None
    return np.rint(found.x[: cell.size]).astype(np.int64).reshape(classes, nodes)

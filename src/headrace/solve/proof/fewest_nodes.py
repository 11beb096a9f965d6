"""The fewest nodes that hold all tasks: an integer program over counts of tasks on nodes."""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.instance import Instance
from headrace.solve.proof.integer_program import Budget, IntegerProgram, maximise


def least_nodes(instance: Instance) -> int:
    """A number of nodes below which some resource is not enough, whichever nodes they are."""
    least = 1
    for k in range(instance.capacity.shape[1]):
        needed = float((instance.demand[:, :, k].min(axis=0) * instance.count).sum())
        room = np.cumsum(np.sort(instance.capacity[:, k])[::-1])
        least = max(least, int(np.searchsorted(room, needed * (1 - 1e-9))) + 1)
    return least


def pack_on_fewest(instance: Instance, most: int, budget: Budget) -> Ints | None:
    """Counts [C, N] on the fewest nodes, at most so many; None where the budget finds none.

    Heaps hold their memory in all; whether tasks can be dealt out to them is not looked at.
    """
    solution = maximise(_packing(instance, most), budget, unit=1.0).solution
    shape = instance.allowed.shape
    return None if solution is None else solution[: instance.allowed.size].reshape(shape)


def _packing(instance: Instance, most: int) -> IntegerProgram:
    """Variables: a class's tasks on a node, whether a node is used, a topology's slots there."""
    from scipy.sparse import coo_array

    classes, nodes = instance.allowed.shape
    groups = len(instance.heap)
    cell = np.arange(classes * nodes).reshape(classes, nodes)
    used = cell.size + np.arange(nodes)
    slot = cell.size + nodes + np.arange(groups * nodes).reshape(groups, nodes)
    entries: list[tuple[int, int, float]] = []
    high: list[float] = []

    def add_row(columns: Ints, weights: Floats, greatest: float) -> None:
        entries.extend((len(high), int(c), float(w)) for c, w in zip(columns, weights, strict=True))
        high.append(greatest)

    for c in range(classes):
        add_row(cell[c], np.ones(nodes), instance.count[c])
    for n in range(nodes):
        add_row(used[[n]], np.ones(1), 1)
        for k in np.flatnonzero(np.isfinite(instance.capacity[n])):
            taken = np.append(
                instance.demand[instance.node_type[n], :, k], -instance.capacity[n, k]
            )
            add_row(np.append(cell[:, n], used[n]), taken, 0)
        add_row(np.append(slot[:, n], used[n]), np.append(np.ones(groups), -instance.slots[n]), 0)
        for c in range(classes):  # a task needs a slot of its topology
            fit = instance.count[c] if instance.allowed[c, n] else 0
            add_row(np.array([cell[c, n], slot[instance.group[c], n]]), np.array([1.0, -fit]), 0)
            if instance.apart[c]:
                add_row(cell[c, [n]], np.ones(1), 1)
        for g in np.flatnonzero(np.isfinite(instance.heap)):
            own = np.flatnonzero(instance.group == g)
            taken = np.append(instance.memory[own], -instance.heap[g])
            add_row(np.append(cell[own, n], slot[g, n]), taken, 0)
    add_row(used, np.ones(nodes), most)
    row, column, weight = zip(*entries, strict=True)
    variables = cell.size + nodes + slot.size
    low = np.full(len(high), -np.inf)
    low[:classes] = instance.count  # every task has a place
    gain = np.zeros(variables)
    gain[used] = -1.0
    matrix = coo_array((weight, (row, column)), shape=(len(high), variables)).tocsr()
    return IntegerProgram(gain, matrix, low, np.array(high, dtype=np.float64))

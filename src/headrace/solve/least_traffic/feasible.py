"""Whether a plan keeps every limit, and whether any can; looks at the instance alone."""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import TOLERANCE, Ints
from headrace.solve.instance import Instance
from headrace.solve.packing import first_fit_bins


def feasible(instance: Instance, x: Ints) -> bool:
    """Whether the counts x[C, N] place every task and keep every limit."""
    if (x < 0).any() or (x.sum(axis=1) != instance.count).any() or (x[~instance.allowed] > 0).any():
        return False
    if (x[instance.apart] > 1).any():
        return False
    demand = instance.demand[instance.node_type]  # [N, C, K]
    used = np.einsum("cn,nck->nk", x.astype(np.float64), demand)
    busy = x.sum(axis=0) > 0
    if (used > np.maximum(instance.capacity, 0.0) * (1 + TOLERANCE))[busy].any():
        return False
    return bool((slots_taken(instance, x) <= instance.slots).all())


def slots_taken(instance: Instance, x: Ints) -> Ints:
    """Slots each node needs under x[C, N]: one per topology, more where the heap asks for it.

    How many more is what first-fit decreasing says.
    """
    present = np.zeros((len(instance.heap), x.shape[1]), np.int64)
    np.add.at(present, instance.group, x)
    need = np.zeros((len(instance.heap), x.shape[1]))
    np.add.at(need, instance.group, x * instance.memory[:, None])
    taken = (present > 0).astype(np.int64)
    heap = instance.heap.astype(np.float64) * (1 + TOLERANCE)
    for g, n in zip(*np.nonzero(need > heap[:, None]), strict=True):
        classes = np.nonzero((instance.group == g) & (x[:, n] > 0) & (instance.memory > 0))[0]
        classes = classes[np.argsort(-instance.memory[classes], kind="stable")]
        memory = instance.memory[classes].astype(np.float64)
        count = x[classes, n].astype(np.int64)
        space, length = np.zeros(3 * len(classes) + 4), np.zeros(3 * len(classes) + 4, np.int64)
        taken[g, n] = first_fit_bins(memory, count, float(heap[g]), space, length)
    return taken.sum(axis=0)


def hopeless(instance: Instance) -> bool:
    """Whether it is plain that no plan exists: a task fits nowhere, or all nodes are too small."""
    limit = np.maximum(instance.capacity, 0.0) * (1 + TOLERANCE)
    fits = instance.allowed & (instance.slots > 0)[None, :]
    least = np.full(instance.demand.shape[1:], np.inf)  # [C, K] over the nodes where a task fits
    for y in range(len(instance.demand)):
        nodes = np.nonzero(instance.node_type == y)[0]
        for r in range(limit.shape[1]):
            fits[:, nodes] &= instance.demand[y, :, r][:, None] <= limit[nodes, r][None, :]
        reachable = np.any(fits[:, nodes], axis=1, keepdims=True)
        least = np.where(reachable, np.minimum(least, instance.demand[y]), least)
    wanted = np.nonzero(instance.count)[0]
    places = np.where(
        instance.apart, fits.sum(axis=1), np.where(fits.any(axis=1), instance.count, 0)
    )
    too_large = instance.memory > instance.heap[instance.group] * (1 + TOLERANCE)
    if np.less(places, instance.count)[wanted].any() or too_large[wanted].any():
        return True
    needed = instance.count[wanted].astype(np.float64) @ least[wanted]
    return bool((needed > limit.sum(axis=0) * (1 + TOLERANCE)).any())

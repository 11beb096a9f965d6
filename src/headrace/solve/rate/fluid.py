"""The fluid bound on the rate: tasks divisible at will, alike nodes pooled, nothing to send."""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.solve import highs

PRECISION = 1e-6  # relative; the bound is rounded up


def fluid_rate(
    count: Ints,
    grows: Floats,
    fixed: Floats,
    other: Floats,
    capacity: Floats,
    node_type: Ints,
    allowed: Bools,
) -> float | None:
    """No plan sustains more than this factor of the given rates; None if CPU limits nothing.

    C classes, Y types, N nodes: count[C]; CPU of one task that grows with the rate and that does
    not, grows[C, Y], fixed[C, Y]; its other resources other[C, K-1]; capacity[N, K] with CPU first;
    node_type[N]; allowed[C, N].
    """
    alone = _rate_of_one_task(grows, fixed, capacity[:, 0], node_type, allowed)
    pools, pool_of = np.unique(np.column_stack([node_type, allowed.T]), axis=0, return_inverse=True)
    room = np.zeros((len(pools), capacity.shape[1]))
    np.add.at(room, pool_of.ravel(), capacity)
    may = pools[:, 1:].astype(bool)  # [pools, C]
    machine: Ints = pools[:, 0].astype(np.int64)
    if not np.isfinite(room[:, 0]).all() or not grows.any():
        return None if not np.isfinite(alone) else alone
    high = min(alone, _rate_of_one_pool(count, grows, fixed, room[:, 0], machine, may))
    low = 0.0
    if not _fits_at(0.0, count, grows, fixed, other, room, machine, may):
        return 0.0
    if _fits_at(high, count, grows, fixed, other, room, machine, may):
        return high
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        if _fits_at(middle, count, grows, fixed, other, room, machine, may):
            low = middle
        else:
            high = middle
    return high


def _rate_of_one_task(
    grows: Floats, fixed: Floats, cpu: Floats, node_type: Ints, allowed: Bools
) -> float:
    """The rate at which some task alone fills every node it may use."""
    need = grows[:, node_type]
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(need > 0, np.maximum(cpu - fixed[:, node_type], 0.0) / need, np.inf)
    return float(np.where(allowed, factor, 0.0).max(axis=1).min(initial=np.inf))


def _rate_of_one_pool(
    count: Ints, grows: Floats, fixed: Floats, cpu: Floats, machine: Ints, may: Bools
) -> float:
    """All CPU in one pool, every task on the type that suits it best: a first ceiling."""
    least_grows = np.where(may.T, grows[:, machine], np.inf).min(axis=1)
    least_fixed = np.where(may.T, fixed[:, machine], np.inf).min(axis=1)
    load = float((count * least_grows).sum())
    return max(0.0, float(cpu.sum() - (count * least_fixed).sum())) / load if load > 0 else np.inf


def _fits_at(
    factor: float,
    count: Ints,
    grows: Floats,
    fixed: Floats,
    other: Floats,
    room: Floats,
    machine: Ints,
    may: Bools,
) -> bool:
    """Whether tasks spread over the pools in any fractions fit at a rate."""
    from scipy.sparse import csr_array, kron, vstack

    pools, classes = may.shape
    cpu = (factor * grows + fixed)[:, machine].T  # [pools, C]
    rows = [
        csr_array(
            (cpu[p], (np.zeros(classes, int), p * classes + np.arange(classes))),
            shape=(1, pools * classes),
        )
        for p in range(pools)
    ]
    limits = [room[:, 0]]
    for k in range(other.shape[1]):
        if np.isfinite(room[:, k + 1]).all() and other[:, k].any():
            rows.append(csr_array(kron(np.eye(pools), other[:, k][None, :])))
            limits.append(room[:, k + 1])
    whole = csr_array(kron(np.ones((1, pools)), np.eye(classes)))
    result = highs.solve_linear_program(
        np.zeros(pools * classes),
        A_ub=vstack(rows),
        b_ub=np.concatenate(limits) * (1 + 1e-9),
        A_eq=whole,
        b_eq=count.astype(np.float64),
        bounds=np.column_stack([np.zeros(pools * classes), np.where(may.ravel(), np.inf, 0.0)]),
    )
    return bool(result.status != 2)  # anything but proven impossible leaves the bound where it is

"""Tasks dealt out evenly: where a search for short batches starts, beside plans that pack tasks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.feasible import feasible


def spread_tasks(instance: Instance, stage: Ints, cores: Floats) -> Iterator[Ints]:
    """Feasible counts [C, N] with every stage dealt over nodes by their cores.

    First over all nodes, then over the larger half of them, and so on.
    """
    order = np.argsort(-cores, kind="stable")
    nodes = len(order)
    while nodes:
        weight = np.zeros(len(cores))
        weight[order[:nodes]] = cores[order[:nodes]] / cores[order[:nodes]].sum()
        x = deal_tasks(instance, stage, weight)
        if feasible(instance, x):
            yield x
        nodes //= 2


def deal_tasks(instance: Instance, stage: Ints, weight: Floats) -> Ints:
    """Counts [C, N] with tasks of every stage in proportion to each node's weight.

    Pins are kept, room is not looked at.
    """
    x = np.zeros(instance.allowed.shape, dtype=np.int64)
    taken = np.zeros((int(stage.max(initial=-1)) + 1, len(weight)))
    for c, count in enumerate(instance.count.tolist()):
        open_to = instance.allowed[c] & (weight > 0)
        if not open_to.any():
            open_to = instance.allowed[c]
        before = taken[stage[c]]
        share = np.where(open_to, np.maximum(weight, 1e-12), 0.0)
        wanted = np.where(open_to, share / share.sum() * (before.sum() + count) - before, -np.inf)
        x[c] = np.maximum(np.floor(wanted), 0.0)
        while (missing := count - int(x[c].sum())) != 0:
            lack = (
                np.where(open_to, wanted - x[c], -np.inf)
                if missing > 0
                else np.where(x[c] > 0, x[c] - wanted, -np.inf)
            )
            most = min(abs(missing), int(np.isfinite(lack).sum()))
            x[c, np.argsort(-lack, kind="stable")[:most]] += np.sign(missing)
        taken[stage[c]] += x[c]
    return x

"""Tasks dealt out evenly: where a search for short batches starts from, beside plans that keep tasks together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.fit import feasible


def spread(instance: Instance, stage: Ints, cores: Floats) -> Iterator[Ints]:
    """Feasible counts [C, N] that deal every stage over the largest nodes by their cores: over all nodes, half of them, and so on."""
    order = np.argsort(-cores, kind="stable")
    nodes = len(order)
    while nodes:
        weight = np.zeros(len(cores))
        weight[order[:nodes]] = cores[order[:nodes]] / cores[order[:nodes]].sum()
        x = dealt(instance, stage, weight)
        if feasible(instance, x):
            yield x
        nodes //= 2


def dealt(instance: Instance, stage: Ints, weight: Floats) -> Ints:
    """Counts [C, N] so that each node has, of every stage, tasks in proportion to its weight; pins are kept, room is not looked at."""
    x = np.zeros(instance.allowed.shape, dtype=np.int64)
    taken = np.zeros((int(stage.max(initial=-1)) + 1, len(weight)))
    for c, count in enumerate(instance.count.tolist()):
        open_to = instance.allowed[c] & (weight > 0)
        if not open_to.any():
            open_to = instance.allowed[c]
        held = taken[stage[c]]
        share = np.where(open_to, np.maximum(weight, 1e-12), 0.0)
        wanted = np.where(open_to, share / share.sum() * (held.sum() + count) - held, -np.inf)
        x[c] = np.maximum(np.floor(wanted), 0.0)
        while (missing := count - int(x[c].sum())) != 0:
            lack = (
                np.where(open_to, wanted - x[c], -np.inf)
                if missing > 0
                else np.where(x[c] > 0, x[c] - wanted, -np.inf)
            )
            several = np.argsort(-lack, kind="stable")[
                : min(abs(missing), int(np.isfinite(lack).sum()))
            ]
            x[c, several] += np.sign(missing)
        taken[stage[c]] += x[c]
    return x

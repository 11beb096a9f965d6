"""Counts and places found together: tasks of each component on each node, for the largest factor.

Starts deal out what the linear program (`rate_lp`) gives each pool of machines, in tasks of several
sizes, or repeat a small cluster that was searched well; others bring theirs. The best of them are
annealed. The factor is limited by the fullest node and by the fullest thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headrace.model.arrays import Ints
from headrace.solve.counts.annealing import anneal_starts
from headrace.solve.counts.count_flow import STAYS
from headrace.solve.counts.fullness import without_cpu
from headrace.solve.counts.starts import Growth, deal_starts
from headrace.solve.counts.tiles import repeat_tile, tile_sizes
from headrace.solve.least_traffic.feasible import feasible

# Steps by default: so many for every component on every node, between a least and a most.
STEPS_EACH, LEAST_STEPS, MOST_STEPS = 150, 150_000, 500_000


def keeps_limits(growth: Growth, x: Ints) -> bool:
    """Whether counts x[C, N] have every component and break no rule but, perhaps, CPU."""
    total = x.sum(axis=1)
    if (total < 1).any() or (total > growth.costs.most).any():
        return False
    return feasible(replace(without_cpu(growth.instance), count=total), x)


def grow_counts(
    growth: Growth, *, steps: int | None = None, known: Sequence[Ints] = ()
) -> tuple[Ints, float] | None:
    """Counts [C, N] and the factor they sustain; None where some component finds no place.

    Counts that others found, `known`, are starts too.
    """
    costs = growth.costs
    budget = (
        int(np.clip(STEPS_EACH * growth.instance.allowed.size, LEAST_STEPS, MOST_STEPS))
        if steps is None
        else steps
    )
    starts = [np.ascontiguousarray(x.T) for x in known if keeps_limits(growth, x)]
    starts += deal_starts(growth)
    # Where loads depend on counts, a small cluster is not the large one in small.
    for copies in tile_sizes(costs.cpu, growth.pool) if costs.flow.kind == STAYS else ():
        if starts and growth.deadline is not None and growth.deadline():
            break
        rows = repeat_tile(growth, copies, budget)
        if rows is not None:
            starts.append(rows)
    best = anneal_starts(growth, starts, budget)
    if best is None:
        return None
    rows, value = best
    return np.ascontiguousarray(rows.T), 1.0 / value if value > 0 else np.inf

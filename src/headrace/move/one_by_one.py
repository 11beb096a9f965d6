"""One by one: a single transfer at a time, largest first.

Source    the careful operator.
Maturity  ours
Guards    never two transfers at once.
Differs   nothing to differ from.
"""

from __future__ import annotations

import numpy as np

from headrace.move.blocks import Blocks, to_volumes
from headrace.move.steps import Moves, Volumes, steps_of


def one_by_one(work: Blocks | Volumes) -> Moves:
    """One step per pair of nodes."""
    work = to_volumes(work)
    source, target = np.nonzero(work.units)
    order = np.argsort(-work.units[source, target], kind="stable")
    source, target = source[order], target[order]
    units, cost = work.units[source, target].tolist(), work.cost[source, target].tolist()
    steps = steps_of(work, np.arange(len(source)), source, target, units, cost)
    return Moves(steps, work.bound, work.unit, work.clock, notes=work.notes)

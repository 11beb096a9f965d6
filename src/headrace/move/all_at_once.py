"""All at once: every transfer starts immediately; a node divides its time among its transfers.

Source    what a restart with a new assignment does.
Maturity  ours
Guards    nothing: nodes send and receive as many at once as there are.
Differs   every node divides its time evenly among its transfers, in and out, and a transfer goes as
          fast as its slower end lets it; start-ups and congestion, which make the real thing
          slower, are not counted.
"""

from __future__ import annotations

import numpy as np

from headrace.move.blocks import Blocks, to_volumes
from headrace.move.steps import Moves, Volumes, steps_of
from headrace.solve.transfers import shared_seconds


def all_at_once(work: Blocks | Volumes) -> Moves:
    """One step with everything in it."""
    work = to_volumes(work)
    source, target = np.nonzero(work.units)
    cost = [shared_seconds(work.cost)] if len(source) else []
    steps = steps_of(
        work, np.zeros_like(source), source, target, work.units[source, target].tolist(), cost
    )
    return Moves(steps, work.bound, work.unit, work.clock, notes=work.notes)

"""Drain and checkpoint: pause, let what is on the way through, write the state, read it elsewhere.

Source    after A. Shukla, Y. Simmhan, Toward reliable and rapid elasticity for streaming dataflows
          on clouds, ICDCS 2018, as S. Souravlas et al. 2023 describe it (sections 2, 4.1 and 4.2):
          a migration with dataflow checkpoints and a timeout in which nothing is sent. It is no
          scheduler of tasks: which task goes where is given.
Maturity  inspired
Guards    nothing that is on the way is lost, if it gets through in `drain_s`.
Differs   everything in detail is our reading. One step, in which all that moves is stopped: the
          timeout (`drain_s`, whose length is not published: 0 unless given), then every node writes
          the state that leaves it, then every node reads the state that it gets. Writing and
          reading go at the nodes' bandwidth, each over all nodes at once. Start-up of the tasks is
          not counted.
"""

from __future__ import annotations

import numpy as np

from headrace.errors import InvalidInput, Unsupported
from headrace.move.blocks import Blocks, to_volumes
from headrace.move.steps import Moves, Volumes, steps_of


def drain_checkpoint(work: Blocks | Volumes, *, drain_s: float = 0.0) -> Moves:
    """One step: the timeout, the longest writing and the longest reading."""
    if drain_s < 0:
        raise InvalidInput(f"drain-checkpoint: option drain_s is {drain_s:g}; it must be 0 or more")
    work = to_volumes(work)
    if drain_s and work.clock != "s":
        raise Unsupported(
            f"drain-checkpoint: drain_s is in seconds, and these costs are in {work.clock}",
            fix="leave drain_s out",
        )
    source, target = np.nonzero(work.units)
    checkpoint, restore = (work.cost.sum(axis=axis).max(initial=0.0) for axis in (1, 0))
    cost = [drain_s + float(checkpoint) + float(restore)] if len(source) else []
    units = work.units[source, target].tolist()
    steps = steps_of(work, np.zeros_like(source), source, target, units, cost)
    parts = f"{drain_s:g} to drain, {checkpoint:g} to write, {restore:g} to read"
    notes = (f"all that moves pauses for the whole step ({work.clock}: {parts})",) if steps else ()
    return Moves(steps, work.bound, work.unit, work.clock, notes=(*work.notes, *notes))

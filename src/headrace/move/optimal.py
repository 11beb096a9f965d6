"""Optimal: the least time in which nodes send to one and receive from one node at a time.

Source    ours; the theorem of Birkhoff and von Neumann, with steps as long as they can be so that
          there are few (solve/transfers.py).
Maturity  ours
Guards    the bound is always reached, to one part in 2^30. In a step no node sends to two or
          receives from two. Transfers may be interrupted and go on in a later step. Nodes may be
          overloaded on the way: that is what the safe order is for.
Differs   nothing to differ from.
"""

from __future__ import annotations

import numpy as np

from headrace.move.blocks import Blocks, to_volumes
from headrace.move.steps import Moves, Volumes, steps_of
from headrace.solve.transfers import open_shop, whole_ticks


def optimal(work: Blocks | Volumes) -> Moves:
    """Few steps that together last as long as the busiest node has to send or to receive."""
    work = to_volumes(work)
    ticks = whole_ticks(work.cost)
    plan = open_shop(ticks)
    total = int(plan.length.sum())
    whole = ticks[plan.source, plan.target]
    units = work.units[plan.source, plan.target]
    # What went before is subtracted, so that the parts of a transfer add up to it exactly.
    so_far, before = _running(plan.source * len(work.targets) + plan.target, plan.ticks)
    part = np.where(so_far == whole, units, units * so_far / whole) - units * before / whole
    cost = (plan.length * (work.bound / total)).tolist() if total else []
    steps = steps_of(work, plan.step, plan.source, plan.target, part.tolist(), cost)
    return Moves(steps, work.bound, work.unit, work.clock, notes=work.notes)


def _running(pair: np.ndarray, ticks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For every part, the ticks of its pair up to its end and up to its start."""
    order = np.argsort(pair, kind="stable")
    added = np.cumsum(ticks[order])
    first = np.searchsorted(pair[order], pair[order])
    up_to = np.empty_like(added)
    up_to[order] = added - (added - ticks[order])[first]
    return up_to, up_to - ticks

"""RO-MOD: a redistribution in one step per superclass, so that targets receive whole blocks.

Source    S. Souravlas, S. Anastasiadou, A. Sifaleras, Mathematical modeling for further improving
          task scheduling on Big Data systems, 2023, sections 3.1-3.2, propositions 1-2, eq. 9-16.
Maturity  faithful
Guards    everything moves exactly once. Blocks: t / gcd(s, t) steps; every target receives exactly
          s in every step iff g = N gcd(s, t) and gcd(Q, t / gcd(s, t)) = 1; otherwise some idle or
          receive several blocks, and the step's cost says so. Within a step a target receives from
          several sources.
Differs   the blocks are cut exactly, where the source adds up whole classes: a class that lies in
          several superclasses (class 10 of 16x7:16x11) would be sent more than once. Several pairs
          printed in its tables 3 and 4 are wrong, such as (1, 0) under class 6 and (9, 13) under
          class 5.
          Between two plans the source moves streams, not tasks, and leaves their state out. Here
          ranges of key groups move, each with its state and, from then on, its share of the stream.
          A block is a run of keys that are on one node, so the rule is the source's (blocks that
          start at one offset go together), but blocks may differ in size. The engine divides keys
          into consecutive ranges, where the source deals parts in turn: a node that keeps its share
          of the keys sends nothing. A step costs the most that any node sends or receives in it.
"""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Floats, Ints, distinct, totals
from headrace.model.ranges import Ranges
from headrace.move.blocks import Blocks, make_steps, require_blocks, segments
from headrace.move.steps import Moves, NamedRanges, Step, Transfer, Volumes


def ro_mod(work: Blocks | Volumes) -> Moves:
    """One step per superclass: target blocks that start at one offset in their source block."""
    if isinstance(work, Volumes) and work.ranges is not None:
        return order_ranges(work, work.ranges)
    blocks = require_blocks("ro-mod", work)
    parts = segments(blocks)
    return make_steps(blocks, parts, parts.offset)


def order_ranges(work: Volumes, ranges: NamedRanges) -> Moves:
    """The ranges that change nodes: the k-th superclass of every component in step k."""
    pieces = np.array(ranges.list_moving(), dtype=np.int64)
    _, step = np.unique(superclass_of(ranges.of)[pieces], return_inverse=True)
    made: list[Step] = []
    for k in range(int(step.max(initial=-1)) + 1):
        mine = pieces[step == k]
        source, target = ranges.of.source[mine], ranges.of.target[mine]
        mb = ranges.of.mb[mine]
        seconds = work.cost[source, target] * mb / work.units[source, target]
        transfers = add_up(work, source, target, mb)
        cost = busiest(source, target, seconds, len(work.sources))
        made.append(Step(transfers, cost, tuple(ranges.show(int(i)) for i in mine)))
    what = "what moves are ranges of key groups, with their state and their share of the stream"
    notes = (what,) if len(pieces) else ()
    return Moves(tuple(made), work.bound, work.unit, work.clock, notes=(*work.notes, *notes))


def superclass_of(pieces: Ranges) -> Ints:
    """The number of each range's superclass within its component: by the offset of its block, [R].

    A block is a run of keys on one node. Its offset is where it starts inside the run of keys,
    on one node before, that holds its first key (proposition 1).
    """
    source_start, target_start = (
        start_of_run(pieces, node) for node in (pieces.source, pieces.target)
    )
    first_piece = np.maximum.accumulate(
        np.where(pieces.start == target_start, np.arange(len(pieces.start)), 0)
    )
    offset = target_start - source_start[first_piece]
    number = np.zeros_like(offset)
    for c in distinct(pieces.component).tolist():
        mine = pieces.component == c
        number[mine] = np.unique(offset[mine], return_inverse=True)[1]
    return number


def start_of_run(pieces: Ranges, node: Ints) -> Ints:
    """Where the run of keys on one node begins that each piece is in, [R]."""
    begins = np.ones(len(node), dtype=bool)
    same = (node[1:] == node[:-1]) & (pieces.component[1:] == pieces.component[:-1])
    begins[1:] = ~same
    first = np.maximum.accumulate(np.where(begins, np.arange(len(node)), 0))
    return pieces.start[first]


def add_up(work: Volumes, source: Ints, target: Ints, mb: Floats) -> tuple[Transfer, ...]:
    """One transfer per pair of nodes."""
    pair, where = np.unique(source * len(work.targets) + target, return_inverse=True)
    units = totals(where, mb, len(pair))
    return tuple(
        Transfer(work.sources[p // len(work.targets)], work.targets[p % len(work.targets)], u)
        for p, u in zip(pair.tolist(), units.tolist(), strict=True)
    )


def busiest(source: Ints, target: Ints, seconds: Floats, nodes: int) -> float:
    """The longest that any node sends, or receives."""
    return float(max(totals(line, seconds, nodes).max() for line in (source, target)))

"""RO-MOD: a block redistribution in one step per superclass, so that targets receive whole blocks.

Source    S. Souravlas, S. Anastasiadou, A. Sifaleras, Mathematical modeling for further improving
          task scheduling on Big Data systems, 2023, sections 3.1-3.2, propositions 1-2, eq. 9-16.
Maturity  faithful
Guards    every task moves exactly once, in t / gcd(s, t) steps. Every target receives exactly s in
          every step iff g = N gcd(s, t) and gcd(Q, t / gcd(s, t)) = 1; otherwise some idle or
          receive several blocks, and the step's cost says so. Within a step a target receives from
          several sources.
Differs   the blocks are cut exactly, where the source adds up whole classes: a class that lies in
          several superclasses (class 10 of 16x7:16x11) would be sent more than once. Several pairs
          printed in its tables 3 and 4 are wrong, such as (1, 0) under class 6 and (9, 13) under
          class 5.
"""

from __future__ import annotations

from headrace.move.blocks import Blocks, make_steps, require_blocks, segments
from headrace.move.steps import Moves, Volumes


def ro_mod(work: Blocks | Volumes) -> Moves:
    """One step per superclass: target blocks that start at one offset in their source block."""
    blocks = require_blocks("ro-mod", work)
    parts = segments(blocks)
    return make_steps(blocks, parts, parts.offset)

"""MOD: a block redistribution in one step per class of node pairs that exchange the same.

Source    S. Souravlas, S. Anastasiadou, A. Sifaleras, Mathematical modeling for further improving
          task scheduling on Big Data systems, 2023, section 3, eq. 5-8; the scheduler itself is
          described in Appl. Sci. 10(14):4796 (2020).
Maturity  inspired
Guards    every task moves exactly once. A class step is one-to-one iff g / gcd(t, g) = N and g /
          gcd(s, g) = Q; otherwise a target receives from several in one step, and the step's cost
          says so.
Differs   classes without volume get no step. Table 2 of the source lists cost 2 for class 12 of
          16x7:16x11; it is 3 (its costs add up to 76, t s = 77). The pipeline of PMOD, which
          overlaps steps of equal cost, is not in the source and not here.
"""

from __future__ import annotations

from headrace.move.blocks import Blocks, make_steps, require_blocks, segments
from headrace.move.steps import Moves, Volumes


def mod(work: Blocks | Volumes) -> Moves:
    """One step per class that exchanges anything, by class number."""
    blocks = require_blocks("mod", work)
    parts = segments(blocks)
    return make_steps(blocks, parts, blocks.class_of(parts.source, parts.target))

"""Block redistributions: t tasks per node on N nodes, dealt in turn, become s per node on Q nodes.

Element i of the stream of tasks is on node floor(i / t) mod N before and on floor(i / s) mod Q
after. The pattern repeats after lcm(N t, Q s) elements; that period is what is scheduled, and what
stays in place counts as volume. In the source's symbols: `nodes_before` is N, `tasks_before` t
(also r), `nodes_after` Q, `tasks_after` s, `modulus` g = gcd(N t, Q s), `stride` d = gcd(s, t).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headrace.errors import InvalidInput, Unsupported
from headrace.model.arrays import Floats, Ints, totals
from headrace.move.steps import Moves, Volumes, steps_of

MOST_CUTS = 10_000_000
TEXT = re.compile(r"\s*(\d+)\s*x\s*(\d+)\s*:\s*(\d+)\s*x\s*(\d+)\s*")


@dataclass(frozen=True, slots=True)
class Blocks:
    """A redistribution (N, t) -> (Q, s)."""

    nodes_before: int
    tasks_before: int
    nodes_after: int
    tasks_after: int

    def __post_init__(self) -> None:
        if min(self.nodes_before, self.tasks_before, self.nodes_after, self.tasks_after) < 1:
            raise InvalidInput(f"blocks `{self}`: nodes and tasks per node must be at least 1")
        cuts = self.period // self.tasks_before + self.period // self.tasks_after
        if cuts > MOST_CUTS:
            raise Unsupported(
                f"blocks `{self}`: one period has {self.period:,} tasks in {cuts:,} pieces; "
                f"the most it takes is {MOST_CUTS:,}",
                resource="pieces",
                needed=cuts,
                available=MOST_CUTS,
                fix="choose numbers with a common divisor",
            )

    def __str__(self) -> str:
        return f"{self.nodes_before}x{self.tasks_before}:{self.nodes_after}x{self.tasks_after}"

    @staticmethod
    def parse(text: str) -> Blocks:
        """From `16x7:16x11`: nodes x tasks per node, before and after."""
        match = TEXT.fullmatch(text)
        if match is None:
            raise InvalidInput(
                f"blocks `{text}`: "
                "nodes x tasks per node before and after are needed, as in 16x7:16x11"
            )
        return Blocks(*(int(number) for number in match.groups()))

    @property
    def modulus(self) -> int:
        """g, the number of classes."""
        return math.gcd(self.nodes_before * self.tasks_before, self.nodes_after * self.tasks_after)

    @property
    def stride(self) -> int:
        """d: target blocks start at multiples of it inside a source block."""
        return math.gcd(self.tasks_before, self.tasks_after)

    @property
    def period(self) -> int:
        """Tasks after which the pattern repeats."""
        return math.lcm(self.nodes_before * self.tasks_before, self.nodes_after * self.tasks_after)

    def class_of(self, before: Ints | int, after: Ints | int) -> Ints:
        """The class of node pairs (eq. 8)."""
        return np.asarray(
            (before * self.tasks_before - after * self.tasks_after) % self.modulus, dtype=np.int64
        )


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """One period cut wherever the node before or the node after changes."""

    start: Ints  # [segments] first element
    size: Ints  # [segments]
    source: Ints  # [segments]
    target: Ints  # [segments]
    offset: Ints  # [segments] where its target block starts inside the first source block


def segments(blocks: Blocks) -> Segments:
    """The pieces that move together."""
    t, s = blocks.tasks_before, blocks.tasks_after
    start = np.union1d(np.arange(0, blocks.period, t), np.arange(0, blocks.period, s))
    size = np.diff(start, append=blocks.period)
    return Segments(
        start,
        size,
        start // t % blocks.nodes_before,
        start // s % blocks.nodes_after,
        start // s * s % t,
    )


def block_volumes(blocks: Blocks) -> Volumes:
    """What goes from which node to which node in one period."""
    parts = segments(blocks)
    units = np.zeros((blocks.nodes_before, blocks.nodes_after))
    np.add.at(units, (parts.source, parts.target), parts.size)
    names = tuple(range(blocks.nodes_before)), tuple(range(blocks.nodes_after))
    return Volumes(*names, units, units, unit="tasks", clock="tasks")


def to_volumes(work: Blocks | Volumes) -> Volumes:
    """The work of a scheduler that takes any volumes."""
    return block_volumes(work) if isinstance(work, Blocks) else work


def require_blocks(name: str, work: Blocks | Volumes) -> Blocks:
    """The work of a scheduler that takes nothing but block redistributions."""
    if isinstance(work, Blocks):
        return work
    raise Unsupported(
        f"{name} takes block redistributions only (--blocks 16x7:16x11), not any volumes",
        fix="use optimal",
    )


@dataclass(frozen=True, slots=True)
class Class:
    """Node pairs that exchange the same: a row of the source's table 2."""

    number: int
    units: int  # each pair exchanges in one period
    pairs: tuple[tuple[int, int], ...]


def classes(blocks: Blocks) -> tuple[Class, ...]:
    """All g classes; those with no units exchange nothing."""
    t, s, g = blocks.tasks_before, blocks.tasks_after, blocks.modulus
    difference = np.arange(1 - t, s)  # y - x, for 0 <= x < t and 0 <= y < s
    ways = np.minimum(np.minimum(difference + t, s - difference), min(s, t))
    units = np.bincount(difference % g, ways, g).astype(np.int64)
    before, after = np.divmod(
        np.arange(blocks.nodes_before * blocks.nodes_after), blocks.nodes_after
    )
    number = blocks.class_of(before, after)
    order = np.argsort(number, kind="stable")
    cut = np.searchsorted(number[order], np.arange(g + 1))
    pairs = list(zip(before[order].tolist(), after[order].tolist(), strict=True))
    return tuple(Class(k, int(units[k]), tuple(pairs[cut[k] : cut[k + 1]])) for k in range(g))


@dataclass(frozen=True, slots=True)
class Superclass:
    """Target blocks that start at one offset in a source block: a column of tables 3 and 4."""

    number: int  # the class it starts with
    offset: int
    chain: tuple[tuple[int, int], ...]  # (class, units of it), as a block receives them


def superclasses(blocks: Blocks) -> tuple[Superclass, ...]:
    """All t / d of them, in the order of their steps."""
    t, s, g = blocks.tasks_before, blocks.tasks_after, blocks.modulus
    found: list[Superclass] = []
    for offset in range(0, t, blocks.stride):
        cuts = [0, *range(t - offset, s, t), s]
        chain = tuple(((-offset + i * t) % g, b - a) for i, (a, b) in enumerate(pairwise(cuts)))
        found.append(Superclass(-offset % g, offset, chain))
    return tuple(found)


def make_steps(blocks: Blocks, parts: Segments, step: Ints) -> Moves:
    """One step per number in `step` [segments], ascending.

    A step costs the most that any target receives in it.
    """
    n, q = blocks.nodes_before, blocks.nodes_after
    used, number = np.unique(step, return_inverse=True)
    key, where = np.unique((number * n + parts.source) * q + parts.target, return_inverse=True)
    units = np.bincount(where, parts.size).astype(np.int64)
    k, source, target = key // (n * q), key // q % n, key % q
    receives = _per_step(k, target, units, len(used), q)
    sends = _per_step(k, source, units, len(used), n)
    cost, one_port = receives.max(axis=1), np.maximum(receives.max(axis=1), sends.max(axis=1)).sum()
    work = block_volumes(blocks)
    steps = steps_of(work, k, source, target, units.tolist(), cost.tolist())
    bound = float(receives.sum(axis=0).max())
    notes = ()
    if one_port > cost.sum():
        slower = f"where a source sends to one at a time, these steps take {one_port:g}"
        notes = (f"costs count what targets receive; {slower}",)
    return Moves(steps, bound, work.unit, work.clock, float(one_port), notes)


def _per_step(step: Ints, line: Ints, units: Ints, steps: int, lines: int) -> Floats:
    return totals(step * lines + line, units.astype(np.float64), steps * lines).reshape(
        steps, lines
    )

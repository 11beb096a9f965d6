"""Transfers between nodes that send to one and receive from one at a time.

This is an open shop whose work may be interrupted.

What a node has to send or to receive is a line of a matrix, a row or a column. Nothing can be
quicker than the longest line, and that is always reached: while no line has more work left than
there is time left, some matching serves every line that has no time to lose (Birkhoff, von
Neumann). The art is to cut the whole into few steps. Each step is made as long as it can be, where
a line may lose time, but little more than its share of what it can spare: spent early, that would
be missing later and cut the rest into slivers.

Times are whole ticks here: they are rounded once, before, and everything after that is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.compiled import compiled

FINEST = 2**40  # ticks in the longest line, where the times have no common measure
# In one step a line may lose so many times its share of what it can spare; 1 and 3 were measured to
# need more steps.
PATIENCE = 1.5
EXACT_SHARING = 2_000  # transfers up to which `shared_seconds` follows every single one to its end


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Who sends to whom, in which step, for how long; it lasts as long as the longest line."""

    length: Ints  # [steps] ticks
    step: Ints  # [parts]
    source: Ints  # [parts]
    target: Ints  # [parts]
    ticks: Ints  # [parts] at most the length of the step


class Lines(NamedTuple):
    """The matrix by rows, or by columns: line i holds the entries order[start[i]:start[i + 1]]."""

    start: Ints
    order: Ints
    near: Ints  # [entries] this line of an entry
    far: Ints  # [entries] its line of the other kind


class Side(NamedTuple):
    """The rows, or the columns, and how they are served in the step that is made."""

    lines: Lines
    work: Ints  # [lines] ticks left
    idle: Ints  # [lines] the longest step the line may sit out
    entry: Ints  # [lines] the entry it is matched with; -1: none
    seen: Ints  # [lines] the last search for a path that came by


def longest_line(work: Floats) -> float:
    """The largest row or column sum: no schedule is quicker."""
    return float(max(work.sum(axis=1).max(initial=0.0), work.sum(axis=0).max(initial=0.0)))


def whole_ticks(times: Floats) -> Ints:
    """Times as whole numbers of a tick: their common measure, or else a very short time."""
    positive = np.unique(times[times > 0])
    if not len(positive):
        return np.zeros(times.shape, dtype=np.int64)
    finest = longest_line(times) / FINEST
    tick = _common_measure(positive, finest) or finest
    return np.maximum(np.rint(times / tick), times > 0).astype(np.int64)


def _common_measure(values: Floats, finest: float) -> float | None:
    """The largest number that divides all values, up to rounding; None if it is near `finest`."""
    measure = float(values[0])
    for value in values.tolist():
        a, b = value, measure
        while b > 1e-9 * value:
            a, b = b, a % b
            if a - b < 1e-9 * value:  # one rounding below a whole multiple
                b = 0.0
        measure = a
        if measure < 1e3 * finest:
            return None
    whole = np.rint(values / measure) * measure
    return measure if np.allclose(values, whole, rtol=1e-12, atol=0.0) else None


def open_shop(work: Ints) -> Schedule:
    """Few steps that serve all work[source, target] in the time of the longest line."""
    rows, columns = _lines(work)
    left = work[rows.near, rows.far]
    length, count, entry, ticks = _decompose(rows, columns, left, PATIENCE)
    return Schedule(
        length, np.repeat(np.arange(len(length)), count), rows.near[entry], rows.far[entry], ticks
    )


def shared_seconds(times: Floats) -> float:
    """How long it takes if all transfers start at once and every node shares its time evenly.

    Above 2,000 transfers, time set free is shared again only every thousandth of the whole: a
    little too slow, never too fast.
    """
    rows, _ = _lines(times)
    longest = longest_line(times)
    pause = longest / 1000 if len(rows.near) > EXACT_SHARING else 0.0
    return max(
        longest, _share(rows, times[rows.near, rows.far], times.shape[0], times.shape[1], pause)
    )


def _lines(work: Ints | Floats) -> tuple[Lines, Lines]:
    source, target = np.nonzero(work)
    by_column = np.argsort(target, kind="stable")
    rows = Lines(_starts(source, work.shape[0]), np.arange(len(target)), source, target)
    return rows, Lines(_starts(target, work.shape[1]), by_column, target, source)


def _starts(line: Ints, lines: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(line, minlength=lines))])


@compiled
def _decompose(
    row_lines: Lines, column_lines: Lines, left: Ints, patience: float
) -> tuple[Ints, Ints, Ints, Ints]:
    """Lengths of the steps and parts in each; of every part its entry and ticks."""
    rows, columns = _new_side(row_lines, left), _new_side(column_lines, left)
    lines = max(len(rows.work), len(columns.work))
    queue, came_by = np.empty(lines, np.int64), np.empty(lines, np.int64)
    longest = np.empty(len(left), np.int64)
    time_left = max(rows.work.max(), columns.work.max()) if len(left) else 0
    length, count = np.empty(64, np.int64), np.empty(64, np.int64)
    most = 4 * len(left) + len(rows.work)
    entry, ticks = np.empty(most, np.int64), np.empty(most, np.int64)
    steps, parts, stamp = 0, 0, 0
    while time_left > 0:
        _limit_steps(rows, columns, left, longest, time_left, patience)
        step = min(_longest_step(rows, longest), _longest_step(columns, longest), time_left)
        _unmatch_short(step, rows, columns, longest)
        step, stamp = _serve_all(step, stamp, rows, columns, longest, queue, came_by)
        step, stamp = _serve_all(step, stamp, columns, rows, longest, queue, came_by)
        _pair_the_idle(step, rows, columns, left, longest)
        if steps == len(length):
            length, count = _twice(length), _twice(count)
        if parts + len(rows.work) > len(entry):
            entry, ticks = _twice(entry), _twice(ticks)
        length[steps] = step
        count[steps] = _work_off(step, rows, columns, left, entry[parts:], ticks[parts:])
        parts += count[steps]
        steps += 1
        time_left -= step
    return length[:steps], count[:steps], entry[:parts], ticks[:parts]


@compiled
def _new_side(lines: Lines, left: Ints) -> Side:
    size = len(lines.start) - 1
    work = np.zeros(size, np.int64)
    for e in range(len(left)):
        work[lines.near[e]] += left[e]
    return Side(
        lines, work, np.zeros(size, np.int64), np.full(size, -1, np.int64), np.zeros(size, np.int64)
    )


@compiled
def _limit_steps(
    rows: Side, columns: Side, left: Ints, longest: Ints, time_left: int, patience: float
) -> None:
    """Work out the longest step that each line may sit out and each entry may be part of."""
    _set_idle(rows, time_left, patience)
    _set_idle(columns, time_left, patience)
    for e in range(len(left)):
        longest[e] = 0
        if left[e] > 0:
            row, column = int(rows.work[rows.lines.near[e]]), int(columns.work[rows.lines.far[e]])
            longest[e] = min(
                _may_serve(left[e], row, time_left, patience),
                _may_serve(left[e], column, time_left, patience),
            )


@compiled
def _may_serve(left: int, work: int, time_left: int, patience: float) -> int:
    """The longest step for which so much of an entry is enough to a line with so much work."""
    spare = time_left - work
    needed = 1.0 - patience * spare / time_left  # share of the step that the line has to work
    if needed * time_left <= left:
        return left + spare
    return min(left + spare, max(left, int(left / needed)))


@compiled
def _set_idle(side: Side, time_left: int, patience: float) -> None:
    """Work out the longest step each line may sit out.

    Never 0 where it has time to spare, or there might be no step at all.
    """
    for i in range(len(side.work)):
        spare = time_left - side.work[i]
        share = min(1.0, patience * spare / time_left)
        side.idle[i] = max(int(spare * share), min(spare, 1))


@compiled
def _longest_step(side: Side, longest: Ints) -> int:
    """No step is longer than what the worst line allows at best."""
    most = 2**62
    for i in range(len(side.idle)):
        best = int(side.idle[i])
        for p in range(side.lines.start[i], side.lines.start[i + 1]):
            best = max(best, int(longest[side.lines.order[p]]))
        most = min(most, best)
    return most


@compiled
def _unmatch_short(step: int, rows: Side, columns: Side, longest: Ints) -> None:
    """Take entries that may not be part of so long a step out of the matching."""
    for i in range(len(rows.entry)):
        e = rows.entry[i]
        if e >= 0 and longest[e] < step:
            rows.entry[i] = columns.entry[rows.lines.far[e]] = -1


@compiled
def _serve_all(
    step: int, stamp: int, side: Side, other: Side, longest: Ints, queue: Ints, came_by: Ints
) -> tuple[int, int]:
    """Serve every line of a side that may not sit out; gives the step, maybe shorter, and stamp."""
    for i in range(len(side.entry)):
        while side.entry[i] < 0 and side.idle[i] < step:
            stamp += 1
            step = _serve(i, step, stamp, side, other, longest, queue, came_by)
    return step, stamp


@compiled
def _serve(
    line: int,
    step: int,
    stamp: int,
    side: Side,
    other: Side,
    longest: Ints,
    queue: Ints,
    came_by: Ints,
) -> int:
    """Serve a line that may not sit out, along a path that moves others on.

    The path may end at a line that sits out instead. Lines of the other side that are served stay
    served. Gives the step; a shorter one where there is no such path, so that there may be one.
    """
    lines = side.lines
    queue[0], head, tail = line, 0, 1
    side.seen[line] = stamp
    shorter = side.idle[line]
    while head < tail:
        i = queue[head]
        head += 1
        for p in range(lines.start[i], lines.start[i + 1]):
            e = lines.order[p]
            j = lines.far[e]
            if other.seen[j] == stamp:
                continue
            if longest[e] < step:
                shorter = max(shorter, longest[e])
                continue
            other.seen[j] = stamp
            came_by[j] = e
            taken = other.entry[j]
            if taken >= 0 and side.idle[lines.near[taken]] < step:
                next_line = lines.near[taken]
                side.seen[next_line] = stamp
                queue[tail] = next_line
                tail += 1
                shorter = max(shorter, side.idle[next_line])
                continue
            if taken >= 0:
                side.entry[lines.near[taken]] = -1
            _match_back(line, int(j), side, other, came_by)
            return step
    return shorter


@compiled
def _match_back(line: int, j: int, side: Side, other: Side, came_by: Ints) -> None:
    """Go back along the path from line j of the other side, and match what it came by."""
    while True:
        e = came_by[j]
        i = side.lines.near[e]
        before = side.entry[i]
        side.entry[i] = other.entry[j] = e
        if i == line:
            return
        j = int(side.lines.far[before])


@compiled
def _pair_the_idle(step: int, rows: Side, columns: Side, left: Ints, longest: Ints) -> None:
    """Lines that may sit out work all the same where two can, the largest first in each row."""
    for i in range(len(rows.entry)):
        if rows.entry[i] < 0:
            best = -1
            for e in range(rows.lines.start[i], rows.lines.start[i + 1]):
                free = longest[e] >= step and columns.entry[rows.lines.far[e]] < 0
                if free and (best < 0 or left[e] > left[best]):
                    best = e
            if best >= 0:
                rows.entry[i] = columns.entry[rows.lines.far[best]] = best


@compiled
def _work_off(step: int, rows: Side, columns: Side, left: Ints, entry: Ints, ticks: Ints) -> int:
    """Write the parts of a step and take them off what is left; gives their number."""
    parts = 0
    for i in range(len(rows.entry)):
        e = rows.entry[i]
        if e >= 0:
            j = rows.lines.far[e]
            part = min(left[e], step)
            entry[parts], ticks[parts] = e, part
            parts += 1
            left[e] -= part
            rows.work[i] -= part
            columns.work[j] -= part
            if left[e] == 0:
                rows.entry[i] = columns.entry[j] = -1
    return parts


@compiled
def _twice(array: Ints) -> Ints:
    larger = np.empty(2 * len(array) + 64, array.dtype)
    larger[: len(array)] = array
    return larger


@compiled
def _share(rows: Lines, left: Floats, n: int, m: int, pause: float) -> float:
    """Follow all transfers to their end; for `pause` seconds nobody uses what is set free."""
    sends, receives = np.zeros(n, np.int64), np.zeros(m, np.int64)
    for e in range(len(left)):
        sends[rows.near[e]] += 1
        receives[rows.far[e]] += 1
    open_entries = np.arange(len(left))
    count, now = len(left), 0.0
    while count:
        soonest = np.inf
        for p in range(count):
            e = open_entries[p]
            soonest = min(
                soonest, float(left[e]) * max(int(sends[rows.near[e]]), int(receives[rows.far[e]]))
            )
        step = max(soonest, pause)
        kept, last = 0, 0.0
        for p in range(count):
            e = open_entries[p]
            needs = float(left[e]) * max(int(sends[rows.near[e]]), int(receives[rows.far[e]]))
            if needs <= step * (1 + 1e-12):
                left[e] = 0.0
                last = max(last, needs)
            else:
                left[e] *= 1 - step / needs
                open_entries[kept] = e
                kept += 1
        sends[:] = 0
        receives[:] = 0
        for p in range(kept):
            e = open_entries[p]
            sends[rows.near[e]] += 1
            receives[rows.far[e]] += 1
        count = kept
        now += step if kept else last
    return now

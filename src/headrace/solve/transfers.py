"""Transfers between nodes that send to one and receive from one at a time: an open shop whose work may be interrupted.

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
from scipy.sparse import csr_array

from headrace.model.arrays import Floats, Ints
from headrace.solve.compiled import compiled

FINEST = 2**40  # ticks in the longest line, where the times have no common measure
PATIENCE = 1.5  # times its share of what it can spare a line may lose in one step; measured: 1 and 3 need more steps
EXACT_SHARING = 2_000  # transfers up to which `shared_seconds` follows every single one to its end


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Who sends to whom, in which step, for how long; the steps together last as long as the longest line."""

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


def longest_line(work: Floats) -> float:
    """The largest row or column sum: no schedule is quicker."""
    return float(max(work.sum(axis=1).max(initial=0.0), work.sum(axis=0).max(initial=0.0)))


def whole_ticks(times: Floats) -> Ints:
    """Times as whole numbers of a tick: of a common measure of all times if there is one, else of a very short one."""
    positive = np.unique(times[times > 0])
    if not len(positive):
        return np.zeros(times.shape, dtype=np.int64)
    finest = longest_line(times) / FINEST
    tick = _common_measure(positive, finest) or finest
    return np.maximum(np.rint(times / tick), times > 0).astype(np.int64)


def _common_measure(values: Floats, finest: float) -> float | None:
    """The largest number that divides all values but for rounding; None if there is none well above `finest`."""
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
    """Few steps that serve all work in the time of the longest line; work[i, j] ticks from source i to target j."""
    rows, columns = _lines(work)
    left = work[rows.near, rows.far]
    length, count, entry, ticks = _decompose(rows, columns, left, PATIENCE)
    return Schedule(
        length, np.repeat(np.arange(len(length)), count), rows.near[entry], rows.far[entry], ticks
    )


def shared_seconds(times: Floats) -> float:
    """How long it takes if all transfers start at once and every node divides its time evenly among those it still has.

    Above 2,000 transfers, time set free is dealt out anew only every thousandth of the whole: a
    little too slow, never too fast.
    """
    rows, _ = _lines(times)
    longest = longest_line(times)
    pause = longest / 1000 if len(rows.near) > EXACT_SHARING else 0.0
    return max(
        longest, _share(rows, times[rows.near, rows.far], times.shape[0], times.shape[1], pause)
    )


def _lines(work: Ints | Floats) -> tuple[Lines, Lines]:
    matrix = csr_array(work)
    matrix.eliminate_zeros()
    source = np.repeat(np.arange(work.shape[0]), np.diff(matrix.indptr))
    target = matrix.indices.astype(np.int64)
    by_column = np.argsort(target, kind="stable")
    column_start = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=work.shape[1]))])
    rows = Lines(matrix.indptr.astype(np.int64), np.arange(len(target)), source, target)
    return rows, Lines(column_start, by_column, target, source)


@compiled
def _decompose(
    rows: Lines, columns: Lines, left: Ints, patience: float
) -> tuple[Ints, Ints, Ints, Ints]:
    """Lengths of the steps and parts in each; of every part its entry and ticks."""
    n, m = len(rows.start) - 1, len(columns.start) - 1
    row_work, column_work = _sums(rows, left, n), _sums(columns, left, m)
    time_left = max(row_work.max(), column_work.max()) if len(left) else 0
    length, count = np.empty(64, np.int64), np.empty(64, np.int64)
    entry, ticks = np.empty(4 * len(left) + n, np.int64), np.empty(4 * len(left) + n, np.int64)
    of_row, of_column = np.full(n, -1, np.int64), np.full(m, -1, np.int64)  # the matching: entries
    row_seen, column_seen = np.zeros(n, np.int64), np.zeros(m, np.int64)
    queue, came_by = np.empty(max(n, m), np.int64), np.empty(max(n, m), np.int64)
    steps, parts, stamp = 0, 0, 0
    while time_left > 0:
        row_idle, column_idle = (
            _may_sit_out(row_work, time_left, patience),
            _may_sit_out(column_work, time_left, patience),
        )
        longest = np.zeros(len(left), np.int64)  # per entry, the longest step it may be part of
        for e in range(len(left)):
            if left[e] > 0:
                row = _may_serve(left[e], int(row_work[rows.near[e]]), time_left, patience)
                column = _may_serve(left[e], int(column_work[rows.far[e]]), time_left, patience)
                longest[e] = min(row, column)
        step = min(_most(rows, longest, row_idle), _most(columns, longest, column_idle), time_left)
        for i in range(n):
            e = of_row[i]
            if e >= 0 and longest[e] < step:
                of_row[i] = of_column[rows.far[e]] = -1
        for i in range(n):
            while of_row[i] < 0 and row_idle[i] < step:
                stamp += 1
                step = _serve(
                    i,
                    step,
                    stamp,
                    rows,
                    longest,
                    row_idle,
                    of_row,
                    of_column,
                    row_seen,
                    column_seen,
                    queue,
                    came_by,
                )
        for j in range(m):
            while of_column[j] < 0 and column_idle[j] < step:
                stamp += 1
                step = _serve(
                    j,
                    step,
                    stamp,
                    columns,
                    longest,
                    column_idle,
                    of_column,
                    of_row,
                    column_seen,
                    row_seen,
                    queue,
                    came_by,
                )
        _pair_the_idle(step, rows, left, longest, of_row, of_column)
        if steps == len(length):
            length, count = _twice(length), _twice(count)
        if parts + n > len(entry):
            entry, ticks = _twice(entry), _twice(ticks)
        length[steps], count[steps] = step, -parts
        for i in range(n):
            e = of_row[i]
            if e >= 0:
                part = min(left[e], step)
                entry[parts], ticks[parts] = e, part
                parts += 1
                left[e] -= part
                row_work[i] -= part
                column_work[rows.far[e]] -= part
                if left[e] == 0:
                    of_row[i] = of_column[rows.far[e]] = -1
        count[steps] += parts
        steps += 1
        time_left -= step
    return length[:steps], count[:steps], entry[:parts], ticks[:parts]


@compiled
def _sums(lines: Lines, left: Ints, size: int) -> Ints:
    work = np.zeros(size, np.int64)
    for e in range(len(left)):
        work[lines.near[e]] += left[e]
    return work


@compiled
def _may_serve(left: int, work: int, time_left: int, patience: float) -> int:
    """The longest step for which an entry with so much left is enough to a line with so much work."""
    spare = time_left - work
    needed = (
        1.0 - patience * spare / time_left
    )  # part of the step in which the line has to be at work
    if needed * time_left <= left:
        return left + spare
    return min(left + spare, max(left, int(left / needed)))


@compiled
def _may_sit_out(work: Ints, time_left: int, patience: float) -> Ints:
    """The longest step each line may sit out; never 0 where it has time to spare, or there might be no step at all."""
    idle = np.empty(len(work), np.int64)
    for i in range(len(work)):
        spare = time_left - work[i]
        share = min(1.0, patience * spare / time_left)
        idle[i] = max(int(spare * share), min(spare, 1))
    return idle


@compiled
def _most(lines: Lines, longest: Ints, idle: Ints) -> int:
    """No step is longer than what the worst line allows at best."""
    most = 2**62
    for i in range(len(idle)):
        best = int(idle[i])
        for p in range(lines.start[i], lines.start[i + 1]):
            best = max(best, int(longest[lines.order[p]]))
        most = min(most, best)
    return most


@compiled
def _serve(
    line: int, step: int, stamp: int, lines: Lines, longest: Ints, idle: Ints, of_near: Ints, of_far: Ints, seen_near: Ints, seen_far: Ints,
    queue: Ints, came_by: Ints,
) -> int:  # fmt: skip
    """Serve a line that may not sit out, along a path that moves others on and may end at one that sits out instead.

    Lines of the other kind that are served stay served. Returns the step; shorter, where there is
    no such path, so that there may be one.
    """
    queue[0], head, tail = line, 0, 1
    seen_near[line] = stamp
    shorter = idle[line]
    while head < tail:
        i = queue[head]
        head += 1
        for p in range(lines.start[i], lines.start[i + 1]):
            e = lines.order[p]
            j = lines.far[e]
            if seen_far[j] == stamp:
                continue
            if longest[e] < step:
                shorter = max(shorter, longest[e])
                continue
            seen_far[j] = stamp
            came_by[j] = e
            taken = of_far[j]
            if taken >= 0 and idle[lines.near[taken]] < step:
                other = lines.near[taken]
                seen_near[other] = stamp
                queue[tail] = other
                tail += 1
                shorter = max(shorter, idle[other])
                continue
            if taken >= 0:
                of_near[lines.near[taken]] = -1
            while True:  # back along the path
                e = came_by[j]
                i = lines.near[e]
                before = of_near[i]
                of_near[i] = of_far[j] = e
                if i == line:
                    return step
                j = lines.far[before]
    return shorter


@compiled
def _pair_the_idle(
    step: int, rows: Lines, left: Ints, longest: Ints, of_row: Ints, of_column: Ints
) -> None:
    """Lines that may sit out work all the same where two of them can, the largest first in each row."""
    for i in range(len(of_row)):
        if of_row[i] < 0:
            best = -1
            for e in range(rows.start[i], rows.start[i + 1]):
                if (
                    longest[e] >= step
                    and of_column[rows.far[e]] < 0
                    and (best < 0 or left[e] > left[best])
                ):
                    best = e
            if best >= 0:
                of_row[i] = of_column[rows.far[best]] = best


@compiled
def _twice(array: Ints) -> Ints:
    larger = np.empty(2 * len(array) + 64, array.dtype)
    larger[: len(array)] = array
    return larger


@compiled
def _share(rows: Lines, left: Floats, n: int, m: int, pause: float) -> float:
    """Follow all transfers to their end; for `pause` seconds nobody uses what others have set free."""
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

"""Where rows stand in the stream, so that a keyed bolt gets each key's rows in their order.

Rows that follow each other make a run. A run has a path: the number of the source partition, the
position in it, and wherever a later bolt's output was cut, the position in that. Paths compare as
the rows were read. A run is held by one task, so that its rows need no positions of their own; only
where a run is spread over the tasks of a bolt without state, each row becomes a run.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np
import pyarrow as pa

from headrace.model.arrays import Ints

Path = tuple[int, ...]
Run = tuple[Path, int]  # where its rows stand, and how many there are
Runs = Sequence[Run]

FEW = 64  # pieces that are put together as slices; more are gathered row by row


def cut(runs: Runs, first: int, end: int) -> list[Run]:
    """The runs of the rows [first, end)."""
    found: list[Run] = []
    start = 0
    for path, rows in runs:
        low, high = max(first, start), min(end, start + rows)
        if low < high:
            found.append(((*path, low - start), high - low))
        start += rows
    return found


def pick(runs: Runs, index: Ints, *, rowwise: bool = False) -> list[Run]:
    """The runs of some rows, in rising order; `rowwise`: each row as a run of its own."""
    ends = np.array(list(accumulate(rows for _, rows in runs)), dtype=np.int64)
    of = np.searchsorted(ends, index, side="right")
    if rowwise:
        starts = ends - np.array([rows for _, rows in runs], dtype=np.int64)
        offsets = index - starts[of]
        return [
            ((*runs[run][0], offset), 1)
            for run, offset in zip(of.tolist(), offsets.tolist(), strict=True)
        ]
    counts = np.bincount(of, minlength=len(runs)).tolist()
    return [(path, n) for (path, _), n in zip(runs, counts, strict=True) if n]


def in_order(parts: Iterable[tuple[pa.Table, Runs]]) -> tuple[pa.Table, list[Run]]:
    """Tables put together, their rows in the order of the paths."""
    tables, pieces, start = list[pa.Table](), list[tuple[Path, int, int]](), 0
    for table, runs in parts:
        tables.append(table)
        for path, rows in runs:
            pieces.append((path, start, rows))
            start += rows
    whole = pa.concat_tables(tables, promote_options="permissive")
    ordered = sorted(pieces)
    runs = [(path, rows) for path, _, rows in ordered]
    if ordered == pieces:
        return whole, runs
    if len(ordered) <= FEW:
        return pa.concat_tables([whole.slice(at, rows) for _, at, rows in ordered]), runs
    at = np.array([first for _, first, _ in ordered])
    rows = np.array([n for _, _, n in ordered])
    return whole.take(pa.array(expand(at, rows))), runs


def expand(first: Ints, counts: Ints) -> Ints:
    """All numbers of the ranges that begin at `first` and have so many numbers."""
    ends = np.cumsum(counts)
    return np.repeat(first - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)

"""Keyed state in files: the oldest holds all keys, each later one the keys that a batch touched.

The rows of a file are sorted by the hash of their key, so that a batch finds the keys it needs by
binary search and reads nothing else, and a range of key groups is a slice. What a later file says
of a key counts, and nothing that an earlier one says. A key that is gone has a row that says so.
"""

# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false
# pyarrow says nothing about its types, and makes its functions only when it is imported.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.model.arrays import Bools, Ints
from headrace.model.keys import GROUPS
from headrace.model.topology import Keyed
from headrace.run.order import expand
from headrace.run.routing import GROUP_SHIFT, Hashes, key_hashes
from headrace.run.storage import StorageFailed, read_table

Kind = Literal["state", "timers"]
# Keys last touched at the first number or before are forgotten; what was touched before there was
# a watermark counts as touched at the second, the first watermark.
Life = tuple[int, int]
HASH, GONE, SEEN = "_hash", "_gone", "_seen"  # columns of a file beside those of the state
TIME = "_time"  # of a timer, microseconds since 1970


@dataclass(frozen=True, slots=True)
class StateFile:
    """What a file of the run's folder says of the key groups [first, end) of a component."""

    component: str
    first: int
    end: int
    file: str
    whole: bool = True  # False: the file also holds groups outside the range, now others'
    kind: Kind = "state"
    rows: int = 0  # of the whole file


def timers_of(keyed: Keyed) -> Keyed:
    """The timers of a keyed bolt, kept as its state is: one row or more per key."""
    columns = [keyed.schema.field(name) for name in keyed.key]
    return Keyed(pa.schema([*columns, pa.field(TIME, pa.int64())]), keyed.key)


def pack_state(rows: pa.Table, keyed: Keyed, *, gone: Hashes, seen: int | None) -> pa.Table:
    """Rows as a file has them, with the hashes of the keys that are gone.

    `seen`: the watermark at which they were touched.
    """
    hashes = key_hashes(rows, keyed.key)
    columns = {HASH: pa.array(hashes), GONE: pa.repeat(False, len(hashes))}
    columns[SEEN] = pa.repeat(pa.scalar(seen, pa.int64()), len(hashes))
    schema = _file_schema(keyed)
    found = pa.table({**columns, **{name: rows[name] for name in keyed.schema.names}}).cast(schema)
    if len(gone):
        lost = {HASH: pa.array(gone), GONE: pa.repeat(True, len(gone))}
        nulls = {f.name: pa.nulls(len(gone), f.type) for f in schema if f.name not in lost}
        found = pa.concat_tables([found, pa.table({**lost, **nulls}).select(schema.names)])
        hashes = np.concatenate([hashes, gone])
    return found.take(pa.array(np.argsort(hashes, kind="stable")))


def _file_schema(keyed: Keyed) -> pa.Schema:
    own = [pa.field(HASH, pa.uint64()), pa.field(GONE, pa.bool_()), pa.field(SEEN, pa.int64())]
    return pa.schema([*own, *(pa.field(f.name, f.type) for f in keyed.schema)])


def open_file(entry: StateFile, folder: Path, keyed: Keyed) -> tuple[pa.Table, Hashes]:
    """The rows of a file that count, mapped into memory, and their hashes in rising order."""
    rows = read_table(folder / entry.file, f"the {entry.kind} of `{entry.component}`")
    schema = _file_schema(keyed)
    if rows.schema.names != schema.names:
        before, now = (", ".join(s.names[3:]) for s in (rows.schema, schema))
        raise StorageFailed(
            f"the state of `{entry.component}` was kept with columns {before}; now it has {now}",
            fix="give the state its former columns, or start over with another run folder",
        )
    if rows.schema != schema:
        try:
            rows = rows.cast(schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise StorageFailed(
                f"the state of `{entry.component}` was kept with other types: {error}",
                fix="give the state its former types, or start over with another run folder",
            ) from None
    hashes = _as_numbers(rows[HASH])
    if not entry.whole:
        low, high = (_first_of_group(hashes, group) for group in (entry.first, entry.end))
        rows, hashes = rows.slice(low, high - low), hashes[low:high]
    return rows, hashes


def _as_numbers(column: pa.ChunkedArray) -> np.ndarray:
    """A column without nulls as an array, without a copy if it is in one piece."""
    if column.num_chunks == 1:
        return column.chunk(0).to_numpy(zero_copy_only=True)
    return column.to_numpy()


def _first_of_group(hashes: Hashes, group: int) -> int:
    if group >= GROUPS:
        return len(hashes)
    return int(np.searchsorted(hashes, np.uint64(group) << GROUP_SHIFT))


def find_rows(
    files: Sequence[StateFile],
    folder: Path,
    keyed: Keyed,
    wanted: Hashes,
    *,
    life: Life | None = None,
) -> pa.Table:
    """The rows of the keys with these hashes (rising, each once), and nothing else."""
    found = [_file_schema(keyed).empty_table()]
    for entry in reversed(files):
        if not len(wanted):
            break
        rows, hashes = open_file(entry, folder, keyed)
        first = np.searchsorted(hashes, wanted)
        here = _are_at(hashes, first, wanted)
        if here.any():
            first, end = first[here], first[here] + 1
            several = _are_at(hashes, end, wanted[here])
            end[several] = np.searchsorted(hashes, wanted[here][several], side="right")
            found.append(rows.take(pa.array(expand(first, end - first))))
            wanted = wanted[~here]
    return _plain(pa.concat_tables(found), keyed, life).combine_chunks()


def read_state(
    files: Sequence[StateFile], folder: Path, keyed: Keyed, *, life: Life | None = None
) -> pa.Table:
    """The rows of all keys."""
    return _plain(merge(files, folder, keyed), keyed, life)


def _plain(rows: pa.Table, keyed: Keyed, life: Life | None) -> pa.Table:
    """Rows without the columns of the file, and without keys that are gone or forgotten."""
    return _living(rows, life).select(keyed.schema.names).cast(keyed.schema)


def _living(rows: pa.Table, life: Life | None) -> pa.Table:
    keep = pc.invert(rows[GONE])
    if life is not None:
        keep = pc.and_(keep, pc.greater(pc.fill_null(rows[SEEN], life[1]), life[0]))
    return rows if pc.all(keep).as_py() in (True, None) else rows.filter(keep)


def merge(files: Sequence[StateFile], folder: Path, keyed: Keyed) -> pa.Table:
    """What several files say, as one."""
    # The newest first: a stable sort, quick on what is sorted in pieces, keeps it first of its key.
    opened = [open_file(entry, folder, keyed) for entry in reversed(files)]
    if not opened:
        return _file_schema(keyed).empty_table()
    tables, hashes = [rows for rows, _ in opened], np.concatenate([held for _, held in opened])
    whole = pa.concat_tables(tables)
    if len(opened) > 1:
        # Of each key the rows of the newest file that has some.
        age = np.repeat(np.arange(len(opened)), [len(held) for _, held in opened])
        order = np.argsort(hashes, kind="stable")
        starts = np.flatnonzero(np.diff(hashes[order], prepend=~hashes[order][:1]))
        counts = np.diff(starts, append=len(order))
        order = order[age[order] == np.repeat(age[order][starts], counts)]
        whole = whole.take(pa.array(order))
    return whole


def merge_all(
    files: Sequence[StateFile], folder: Path, keyed: Keyed, life: Life | None
) -> pa.Table:
    """All that the files of a range say, as one: what is gone or forgotten needs no row."""
    return _living(merge(files, folder, keyed), life)


def due_timers(
    files: Sequence[StateFile], folder: Path, timers: Keyed, until: int
) -> Iterator[pa.Table]:
    """The timers up to a time, file by file."""
    later: list[Hashes] = []  # keys that files after this one speak of
    for entry in reversed(files):
        rows, hashes = open_file(entry, folder, timers)
        due = pc.fill_null(pc.less_equal(rows[TIME], until), False).to_numpy()
        index = np.flatnonzero(due)
        for others in later:
            index = index[~is_in(hashes[index], others)]
        if len(index):
            yield rows.take(pa.array(index))
        later.append(hashes)


def is_in(some: Hashes, held: Hashes) -> Bools:
    """Which of some hashes are among others, which rise."""
    return _are_at(held, np.searchsorted(held, some), some)


def _are_at(held: Hashes, places: Ints, some: Hashes) -> Bools:
    """Which of some hashes are at the places among others; a place may be beyond the last."""
    if not len(held):
        return np.zeros(len(some), dtype=bool)
    return (held[np.minimum(places, len(held) - 1)] == some) & (places < len(held))

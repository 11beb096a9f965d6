"""Which task receives which rows of a table: the groupings, on whole tables.

All of it is a function of the table and the sending task's number, so that a task that runs again
after a failure sends the same rows to the same tasks, and no row is lost or doubled.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pandas.core.util.hashing import hash_array

from headrace.errors import InvalidInput
from headrace.model.arrays import Ints
from headrace.model.document import Input
from headrace.model.keys import GROUPS, owner_of
from headrace.run.order import Runs, cut, pick

Hashes = NDArray[np.uint64]
GROUP_SHIFT = np.uint64(64 - (GROUPS - 1).bit_length())
DIRECT = "_task"  # the column that names the receiving task of a direct grouping, from 1


def route(
    table: pa.Table,
    how: Input,
    tasks: int,
    *,
    sender: int,
    beside: Sequence[int] = (),
    runs: Runs = (),
    rowwise: bool = False,
) -> Iterator[tuple[int, pa.Table, Runs]]:
    """For every receiving task (from 0) its rows and their runs, without empty ones.

    `beside` are the receivers in the sender's own worker; `rowwise`: rows that are picked one by
    one keep positions of their own.
    """
    if not table.num_rows:
        return
    runs = runs or [((sender,), table.num_rows)]
    match how.grouping:
        case "global":
            yield 0, table, runs
        case "all":
            yield from ((task, table, runs) for task in range(tasks))
        case "fields":
            owners = owner_of(key_groups(table, how.fields), tasks)
            for task, rows, index in _by_task(table, owners, tasks):
                yield task, rows, pick(runs, index, rowwise=rowwise)
        case "direct":
            targets, table = _direct(table, tasks), table.drop_columns([DIRECT])
            for task, rows, index in _by_task(table, targets, tasks):
                yield task, rows, pick(runs, index, rowwise=rowwise)
        case _:
            local = beside if how.grouping == "local-or-shuffle" else ()
            receivers = local or range(tasks)
            for i, first, end in even_slices(table.num_rows, len(receivers), start=sender):
                yield receivers[i], table.slice(first, end - first), cut(runs, first, end)


def even_slices(rows: int, parts: int, *, start: int) -> Iterator[tuple[int, int, int]]:
    """Consecutive slices (part, first, end) whose sizes differ by one at most.

    The first goes to `start`, so that small tables do not all go to one task.
    """
    bounds = [rows * i // parts for i in range(parts + 1)]
    for i in range(parts):
        if bounds[i] < bounds[i + 1]:
            yield (start + i) % parts, bounds[i], bounds[i + 1]


def key_groups(table: pa.Table, fields: Sequence[str]) -> Ints:
    """The key group of each row, from 0 to GROUPS - 1: the same for a key in every run."""
    return (key_hashes(table, fields) >> GROUP_SHIFT).astype(np.int64)


def key_hashes(table: pa.Table, fields: Sequence[str]) -> Hashes:
    """A hash of each row's key, the same in every run; its first bits are the key group."""
    mixed = np.zeros(table.num_rows, dtype=np.uint64)
    for name in fields:
        if name not in table.column_names:
            raise InvalidInput(
                f"there is no column `{name}` to group by; "
                f"there are {', '.join(table.column_names)}"
            )
        column = table[name].combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
        # Each distinct key is hashed once: words repeat. Nulls stay out of the dictionary, where
        # they would turn numbers into floats.
        encoded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
        hashed = np.append(
            hash_array(encoded.dictionary.to_pandas().to_numpy(), categorize=False), np.uint64(0)
        )
        index = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        mixed = (mixed ^ hashed[index]) * np.uint64(0x9E3779B97F4A7C15)
    return mixed


def _by_task(table: pa.Table, targets: Ints, tasks: int) -> Iterator[tuple[int, pa.Table, Ints]]:
    order = np.argsort(targets, kind="stable")
    bounds = np.searchsorted(targets[order], np.arange(tasks + 1))
    sorted_rows = table.take(pa.array(order))
    for task in range(tasks):
        first, end = int(bounds[task]), int(bounds[task + 1])
        if first < end:
            yield task, sorted_rows.slice(first, end - first), order[first:end]


def _direct(table: pa.Table, tasks: int) -> Ints:
    if DIRECT not in table.column_names:
        raise InvalidInput(
            f"a direct grouping reads the receiving task from the column `{DIRECT}`; there is none"
        )
    targets = table[DIRECT].to_numpy().astype(np.int64) - 1
    if targets.min() < 0 or targets.max() >= tasks:
        raise InvalidInput(
            f"`{DIRECT}` names a task from {targets.min() + 1} to {targets.max() + 1}; "
            f"the receiver has tasks 1 to {tasks}"
        )
    return targets

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
from pandas.core.util.hashing import hash_array

from headrace.errors import InvalidInput
from headrace.model.arrays import Ints
from headrace.model.document import Input
from headrace.model.keys import owner_of

DIRECT = "_task"  # the column that names the receiving task of a direct grouping, from 1


def route(
    table: pa.Table, how: Input, tasks: int, *, sender: int, beside: Sequence[int] = ()
) -> Iterator[tuple[int, pa.Table]]:
    """Pairs of (receiving task from 0, its rows), without empty ones.

    `beside` are the receivers in the sender's own worker.
    """
    if not table.num_rows:
        return
    match how.grouping:
        case "global":
            yield 0, table
        case "all":
            yield from ((task, table) for task in range(tasks))
        case "fields":
            yield from _by_task(table, owner_of(key_groups(table, how.fields), tasks), tasks)
        case "direct":
            targets = _direct(table, tasks)
            yield from _by_task(table.drop_columns([DIRECT]), targets, tasks)
        case "local-or-shuffle" if beside:
            slices = split_evenly(table, len(beside), start=sender)
            yield from ((beside[i], part) for i, part in slices)
        case _:
            yield from split_evenly(table, tasks, start=sender)


def split_evenly(table: pa.Table, parts: int, *, start: int) -> Iterator[tuple[int, pa.Table]]:
    """Consecutive slices whose sizes differ by one at most.

    The first goes to `start`, so that small tables do not all go to one task.
    """
    bounds = [table.num_rows * i // parts for i in range(parts + 1)]
    for i in range(parts):
        if bounds[i] < bounds[i + 1]:
            yield (start + i) % parts, table.slice(bounds[i], bounds[i + 1] - bounds[i])


def key_groups(table: pa.Table, fields: Sequence[str]) -> Ints:
    """The key group of each row, from 0 to GROUPS - 1: the same for a key in every run."""
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
    return (mixed >> np.uint64(49)).astype(np.int64)


def _by_task(table: pa.Table, targets: Ints, tasks: int) -> Iterator[tuple[int, pa.Table]]:
    order = np.argsort(targets, kind="stable")
    bounds = np.searchsorted(targets[order], np.arange(tasks + 1))
    sorted_rows = table.take(pa.array(order))
    for task in range(tasks):
        if bounds[task] < bounds[task + 1]:
            yield task, sorted_rows.slice(int(bounds[task]), int(bounds[task + 1] - bounds[task]))


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

"""What a keyed task starts a batch from, and what it leaves: the rows of the keys it touches."""

# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false
# pyarrow says nothing about its types, and makes its functions only when it is imported.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import InvalidInput
from headrace.model.arrays import Bools, Ints, distinct
from headrace.model.document import Input
from headrace.model.topology import Code, Keyed
from headrace.run.routing import GROUP_SHIFT, Hashes, key_hashes
from headrace.run.seats import Seat, Stage
from headrace.run.state_files import (
    HASH,
    TIME,
    Life,
    due_timers,
    find_rows,
    is_in,
    pack_state,
    read_state,
    timers_of,
)
from headrace.run.timers import Timers

NONE: Hashes = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class Start:
    """What a keyed task starts a batch from."""

    rows: pa.Table  # the state that its calls see
    due: pa.Table  # timers that the watermark has passed, by time
    touched: Hashes  # of the keys whose rows these are, rising; if not `whole`
    whole: bool
    others: pa.Table  # rows of other keys that happen to have the same hash


def start_from(
    stage: Stage, seat: Seat, code: Code, inputs: Sequence[tuple[pa.Table, Input]]
) -> Start:
    """The state of the keys that came and of those whose timers are due; or of all."""
    keyed, folder = code.state, Path(stage.folder)
    assert keyed is not None
    files = [entry for entry in seat.state if entry.kind == "state"]
    life = life_of(keyed, stage)
    due = _due(stage, seat, code)
    if keyed.whole or any(how.grouping != "fields" for _, how in stage.sources[seat.component]):
        rows = read_state(files, folder, keyed, life=life)
        return Start(rows, due, NONE, True, keyed.schema.empty_table())
    keys = [due.select(list(keyed.key)), *(_keys_in(table, how, keyed) for table, how in inputs)]
    touched = _rising([key_hashes(some, keyed.key) for some in keys])
    rows = find_rows(files, folder, keyed, touched, life=life)
    mine = _same_keys(rows, keys, keyed)
    others = rows.slice(0, 0) if mine.all() else rows.filter(pa.array(~mine))
    rows = rows if mine.all() else rows.filter(pa.array(mine))
    return Start(rows, due, touched, False, others)


def life_of(keyed: Keyed, stage: Stage) -> Life | None:
    """Which keys are forgotten, if state has a time to live."""
    if keyed.ttl_s is None or stage.watermark is None:
        return None
    first = stage.watermark if stage.first_watermark is None else stage.first_watermark
    return stage.watermark - round(keyed.ttl_s * 1e6), first


def _due(stage: Stage, seat: Seat, code: Code) -> pa.Table:
    assert code.state is not None
    timers = timers_of(code.state)
    if code.on_timer is None or stage.watermark is None:
        return timers.schema.empty_table()
    files = [entry for entry in seat.state if entry.kind == "timers"]
    found = list(due_timers(files, Path(stage.folder), timers, stage.watermark))
    if not found:
        return timers.schema.empty_table()
    rows = pa.concat_tables(found)
    order = np.lexsort((rows[HASH].to_numpy(), rows[TIME].to_numpy()))
    return rows.take(pa.array(order)).select(timers.schema.names)


def _rising(sets: Sequence[Hashes]) -> Hashes:
    """Each hash once, rising."""
    together = np.concatenate([NONE, *sets])
    together.sort()
    return together[np.flatnonzero(np.diff(together, prepend=~together[:1]))]


def _keys_in(table: pa.Table, how: Input, keyed: Keyed) -> pa.Table:
    """Each key that came, once, under the names it has in the state."""
    keys = table.group_by(list(how.fields), use_threads=False).aggregate([])
    return keys.select(list(how.fields)).rename_columns(list(keyed.key))


def _same_keys(rows: pa.Table, keys: Sequence[pa.Table], keyed: Keyed) -> Bools:
    """Which rows have one of the keys: a hash alone may be that of another key."""
    names = list(keyed.key)
    together = pa.concat_tables([*keys, rows.select(names)], promote_options="permissive")
    number: Ints = np.zeros(together.num_rows, dtype=np.int64)
    for name in names:
        column = together[name].combine_chunks().dictionary_encode()
        codes = column.indices.cast(pa.int64()).fill_null(len(column.dictionary)).to_numpy()
        number = number * (len(column.dictionary) + 1) + codes
        number = np.searchsorted(distinct(number), number)
    wanted = together.num_rows - rows.num_rows
    return np.isin(number[wanted:], number[:wanted])


def keep_state(
    start: Start, new: Any, keyed: Keyed, groups: tuple[int, int], watermark: int | None
) -> pa.Table | None:
    """What a file must say of the keys that a task has touched; None: nothing has changed."""
    state = check_state(new, start, keyed, groups)
    if start.whole:
        same = not start.rows.num_rows and not state.num_rows
        return None if same else pack_state(state, keyed, gone=NONE, seen=watermark)
    if not len(start.touched):
        return None
    state = pa.concat_tables([state, start.others])
    gone = start.touched[~is_in(start.touched, _rising([key_hashes(state, keyed.key)]))]
    held = _rising([key_hashes(start.rows, keyed.key)])
    gone = gone[is_in(gone, held)]  # a key that was not there needs no word about it
    if not state.num_rows and not len(gone):
        return None
    return pack_state(state, keyed, gone=gone, seen=watermark)


def keep_timers(
    stage: Stage, seat: Seat, start: Start, timers: Timers, code: Code
) -> pa.Table | None:
    """The timers of every key that has set one or whose timer was due; None: there is none."""
    assert code.state is not None
    keyed, fresh = timers_of(code.state), timers.table()
    touched = _rising([key_hashes(fresh, keyed.key), key_hashes(start.due, keyed.key)])
    if not len(touched):
        return None
    _check_groups(fresh, keyed, seat.groups, "a timer is set")
    files = [entry for entry in seat.state if entry.kind == "timers"]
    before = find_rows(files, Path(stage.folder), keyed, touched)
    if stage.watermark is not None:
        before = before.filter(pc.greater(before[TIME], stage.watermark))
    both = pa.concat_tables([before, fresh]).group_by(keyed.schema.names).aggregate([])
    both = both.select(keyed.schema.names)
    gone = touched[~is_in(touched, _rising([key_hashes(both, keyed.key)]))]
    return pack_state(both, keyed, gone=gone, seen=None)


def check_state(state: Any, start: Start, keyed: Keyed, groups: tuple[int, int]) -> pa.Table:
    """State as a bolt returned it, checked.

    A key that belongs to another task is a mistake that would show only after a re-plan; one that
    did not come would replace rows that the bolt has not seen.
    """
    if not isinstance(state, pa.Table):
        raise InvalidInput(f"the new state is {type(state).__name__}; a table is needed")
    if set(state.column_names) != set(keyed.schema.names):
        columns, needed = ", ".join(state.column_names), ", ".join(keyed.schema.names)
        raise InvalidInput(f"the new state has columns {columns}; needed: {needed}")
    state = state.select(keyed.schema.names).cast(keyed.schema)
    hashes = _check_groups(state, keyed, groups, "the new state holds keys")
    if not start.whole and not is_in(hashes, start.touched).all():
        row = state.slice(int(np.argmin(is_in(hashes, start.touched))), 1).to_pylist()[0]
        raise InvalidInput(
            f"the new state holds the key {', '.join(repr(row[name]) for name in keyed.key)}, "
            "which did not come in this batch",
            fix="Keyed(.., whole=True) gives a bolt the rows of all keys of its task",
        )
    return state


def _check_groups(rows: pa.Table, keyed: Keyed, groups: tuple[int, int], what: str) -> Hashes:
    hashes = key_hashes(rows, keyed.key)
    found = (hashes >> GROUP_SHIFT).astype(np.int64)
    if len(found) and (found.min() < groups[0] or found.max() >= groups[1]):
        raise InvalidInput(
            f"{what} of other tasks: its key columns {', '.join(keyed.key)} "
            "must equal, in value and type, the fields that the inputs are grouped by"
        )
    return hashes

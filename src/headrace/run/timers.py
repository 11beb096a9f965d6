"""Timers of a keyed bolt: set for a key, fired once the watermark has passed them."""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import InvalidInput
from headrace.model.topology import Keyed
from headrace.run.state_files import TIME, timers_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STAMP = pa.timestamp("us", tz="UTC")


class Timers:
    """What a bolt asks for as `timers`: sets them, in a batch, for the keys of its task."""

    def __init__(self, keyed: Keyed) -> None:
        self._schema, self._key = timers_of(keyed).schema, keyed.key
        self._set: dict[tuple[Any, ...], None] = {}
        self._tables: list[pa.Table] = []
        self.current: Any = None  # the key of the row that is at work, in tuple form

    def at(self, time: datetime) -> None:
        """Fire for the key of this row once the watermark has passed a time; tuple form."""
        key = self.current if len(self._key) > 1 else (self.current,)
        if self.current is None and len(self._key) > 1:
            raise InvalidInput("`timers.at` is for the key of a row; there is none here")
        self._set[(*key, micros_of(time))] = None

    def at_rows(self, rows: pa.Table, column: str) -> None:
        """Fire for the key of every row once the watermark has passed the time in a column."""
        times = micros_in(rows, column)
        keys = {name: rows[name] for name in self._key}
        self._tables.append(pa.table({**keys, TIME: times}).cast(self._schema))

    def table(self) -> pa.Table:
        """All that were set."""
        names = self._schema.names
        rows = [dict(zip(names, row, strict=True)) for row in self._set]
        return pa.concat_tables([pa.Table.from_pylist(rows, schema=self._schema), *self._tables])


def micros_of(time: datetime) -> int:
    """A time as microseconds since 1970; without a zone it is UTC."""
    if not isinstance(time, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"{time!r} is no time; a datetime is needed")
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(microseconds=1)


def time_of(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def micros_in(rows: pa.Table, column: str) -> pa.ChunkedArray:
    """A column of times as microseconds since 1970."""
    if column not in rows.column_names:
        there = ", ".join(rows.column_names)
        raise InvalidInput(f"there is no column `{column}` with the event time; there are {there}")
    values = rows[column]
    if not pa.types.is_timestamp(values.type):
        raise InvalidInput(f"event time: column `{column}` holds {values.type}; timestamps needed")
    return pc.cast(values, pa.timestamp("us", tz=values.type.tz), safe=False).cast(pa.int64())

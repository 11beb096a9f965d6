"""Calling a component's function: over Arrow tables, pandas frames or single tuples.

A function takes the table (frame, tuple) first, and by name whatever it wants of `state`, `timers`,
`source` (the component that sent it), `batch`, `task` and `watermark`. It gives a table, or a
mapping from stream to table, or nothing; with state, a pair of that and the new state. Tuple by
tuple it gives tuples, or (stream, tuple) pairs, and changes its state in place.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import islice, repeat
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from headrace.errors import InvalidInput
from headrace.model.topology import Code, Function, Keyed
from headrace.run.order import Run, Runs
from headrace.run.state_files import TIME
from headrace.run.timers import STAMP, Timers, time_of

Emitted = tuple[str, pa.Table, Runs]  # a stream, its rows, and where they stand
DEFAULT = "default"
ROW = "_row"  # a column in which a function may say which row of its input a row comes from
BEFORE, AFTER = -1, 1 << 62  # paths of what timers give, and of what is given after the rows


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What a function may ask for by name."""

    source: str
    batch: int
    task: int  # from 1
    watermark: datetime | None = None


class Calls:
    """The calls of one task in one batch, and the state that goes from one to the next."""

    def __init__(self, code: Code, facts: CallFacts, state: pa.Table | None) -> None:
        self.code, self.facts, self.state = code, facts, state
        timed = code.state is not None and code.on_timer is not None
        self.timers = Timers(code.state) if code.state is not None and timed else None
        self._by_key: dict[Any, dict[str, Any]] | None = None
        if code.form == "tuple" and code.state is not None and state is not None:
            self._by_key = {_key(row, code.state): row for row in state.to_pylist()}

    def on_rows(
        self,
        table: pa.Table,
        runs: Runs,
        source: str,
        *,
        piecewise: bool = False,
        fields: Sequence[str] = (),
    ) -> list[Emitted]:
        """Call on the rows of an input; `piecewise`: on each run alone; `fields`: its key."""
        function = self.code.function
        if function is None:
            return [(DEFAULT, table, runs)]
        if self.code.form == "tuple":
            keys = self._keys(table, fields)
            return self._each(function, table, runs, keys, self._extras(function, source))
        found: list[Emitted] = []
        start = 0
        for one in [[run] for run in runs] if piecewise else [runs]:
            rows = sum(n for _, n in one)
            streams = self._over(function, table.slice(start, rows), source)
            found += [(stream, *_placed(out, one, rows)) for stream, out in streams.items()]
            start += rows
        return found

    def on_timers(self, due: pa.Table) -> list[Emitted]:
        """Call for the timers that have passed: key columns and `_time`, in their order."""
        function, keyed = self.code.on_timer, self.code.state
        if function is None or keyed is None or not due.num_rows:
            return []
        times = due[TIME].to_pylist()
        if self.code.form == "tuple":
            emitted = _Collected(self.code)
            extras = self._extras(function, "")
            for row, time in zip(due.to_pylist(), times, strict=True):
                self._at_work(key := _key(row, keyed))
                emitted.add(function(key, time_of(time), **extras), (BEFORE, time))
            return emitted.streams()
        shown = due.set_column(due.column_names.index(TIME), TIME, due[TIME].cast(STAMP))
        streams = self._over(function, shown, "")
        return [(name, out, [((BEFORE, times[0]), out.num_rows)]) for name, out in streams.items()]

    def on_batch(self) -> list[Emitted]:
        """Call once without rows, after all of them."""
        function = self.code.function
        if function is None or not self.code.each_batch:
            return []
        if self.code.form == "tuple":
            self._at_work(None)
            emitted = _Collected(self.code)
            emitted.add(function(None, **self._extras(function, "")), (AFTER,))
            return emitted.streams()
        streams = self._over(function, pa.table({}), "")
        return [(name, out, [((AFTER,), out.num_rows)]) for name, out in streams.items()]

    def new_state(self) -> Any:
        """The state as the calls have left it."""
        if self._by_key is None or self.code.state is None:
            return self.state
        return pa.Table.from_pylist(list(self._by_key.values()), schema=self.code.state.schema)

    def _at_work(self, key: Any) -> None:
        if self.timers is not None:
            self.timers.current = key

    def _extras(self, function: Function, source: str) -> dict[str, Any]:
        facts = asdict(replace(self.facts, source=source))
        extras = pick_facts(function, {**facts, "timers": self.timers})
        if self._by_key is not None:
            extras["state"] = self._by_key
        return extras

    def _over(self, function: Function, table: pa.Table, source: str) -> dict[str, pa.Table]:
        """Call once over a table, in Arrow's form or pandas'."""
        extras, keyed = self._extras(function, source), self.code.state
        if self.code.form == "arrow":
            result, new = _with_state(function, table, self.state, extras)
        else:
            frame = None if self.state is None else self.state.to_pandas()
            result, new = _with_state(function, table.to_pandas(), frame, extras)
            new = None if new is None or keyed is None else _to_arrow(new, keyed.schema)
        self.state = new if self.state is not None else None
        return _streams(result, self.code.schema)

    def _each(
        self,
        function: Function,
        table: pa.Table,
        runs: Runs,
        keys: Iterator[Any],
        extras: Mapping[str, Any],
    ) -> list[Emitted]:
        """Call on tuple after tuple; what a run gives is a run in its place."""
        emitted, rows = _Collected(self.code), iter(table.to_pylist())
        for path, count in runs:
            for row, key in zip(islice(rows, count), keys, strict=False):
                self._at_work(key)
                emitted.add(function(row, **extras), path)
        return emitted.streams()

    def _keys(self, table: pa.Table, fields: Sequence[str]) -> Iterator[Any]:
        """The key of each row, under whatever names the sender has for its columns."""
        if self.timers is None or not fields:
            return repeat(None)
        columns = [table[name].to_pylist() for name in fields]
        return iter(columns[0]) if len(columns) == 1 else zip(*columns, strict=True)


class _Collected:
    """Tuples that were given, by stream, with the runs they make."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._rows: dict[str, list[Mapping[str, Any]]] = {}
        self._runs: dict[str, list[Run]] = {}

    def add(self, given: Any, path: tuple[int, ...]) -> None:
        for out in cast("Iterable[Any]", given or ()):
            stream, values = out if isinstance(out, tuple) else (DEFAULT, out)
            self._rows.setdefault(stream, []).append(values)
            runs = self._runs.setdefault(stream, [])
            if runs and runs[-1][0] == path:
                runs[-1] = (path, runs[-1][1] + 1)
            else:
                runs.append((path, 1))

    def streams(self) -> list[Emitted]:
        return [
            (stream, pa.Table.from_pylist(rows, schema=self._code.schema), self._runs[stream])
            for stream, rows in self._rows.items()
        ]


def pick_facts(function: Function, given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the facts that the function has a parameter for."""
    try:
        names = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-in functions do not say
        return {}
    return {name: value for name, value in given.items() if name in names}


def _placed(out: pa.Table, runs: Runs, rows: int) -> tuple[pa.Table, Runs]:
    """Where the rows that one call gave stand: as it says, else row by row, else all together."""
    if ROW in out.column_names:
        index = out[ROW].to_numpy().astype(np.int64)
        if len(index) and (index.min() < 0 or index.max() >= rows):
            raise InvalidInput(f"`{ROW}` names a row from {index.min()} to {index.max()} of {rows}")
        paths = np.repeat(np.arange(len(runs)), [n for _, n in runs])[index]
        return out.drop_columns([ROW]), [(runs[i][0], 1) for i in paths.tolist()]
    if out.num_rows == rows and len(runs) > 1:
        return out, runs
    return out, [(runs[0][0], out.num_rows)]


def _with_state(
    function: Function, table: Any, state: Any, extras: Mapping[str, Any]
) -> tuple[Any, Any]:
    if state is None:
        return function(table, **extras), None
    result = function(table, state=state, **extras)
    if not isinstance(result, tuple) or len(cast("tuple[Any, ...]", result)) != 2:
        raise InvalidInput(
            "a bolt with keyed state gives a pair (output, new state); "
            f"this one gave {type(result).__name__}"
        )
    return cast("tuple[Any, Any]", result)


def _streams(result: Any, schema: pa.Schema | None) -> dict[str, pa.Table]:
    if result is None:
        return {}
    named = cast("Mapping[str, Any]", result) if isinstance(result, Mapping) else {DEFAULT: result}
    return {stream: _to_arrow(rows, schema) for stream, rows in named.items() if rows is not None}


def _to_arrow(rows: Any, schema: pa.Schema | None) -> pa.Table:
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if isinstance(rows, pd.DataFrame):
        rows = pa.Table.from_pandas(
            rows, schema=schema, preserve_index=False
        ).replace_schema_metadata()
    if not isinstance(rows, pa.Table):
        raise InvalidInput(
            f"a bolt gives an Arrow table or a pandas frame; this one gave {type(rows).__name__}"
        )
    if schema is None:
        return rows
    kept = [*schema.names, *([ROW] if ROW in rows.column_names else [])]
    own = schema if kept == schema.names else schema.append(rows.schema.field(ROW))
    return rows.select(kept).cast(own)


def _key(row: Mapping[str, Any], keyed: Keyed) -> Any:
    """The key of a state row: a single value, or a tuple where there are several key columns."""
    return row[keyed.key[0]] if len(keyed.key) == 1 else tuple(row[name] for name in keyed.key)

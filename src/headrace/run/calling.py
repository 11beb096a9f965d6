"""Calling a component's function: over Arrow tables, pandas frames or single tuples.

A function takes the table (frame, tuple) first, and by name whatever it wants of `state`, `source`
(the component that sent it), `batch` and `task`. It gives a table, or a mapping from stream to
table, or nothing; with state, a pair of that and the new state. Tuple by tuple it gives tuples, or
(stream, tuple) pairs, and changes its state in place.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

import pandas as pd
import pyarrow as pa

from headrace.errors import InvalidInput
from headrace.model.topology import Code, Function, Keyed

Tables = dict[str, pa.Table]
DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What a function may ask for by name."""

    source: str
    batch: int
    task: int  # from 1


def call(
    code: Code, table: pa.Table, state: pa.Table | None, given: CallFacts
) -> tuple[Tables, pa.Table | None]:
    """The streams that a function emits, and its new state."""
    if code.function is None:
        return {DEFAULT: table}, state
    extras = pick_facts(code.function, given)
    match code.form:
        case "tuple":
            return _one_by_one(code, code.function, table, state, extras)
        case "pandas":
            frame = None if state is None else state.to_pandas()
            result, new = _with_state(code.function, table.to_pandas(), frame, extras)
            if new is not None and code.state is not None:
                new = _to_arrow(new, code.state.schema)
            return _streams(result, code.schema), new
        case "arrow":
            result, new = _with_state(code.function, table, state, extras)
            return _streams(result, code.schema), new


def pick_facts(function: Function, given: CallFacts) -> dict[str, Any]:
    """Those of the facts that the function has a parameter for."""
    try:
        names = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-in functions do not say
        return {}
    return {name: value for name, value in asdict(given).items() if name in names}


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


def _streams(result: Any, schema: pa.Schema | None) -> Tables:
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
    return rows if schema is None else rows.select(schema.names).cast(schema)


def _one_by_one(
    code: Code, function: Function, table: pa.Table, state: pa.Table | None, extras: dict[str, Any]
) -> tuple[Tables, pa.Table | None]:
    keyed, by_key = code.state, None
    if keyed is not None and state is not None:
        by_key = {_key(row, keyed): row for row in state.to_pylist()}
        extras["state"] = by_key
    emitted: dict[str, list[Mapping[str, Any]]] = {}
    for row in table.to_pylist():
        for out in cast("Iterable[Any]", function(row, **extras) or ()):
            stream, values = out if isinstance(out, tuple) else (DEFAULT, out)
            emitted.setdefault(stream, []).append(values)
    streams = {
        stream: pa.Table.from_pylist(rows, schema=code.schema) for stream, rows in emitted.items()
    }
    if by_key is None or keyed is None:
        return streams, None
    return streams, pa.Table.from_pylist(list(by_key.values()), schema=keyed.schema)


def _key(row: Mapping[str, Any], keyed: Keyed) -> Any:
    """The key of a state row: a single value, or a tuple where there are several key columns."""
    return row[keyed.key[0]] if len(keyed.key) == 1 else tuple(row[name] for name in keyed.key)

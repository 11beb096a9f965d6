"""The telemetry format, what tasks, edges and nodes report about themselves, and its writer.

A telemetry folder holds one folder per kind (tasks/, edges/, nodes/) of files that are only ever
added. Another version of the format is recognised by the metadata of a Parquet file, or by the
`version` of each JSON line.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Literal, Self

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.errors import InvalidInput
from headrace.model.files import replace_file

VERSION = 1
VERSION_KEY = b"headrace.telemetry"  # in the metadata of the schema; JSON lines say `version`

INSTANT = pa.timestamp("us", tz="UTC")


def _kind(*columns: tuple[str, pa.DataType]) -> pa.Schema:
    stamps = [pa.field("event_time", INSTANT), pa.field("arrival", INSTANT)]
    return pa.schema(
        [*stamps, *(pa.field(*column) for column in columns)],
        metadata={VERSION_KEY: str(VERSION).encode()},
    )


# What a task did since its previous sample, and how it is now.
TASKS = _kind(
    ("topology", pa.string()),
    ("task", pa.string()),  # split.1
    ("component", pa.string()),
    ("node", pa.string()),
    ("machine_type", pa.string()),
    ("tuples_in", pa.int64()),
    ("tuples_out", pa.int64()),
    ("cpu_ms", pa.float64()),
    ("queue_length", pa.int64()),
    ("memory_mb", pa.float64()),
    ("worker", pa.int64()),  # the slot it ran in on its node
)
# What went from one task to another since the previous sample of the pair.
EDGES = _kind(
    ("topology", pa.string()),
    ("from_task", pa.string()),
    ("to_task", pa.string()),
    ("tuples", pa.int64()),
    ("bytes", pa.int64()),
)
# What a node is, and what of it was in use since its previous sample.
NODES = _kind(
    ("node", pa.string()),
    ("cpu_used", pa.float64()),  # points: 100 = one core
    ("memory_used_mb", pa.float64()),
    ("sent_mbps", pa.float64()),
    ("received_mbps", pa.float64()),
    ("machine_type", pa.string()),
    ("sockets", pa.int64()),
    ("cores", pa.int64()),  # per socket
    ("ghz", pa.float64()),
    ("flops_per_cycle", pa.float64()),
    ("memory_mb", pa.float64()),
    ("bandwidth_mbps", pa.float64()),
    ("slots", pa.int64()),
)
NODE_FACTS = tuple(NODES.names[NODES.names.index("machine_type") + 1 :])  # the numbers
NODE_USE = ("cpu_used", "memory_used_mb", "sent_mbps", "received_mbps")
LATER = frozenset({"worker"})  # columns that files of other programs, and older ones, may lack
KINDS: Mapping[str, pa.Schema] = {"tasks": TASKS, "edges": EDGES, "nodes": NODES}

Rows = pa.Table | Sequence[Mapping[str, Any]]


class Writer:
    """Adds rolling files to a telemetry folder; a reader sees a file whole or not at all.

    Rows wait in memory until there are `rows_per_file` of a kind, or until `flush`. A row without
    an `arrival` gets the time at which it was handed over. Files are called by `name` and a number:
    the same name again replaces the files of before, which is what a retried batch wants; by
    default no two writers share a name.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        format: Literal["parquet", "jsonl"] = "parquet",
        rows_per_file: int = 100_000,
        name: str | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        if format not in ENCODERS:
            raise InvalidInput(
                f"there is no telemetry format `{format}`; there are {' and '.join(ENCODERS)}"
            )
        self.folder = Path(folder)
        self.format = format
        self.rows_per_file = rows_per_file
        self.name = name or f"{socket.gethostname()}-{os.getpid()}-{time.time_ns():x}"
        self._clock = clock
        self._waiting: dict[str, list[pa.Table]] = {kind: [] for kind in KINDS}
        self._numbers = {kind: count() for kind in KINDS}

    def write(self, kind: str, rows: Rows) -> None:
        """Take rows of one kind: a table, or mappings with the columns' names as keys."""
        if kind not in KINDS:
            raise InvalidInput(
                f"there is no telemetry of kind `{kind}`; there are {', '.join(KINDS)}"
            )
        waiting = self._waiting[kind]
        waiting.append(_stamp(_table(kind, rows), self._clock()))
        if sum(table.num_rows for table in waiting) >= self.rows_per_file:
            self._flush(kind)

    def flush(self) -> None:
        """Make everything handed over so far visible, and safe from a power cut."""
        for kind in KINDS:
            self._flush(kind)

    def close(self) -> None:
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _flush(self, kind: str) -> None:
        rows = (
            pa.concat_tables(self._waiting[kind])
            if self._waiting[kind]
            else KINDS[kind].empty_table()
        )
        self._waiting[kind].clear()
        for start in range(0, rows.num_rows, self.rows_per_file):
            folder = self.folder / kind
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"{self.name}-{next(self._numbers[kind]):06d}.{self.format}"
            with replace_file(file, durable=True) as draft:  # readers pass over hidden names
                ENCODERS[self.format](rows.slice(start, self.rows_per_file), draft)


def _table(kind: str, rows: Rows) -> pa.Table:
    """Rows with exactly the columns of their kind; what is absent is null."""
    schema = KINDS[kind]
    given = (
        {key for row in rows for key in row}
        if isinstance(rows, Sequence)
        else set(rows.column_names)
    )
    if unknown := given - set(schema.names):
        raise InvalidInput(
            f"telemetry of kind `{kind}` has no column `{min(unknown)}`; "
            f"it has {', '.join(schema.names)}"
        )
    try:
        if isinstance(rows, Sequence):
            return pa.Table.from_pylist(list(rows), schema=schema)
        absent = pa.nulls(rows.num_rows)
        columns = [rows[name] if name in given else absent for name in schema.names]
        return pa.table(columns, names=schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InvalidInput(f"telemetry of kind `{kind}`: {error}") from error


def _stamp(rows: pa.Table, now: datetime) -> pa.Table:
    """Rows with `now` where they had no arrival."""
    if not rows["arrival"].null_count:
        return rows
    arrival = rows["arrival"].fill_null(pa.scalar(now, INSTANT))
    return rows.set_column(
        rows.schema.get_field_index("arrival"), rows.schema.field("arrival"), arrival
    )


def _parquet(rows: pa.Table, file: Path) -> None:
    pq.write_table(rows, file)


def _json_lines(rows: pa.Table, file: Path) -> None:
    with file.open("w", encoding="utf-8") as lines:
        for row in rows.to_pylist():
            line = {
                key: value.isoformat() if isinstance(value, datetime) else value
                for key, value in row.items()
            }
            lines.write(json.dumps({"version": VERSION, **line}) + "\n")


ENCODERS: Mapping[str, Callable[[pa.Table, Path], None]] = {
    "parquet": _parquet,
    "jsonl": _json_lines,
}

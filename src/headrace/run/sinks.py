"""Where results go: tasks write a batch's parts to files, the driver delivers the whole batch.

- Parquet: exactly once. A batch's folder is replaced as a whole; run again, it replaces its own.
- Console: at least once. What a batch printed before a crash is printed again.
- Callback: at least once, in the driver.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.errors import InvalidInput
from headrace.model.files import sync, write_whole
from headrace.model.topology import PartWriter
from headrace.run.storage import name_fault, read_table, write_table

OWNER = "_run"  # in a Parquet folder: the name of the run that it belongs to
SCHEMA = "_schema"  # and the Arrow schema of its files


@dataclass(frozen=True, slots=True)
class Parquet:
    """`folder/batch=N/component.N-xxxxxxxx.parquet`: a folder per batch, each exactly once.

    All files have one schema: `schema`, or that of the first batch with output.
    """

    folder: str
    schema: pa.Schema | None = None

    def check(self, run: str) -> None:
        owner = Path(self.folder) / OWNER
        if owner.exists() and owner.read_text() != run:
            raise InvalidInput(
                f"{self.folder}: holds the output of another run; name another folder, "
                "or go on with that run's checkpoint folder"
            )
        fixed = self._fixed()
        if fixed is not None and self.schema is not None and fixed != self.schema:
            raise InvalidInput(
                f"{self.folder}: its files have the columns {_columns(fixed)}; "
                f"now {_columns(self.schema)} are declared",
                fix="declare the former schema, or name another folder",
            )

    def open(self, run: str) -> None:
        self.check(run)
        owner = Path(self.folder) / OWNER
        with name_fault(owner, "the name of the run"):
            owner.parent.mkdir(parents=True, exist_ok=True)
            write_whole(owner, run, durable=True)
            if self.schema is not None:
                self._fix(self.schema)

    def parts(self, batch: int, attempt: str, scratch: Path) -> Path:
        # Absolute, since tasks have another working directory.
        return Path(self.folder).absolute() / f".{batch}-{attempt}"

    def writer(self) -> PartWriter:
        return partial(write_parquet, schema=self.schema or self._fixed())

    def deliver(self, batch: int, parts: Path, files: Sequence[Path]) -> None:
        final, whole = Path(self.folder) / f"batch={batch}", parts.with_name(f"{parts.name}-whole")
        shutil.rmtree(final, ignore_errors=True)
        names = sorted(file.with_suffix(".parquet").name for file in files)
        for name in names:
            # Only what reports name moves on: a task whose executor was killed may still be writing
            # beside it.
            whole.mkdir(exist_ok=True)
            try:
                (parts / name).rename(whole / name)
            except FileNotFoundError:
                raise InvalidInput(
                    f"{self.folder}: {name} was written by a task and is not there; "
                    "all nodes must share the folder"
                ) from None
        if files:
            if self._fixed() is None:
                self._fix(self._agree([whole / name for name in names]))
            sync(whole)
            whole.rename(final)
            sync(final.parent)
        for stale in Path(self.folder).glob(f".{batch}-*"):
            shutil.rmtree(stale, ignore_errors=True)

    def _fixed(self) -> pa.Schema | None:
        """The schema that all files have, once there are some."""
        file = Path(self.folder) / SCHEMA
        if not file.exists():
            return None
        with name_fault(file, "the schema of the output"):
            return pa.ipc.read_schema(pa.py_buffer(file.read_bytes()))

    def _fix(self, schema: pa.Schema) -> None:
        file = Path(self.folder) / SCHEMA
        with name_fault(file, "the schema of the output"):
            write_whole(file, schema.serialize().to_pybytes(), durable=True)

    def _agree(self, files: Sequence[Path]) -> pa.Schema:
        """The schema of the first output, in which one task may know what another does not."""
        found = [pq.read_schema(file).remove_metadata() for file in files]
        schema = pa.unify_schemas(found, promote_options="permissive")
        for column in schema:
            if pa.types.is_null(column.type):
                raise InvalidInput(
                    f"{self.folder}: all values of `{column.name}` are null in the first output, "
                    "so its type is not known",
                    fix="give it: Parquet(folder, schema=..), or schema= of the component",
                )
        for file, own in zip(files, found, strict=True):
            if own != schema:
                write_parquet(file, pq.ParquetFile(file).read(), schema=schema)
        return schema


@dataclass(frozen=True, slots=True)
class Callback:
    """Calls `function(batch, table)` in the driver, for every batch with output; at least once."""

    function: Callable[[int, pa.Table], object]

    def check(self, run: str) -> None:
        pass

    def open(self, run: str) -> None:
        pass

    def parts(self, batch: int, attempt: str, scratch: Path) -> Path:
        return scratch

    def writer(self) -> PartWriter:
        return write_table

    def deliver(self, batch: int, parts: Path, files: Sequence[Path]) -> None:
        if files:
            tables = [read_table(file) for file in files]
            self.function(batch, pa.concat_tables(tables, promote_options="permissive"))


def write_parquet(file: Path, rows: pa.Table, *, schema: pa.Schema | None = None) -> None:
    """One part of a Parquet output."""
    part = file.with_suffix(".parquet")
    pq.write_table(rows if schema is None else fit(rows, schema), part)
    sync(part)


def fit(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with the columns that an output has."""
    if set(rows.column_names) != set(schema.names):
        raise InvalidInput(
            f"its output has the columns {_columns(rows.schema)}; before, and in the files of its "
            f"sink, {_columns(schema)}",
            fix="give the columns of before, or write to another folder",
        )
    for column in schema:
        try:
            rows[column.name].cast(column.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidInput(
                f"its output has `{column.name}` as {rows.schema.field(column.name).type}; before, "
                f"and in the files of its sink, it was {column.type} ({error})"
            ) from None
    return rows.select(schema.names).cast(schema)


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in schema)


def read_batches(folder: str, batches: int) -> list[list[dict[str, Any]]]:
    """The rows of the first batches of a Parquet output; a batch without rows has no folder."""
    files = (sorted(Path(folder).glob(f"batch={batch}/*.parquet")) for batch in range(batches))
    return [
        [row for file in found for row in pq.ParquetFile(file).read().to_pylist()]
        for found in files
    ]


def print_rows(batch: int, rows: pa.Table, most: int = 20) -> None:
    """The first rows of a batch, on standard error."""
    print(f"batch {batch}: {rows.num_rows:,} rows", file=sys.stderr)
    print(rows.slice(0, most).to_pandas().to_string(index=False), file=sys.stderr, flush=True)


def Console() -> Callback:
    """Prints the first rows of every batch; at least once."""
    return Callback(print_rows)

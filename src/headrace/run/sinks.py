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
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.errors import InvalidInput
from headrace.model.files import sync, write_whole
from headrace.model.topology import PartWriter
from headrace.run.storage import read_table, write_table

OWNER = "_run"  # in a Parquet folder: the name of the run that it belongs to


@dataclass(frozen=True, slots=True)
class Parquet:
    """`folder/batch=N/component.N-xxxxxxxx.parquet`: a folder per batch, each exactly once."""

    folder: str

    def check(self, run: str) -> None:
        owner = Path(self.folder) / OWNER
        if owner.exists() and owner.read_text() != run:
            raise InvalidInput(
                f"{self.folder}: holds the output of another run; name another folder, "
                "or go on with that run's checkpoint folder"
            )

    def open(self, run: str) -> None:
        self.check(run)
        owner = Path(self.folder) / OWNER
        owner.parent.mkdir(parents=True, exist_ok=True)
        write_whole(owner, run, durable=True)

    def parts(self, batch: int, attempt: str, scratch: Path) -> Path:
        # Absolute, since tasks have another working directory.
        return Path(self.folder).absolute() / f".{batch}-{attempt}"

    def writer(self) -> PartWriter:
        return write_parquet

    def deliver(self, batch: int, parts: Path, files: Sequence[Path]) -> None:
        final, whole = Path(self.folder) / f"batch={batch}", parts.with_name(f"{parts.name}-whole")
        shutil.rmtree(final, ignore_errors=True)
        for name in sorted(file.with_suffix(".parquet").name for file in files):
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
            sync(whole)
            whole.rename(final)
            sync(final.parent)
        for stale in Path(self.folder).glob(f".{batch}-*"):
            shutil.rmtree(stale, ignore_errors=True)


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


def write_parquet(file: Path, rows: pa.Table) -> None:
    """One part of a Parquet output."""
    part = file.with_suffix(".parquet")
    pq.write_table(rows, part)
    sync(part)


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

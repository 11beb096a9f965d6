"""The provenance store: Parquet by kind, day and topology, in segments that are there whole or not at all.

    STORE/tasks/segment=0000000007/table=events/day=2026-03-01/topology=words/*.parquet
    STORE/tasks/segment=0000000000-0000000006/..                                          (compacted)

A segment counts once Spark has put its `_SUCCESS` into it, and unless a wider segment holds the same batches. So a batch that is
cut off leaves nothing that counts, and one that runs again replaces itself (docs/decisions/0004-telemetry-store.md).
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.errors import InvalidInput
from headrace.model.telemetry import KINDS
from headrace.observe.classify import EVENTS
from headrace.observe.source import columns_of

COMPACT_FROM = 16  # segments
LARGE_BYTES = 256_000_000  # a segment of this size is not written again
ROWS_PER_FILE = 5_000_000


@dataclass(frozen=True, slots=True)
class Segment:
    """What the batches from `first` to `last` brought."""

    folder: Path
    first: int
    last: int

    @staticmethod
    def of(folder: Path) -> Segment:
        first, _, last = folder.name.removeprefix("segment=").partition("-")
        return Segment(folder, int(first), int(last or first))

    @property
    def complete(self) -> bool:
        return (self.folder / "_SUCCESS").exists()

    @property
    def bytes(self) -> int:
        return sum(file.stat().st_size for file in self.folder.rglob("*.parquet"))

    def within(self, other: Segment) -> bool:
        return other is not self and other.first <= self.first and self.last <= other.last


def segment_folder(store: Path, kind: str, first: int, last: int) -> Path:
    numbers = f"{first:010d}" if first == last else f"{first:010d}-{last:010d}"
    return store / kind / f"segment={numbers}"


def segments(store: Path, kind: str) -> list[Segment]:
    """The segments that count, oldest first."""
    complete = [s for folder in (store / kind).glob("segment=*") if (s := Segment.of(folder)).complete]
    return sorted((s for s in complete if not any(s.within(o) for o in complete)), key=lambda s: s.first)


def check_store(store: Path) -> None:
    """Refuse a folder that is no store, before anything is written or read there."""
    if not store.is_dir():
        raise InvalidInput(f"{store}: no such folder; a store is made by headrace observe DIR --store {store}")
    if not any((store / kind).is_dir() for kind in KINDS):
        raise InvalidInput(f"{store}: is not a store; it needs at least one of the folders {', '.join(KINDS)}")


def rows_of(spark: SparkSession, store: Path, kind: str, found: list[Segment]) -> DataFrame:
    """All rows of some segments, with the `table` they belong to, their `reason` and what could not be read of them."""
    columns = columns_of(kind)
    partitions = ("segment", "table", *partition_columns(kind))
    plain = [field for field in columns.fields if field.name not in partitions]
    schema = type(columns)(plain).add("reason", "string").add("raw", "string")
    for name in partitions:
        schema = schema.add(name, "date" if name == "day" else "string")
    if not found:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).option("basePath", str(store / kind)).parquet(*(str(s.folder) for s in found))


def events(spark: SparkSession, store: Path, kind: str) -> DataFrame:
    """Every valid sample, once."""
    rows = rows_of(spark, store, kind, segments(store, kind))
    return rows.where(F.col("table") == EVENTS).select(*KINDS[kind].names)


def write_segment(rows: DataFrame, folder: Path, kind: str) -> None:
    """Write rows that have a `table`, a `reason` and `raw`, in the place of what an earlier attempt left."""
    day = F.to_date("event_time").alias("day")
    columns = [F.col(name) for name in (*KINDS[kind].names, "reason", "raw", "table")]
    written = rows.select(*columns, day).write.mode("overwrite").partitionBy("table", *partition_columns(kind))
    written.option("maxRecordsPerFile", ROWS_PER_FILE).parquet(str(folder))


def partition_columns(kind: str) -> tuple[str, ...]:
    return ("day", "topology") if "topology" in KINDS[kind].names else ("day",)


def compact(spark: SparkSession, store: Path, kind: str, *, before: int, from_segments: int = COMPACT_FROM) -> None:
    """Write the small segments of batches before `before` as one, if there are many; then remove those that no longer count."""
    found = [s for s in segments(store, kind) if s.last < before]
    if len(found) >= from_segments:
        large = [i for i, s in enumerate(found) if s.bytes >= LARGE_BYTES]
        found = found[large[-1] + 1 :] if large else found
    if len(found) >= from_segments:
        whole = segment_folder(store, kind, found[0].first, found[-1].last)
        parts = ("table", *partition_columns(kind))
        write_segment(rows_of(spark, store, kind, found).repartition(*parts), whole, kind)
    counting = {s.folder for s in segments(store, kind)}
    for folder in (store / kind).glob("segment=*"):
        if folder not in counting and Segment.of(folder).last < before:
            # Its mark goes first: cut off in the middle, it must not look whole.
            (folder / "_SUCCESS").unlink(missing_ok=True)
            shutil.rmtree(folder)

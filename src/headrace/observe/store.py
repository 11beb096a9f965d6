"""The provenance store: Parquet by kind, day and topology, in segments that are whole or not there.

    STORE/tasks/segment=0000000007/table=events/day=2026-03-01/topology=words/*.parquet
    STORE/tasks/segment=0000000000-0000000006/..                                   (compacted)

A segment counts once Spark has put its `_SUCCESS` into it, and unless a wider segment holds the
same batches. So a batch that is cut off leaves nothing that counts, and one that runs again
replaces itself (docs/decisions/0004-telemetry-store.md).
"""

from __future__ import annotations

import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.errors import InvalidInput
from headrace.model.telemetry import KINDS
from headrace.observe.classify import EVENTS
from headrace.observe.source import columns_of

COMPACT_FROM = 16  # segments
LARGE_BYTES = 256_000_000  # a segment of this size is not written again
ROWS_PER_FILE = 5_000_000
WRITING = {
    # Spark's default has no least and greatest in the footer.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Up to so many partitions, rows need not be sorted by them first.
    "spark.sql.maxConcurrentOutputFileWriters": "64",
    # A fifth smaller than Spark's default here, and no slower.
    "spark.sql.parquet.compression.codec": "zstd",
}


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


def segment_folder(store: Path, kind: str, first: int, last: int) -> Path:
    numbers = f"{first:010d}" if first == last else f"{first:010d}-{last:010d}"
    return store / kind / f"segment={numbers}"


def segments(store: Path, kind: str) -> list[Segment]:
    """The segments that count, oldest first."""
    complete = (
        s for folder in (store / kind).glob("segment=*") if (s := Segment.of(folder)).complete
    )
    counting: list[Segment] = []
    # A wider one comes before those within it.
    for segment in sorted(complete, key=lambda s: (s.first, -s.last)):
        if not counting or segment.last > counting[-1].last:
            counting.append(segment)
    return counting


def check_store(store: Path) -> None:
    """Refuse a folder that is no store, before anything is written or read there."""
    if not store.is_dir():
        raise InvalidInput(
            f"{store}: no such folder; a store is made by headrace observe DIR --store {store}"
        )
    if not any((store / kind).is_dir() for kind in KINDS):
        raise InvalidInput(
            f"{store}: is not a store; it needs at least one of the folders {', '.join(KINDS)}"
        )


def rows_of(spark: SparkSession, store: Path, kind: str, found: list[Segment]) -> DataFrame:
    """All rows of some segments, with their `table`, `reason` and unreadable text (`raw`)."""
    return rows_in(spark, store, kind, [segment.folder for segment in found])


def rows_in(spark: SparkSession, store: Path, kind: str, places: list[Path]) -> DataFrame:
    """The same, of some folders or files inside the store."""
    columns = columns_of(kind)
    partitions = ("segment", "table", *partition_columns(kind))
    plain = [field for field in columns.fields if field.name not in partitions]
    schema = type(columns)(plain).add("reason", "string").add("raw", "string")
    for name in partitions:
        schema = schema.add(name, "date" if name == "day" else "string")
    if not places:
        return spark.createDataFrame([], schema)
    return (
        spark.read.schema(schema).option("basePath", str(store / kind)).parquet(*map(str, places))
    )


def events(spark: SparkSession, store: Path, kind: str) -> DataFrame:
    """Every valid sample, once."""
    rows = rows_of(spark, store, kind, segments(store, kind))
    return rows.where(F.col("table") == EVENTS).select(*KINDS[kind].names)


def events_between(
    spark: SparkSession,
    store: Path,
    kind: str,
    found: list[Segment],
    first: datetime,
    last: datetime,
) -> DataFrame:
    """The events of some segments between two times; only files that may have some are read."""
    days = [f"day={stamp.astimezone(UTC):%Y-%m-%d}" for stamp in (first, last)]
    folders = (
        day
        for s in found
        for day in s.folder.glob(f"table={EVENTS}/day=*")
        if days[0] <= day.name <= days[1]
    )
    files = [
        f
        for day in folders
        for f in day.rglob("*.parquet")
        if (at := time_range(f))[0] <= last and at[1] >= first
    ]
    return rows_in(spark, store, kind, files).where(
        F.col("event_time").between(F.lit(first), F.lit(last))
    )


@lru_cache(100_000)  # a file never changes
def time_range(events_file: Path) -> tuple[datetime, datetime]:
    """The first and the last event time of a file of events, from its footer."""
    footer = pq.read_metadata(events_file)
    column = footer.schema.to_arrow_schema().get_field_index("event_time")
    known = [footer.row_group(i).column(column).statistics for i in range(footer.num_row_groups)]
    if not all(s is not None and s.has_min_max for s in known):
        # Another program wrote it: it may hold any time.
        return datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    return min(s.min for s in known), max(s.max for s in known)


def write_segment(rows: DataFrame, folder: Path, kind: str) -> None:
    """Write rows with their `table`, `reason` and `raw` over what an earlier attempt left."""
    day = F.to_date("event_time").alias("day")
    columns = [F.col(name) for name in (*KINDS[kind].names, "reason", "raw", "table")]
    writer = (
        rows.select(*columns, day)
        .write.mode("overwrite")
        .partitionBy("table", *partition_columns(kind))
    )
    with set_for_now(rows.sparkSession, WRITING):
        writer.option("maxRecordsPerFile", ROWS_PER_FILE).parquet(str(folder))


def count_rows(folder: Path) -> int:
    """How many rows a segment has, by the footers of its files."""
    return sum(pq.read_metadata(file).num_rows for file in folder.rglob("*.parquet"))


@contextmanager
def set_for_now(spark: SparkSession, settings: Mapping[str, str]) -> Generator[None]:
    """Settings that Spark takes from its session only, put back afterwards."""
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value or "")


def partition_columns(kind: str) -> tuple[str, ...]:
    return ("day", "topology") if "topology" in KINDS[kind].names else ("day",)


def compact(
    spark: SparkSession, store: Path, kind: str, *, before: int, from_segments: int = COMPACT_FROM
) -> None:
    """Write the small segments of batches before `before` as one, if there are many.

    Segments that no longer count are then removed.
    """
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

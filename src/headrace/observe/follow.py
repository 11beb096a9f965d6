"""Telemetry into the store, as a Structured Streaming query that takes up where it was cut off."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.errors import Unsupported
from headrace.model.telemetry import KINDS
from headrace.observe.classify import (
    EVENTS,
    KEYS,
    LATENESS_S,
    classify_rows,
    events,
    in_time,
    others,
    usable,
)
from headrace.observe.source import new_files, read_files
from headrace.observe.store import (
    Segment,
    compact,
    count_rows,
    events_between,
    segment_folder,
    segments,
    write_segment,
)

MOST_SECONDS = 200_000  # that look repeated
MOST_BROADCAST = 1_000_000  # marks of samples that came more than once
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Takes a batch, its number and its kind; how many rows of it are kept.
Keep = Callable[[DataFrame, int, str], int]
Progress = Callable[[str, dict[str, Any]], None]


def take_in(
    spark: SparkSession,
    folder: Path,
    store: Path,
    *,
    lateness_s: float = LATENESS_S,
    progress: Progress = lambda kind, said: None,
) -> int:
    """Bring what was added to a telemetry folder since the last time into the store; its rows."""

    def keep_files(names: DataFrame, number: int, kind: str) -> int:
        files = [Path(row["path"]) for row in names.collect()]
        rows = read_files(names.sparkSession, kind, files)
        return keep_batch(rows, number, kind, store, lateness_s)

    with lock_store(store):
        kinds = [kind for kind in KINDS if (folder / kind).is_dir()]
        return sum(
            run_batches(new_files(spark, folder, kind), kind, store, keep_files, progress)
            for kind in kinds
        )


@contextmanager
def lock_store(store: Path) -> Generator[None]:
    """Keep other processes from writing to the store; the lock ends with the process at latest."""
    store.mkdir(parents=True, exist_ok=True)
    with (store / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unsupported(
                f"{store}: another process is writing to this store; wait for it, or end it"
            ) from None
        yield


def take_in_stream(
    rows: DataFrame,
    kind: str,
    store: Path,
    *,
    lateness_s: float = LATENESS_S,
    progress: Progress = lambda kind, said: None,
) -> int:
    """Bring what any Spark source has by now of one kind into the store; how many rows.

    `rows` need the kind's columns, `version` and `raw`.
    """

    def keep_rows(batch: DataFrame, number: int, kind: str) -> int:
        batch = batch.cache()  # looked at several times, and the source may be slow
        try:
            return keep_batch(batch, number, kind, store, lateness_s)
        finally:
            batch.unpersist()

    return run_batches(rows, kind, store, keep_rows, progress)


def run_batches(stream: DataFrame, kind: str, store: Path, keep: Keep, progress: Progress) -> int:
    """Hand all that a stream has by now to `keep`, batch by batch; how many rows were kept."""
    total = 0

    def keep_and_say(batch: DataFrame, number: int) -> None:
        nonlocal total
        started = time.monotonic()
        rows = keep(batch, number, kind)
        total += rows
        rate = rows / (time.monotonic() - started)
        progress(kind, {"batchId": number, "numInputRows": rows, "processedRowsPerSecond": rate})

    writer = stream.writeStream.queryName(f"telemetry-{kind}").foreachBatch(keep_and_say)
    query = (
        writer.option("checkpointLocation", str(store / kind / "_checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()  # interrupted, it must not go on behind our back
    return total


def keep_batch(
    batch: DataFrame, number: int, kind: str, store: Path, lateness_s: float = LATENESS_S
) -> int:
    """Write one micro-batch as one segment, unless it is there; how many rows of it are kept."""
    segment = Segment.of(segment_folder(store, kind, number, number))
    if not segment.complete:
        rows = rows_to_keep(batch, kind, store, number, lateness_s)
        write_segment(rows, segment.folder, kind)
    count = count_rows(segment.folder)
    compact(batch.sparkSession, store, kind, before=number)
    return count


def rows_to_keep(
    batch: DataFrame, kind: str, store: Path, number: int, lateness_s: float
) -> DataFrame:
    """The rows of a batch, each with its `table` and `reason`, without events that are doubles.

    Spark's own de-duplication would forget keys behind the watermark, and drop in silence what is
    not late by its own stamps.
    """
    keys = list(KEYS[kind])
    before = earlier_events(batch, kind, store, number, lateness_s)
    samples = (
        batch.select(*keys).unionByName(before.select(*keys)) if before else batch.select(*keys)
    )
    # Nearly all samples come once, and their marks say so: only the others are compared key by key.
    mark, twice, count = find_repeats(samples, keys)
    if not count:
        return events(batch, kind, lateness_s=lateness_s).unionByName(
            others(batch, kind, lateness_s=lateness_s)
        )
    known = F.broadcast(twice) if count <= MOST_BROADCAST else twice
    marked = batch.withColumn("mark", mark)
    once = events(marked, kind, lateness_s=lateness_s).join(known, "mark", how="left_anti")
    # All that needs a closer look comes out of one more scan: samples whose mark came again, and
    # rows that are no events.
    rest = marked.join(known.withColumn("again", F.lit(True)), "mark", how="left").where(
        F.col("again") | ~usable(kind, lateness_s)
    )
    # Null for events: only they are duplicates.
    apart = F.when(F.col("table") != EVENTS, F.monotonically_increasing_id())
    rest = (
        classify_rows(rest, kind, lateness_s=lateness_s)
        .withColumn("apart", apart)
        .dropDuplicates([*keys, "apart"])
    )
    if before:
        stored = before.select(mark, *keys, "table").join(known, "mark", how="left_semi")
        rest = rest.join(stored, [*keys, "table"], how="left_anti")
    return once.unionByName(rest.select(*once.columns))


def find_repeats(samples: DataFrame, keys: list[str]) -> tuple[Column, DataFrame, int]:
    """A mark that equal samples share, the marks of more than one sample, and how many they are.

    Counting every mark would take longer than all else together, since each is a group of its own.
    So samples are grouped by 64 seconds, and a group has one bit for each second: that it has a
    sample, and whether the number of them is odd. Only where samples are closer than that, and many
    seconds look repeated, each sample has its own mark.
    """
    others_of_key = ", ".join(key for key in keys if key != "event_time")
    group = f"xxhash64({others_of_key}, unix_micros(event_time) div 64000000)"
    second = "cast(unix_micros(event_time) div 1000000 % 64 as int)"
    bits = F.expr(f"shiftleft(1L, {second})")
    sums = F.bit_or(bits).alias("seen"), F.bit_xor(bits).alias("odd"), F.count("*").alias("samples")
    # If no second has more than two samples, those with two are seen and not odd.
    cells = "if(bit_count(seen) + bit_count(seen & ~odd) = samples, seen & ~odd, seen)"
    groups = (
        samples.groupBy(F.expr(group).alias("group")).agg(*sums).where("bit_count(seen) < samples")
    )
    seconds = groups.selectExpr(
        "group", f"explode(filter(sequence(0, 63), i -> getbit({cells}, i) = 1)) as second"
    )
    marks = seconds.select(F.xxhash64("group", "second").alias("mark")).localCheckpoint()
    if (count := marks.count()) <= MOST_SECONDS:
        return F.expr(f"xxhash64({group}, {second})").alias("mark"), marks, count
    mark = F.xxhash64(*keys).alias("mark")
    marks = samples.groupBy(mark).count().where("count > 1").select("mark").localCheckpoint()
    return mark, marks, marks.count()


def earlier_events(
    batch: DataFrame, kind: str, store: Path, number: int, lateness_s: float
) -> DataFrame | None:
    """The events of earlier batches from the time of this one, where doubles would be."""
    found = [s for s in segments(store, kind) if s.last < number]
    if not found:
        return None
    stamps = (F.unix_micros(stamp("event_time")) for stamp in (F.min, F.max))
    first, last = batch.where(in_time(lateness_s)).agg(*stamps).collect()[0]
    return (
        None
        if first is None
        else events_between(batch.sparkSession, store, kind, found, instant(first), instant(last))
    )


def instant(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)

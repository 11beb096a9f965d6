"""Telemetry into the store, as a Structured Streaming query that takes up where it was cut off."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.errors import Unsupported
from headrace.model.telemetry import KINDS
from headrace.observe.classify import EVENTS, KEYS, LATENESS_S, events, in_time, others
from headrace.observe.source import growing
from headrace.observe.store import Segment, compact, rows_of, segment_folder, segments, write_segment

MOST_BROADCAST = 1_000_000  # marks of samples that came more than once

Progress = Callable[[str, dict[str, Any]], None]


def take_in(
    spark: SparkSession,
    folder: Path,
    store: Path,
    *,
    lateness_s: float = LATENESS_S,
    progress: Progress = lambda kind, said: None,
) -> None:
    """Bring everything that was added to a telemetry folder since the last time into the store."""
    with alone(store):
        for kind in (kind for kind in KINDS if (folder / kind).is_dir()):
            take_in_stream(growing(spark, folder, kind), kind, store, lateness_s=lateness_s, progress=progress)


@contextmanager
def alone(store: Path) -> Generator[None]:
    """Keep other processes from writing to the store; the lock ends with the process, however that ends."""
    store.mkdir(parents=True, exist_ok=True)
    with (store / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unsupported(f"{store}: another process is writing to this store; wait for it, or end it") from None
        yield


def take_in_stream(
    rows: DataFrame,
    kind: str,
    store: Path,
    *,
    lateness_s: float = LATENESS_S,
    progress: Progress = lambda kind, said: None,
) -> None:
    """Bring what any Spark source has by now of one kind into the store; `rows` need the kind's columns, `version` and `raw`."""

    def keep(batch: DataFrame, number: int) -> None:
        keep_batch(batch, number, kind, store, lateness_s)

    writer = rows.writeStream.queryName(f"telemetry-{kind}").foreachBatch(keep)
    query = writer.option("checkpointLocation", str(store / kind / "_checkpoint")).trigger(availableNow=True).start()
    while not query.awaitTermination(1):
        if query.lastProgress:
            progress(kind, dict(query.lastProgress))
    if query.lastProgress:
        progress(kind, dict(query.lastProgress))


def keep_batch(batch: DataFrame, number: int, kind: str, store: Path, lateness_s: float = LATENESS_S) -> None:
    """Write one micro-batch as one segment, unless it was cut off only after that."""
    segment = Segment.of(segment_folder(store, kind, number, number))
    if not segment.complete:
        batch = batch.cache()  # read several times; and Spark's progress would count it as often
        try:
            kept = fresh(batch, kind, store, number, lateness_s).unionByName(others(batch, kind, lateness_s=lateness_s))
            write_segment(kept, segment.folder, kind)
        finally:
            batch.unpersist()
    compact(batch.sparkSession, store, kind, before=number)


def fresh(batch: DataFrame, kind: str, store: Path, number: int, lateness_s: float) -> DataFrame:
    """The events of a batch that do not already stand in it or in the store.

    Spark's own de-duplication would forget keys behind the watermark, and drop in silence what is not late by its own stamps.
    """
    keys = list(KEYS[kind])
    mark = F.xxhash64(*keys).alias("mark")
    used = events(batch, kind, lateness_s=lateness_s)
    before = earlier(batch, kind, store, number, lateness_s)
    marks = used.select(mark).unionByName(before.select(mark))
    # Nearly all samples come once, and their marks say so: only the others are compared key by key.
    twice = marks.groupBy("mark").count().where("count > 1").select("mark").localCheckpoint()
    count = twice.count()
    if not count:
        return used
    known = F.broadcast(twice) if count <= MOST_BROADCAST else twice
    marked = used.withColumn("mark", mark)
    again = marked.join(known, "mark", how="left_semi").dropDuplicates(keys)
    stored = before.select(mark, *keys).join(known, "mark", how="left_semi").select(*keys)
    fresh_again = again.join(stored, keys, how="left_anti").select(*marked.columns)
    return marked.join(known, "mark", how="left_anti").select(*marked.columns).unionByName(fresh_again).drop("mark")


def earlier(batch: DataFrame, kind: str, store: Path, number: int, lateness_s: float) -> DataFrame:
    """The events of earlier batches from the stretch of time that this batch covers: one sample has one event time."""
    found = [s for s in segments(store, kind) if s.last < number]
    stored = rows_of(batch.sparkSession, store, kind, found).where(F.col("table") == EVENTS)
    if found:
        stamps = F.min("event_time"), F.max("event_time")
        first, last = batch.where(in_time(lateness_s)).agg(*stamps).collect()[0]
        stored = stored.where(F.col("event_time").between(F.lit(first), F.lit(last)))
    return stored

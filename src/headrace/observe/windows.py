"""Samples added up per window, each sample once."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

WINDOW_S = 60
CELLS = 64  # bits of a long


def task_windows(
    samples: DataFrame, window_s: int = WINDOW_S, *, unique: bool = False
) -> DataFrame:
    """One row per topology, task, node, machine type and window: tuples in and out, and CPU.

    `unique`: no sample is there twice, which the store sees to.
    """
    keys = ("topology", "task", "node", "machine_type", "start_s")
    windows = sum_windows(
        samples, keys, ("tuples_in", "tuples_out", "cpu_ms"), window_s, unique=unique
    )
    return windows.select(
        *keys,
        component_of("task").alias("component"),
        "tuples_in",
        "tuples_out",
        "cpu_ms",
        "samples",
    )


def edge_windows(
    samples: DataFrame, window_s: int = WINDOW_S, *, unique: bool = False
) -> DataFrame:
    """One row per topology, pair of tasks and window: what went from one to the other."""
    keys = ("topology", "from_task", "to_task", "start_s")
    windows = sum_windows(samples, keys, ("tuples", "bytes"), window_s, unique=unique)
    components = component_of("from_task").alias("source"), component_of("to_task").alias("target")
    return windows.select(*keys, *components, "tuples", "bytes", "samples")


def sum_windows(
    samples: DataFrame, keys: Sequence[str], sums: Sequence[str], window_s: int, *, unique: bool
) -> DataFrame:
    """Samples added up per key; `start_s`, the start of the window, is one of the keys.

    Comparing every sample with every other would take ten times as long as adding them up. So each
    sum also carries one bit for each 64th of the window in which it has a sample: a sample that was
    sent twice falls on a bit that is set, so only a sum with fewer bits than samples needs a closer
    look. The sums are computed here and now, to see whether there are any.
    """
    micros = window_s * 1_000_000
    timed = samples.withColumn(
        "start_s", F.expr(f"unix_micros(event_time) div {micros} * {window_s}")
    )
    cell = F.expr(
        f"shiftleft(1L, cast(unix_micros(event_time) % {micros} * {CELLS} div {micros} as int))"
    )
    count, totals = F.count("*").alias("samples"), [F.sum(name).alias(name) for name in sums]
    if unique:
        return timed.groupBy(*keys).agg(*totals, count)
    columns = (*keys, *sums, "samples")
    first = (
        timed.groupBy(*keys).agg(*totals, count, F.bit_or(cell).alias("cells")).localCheckpoint()
    )
    doubtful = F.bit_count("cells") < F.col("samples")
    group = F.xxhash64(*keys).alias("group")
    suspects = first.where(doubtful).select(group, *keys)
    if suspects.isEmpty():
        return first.select(*columns)
    samples_once = (
        timed.select(group, "event_time", *sums)
        .join(F.broadcast(suspects.select("group")), "group", how="left_semi")
        .groupBy("group", "event_time")
        .agg(*(F.max(name).alias(name) for name in sums))
    )
    again = samples_once.groupBy("group").agg(*totals, count).join(suspects, "group", how="inner")
    return first.where(~doubtful).select(*columns).unionByName(again.select(*columns))


def component_of(task: str) -> Column:
    """The component of a column of tasks: all before the last dot."""
    return F.regexp_replace(task, r"\.[0-9]+$", "")

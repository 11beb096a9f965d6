"""Which rows can be used, which came too late, and what is wrong with the others, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.model.telemetry import NODE_FACTS, NODE_USE, VERSION

EVENTS, LATE, QUARANTINE = "events", "late", "quarantine"
LATENESS_S = 60.0
AHEAD_S = 60.0  # clocks that are kept in step differ by far less

# What makes two rows the same sample, however often it was sent.
KEYS = {
    "tasks": ("topology", "task", "event_time"),
    "edges": ("topology", "from_task", "to_task", "event_time"),
    "nodes": ("node", "event_time"),
}
TEXTS = {
    "tasks": ("topology", "task", "component", "node"),
    "edges": ("topology", "from_task", "to_task"),
    "nodes": ("node",),
}
TASK_NAMES = {"tasks": ("task",), "edges": ("from_task", "to_task"), "nodes": ()}
NEEDED = {"tasks": ("tuples_in", "tuples_out", "cpu_ms"), "edges": ("tuples",), "nodes": ()}
OPTIONAL = {
    "tasks": ("queue_length", "memory_mb", "worker"),
    "edges": ("bytes",),
    "nodes": (*NODE_USE, *NODE_FACTS),
}
FRACTIONS = {
    "tasks": ("cpu_ms", "memory_mb"),
    "edges": (),
    "nodes": (*NODE_USE, "ghz", "flops_per_cycle", "memory_mb", "bandwidth_mbps"),
}
LARGEST = 1.7e308  # NaN counts as more than any number


def events(rows: DataFrame, kind: str, *, lateness_s: float = LATENESS_S) -> DataFrame:
    """The rows that can be used; `table` says so, and `reason` is null."""
    marks = {"reason": F.lit(None).cast("string"), "table": F.lit(EVENTS)}
    return rows.where(usable(kind, lateness_s)).withColumns(marks)


def others(rows: DataFrame, kind: str, *, lateness_s: float = LATENESS_S) -> DataFrame:
    """All other rows, with their `table` (late or quarantine) and, for the latter, the `reason`."""
    # Few rows are left for the reasons, whose many words would slow down a scan of all.
    return classify_rows(rows.where(~usable(kind, lateness_s)), kind, lateness_s=lateness_s)


def classify_rows(rows: DataFrame, kind: str, *, lateness_s: float = LATENESS_S) -> DataFrame:
    """Rows of all sorts, with their `table` and, if that is the quarantine, the `reason`."""
    reason = F.coalesce(*(F.when(fault, text) for fault, text in faults(kind)))
    table = (
        F.when(F.col("reason").isNotNull(), QUARANTINE)
        .when(late(lateness_s), LATE)
        .otherwise(EVENTS)
    )
    return rows.withColumn("reason", reason).withColumn("table", table)


def usable(kind: str, lateness_s: float) -> Column:
    """Whether a row is without fault and not late; never null."""
    sound = [~F.coalesce(fault, F.lit(False)) for fault, _ in faults(kind)]
    return reduce(and_, sound) & ~late(lateness_s)


def in_time(lateness_s: float) -> Column:
    """Whether the two stamps alone let a row be an event."""
    delay = F.unix_micros("arrival") - F.unix_micros("event_time")
    return delay.between(-round(AHEAD_S * 1e6), round(lateness_s * 1e6))


def late(lateness_s: float) -> Column:
    return F.unix_micros("arrival") - F.unix_micros("event_time") > round(lateness_s * 1e6)


def faults(kind: str) -> Iterator[tuple[Column, Column | str]]:
    """What can be wrong with a row, and how it is said; of several, the first is said."""
    yield F.col("raw").isNotNull(), "not a JSON line of this kind"
    version = F.concat(F.lit("version "), "version", F.lit(f"; this headrace reads {VERSION}"))
    yield F.col("version") != VERSION, version
    for name in ("event_time", "arrival"):
        yield F.col(name).isNull(), f"no {name}"
    yield F.unix_micros("event_time") < 0, "event_time is before 1970"
    for name in TEXTS[kind]:
        yield F.col(name).isNull() | (F.col(name) == ""), f"no {name}"
    for name in TASK_NAMES[kind]:
        # Used once below: Spark works it out each time.
        number = F.coalesce(F.substring_index(name, ".", -1).try_cast("int"), F.lit(0))
        # Without a dot, the number would be the whole name.
        yield (number < 1) | ~F.col(name).contains("."), f"{name} is not component.N"
    if kind == "tasks":
        yield ~F.col("task").startswith(F.col("component")), "task is not one of its component"
    for name in NEEDED[kind]:
        yield F.col(name).isNull(), f"no {name}"
    for name in (*NEEDED[kind], *OPTIONAL[kind]):
        yield F.col(name) < 0, f"{name} is negative"
    for name in FRACTIONS[kind]:
        yield F.col(name) > LARGEST, f"{name} is not a number"
    ahead = F.unix_micros("event_time") - F.unix_micros("arrival") > round(AHEAD_S * 1e6)
    yield ahead, "event_time is after arrival: a clock is ahead"

"""From when to when there are samples: clocks that are ahead, and windows covered completely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

CLOCK_AHEAD_S = 300


@dataclass(frozen=True, slots=True)
class Span:
    """The first and the last window with samples of a topology from one node (of edges: none)."""

    topology: str
    node: str | None
    first_s: int
    last_s: int


def spans_of(tasks: DataFrame, edges: DataFrame) -> list[Span]:
    """Where samples begin and end."""
    no_node = F.lit(None).cast("string").alias("node")
    starts = tasks.select("topology", "node", "start_s").unionByName(
        edges.select("topology", no_node, "start_s")
    )
    spans = starts.groupBy("topology", "node").agg(
        F.min("start_s").alias("first_s"), F.max("start_s").alias("last_s")
    )
    return [Span(*row) for row in spans.orderBy("topology", "node").collect()]


def clocks_ahead(spans: Sequence[Span], window_s: int, notes: list[str]) -> dict[str, int]:
    """Nodes whose samples begin and end later than those of the middle node; seconds ahead."""
    nodes = {s.node for s in spans if s.node is not None}
    first = {n: min(s.first_s for s in spans if s.node == n) for n in nodes}
    last = {n: max(s.last_s for s in spans if s.node == n) for n in nodes}
    middle = (len(nodes) - 1) // 2
    ahead = {
        n: min(ends[n] - sorted(ends.values())[middle] for ends in (first, last))
        for n in sorted(nodes)
    }
    ahead = {n: shift for n, shift in ahead.items() if shift > max(CLOCK_AHEAD_S, 2 * window_s)}
    for node, shift in ahead.items():
        notes.append(
            f"clock: `{node}` is about {shift} s ahead of the other nodes; "
            "its samples count as that much earlier"
        )
    return ahead


def shift_clocks(
    tasks: DataFrame, edges: DataFrame, ahead: Mapping[str, int]
) -> tuple[DataFrame, DataFrame]:
    """Windows of nodes whose clock is ahead, moved back by as much."""
    if not ahead:
        return tasks, edges
    columns = {"node": list(ahead), "shift_s": list(ahead.values())}
    shifts = small_table(tasks.sparkSession, columns)
    theirs = (
        tasks.join(shifts, "node", how="inner")
        .select("topology", F.col("task").alias("from_task"), "shift_s")
        .distinct()
    )
    earlier = F.col("start_s") - F.coalesce("shift_s", F.lit(0))
    moved = tasks.join(shifts, "node", how="left").withColumn("start_s", earlier).drop("shift_s")
    sent = (
        edges.join(theirs, ["topology", "from_task"], how="left")
        .withColumn("start_s", earlier)
        .drop("shift_s")
    )
    return moved, sent


def whole_windows(
    spans: Sequence[Span], ahead: Mapping[str, int], window_s: int, notes: list[str]
) -> dict[str, tuple[int, int]]:
    """The first and the last window of each topology that samples cover completely."""
    whole: dict[str, tuple[int, int]] = {}
    for topology in sorted({s.topology for s in spans}):
        # Edges carry no node, so behind a wrong clock they say nothing about where samples end.
        own = [s for s in spans if s.topology == topology and (s.node is not None or not ahead)]
        shift = {s: ahead.get(s.node or "", 0) for s in own}
        first, last = min(s.first_s - shift[s] for s in own), max(s.last_s - shift[s] for s in own)
        if last - first >= 2 * window_s:
            # Samples begin and end somewhere inside the outermost two.
            first, last = first + window_s, last - window_s
        else:
            notes.append(
                f"windows: `{topology}` has no whole window, so its rates may be too low; "
                "use a shorter --window"
            )
        whole[topology] = first, last
    return whole


def keep_whole(
    windows: DataFrame, whole: Mapping[str, tuple[int, int]], window_s: int
) -> DataFrame:
    """The whole windows, with their `age` (0: the last one) and how many there are."""
    columns = {
        "topology": list(whole),
        "first_s": [first for first, _ in whole.values()],
        "last_s": [last for _, last in whole.values()],
    }
    spans = small_table(windows.sparkSession, columns)
    inside = F.col("start_s").between(F.col("first_s"), F.col("last_s"))
    age = F.expr(f"(last_s - start_s) div {window_s}")
    count = F.expr(f"(last_s - first_s) div {window_s} + 1")
    joined = windows.join(spans, "topology", how="inner").where(inside)
    return joined.withColumns({"age": age, "windows": count}).drop("first_s", "last_s")


def small_table(spark: SparkSession, columns: Mapping[str, Sequence[Any]]) -> DataFrame:
    """A small table, beside which rows can be looked up without a shuffle."""
    types = {"node": pa.string(), "topology": pa.string()}
    arrays = {
        name: pa.array(values, types.get(name, pa.int64())) for name, values in columns.items()
    }
    return F.broadcast(spark.createDataFrame(pa.table(arrays)))

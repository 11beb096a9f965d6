"""Samples with a number, and those a store holds."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from headrace.observe.store import rows_of, segments
from tests.observe.samples import NOON, edge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def numbered(n: int, **given: Any) -> dict[str, Any]:
    return edge(event_time=NOON + timedelta(seconds=n), tuples=n, **given)


def kept(spark: SparkSession, store: Path, table: str = "events") -> list[int]:
    rows = rows_of(spark, store, "edges", segments(store, "edges")).where(F.col("table") == table)
    return sorted(row["tuples"] for row in rows.collect())

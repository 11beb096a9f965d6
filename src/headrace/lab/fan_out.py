"""The same work on many items, spread over Spark; one failure does not stop the rest."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = TypeVar("Item")
Result = TypeVar("Result")

# Partitions per core: enough that a slow item does not hold up the end, few enough that starting
# them costs nothing.
WAVES = 4


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Result]):
    """What became of an item: a result, or the error in its place."""

    result: Result | None
    error: str | None = None


def fan_out(
    spark: SparkSession,
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    partitions: int | None = None,
) -> list[Outcome[Result]]:
    """work(item) for every item, in the order of the items.

    Neighbours often cost alike, so they go to different partitions.
    """
    context = spark.sparkContext
    count = min(len(items), partitions or WAVES * context.defaultParallelism)
    if not count:
        return []
    parts = [[(i, items[i]) for i in range(p, len(items), count)] for p in range(count)]

    def try_each(
        parts: Iterable[list[tuple[int, Item]]],
    ) -> Iterator[tuple[int, Outcome[Result]]]:
        for part in parts:
            for i, item in part:
                try:
                    yield i, Outcome(work(item))
                except Exception as error:  # noqa: BLE001 - whatever it is, the other items go on
                    at = traceback.extract_tb(error.__traceback__)[-1]
                    words = f"{type(error).__name__}: {error} ({at.name}, line {at.lineno})"
                    yield i, Outcome(None, words)

    found = dict(context.parallelize(parts, count).mapPartitions(try_each).collect())
    return [found[i] for i in range(len(items))]

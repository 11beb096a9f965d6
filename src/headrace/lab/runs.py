"""Runs of one simulation spread over the cores of this machine, or over Spark.

A run depends on its seed alone, so the result is the same whoever does it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import InvalidInput, Unsupported
from headrace.lab.fan_out import fan_out
from headrace.planner.limited import can_limit
from headrace.simulate.simulating import Run, Spread, one_by_one

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_work: list[Callable[[int], Run]] = []  # what a worker process does; set when it starts


def over_cores(workers: int | None = None) -> Spread:
    """So many processes; absent: one per core."""
    if workers is not None and workers < 1:
        raise InvalidInput(f"{workers} workers: at least 1 is needed")

    def spread(work: Callable[[int], Run], seeds: Sequence[int]) -> list[Run]:
        count = min(len(seeds) - 1, workers or _cores())
        if count < 2 or not can_limit():
            return one_by_one(work, seeds)
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        # The first run loads the kernels, which the processes then have from the start.
        first = work(seeds[0])
        with ProcessPoolExecutor(
            count, mp_context=get_context("fork"), initializer=_work.append, initargs=(work,)
        ) as pool:
            return [first, *pool.map(_do, seeds[1:])]

    return spread


def over_spark(spark: SparkSession) -> Spread:
    """The partitions of a Spark cluster."""

    def spread(work: Callable[[int], Run], seeds: Sequence[int]) -> list[Run]:
        found: list[Any] = []
        for outcome in fan_out(spark, work, seeds):
            if outcome.result is None:
                raise Unsupported(f"a run failed on Spark: {outcome.error}")
            found.append(outcome.result)
        return found

    return spread


def _do(seed: int) -> Run:
    return _work[-1](seed)


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

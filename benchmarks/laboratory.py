"""The fan-out: 4,000 small problems on two cores and on one, in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from measure import Row

from headrace.lab.families import case, random_sections
from headrace.lab.fan_out import fan_out
from headrace.lab.jobs import Job, run_job
from headrace.spark import session

PROBLEMS, RUNS = 4000, 5


def rows(quick: bool) -> Iterator[Row]:
    """Measure."""
    count, runs = (400, 1) if quick else (PROBLEMS, RUNS)
    jobs = [
        Job(case("random", f"seed {seed}", random_sections(seed % 100)), "rstorm", seed)
        for seed in range(count)
    ]
    spark = session(app="headrace-benchmark", master="local[2]")
    try:
        seconds: dict[int, list[float]] = {1: [], 2: []}
        for run in range(runs + 1):  # the first to warm up
            for cores, times in seconds.items():
                start = time.perf_counter()
                # One partition holds one core at a time.
                outcomes = fan_out(spark, run_job, jobs, partitions=None if cores == 2 else 1)
                times += [time.perf_counter() - start] if run else []
                if any(outcome.result is None for outcome in outcomes):
                    raise RuntimeError(
                        next(str(outcome.error) for outcome in outcomes if outcome.result is None)
                    )
    finally:
        spark.stop()
    one, two = statistics.median(seconds[1]), statistics.median(seconds[2])
    what = (
        f"fan-out of {count:,} small problems ({1000 * one / count:.1f} ms each), "
        f"median of {runs}: two cores against one"
    )
    yield Row(what, f"{one / two:.2f} x faster", ">= 1.4 x", one / two >= 1.4)

"""One decision of the loop on twelve batches of word count, with and without Spark."""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from measure import Row

from headrace.control import on_spark
from headrace.control.loop import step
from headrace.control.on_spark import OnSpark, plan_first
from headrace.control.planning import LoopSettings
from headrace.model.cluster import nodes_of
from headrace.model.document import FORMAT
from headrace.model.read import validated
from headrace.observe.pipeline import observe_folder
from headrace.run.apps import load, topology_of
from headrace.run.batches import Settings
from headrace.run.placement import PlanInForce
from headrace.run.rehearsal import rehearse
from headrace.run.task import where_am_i
from headrace.spark import session

BATCHES, SENTENCES, MOST_S = 12, 2000, 1.0
CLUSTER = validated(
    {"format": FORMAT, "cluster": {"nodes": {"n{1..3}": {"cpu": 400, "bandwidth_mbps": 1000}}}}, {}
)


def world(folder: Path, spark: Any) -> OnSpark:
    """Word count after twelve batches, under a plan of storm-even."""
    nodes = nodes_of(CLUSTER)
    topology = topology_of(load("word-count"), {"sentences": SENTENCES, "out": str(folder / "out")})
    plan = PlanInForce(topology, plan_first(topology, nodes, "storm-even"))
    found = OnSpark(
        spark, topology, CLUSTER, plan, folder / "telemetry", folder, lambda: set(nodes), window_s=1
    )
    settings = Settings(
        folder / "run",
        hosts={"n1": where_am_i()[0]},
        telemetry=folder / "telemetry",
        listen=found.add_batch,
    )
    rows = [np.arange(i * SENTENCES, (i + 1) * SENTENCES) for i in range(BATCHES)]
    rehearse(topology, [{"sentence": pa.table({"value": r})} for r in rows], settings, plan)
    return found


def median_s(work: Callable[[], object], runs: int) -> float:
    """The median of some runs after one to warm up."""
    seconds: list[float] = []
    for _ in range(runs + 1):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])


def rows(quick: bool) -> Iterator[Row]:
    """Decide again and again on the same telemetry."""
    settings = LoopSettings(objective="batch", advise=True)
    with tempfile.TemporaryDirectory() as name:
        found = world(Path(name), None)
        reading_s = median_s(found.problem, 3 if quick else 10)
        seconds = median_s(lambda: step(found, settings), 3 if quick else 10)
        yield Row(
            f"a decision on {BATCHES} batches of word count, plan included",
            f"{seconds:.2f} s, {reading_s:.2f} of them to read and fit",
            f"<= {MOST_S:g} s",
            seconds <= MOST_S,
        )
        if quick:
            return
        spark = session(app="headrace-benchmark")
        without, changed = on_spark.observe, cast(Any, on_spark)
        try:
            found.spark, changed.observe = spark, observe_folder
            took_s = median_s(lambda: step(found, settings), 2)
        finally:
            changed.observe = without
            spark.stop()
        yield Row("  the same with its telemetry read by Spark", f"{took_s:.2f} s")

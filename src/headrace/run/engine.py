"""A topology as one Structured Streaming query: every micro-batch runs the topology's stages where the plan says.

All spouts are one tagged stream, so that one batch id covers them. The stages of a batch are one
Spark job; blocks go through Spark's own shuffle. Spark commits after us; a batch that Spark runs
again although it is committed here is passed over.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

from pyspark import RDD
from pyspark.accumulators import AccumulatorParam
from pyspark.serializers import NoOpSerializer
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from headrace.errors import HeadraceError, InvalidInput
from headrace.model.topology import Topology
from headrace.run.batches import Batches, Settings
from headrace.run.cluster import executor_cores
from headrace.run.compiling import Compiled
from headrace.run.located import forget_shuffles, sent
from headrace.run.placement import PlanInForce
from headrace.run.task import Report, Reports, Stage, divide, run_seat, settle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


CRASHED = "Python worker exited unexpectedly"  # in Spark's words


def run(
    spark: SparkSession, topology: Topology, plan: PlanInForce | None, settings: Settings
) -> int:
    """Run a topology until its sources end or the batches are done; gives the number of batches."""
    return Running(spark, topology, plan or PlanInForce(topology), settings).wait()


class Latest(AccumulatorParam[Any]):
    """Collects the reports of tasks that succeeded; of a task that ran twice, the later report stays."""

    def zero(self, value: Any) -> Any:
        return {}

    def addInPlace(self, value1: Any, value2: Any) -> Any:
        value1.update(value2)
        return value1


class Running:
    """A topology that runs; `plan.set(..)` puts another plan in force while it does."""

    def __init__(
        self, spark: SparkSession, topology: Topology, plan: PlanInForce, settings: Settings
    ) -> None:
        self.batches = Batches(topology, plan, settings)
        self.settings, self.done = settings, 0
        self._context = spark.sparkContext
        self._failure: Exception | None = None
        self._enough = threading.Event()
        self._reports = spark.sparkContext.accumulator(cast(Any, {}), Latest())
        self._started = threading.Event()
        self._query = self._start(tagged(spark, topology), topology.name)
        self._started.set()

    def wait(self) -> int:
        """Wait for the end; an error of the topology is raised here."""
        try:
            while self._query.isActive and not self._enough.wait(0.05):
                pass
        finally:
            self.stop()
        if self._failure is not None:
            if "HEADRACE_SPARK_LOG" not in os.environ:
                self._context.setLogLevel("ERROR")
            raise self._failure
        if (error := self._query.exception()) is not None and not self._enough.is_set():
            raise error
        return self.done

    def stop(self) -> None:
        """Stop; a batch on the way is given up, and run again at the next start."""
        if self._query.isActive:
            self._query.stop()

    def _start(self, spouts: DataFrame, name: str) -> StreamingQuery:
        writer = spouts.writeStream.queryName(name).foreachBatch(self._batch)
        writer = writer.option("checkpointLocation", str(self.settings.checkpoint / "spark"))
        if self.settings.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{self.settings.interval_s} seconds").start()

    def _batch(self, spouts: DataFrame, batch: int) -> None:
        self._started.wait()
        if self._enough.is_set():  # this batch must not count as done
            raise InvalidInput("no further batch is wanted")
        try:
            done = self.batches.run(
                batch, lambda ready, topology: self._job(spouts, ready, topology), lambda folder: spouts.write.parquet(str(folder), mode="overwrite")
            )  # fmt: skip
        except Exception as error:
            self._failure = self._failure or error  # Spark hands on its text only
            if isinstance(error, HeadraceError) and "HEADRACE_SPARK_LOG" not in os.environ:
                self._context.setLogLevel(
                    "OFF"
                )  # the refusal says it all; Spark would add two stack traces
            raise
        self.done += done is not None
        if self.settings.batches is not None and self.done >= self.settings.batches:
            self._enough.set()
            while self._query.isActive:  # let nothing begin between this batch and the stop
                time.sleep(0.01)

    def _job(self, spouts: DataFrame, ready: Compiled, topology: Topology) -> list[Report]:
        """Run the stages as one Spark job."""
        self._reports.value = {}
        hosts, report = self.settings.hosts, self._reports.add
        # For a host that is lost Spark would wait as long as for one that is busy, in every stage.
        there = executor_cores(spouts.sparkSession) if hosts is not None else {}
        packets = taken_in(spouts, ready.stages[0], topology)
        for stage, nodes in zip(ready.stages, ready.nodes, strict=True):
            wished = [
                None if hosts is None or node is None else hosts.get(node, node) for node in nodes
            ]
            where = [host if host in there else None for host in wished]
            packets = sent(packets, where).mapPartitionsWithIndex(seated(stage, report))
        try:
            packets.collect()  # nothing comes back: the last stage has nobody to send to
        except Exception as error:
            if (crash := crashed(ready, cast(Reports, self._reports.value), str(error))) is None:
                raise
            return [crash]
        forget_shuffles(packets)
        came = cast(Reports, self._reports.value)
        return [
            came[stage.batch, s.role, s.component, s.number]
            for stage in ready.stages
            for s in stage.seats
            if s.role != "wait"
        ]


def crashed(ready: Compiled, came: Reports, words: str) -> Report | None:
    """The report of a task that took its whole process down, as memory that ran out does; None if Spark failed for another reason."""
    if CRASHED not in words:
        return None
    for stage, nodes in zip(ready.stages, ready.nodes, strict=True):
        done = [
            s.role == "wait" or (stage.batch, s.role, s.component, s.number) in came
            for s in stage.seats
        ]
        if not all(done):  # stages run one after another, so it was here
            named = re.search(r"Task (\d+) in stage \S+ failed", words)
            told = int(named[1]) if named is not None else len(done)
            index = (
                told if told < len(done) and not done[told] else done.index(False)
            )  # Spark may number parts of a source
            seat, where = stage.seats[index], nodes[index] or "unknown"
            failure = "the process that ran it ended without a word; perhaps memory ran out, or a library crashed"
            return Report(
                seat.role, seat.component, seat.number, (where,), time.time(), failure=failure
            )
    return None


def tagged(spark: SparkSession, topology: Topology) -> DataFrame:
    """All spouts as one stream: the spout's name, and its row in a column of that name."""
    streams: list[DataFrame] = []
    for name, code in topology.code.items():
        if code.source is not None:
            rows = code.source(spark)
            if not rows.isStreaming:
                raise InvalidInput(
                    f"spout `{name}`: its source gives a table; a stream is needed, as spark.readStream gives"
                )
            streams.append(rows.select(F.lit(name).alias("spout"), F.struct("*").alias(name)))
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), streams)


def taken_in(spouts: DataFrame, first: Stage, topology: Topology) -> RDD[Any]:
    """The batch as blocks for the spouts' tasks."""
    # One Arrow message per few thousand rows, straight from the JVM: rows never become Python
    # objects.
    frame = cast(Any, spouts)
    schema = to_arrow_schema(spouts.schema, timezone="UTC")
    messages: RDD[Any] = RDD(
        frame._jdf.toArrowBatchRdd().toJavaRDD(), spouts.sparkSession.sparkContext, NoOpSerializer()
    )
    counts = {name: c.tasks for name, c in topology.components.items() if c.spout}
    partitions = {name: (first.first_seat(name), tasks) for name, tasks in counts.items()}

    def hand_out(part: int, batches: Iterable[bytes]) -> Iterator[Any]:
        settle()
        return divide(batches, part, schema, partitions)

    return messages.mapPartitionsWithIndex(hand_out)


def seated(
    stage: Stage, report: Callable[[Reports], None]
) -> Callable[[int, Iterable[bytes]], Iterator[Any]]:
    """What Spark runs on each partition of a stage."""

    def seat(index: int, arrived: Iterable[bytes]) -> Iterator[Any]:
        settle()
        return run_seat(stage, index, arrived, report)

    return seat

"""A topology as one Structured Streaming query, whose batches run where the plan says.

All spouts are one stream of tagged rows, so that one batch id covers them. The stages of a batch
are one Spark job; blocks go through Spark's own shuffle. Spark commits after us; a batch that Spark
runs again although it is committed here is passed over.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.accumulators import AccumulatorParam
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from headrace.errors import HeadraceError, InvalidInput
from headrace.model.topology import Topology
from headrace.run.batches import Batches, Settings
from headrace.run.cluster import executors_by_host, locate
from headrace.run.compiling import CompiledBatch
from headrace.run.internals import (
    forget_shuffles,
    name_stage,
    send_to_hosts,
    stage_bytes,
)
from headrace.run.placement import Place, PlanInForce
from headrace.run.reading import SPOUT, Partition, Reading
from headrace.run.reports import reports_of
from headrace.run.seats import Reports, Stage, TaskReport
from headrace.run.task import run_seat, settle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


COUNT_EVERY = 100  # batches; Spark keeps the figures of a thousand stages
CRASHED = "Python worker exited unexpectedly"  # in Spark's words


class SparkFailed(HeadraceError):
    """Spark itself could not go on: a source, a disk, a cluster."""

    kind = "spark"


@dataclass(frozen=True, slots=True)
class RunDone:
    """What is known about a run once it is over."""

    batches: int
    # Bytes that Spark has counted as read from its shuffles: compressed, if it compresses them.
    spark_remote_bytes: int
    spark_total_bytes: int


def run(
    spark: SparkSession, topology: Topology, plan: PlanInForce | None, settings: Settings
) -> RunDone:
    """Run a topology until its sources end or the batches are done."""
    return Running(spark, topology, plan or PlanInForce(topology), settings).wait()


class Latest(AccumulatorParam[Any]):
    """Collects the reports of tasks that succeeded; if a task ran twice, the later one stays."""

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
        self._counted, self._shuffled = set[int](), (0, 0)
        self._started = threading.Event()
        self._query = self._start(stream_of_spouts(spark, topology), topology.name)
        self._started.set()

    def wait(self) -> RunDone:
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
            record = self.settings.checkpoint / "spark"
            raise in_one_line(error, f"{record}: Spark cannot go on with the stream") from error
        remote, total = self._count_bytes()
        return RunDone(self.done, remote, total)

    def _count_bytes(self) -> tuple[int, int]:
        """Add what Spark has counted since the last time; it forgets stages after some hundred."""
        tracker = self._context.statusTracker()
        jobs = sorted(set(tracker.getJobIdsForGroup(str(self._query.runId))) - self._counted)
        infos = [info for job in jobs if (info := tracker.getJobInfo(job)) is not None]
        remote, total = stage_bytes(self._context, [s for info in infos for s in info.stageIds])
        self._counted |= set(jobs)
        self._shuffled = (self._shuffled[0] + remote, self._shuffled[1] + total)
        return self._shuffled

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
                batch,
                lambda ready, topology: self._run_stages(spouts, ready, topology),
                lambda folder: spouts.write.parquet(str(folder), mode="overwrite"),
            )
        except Exception as raised:
            error = in_one_line(raised, f"batch {batch}: Spark cannot run it")
            self._failure = self._failure or error  # Spark hands on its text only
            if isinstance(error, HeadraceError) and "HEADRACE_SPARK_LOG" not in os.environ:
                # The refusal says it all; Spark would add two stack traces.
                self._context.setLogLevel("OFF")
            raise
        self.done += done is not None
        if self.done % COUNT_EVERY == 0:
            self._count_bytes()
        if self.settings.batches is not None and self.done >= self.settings.batches:
            self._enough.set()
            while self._query.isActive:  # let nothing begin between this batch and the stop
                time.sleep(0.01)

    def _run_stages(
        self, spouts: DataFrame, ready: CompiledBatch, topology: Topology
    ) -> list[TaskReport]:
        """Run the stages as one Spark job."""
        self._reports.value = {}
        hosts, context = self.settings.hosts, self._context
        up = executors_by_host(spouts.sparkSession) if hosts is not None else {}

        def where(place: Place | None) -> str | None:
            return None if hosts is None else locate(place, hosts, up)

        names = [
            f"batch {ready.stages[0].batch}, stage {i}: " for i in range(1, 1 + len(ready.stages))
        ]
        names = [n + ", ".join(s.components) for n, s in zip(names, ready.stages, strict=True)]
        context.setJobDescription(f"{topology.name}, batch {ready.stages[0].batch}")
        reading = Reading(spouts, self._query, ready, where)
        name_stage(context, names[0])
        packets = reading.packets(self._reports.add)
        for stage, places, name in list(zip(ready.stages, ready.places, names, strict=True))[1:]:
            sent = send_to_hosts(packets, [where(place) for place in places])
            name_stage(context, name)
            packets = sent.mapPartitionsWithIndex(runner_of_seats(stage, self._reports.add))
        try:
            # Nothing comes back: the last stage has nobody to send to. (`collect` would rename it.)
            context.runJob(packets, list)
        except Exception as error:
            found = cast(Reports, self._reports.value)
            crash = report_of_crash(reading.partitions, ready, found, str(error))
            if crash is None:
                raise
            return [crash]
        finally:
            name_stage(context, None)
        forget_shuffles(packets)
        return reports_of(ready, cast(Reports, self._reports.value))


def report_of_crash(
    first: Sequence[Partition], ready: CompiledBatch, reports: Reports, message: str
) -> TaskReport | None:
    """The report of a task that took its process down; None if Spark failed for another reason."""
    if CRASHED not in message:
        return None
    batch = ready.stages[0].batch
    later = [[(seat, -1) for seat in stage.seats] for stage in ready.stages[1:]]
    for row in [list(first), *later]:
        done = [
            seat.role == "wait"
            or (batch, seat.role, seat.component, seat.number, partition) in reports
            for seat, partition in row
        ]
        if not all(done):  # stages run one after another, so it was here
            match = re.search(r"Task (\d+) in stage \S+ failed", message)
            named = int(match[1]) if match is not None else len(done)
            if named >= len(done) or done[named]:
                named = done.index(False)
            seat = row[named][0]
            placed = {
                (s.component, s.number): place
                for stage, places in zip(ready.stages, ready.places, strict=True)
                for s, place in zip(stage.seats, places, strict=True)
            }
            place = placed[seat.component, seat.number]
            return TaskReport(
                seat.role,
                seat.component,
                seat.number,
                ("unknown" if place is None else place[0],),
                time.time(),
                failure="the process that ran it ended without a word; "
                "perhaps memory ran out, or a library crashed",
            )
    return None


def in_one_line(error: Exception, what: str) -> Exception:
    """An error of Spark with the first line of its words; any other as it is."""
    if not isinstance(error, (Py4JJavaError, PySparkException)):
        return error
    words = str(error.java_exception if isinstance(error, Py4JJavaError) else error)
    return SparkFailed(
        f"{what}: {words.splitlines()[0].removeprefix('org.apache.spark.SparkException: ')}",
        fix="mend it and start again: the run goes on from the last commit; "
        "HEADRACE_SPARK_LOG=error shows all that Spark says",
    )


def stream_of_spouts(spark: SparkSession, topology: Topology) -> DataFrame:
    """All spouts as one stream: the spout's name, and its row in a column of that name."""
    streams: list[DataFrame] = []
    for name, code in topology.code.items():
        if code.source is not None:
            rows = code.source(spark)
            if not rows.isStreaming:
                raise InvalidInput(
                    f"spout `{name}`: its source gives a table; "
                    "a stream is needed, as spark.readStream gives"
                )
            streams.append(rows.select(F.lit(name).alias(SPOUT), F.struct("*").alias(name)))
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), streams)


def runner_of_seats(
    stage: Stage, report: Callable[[Reports], None]
) -> Callable[[int, Iterable[bytes]], Iterator[Any]]:
    """What Spark calls on each partition of a stage."""

    def run_one(index: int, arrived: Iterable[bytes]) -> Iterator[Any]:
        settle()
        return run_seat(stage, index, arrived, report)

    return run_one

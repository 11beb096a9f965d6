"""A running application: followed from outside, or attached to from inside.

Attaching hands Spark one more event-log writer of its own, which runs in its JVM; what was before
is written by us at the head of that log. So a program that attaches writes a log like any other.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.advise.report import Advice, advise_on
from headrace.advise.sources import read_server
from headrace.errors import InvalidInput
from headrace.observe.spark_log.files import Log
from headrace.observe.spark_log.read_trace import read_trace
from headrace.observe.spark_log.rest import TooSlow, server_at
from headrace.observe.spark_log.trace import SUCCEEDED, Trace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_SLOW = 3  # looks in a row without an answer
NOTHING_YET = "no task came to its end"


def follow(
    url: str,
    app: str | None = None,
    *,
    every_s: float = 5.0,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Advice]:
    """Advice on a running application, again and again, until it has ended or is gone."""
    server = server_at(url, app)
    seen, slow = False, 0
    while True:
        try:
            trace = read_server(server)
        except TooSlow:
            slow += 1  # a driver under load answers later
            if slow > MOST_SLOW:
                raise
        except InvalidInput as error:
            if seen and "no application" not in error.message:
                return  # it ended, and its page with it
            if NOTHING_YET not in error.message:
                raise
        else:
            seen, slow = True, 0
            yield advise_on(trace)
            if trace.ended:
                return
        sleep(every_s)


class Attached:
    """A session that is listened to; `advice` says what its log would say until now."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.folder = folder
        context = spark.sparkContext
        jvm: Any = context._jvm  # pyright: ignore[reportPrivateUsage] # no public door to listeners
        java: Any = context._jsc  # pyright: ignore[reportPrivateUsage]
        self._context: Any = java.sc()
        self._id = str(context.applicationId)
        self._head = folder / f"{self._id}.head"
        self._head.write_bytes(b"".join(_head(self._context, context)))
        conf = self._context.conf().clone()
        for key, value in LOG_CONF.items():
            conf.set(key, value)
        uri = jvm.java.net.URI(folder.resolve().as_uri())
        nothing = jvm.scala.Option.empty()
        hadoop = self._context.hadoopConfiguration()
        log = jvm.org.apache.spark.scheduler.EventLoggingListener
        self._listener = log(self._id, nothing, uri, conf, hadoop)
        self._listener.start()
        self._context.addSparkListener(self._listener)

    def trace(self) -> Trace:
        """What happened since the session was attached to."""
        files = [self._head, *sorted(self.folder.glob(f"{self._id}*"))]
        named = dict.fromkeys(str(file) for file in files)
        return read_trace(Log(self._id, tuple(named), 0, 0, True))

    def advice(self, **wanted: Any) -> Advice:
        """Advice on what has run so far."""
        return advise_on(self.trace(), **wanted)

    def stop(self) -> Path:
        """Stop listening and write telemetry; gives the folder of both."""
        self._context.removeSparkListener(self._listener)
        self._listener.stop()
        self.write_telemetry()
        return self.folder

    def write_telemetry(self) -> int:
        """Our telemetry, one row per task: what it read, wrote and computed, on which executor."""
        from headrace.model.telemetry import Writer

        rows = list(telemetry_rows(self.trace()))
        with Writer(self.folder / "telemetry", name=self._id) as writer:
            writer.write("tasks", rows)
        return len(rows)


LOG_CONF = {
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.overwrite": "true",
    "spark.eventLog.logStageExecutorMetrics": "true",
}


def attach(spark: SparkSession, folder: str | Path | None = None) -> Attached:
    """Listen to a session; the log and the telemetry go to a folder (absent: a temporary one)."""
    where = Path(folder) if folder is not None else Path(tempfile.mkdtemp(prefix="headrace-"))
    where.mkdir(parents=True, exist_ok=True)
    return Attached(spark, where)


def _head(context: Any, python: Any) -> Iterator[bytes]:
    """What Spark wrote to its own log before we came: the application, settings and executors."""

    def event(name: str, **fields: Any) -> bytes:
        return json.dumps({"Event": f"SparkListener{name}", **fields}).encode() + b"\n"

    start = int(context.startTime())
    yield event("LogStart", **{"Spark Version": python.version})
    named = {"App Name": python.appName, "App ID": python.applicationId, "Timestamp": start}
    yield event("ApplicationStart", **named)
    yield event("EnvironmentUpdate", **{"Spark Properties": dict(python.getConf().getAll())})
    executors = context.statusStore().executorList(True)
    rows = [executors.apply(i) for i in range(executors.size())]
    alone = len(rows) == 1
    for row in rows:
        if alone or row.id() != "driver":
            info = {"Host": row.hostPort().rpartition(":")[0], "Total Cores": row.totalCores()}
            fields = {"Executor ID": row.id(), "Timestamp": row.addTime().getTime()}
            yield event("ExecutorAdded", **fields, **{"Executor Info": info})


def telemetry_rows(trace: Trace) -> Iterator[dict[str, Any]]:
    """One row per successful task attempt."""
    from headrace.observe.spark_log.components import call_site

    hosts = dict(zip(trace.executor_ids, trace.executor_hosts, strict=True))
    cores = {span.id: span.cores for span in trace.executors}
    for run in trace.stages:
        a, component = run.attempts, f"{call_site(run.name)}-{run.id}"
        for i in range(len(a)):
            if a.status[i] != SUCCEEDED:
                continue
            executor = trace.executor_ids[int(a.executor[i])]
            m = {name: float(values[i]) for name, values in a.metrics.items()}
            yield {
                "event_time": datetime.fromtimestamp(int(a.finish_ms[i]) / 1000, UTC),
                "topology": trace.name,
                "task": f"{component}.{int(a.partition[i]) + 1}",
                "component": component,
                "node": executor if executor == "driver" else f"executor-{executor}",
                "machine_type": f"{cores.get(executor, 1)}-core at {hosts[executor]}",
                "tuples_in": _whole(m["input_records"], m["shuffle_records"]),
                "tuples_out": _whole(m["written_records"], m["output_records"]),
                "cpu_ms": _sum(m["cpu_ms"], m["deserialize_cpu_ms"]),
                "queue_length": None,
                "memory_mb": _sum(m["peak_bytes"], 0.0) / 2**20,
            }


def _sum(*values: float) -> float:
    return sum(value for value in values if not math.isnan(value))


def _whole(*values: float) -> int:
    return int(_sum(*values))

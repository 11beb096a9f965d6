"""Events of an application, one after the other, folded into a `Trace`.

One pass, and of a task only its figures are kept, however long its line is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from headrace.observe.spark_log.stream_events import progress_of
from headrace.observe.spark_log.task_columns import TaskColumns, figures_of
from headrace.observe.spark_log.trace import (
    FAILED,
    KILLED,
    LOCALITY,
    SUCCEEDED,
    ExecutorSpan,
    Job,
    QueryProgress,
    ResourceProfile,
    StageRun,
)

EVENT_NAME = re.compile(rb'\s*\{\s*"Event"\s*:\s*"([^"]*)"')
FILE_METRICS = {"number of files read": "files", "size of files read": "bytes"}
NAN = float("nan")
Fields = Mapping[str, Any]


class Recorder:
    """Takes events in the order of the log."""

    def __init__(self) -> None:
        self.seen = 0  # events of Spark
        self.cut = self.strange = 0  # lines that break off, lines that are no events
        self.app: dict[str, Any] = {}
        self.settings: dict[str, str] = {}
        self.version = ""
        self.first_ms: int | None = None
        self.last_ms = 0
        self.ended_ms: int | None = None
        self.executors: dict[str, ExecutorSpan] = {}
        self.gone: list[ExecutorSpan] = []
        self.executor_index: dict[str, int] = {}
        self.executor_hosts: list[str] = []
        self.profiles: dict[int, ResourceProfile] = {}
        self.jobs: dict[int, dict[str, Any]] = {}
        self.stages: dict[tuple[int, int], dict[str, Any]] = {}
        self.tasks: dict[tuple[int, int], TaskColumns] = {}
        self.running = 0  # tasks that started and did not end
        self.progress: list[QueryProgress] = []
        self.roots: dict[str, str] = {}  # SQL execution -> the one it belongs to
        self.peaks: dict[str, dict[str, float]] = {}
        self.block_memory: dict[str, float] = {}
        self.file_metrics: dict[int, str] = {}  # accumulator -> which of FILE_METRICS
        self.files: dict[str, float] = {}

    def line(self, line: bytes) -> None:
        """Take a line of a log; what is no event is counted and passed over."""
        match = EVENT_NAME.match(line, 0, 400)
        if match is None:
            if line.startswith(b"{") and not line.rstrip().endswith(b"}"):
                self.cut += 1
            elif line.strip():
                self.strange += 1
            return
        name = match[1].decode("utf-8", "replace").rpartition(".")[2]
        if name == "SparkListenerTaskStart":
            self.seen += 1
            self.running += 1
            return
        handler = HANDLERS.get(name)
        if handler is None:
            sparks = name.startswith("SparkListener") or b"org.apache.spark" in match[1]
            self.seen += sparks
            self.strange += not sparks
            return
        try:
            fields = json.loads(line)
        except ValueError:
            self.cut += 1
            return
        self.event(name, fields)

    def event(self, name: str, fields: Fields) -> None:
        """Take an event by its name without the package."""
        handler = HANDLERS[name]
        self.seen += 1
        try:
            handler(self, fields)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            self.strange += 1  # an event of that name, but not Spark's

    def at(self, *moments: Any) -> None:
        """Remember the first and last moment that the log speaks of."""
        for moment in moments:
            if isinstance(moment, int) and moment > 0:
                self.last_ms = max(self.last_ms, moment)
                self.first_ms = moment if self.first_ms is None else min(self.first_ms, moment)

    def index_of(self, executor: str, host: str | None) -> int:
        if executor not in self.executor_index:
            self.executor_index[executor] = len(self.executor_hosts)
            self.executor_hosts.append(host or "unknown")
        return self.executor_index[executor]


def _log_start(r: Recorder, e: Fields) -> None:
    r.version = str(e.get("Spark Version") or r.version)


def _application_start(r: Recorder, e: Fields) -> None:
    r.app = {"id": e.get("App ID"), "name": e.get("App Name"), "start_ms": int(e["Timestamp"])}


def _application_end(r: Recorder, e: Fields) -> None:
    r.ended_ms = int(e["Timestamp"])
    r.at(r.ended_ms)


def _environment(r: Recorder, e: Fields) -> None:
    found = e.get("Spark Properties") or {}
    pairs = found.items() if isinstance(found, Mapping) else found
    r.settings |= {str(key): str(value) for key, value in pairs}


def _profile(r: Recorder, e: Fields) -> None:
    has = {k: v.get("Amount") for k, v in (e.get("Executor Resource Requests") or {}).items()}
    takes = {k: v.get("Amount") for k, v in (e.get("Task Resource Requests") or {}).items()}
    number = int(e["Resource Profile Id"])
    r.profiles[number] = ResourceProfile(
        id=number,
        cores=has.get("cores"),
        memory_mb=has.get("memory"),
        off_heap_mb=has.get("offHeap"),
        overhead_mb=has.get("memoryOverhead"),
        task_cpus=float(takes.get("cpus") or 1),
        task_resources={k: float(v) for k, v in takes.items() if k != "cpus" and v},
    )


def _executor_added(r: Recorder, e: Fields) -> None:
    info = e.get("Executor Info") or {}
    resources = info.get("Resources") or {}
    name = str(e["Executor ID"])
    r.executors[name] = ExecutorSpan(
        id=name,
        host=str(info.get("Host") or "unknown"),
        cores=max(1, int(info.get("Total Cores") or 1)),
        profile=int(info.get("Resource Profile Id") or 0),
        added_ms=int(e["Timestamp"]),
        resources={k: len(v.get("addresses") or ()) for k, v in resources.items()},
    )


def _executor_removed(r: Recorder, e: Fields) -> None:
    name, moment = str(e["Executor ID"]), int(e["Timestamp"])
    if (span := r.executors.pop(name, None)) is not None:
        whole = {k: getattr(span, k) for k in span.__slots__}
        whole |= {"removed_ms": moment, "removed_reason": e.get("Removed Reason")}
        r.gone.append(ExecutorSpan(**whole))


def _block_manager(r: Recorder, e: Fields) -> None:
    where = e["Block Manager ID"]
    r.block_memory[str(where["Executor ID"])] = float(e.get("Maximum Memory") or NAN)
    r.index_of(str(where["Executor ID"]), where.get("Host"))


def _job_start(r: Recorder, e: Fields) -> None:
    properties = e.get("Properties") or {}
    infos = e.get("Stage Infos") or ()
    execution = properties.get("spark.sql.execution.root.id") or properties.get(
        "spark.sql.execution.id"
    )
    batch = str(properties.get("streaming.sql.batchId", ""))
    r.jobs[int(e["Job ID"])] = {
        "submitted_ms": int(e.get("Submission Time") or 0),  # 0: before Spark 1.4, not said
        "stages": tuple(int(s) for s in e.get("Stage IDs") or ()),
        "parents": {int(s["Stage ID"]): tuple(s.get("Parent IDs") or ()) for s in infos},
        "execution": execution,
        "query": properties.get("sql.streaming.queryId"),
        "batch": int(batch) if batch.isdecimal() else None,
        "pool": properties.get("spark.scheduler.pool"),
        "group": properties.get("spark.jobGroup.id"),
        "description": properties.get("spark.job.description"),
    }
    r.at(e.get("Submission Time"))


def _job_end(r: Recorder, e: Fields) -> None:
    if (job := r.jobs.get(int(e["Job ID"]))) is not None and "ended_ms" not in job:
        job["ended_ms"] = int(e.get("Completion Time") or 0) or None
        job["succeeded"] = (e.get("Job Result") or {}).get("Result") == "JobSucceeded"
    r.at(e.get("Completion Time"))


def _stage(r: Recorder, e: Fields) -> None:
    """Submitted and completed say the same of a stage; the later one knows its end."""
    s = e["Stage Info"]
    key = int(s["Stage ID"]), int(s.get("Stage Attempt ID") or 0)
    submitted = s.get("Submission Time")
    operators: set[str] = set()
    for rdd in s.get("RDD Info") or ():
        scope = rdd.get("Scope")
        operators.add(json.loads(scope)["name"] if scope else str(rdd.get("Name")))
    facts = {
        "name": str(s.get("Stage Name") or f"stage {key[0]}"),
        "tasks": int(s.get("Number of Tasks") or 0),
        "parents": tuple(s.get("Parent IDs") or ()),
        "operators": tuple(sorted(operators)),
        "profile": int(s.get("Resource Profile Id") or 0),
        "failure": s.get("Failure Reason"),
    }
    known = r.stages.setdefault(key, {})
    known |= facts
    if submitted:
        known.setdefault("submitted_ms", int(submitted))
    if s.get("Completion Time"):
        known["completed_ms"] = int(s["Completion Time"])
    r.at(submitted, s.get("Completion Time"))


def _task_end(r: Recorder, e: Fields) -> None:
    reason = str((e.get("Task End Reason") or {}).get("Reason"))
    if reason == "Resubmitted":
        return  # an ended task whose output was lost: its next attempt is in the log
    r.running -= 1
    info, key = e["Task Info"], (int(e["Stage ID"]), int(e.get("Stage Attempt ID") or 0))
    host, launch, finish = info.get("Host"), int(info["Launch Time"]), int(info["Finish Time"])
    status = SUCCEEDED if reason == "Success" else KILLED if reason == "TaskKilled" else FAILED
    partition = info.get("Partition ID")
    # What a task brings to the driver it brings after its slot is free.
    fetching = int(info.get("Getting Result Time") or 0)
    locality = info.get("Locality")
    whole = {
        "partition": int(info["Index"] if partition in (None, -1) else partition),
        "executor": r.index_of(str(info["Executor ID"]), host),
        "launch_ms": launch,
        "finish_ms": max(launch, min(finish, fetching) if fetching > 0 else finish),
        "status": status,
        "speculative": bool(info.get("Speculative")),
        "locality": LOCALITY.index(locality) if locality in LOCALITY else -1,
        "fetch_failed": reason == "FetchFailed",
    }
    if (columns := r.tasks.get(key)) is None:
        columns = r.tasks[key] = TaskColumns()
    columns.add(whole, figures_of(e.get("Task Metrics") or {}))
    _peaks(r, str(info["Executor ID"]), e.get("Task Executor Metrics"))
    r.at(launch, finish)


def _peaks(r: Recorder, executor: str, metrics: Fields | None) -> None:
    """Keep the largest of each figure: Spark polls executors and reports peaks."""
    if metrics:
        known = r.peaks.setdefault(executor, {})
        for name, value in metrics.items():
            if isinstance(value, int | float) and value > known.get(name, 0):
                known[name] = float(value)


def _stage_metrics(r: Recorder, e: Fields) -> None:
    _peaks(r, str(e["Executor ID"]), e.get("Executor Metrics"))


def _executor_metrics(r: Recorder, e: Fields) -> None:
    for update in e.get("Executor Metrics Updated") or ():
        _peaks(r, str(e["Executor ID"]), update.get("Executor Metrics"))


def _sql_start(r: Recorder, e: Fields) -> None:
    if (root := e.get("rootExecutionId")) is not None:
        r.roots[str(e["executionId"])] = str(root)
    r.at(e.get("time"))
    _plan(r, e.get("sparkPlanInfo") or {})


def _sql_update(r: Recorder, e: Fields) -> None:
    _plan(r, e.get("sparkPlanInfo") or {})


def _sql_end(r: Recorder, e: Fields) -> None:
    r.at(e.get("time"))


def _plan(r: Recorder, plan: Fields) -> None:
    """Remember which accumulators count files."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        for metric in node.get("metrics") or ():
            if (kind := FILE_METRICS.get(metric.get("name"))) is not None:
                r.file_metrics[int(metric["accumulatorId"])] = kind
        waiting += node.get("children") or ()


def _driver_updates(r: Recorder, e: Fields) -> None:
    for update in e.get("accumUpdates") or ():
        if (kind := r.file_metrics.get(int(update[0]))) is not None:
            r.files[kind] = r.files.get(kind, 0.0) + float(update[1])


def _progress(r: Recorder, e: Fields) -> None:
    found = progress_of(e["progress"])
    r.progress.append(found)
    r.at(found.at_ms)


HANDLERS: Mapping[str, Callable[[Recorder, Fields], None]] = {
    "SparkListenerLogStart": _log_start,
    "DBCEventLoggingListenerMetadata": _log_start,
    "SparkListenerApplicationStart": _application_start,
    "SparkListenerApplicationEnd": _application_end,
    "SparkListenerEnvironmentUpdate": _environment,
    "SparkListenerResourceProfileAdded": _profile,
    "SparkListenerExecutorAdded": _executor_added,
    "SparkListenerExecutorRemoved": _executor_removed,
    "SparkListenerBlockManagerAdded": _block_manager,
    "SparkListenerJobStart": _job_start,
    "SparkListenerJobEnd": _job_end,
    "SparkListenerStageSubmitted": _stage,
    "SparkListenerStageCompleted": _stage,
    "SparkListenerTaskEnd": _task_end,
    "SparkListenerStageExecutorMetrics": _stage_metrics,
    "SparkListenerExecutorMetricsUpdate": _executor_metrics,
    "SparkListenerSQLExecutionStart": _sql_start,
    "SparkListenerSQLAdaptiveExecutionUpdate": _sql_update,
    "SparkListenerSQLExecutionEnd": _sql_end,
    "SparkListenerDriverAccumUpdates": _driver_updates,
    "StreamingQueryListener$QueryProgressEvent": _progress,
}


def job_of(number: int, facts: Fields, roots: Mapping[str, str]) -> Job:
    """A job as it was read, its SQL execution replaced by the one that this belongs to."""
    execution = facts["execution"]
    return Job(
        id=number,
        ended_ms=facts.get("ended_ms"),
        succeeded=facts.get("succeeded"),
        **{k: v for k, v in facts.items() if k not in ("ended_ms", "succeeded", "execution")},
        execution=None if execution is None else roots.get(str(execution), str(execution)),
    )


def stage_of(key: tuple[int, int], facts: Fields, tasks: TaskColumns) -> StageRun:
    """A stage run with its attempts; one without a time began with its first task."""
    attempts = tasks.freeze()
    submitted_ms = facts.get("submitted_ms") or int(attempts.launch_ms.min())
    return StageRun(
        id=key[0],
        attempt=key[1],
        submitted_ms=submitted_ms,
        completed_ms=facts.get("completed_ms"),
        **{k: v for k, v in facts.items() if k not in ("submitted_ms", "completed_ms")},
        attempts=attempts,
    )

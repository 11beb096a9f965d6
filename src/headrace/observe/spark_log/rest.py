"""Spark's REST API: a history server's logs, and a running application as the events of a log.

A history server hands out the log itself. A running application does not, but its jobs, stages,
tasks and executors say the same; they are put into the form of events, so that there is one reader.
The API does not say what a stage reads from: within a job, whatever had ended before it began.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from headrace.errors import InvalidInput
from headrace.model.nearest import nearest

ANSWERS_WITHIN_S = 30
TASKS_PER_ANSWER = 20_000
BATCH = re.compile(r"(?:^|<br/>|\n)batch = (\d+)")
QUERY = re.compile(r"(?:^|<br/>|\n)id = ([0-9a-f-]{36})")
NAME = re.compile(r"^\s*(.*?)\s*(?:<br/>|\n)\s*id = ")
Answer = Any


@dataclass(slots=True)
class Server:
    """A server with Spark's REST API; remembers the tasks of stages that are over."""

    url: str  # http://host:port
    app: str | None = None
    tasks: dict[tuple[int, int], list[Answer]] = field(
        default_factory=dict[tuple[int, int], list[Answer]]
    )

    def ask(self, path: str) -> Answer:
        """An answer, or a refusal that says what came instead."""
        raw = self.fetch(path)
        try:
            return json.loads(raw)
        except ValueError:
            raise InvalidInput(
                f"{self.url}/api/v1/{path}: the answer is not Spark's: {raw[:60]!r}",
                fix="give the address of a history server (:18080) or of a driver's UI (:4040)",
            ) from None

    def fetch(self, path: str) -> bytes:
        out = io.BytesIO()
        self.copy(path, out)
        return out.getvalue()

    def copy(self, path: str, out: IO[bytes]) -> None:
        """Write an answer to a file: a log may be larger than memory."""
        address = f"{self.url}/api/v1/{path}"
        try:
            request = Request(address, headers={"Accept": "application/json, */*"})
            with urlopen(request, timeout=ANSWERS_WITHIN_S) as answer:
                shutil.copyfileobj(answer, out)
        except HTTPError as error:
            raise NotThere(
                f"{address}: the server answers {error.code}",
                fix="give the address of a history server (:18080) or of a driver's UI (:4040)",
            ) from None
        except (URLError, OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or str(error) or type(error).__name__
            if isinstance(error, TimeoutError) or isinstance(reason, TimeoutError):
                raise TooSlow(f"{address}: no answer within {ANSWERS_WITHIN_S} s") from None
            raise InvalidInput(
                f"{address}: the server stopped or is not there ({reason})"
            ) from None

    def applications(self) -> list[Answer]:
        found = self.ask("applications")
        if not isinstance(found, list) or not all(
            isinstance(row, dict) and "id" in row and row.get("attempts") for row in found
        ):
            raise InvalidInput(f"{self.url}: the answer is not a list of Spark's applications")
        return found

    def choose(self) -> Answer:
        """The application asked for, or the only one."""
        found = self.applications()
        ids = [str(row["id"]) for row in found]
        if self.app is not None:
            for row in found:
                if row["id"] == self.app:
                    return row
            raise InvalidInput(
                f"{self.url}: has no application `{self.app}`{nearest(self.app, ids)}"
            )
        if not found:
            raise InvalidInput(f"{self.url}: has no application")
        if len(found) > 1:
            raise InvalidInput(
                f"{self.url}: has {len(found)} applications", fix=f"--app ID, such as {ids[0]}"
            )
        return found[0]

    def save_log(self, row: Answer, folder: Path) -> Path | None:
        """The event log of an application, in a folder; None if the server has none to give."""
        attempt = (row.get("attempts") or [{}])[0].get("attemptId")
        path = (
            f"applications/{quote(str(row['id']))}" + (f"/{attempt}" if attempt else "") + "/logs"
        )
        packed = folder / "log.zip"
        try:
            with packed.open("wb") as out:
                self.copy(path, out)
        except NotThere:
            return None
        try:
            with zipfile.ZipFile(packed) as archive:
                names = [n for n in archive.namelist() if not n.endswith("/")]
                for name in names:
                    target = (folder / name).resolve()
                    if not target.is_relative_to(folder.resolve()):
                        raise InvalidInput(f"{self.url}: the log's archive leaves its folder")
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(name) as part, target.open("wb") as out:
                        shutil.copyfileobj(part, out)
        except (zipfile.BadZipFile, EOFError):
            raise InvalidInput(
                f"{self.url}: the log of {row['id']} broke off on the way, or is no archive"
            ) from None
        if not names:
            return None  # a running driver answers so
        first = folder / names[0]
        return first.parent if first.parent != folder else first


class TooSlow(InvalidInput):
    """The server did not answer in time; it may later."""


class NotThere(InvalidInput):
    """The server answered, but not with this."""


def server_at(url: str, app: str | None) -> Server:
    """The server of an address, with or without a path after it."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InvalidInput(f"{url}: no address of a server; it is http://host:port")
    return Server(f"{parts.scheme}://{parts.netloc}", app)


def events_of(server: Server, row: Answer) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A running application as events, by name."""
    base = f"applications/{quote(str(row['id']))}"
    attempt = row["attempts"][0]
    yield "SparkListenerLogStart", {"Spark Version": attempt.get("appSparkVersion")}
    yield (
        "SparkListenerApplicationStart",
        {"App ID": row["id"], "App Name": row.get("name"), "Timestamp": _ms(attempt["startTime"])},
    )
    settings = server.ask(f"{base}/environment").get("sparkProperties") or ()
    yield "SparkListenerEnvironmentUpdate", {"Spark Properties": settings}
    yield from _executors(server.ask(f"{base}/allexecutors"))
    executions = _executions(server, base)
    stages = [s for s in server.ask(f"{base}/stages") if s.get("submissionTime")]
    for job in sorted(server.ask(f"{base}/jobs"), key=lambda j: j["jobId"]):
        yield from _job(job, stages, executions)
    for stage in stages:
        info = _stage(stage, stages)
        yield "SparkListenerStageSubmitted", {"Stage Info": info}
        for task in _tasks(server, base, stage):
            yield "SparkListenerTaskEnd", _task(stage, task)
    if attempt.get("completed"):
        yield "SparkListenerApplicationEnd", {"Timestamp": _ms(attempt["endTime"])}


def _executors(rows: list[Answer]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    local = len(rows) == 1
    for row in rows:
        if row["id"] == "driver" and not local and not row.get("totalTasks"):
            continue
        resources = {
            k: {"addresses": v.get("addresses")} for k, v in row.get("resources", {}).items()
        }
        yield (
            "SparkListenerExecutorAdded",
            {
                "Executor ID": row["id"],
                "Timestamp": _ms(row["addTime"]),
                "Executor Info": {
                    "Host": str(row.get("hostPort")).rpartition(":")[0],
                    "Total Cores": row.get("totalCores"),
                    "Resource Profile Id": row.get("resourceProfileId"),
                    "Resources": resources,
                },
            },
        )
        peaks = {"Executor ID": row["id"], "Executor Metrics": row.get("peakMemoryMetrics")}
        yield "SparkListenerStageExecutorMetrics", peaks
        if row.get("removeTime"):
            yield (
                "SparkListenerExecutorRemoved",
                {
                    "Executor ID": row["id"],
                    "Timestamp": _ms(row["removeTime"]),
                    "Removed Reason": row.get("removeReason"),
                },
            )


def _executions(server: Server, base: str) -> dict[int, str]:
    """Job -> SQL execution."""
    found: dict[int, str] = {}
    with suppress(InvalidInput):  # an application without SQL has no such page
        for row in server.ask(f"{base}/sql?details=false&planDescription=false&length=100000"):
            for kind in ("runningJobIds", "successJobIds", "failedJobIds"):
                found |= dict.fromkeys(row.get(kind) or (), str(row["id"]))
    return found


def _job(
    job: Answer, stages: list[Answer], executions: Mapping[int, str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    description = job.get("description") or ""
    properties = {"spark.job.description": description, "spark.jobGroup.id": job.get("jobGroup")}
    if job["jobId"] in executions:
        properties["spark.sql.execution.id"] = executions[job["jobId"]]
    if (query := QUERY.search(description)) is not None:
        properties["sql.streaming.queryId"] = query[1]
    if (batch := BATCH.search(description)) is not None:
        properties["streaming.sql.batchId"] = batch[1]
    mine = [s for s in stages if s["stageId"] in job["stageIds"]]
    infos = [{"Stage ID": s["stageId"], "Parent IDs": _parents(s, mine)} for s in mine]
    fields = {"Job ID": job["jobId"], "Submission Time": _ms(job.get("submissionTime"))}
    more = {"Stage IDs": job["stageIds"], "Stage Infos": infos, "Properties": properties}
    yield "SparkListenerJobStart", {**fields, **more}
    if job.get("completionTime"):
        result = "JobSucceeded" if job.get("status") == "SUCCEEDED" else "JobFailed"
        ended = {"Completion Time": _ms(job["completionTime"]), "Job Result": {"Result": result}}
        yield "SparkListenerJobEnd", {"Job ID": job["jobId"], **ended}


def _parents(stage: Answer, mine: list[Answer]) -> list[int]:
    began = _ms(stage["submissionTime"])
    return [
        other["stageId"]
        for other in mine
        if other["stageId"] < stage["stageId"]
        and other.get("completionTime")
        and (_ms(other["completionTime"]) or 0) <= (began or 0)
    ]


def _stage(stage: Answer, stages: list[Answer]) -> dict[str, Any]:
    reads = (stage.get("shuffleReadBytes") or 0) > 0
    return {
        "Stage ID": stage["stageId"],
        "Stage Attempt ID": stage.get("attemptId", 0),
        "Stage Name": stage.get("name"),
        "Number of Tasks": stage.get("numTasks"),
        "Parent IDs": _parents(stage, stages) if reads else [],
        "Submission Time": _ms(stage["submissionTime"]),
        "Completion Time": _ms(stage.get("completionTime")),
        "Failure Reason": stage.get("failureReason"),
        "Resource Profile Id": stage.get("resourceProfileId"),
    }


def _tasks(server: Server, base: str, stage: Answer) -> list[Answer]:
    """The tasks of a stage that are over; of a stage that is over they are asked for once."""
    key = stage["stageId"], stage.get("attemptId", 0)
    if key in server.tasks:
        return server.tasks[key]
    found: list[Answer] = []
    while True:
        path = f"{base}/stages/{key[0]}/{key[1]}/taskList"
        rows = server.ask(f"{path}?offset={len(found)}&length={TASKS_PER_ANSWER}")
        found += rows
        if len(rows) < TASKS_PER_ANSWER:
            break
    ended = [t for t in found if t.get("status") in ("SUCCESS", "FAILED", "KILLED")]
    if stage.get("status") in ("COMPLETE", "FAILED"):
        server.tasks[key] = ended
    return ended


def _task(stage: Answer, task: Answer) -> dict[str, Any]:
    launched = _ms(task["launchTime"]) or 0
    m = task.get("taskMetrics") or {}
    read, written = m.get("shuffleReadMetrics") or {}, m.get("shuffleWriteMetrics") or {}
    source, sink = m.get("inputMetrics") or {}, m.get("outputMetrics") or {}
    reason = {"SUCCESS": "Success", "KILLED": "TaskKilled"}.get(task["status"], "ExceptionFailure")
    return {
        "Stage ID": stage["stageId"],
        "Stage Attempt ID": stage.get("attemptId", 0),
        "Task End Reason": {"Reason": reason},
        "Task Info": {
            "Index": task["index"],
            "Partition ID": task.get("partitionId"),
            "Launch Time": launched,
            "Finish Time": launched + int(task.get("duration") or 0),
            "Executor ID": task["executorId"],
            "Host": task.get("host"),
            "Locality": task.get("taskLocality"),
            "Speculative": task.get("speculative"),
        },
        "Task Metrics": {
            "Executor Run Time": m.get("executorRunTime"),
            "Executor CPU Time": m.get("executorCpuTime"),
            "Executor Deserialize Time": m.get("executorDeserializeTime"),
            "Executor Deserialize CPU Time": m.get("executorDeserializeCpuTime"),
            "JVM GC Time": m.get("jvmGcTime"),
            "Result Serialization Time": m.get("resultSerializationTime"),
            "Peak Execution Memory": m.get("peakExecutionMemory"),
            "Memory Bytes Spilled": m.get("memoryBytesSpilled"),
            "Disk Bytes Spilled": m.get("diskBytesSpilled"),
            "Shuffle Read Metrics": {
                "Remote Bytes Read": read.get("remoteBytesRead"),
                "Local Bytes Read": read.get("localBytesRead"),
                "Total Records Read": read.get("recordsRead"),
                "Fetch Wait Time": read.get("fetchWaitTime"),
            },
            "Shuffle Write Metrics": {
                "Shuffle Bytes Written": written.get("bytesWritten"),
                "Shuffle Records Written": written.get("recordsWritten"),
            },
            "Input Metrics": {
                "Bytes Read": source.get("bytesRead"),
                "Records Read": source.get("recordsRead"),
            },
            "Output Metrics": {
                "Bytes Written": sink.get("bytesWritten"),
                "Records Written": sink.get("recordsWritten"),
            },
        },
    }


def _ms(text: str | None) -> int | None:
    """`2026-11-17T02:00:00.123GMT` as milliseconds."""
    if not text:
        return None
    moment = datetime.strptime(text.removesuffix("GMT"), "%Y-%m-%dT%H:%M:%S.%f")
    return int(moment.replace(tzinfo=UTC).timestamp() * 1000)

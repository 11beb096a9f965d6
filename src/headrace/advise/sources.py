"""Where applications come from: log files and folders, a history server, a running driver."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from headrace.errors import InvalidInput
from headrace.observe.spark_log.files import Log, choose
from headrace.observe.spark_log.local_files import find_local_logs
from headrace.observe.spark_log.read_trace import read_trace, trace_of
from headrace.observe.spark_log.record import Recorder
from headrace.observe.spark_log.rest import NAME, Server, events_of, server_at
from headrace.observe.spark_log.trace import QueryProgress, Trace

MOST_NAMED = 20


def is_address(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def read_source(source: str, app: str | None = None) -> Trace:
    """The application at a path or an address; `app` chooses where there are several."""
    if is_address(source):
        return read_server(server_at(source, app))
    if "://" in source and not source.startswith("file://"):
        return _read_with_spark(source, app)
    return read_trace(_one(find_local_logs(Path(source.removeprefix("file://"))), source, app))


def read_server(server: Server) -> Trace:
    """From a history server its log; from a running driver what it says now."""
    row = server.choose()
    with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
        path = server.save_log(row, Path(folder))
        if path is not None:
            logs = find_local_logs(path)
            return read_trace(logs[0])
    recorder = Recorder()
    for name, fields in events_of(server, row):
        recorder.event(name, fields)
    trace = trace_of(recorder, server.url, str(row["id"]), [])
    return replace(trace, progress=trace.progress or progress_from_jobs(trace))


def progress_from_jobs(trace: Trace) -> tuple[QueryProgress, ...]:
    """Micro-batches by their jobs, where no report of the query is at hand.

    The driver's time before the first job of a batch and after the last is not in it.
    """
    stages = {(run.id, run.attempt): run for run in trace.stages}
    batches: dict[tuple[str, int], list[int]] = {}
    for place, job in enumerate(trace.jobs):
        if job.query is not None and job.batch is not None and job.ended_ms is not None:
            batches.setdefault((job.query, job.batch), []).append(place)
    found: list[QueryProgress] = []
    for (query, batch), places in sorted(batches.items(), key=lambda b: b[0][1]):
        jobs = [trace.jobs[place] for place in places]
        mine = {stage for job in jobs for stage in job.stages}
        rows = sum(
            run.attempts.total("input_records") or 0.0
            for key, run in stages.items()
            if key[0] in mine
        )
        first = min(job.submitted_ms for job in jobs)
        took = max(job.ended_ms or first for job in jobs) - first
        named = NAME.match(jobs[0].description or "")
        found.append(
            QueryProgress(
                query=query,
                name=named[1] if named and named[1] else None,
                batch=batch,
                at_ms=first,
                input_rows=rows,
                input_per_s=None,
                processed_per_s=None,
                duration_ms={"triggerExecution": float(took)},
                state=(),
                sources=(),
                sink=None,
            )
        )
    return tuple(found)


def _one(logs: list[Log], source: str, app: str | None) -> Log:
    if app is not None:
        return choose(logs, app, source)
    if len(logs) > 1:
        named = "\n".join(f"  {log.app}" for log in logs[:MOST_NAMED])
        more = f"\n  and {len(logs) - MOST_NAMED} more" if len(logs) > MOST_NAMED else ""
        raise InvalidInput(
            f"{source}: holds the logs of {len(logs)} applications:\n{named}{more}",
            fix=f"--app ID, such as {logs[0].app}",
        )
    return logs[0]


def _read_with_spark(source: str, app: str | None) -> Trace:
    """A path in a file system that only Spark reads: its files are copied first."""
    from headrace.observe.spark_log.files import copy_files, find_logs
    from headrace.spark import require_spark, session

    require_spark("advise")
    spark = session(app="headrace advise")
    log = _one(find_logs(spark, source), source, app)
    with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
        return read_trace(replace(log, files=copy_files(spark, log, Path(folder))))

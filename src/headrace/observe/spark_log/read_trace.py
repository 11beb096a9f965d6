"""A log, read in one pass without Spark: `Trace` out, what is missing in its notes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from headrace.errors import InvalidInput
from headrace.observe.spark_log.files import NEEDED, Log
from headrace.observe.spark_log.local_files import read_lines
from headrace.observe.spark_log.record import Recorder, job_of, stage_of
from headrace.observe.spark_log.task_columns import TaskColumns
from headrace.observe.spark_log.trace import ExecutorSpan, Job, StageRun, Trace

LOCAL = re.compile(r"local\[(\d+)")


def read_trace(log: Log) -> Trace:
    """What the log of one application says."""
    recorder, notes = Recorder(), list(log.notes)
    for file in log.files:
        for line in read_lines(Path(file.removeprefix("file://")), notes):
            recorder.line(line)
    return trace_of(recorder, log.files[0], log.app, notes)


def trace_of_lines(lines: Iterable[bytes], where: str) -> Trace:
    """The same from lines that are at hand."""
    recorder = Recorder()
    for line in lines:
        recorder.line(line)
    return trace_of(recorder, where, where, [])


def trace_of(r: Recorder, where: str, app: str, notes: list[str]) -> Trace:
    """The finished trace, or a refusal that says what the file is not."""
    if not r.seen:
        kind = "is empty" if not (r.strange or r.cut or notes) else "holds none of Spark's events"
        raise InvalidInput(f"{where}: {kind}; {NEEDED}")
    ran = {key: columns for key, columns in r.tasks.items() if len(columns.whole["status"])}
    if not ran:
        raise InvalidInput(f"{where}: no task came to its end in this log; there is nothing to say")
    stages = _stages(r, ran, notes)
    start_ms = int(r.app.get("start_ms") or r.first_ms or 0)
    end_ms = max(r.ended_ms or r.last_ms, start_ms)
    _note(r, notes)
    spans = sorted((*r.gone, *r.executors.values()), key=lambda e: (e.added_ms, len(e.id), e.id))
    return Trace(
        id=str(r.app.get("id") or app),
        name=str(r.app.get("name") or app),
        version=r.version
        or r.settings.get("spark.databricks.clusterUsageTags.sparkVersion", "")
        or "unknown",
        start_ms=start_ms,
        end_ms=end_ms,
        ended=r.ended_ms is not None,
        settings=dict(r.settings),
        executors=tuple(
            # A time after the end is that of another clock.
            replace(span, added_ms=start_ms, removed_ms=None) if span.added_ms > end_ms else span
            for span in _executors(r, spans, stages, start_ms, notes)
        ),
        executor_ids=tuple(r.executor_index),
        executor_hosts=tuple(r.executor_hosts),
        profiles=dict(r.profiles),
        jobs=_jobs(r, stages),
        stages=stages,
        progress=tuple(sorted(r.progress, key=lambda p: p.at_ms)),
        peaks={name: dict(metrics) for name, metrics in r.peaks.items()},
        block_memory=dict(r.block_memory),
        files_read=r.files.get("files"),
        file_bytes=r.files.get("bytes"),
        notes=tuple(notes),
    )


def _stages(
    r: Recorder, ran: dict[tuple[int, int], TaskColumns], notes: list[str]
) -> tuple[StageRun, ...]:
    """The stage runs that had tasks; one without a description is known by its tasks alone."""
    nameless = 0
    found: list[StageRun] = []
    for key, columns in ran.items():
        facts = r.stages.get(key)
        if facts is None:
            nameless += 1
            first = min(columns.whole["launch_ms"])
            facts = {
                "name": f"stage {key[0]}",
                "tasks": len(set(columns.whole["partition"])),
                "parents": (),
                "operators": (),
                "profile": 0,
                "failure": None,
                "submitted_ms": first,
                "completed_ms": max(columns.whole["finish_ms"]),
            }
        found.append(stage_of(key, facts, columns))
    if nameless:
        notes.append(f"{nameless} stages have tasks but no description in the log")
    return tuple(sorted(found, key=lambda s: (s.submitted_ms, s.id, s.attempt)))


def _jobs(r: Recorder, stages: tuple[StageRun, ...]) -> tuple[Job, ...]:
    """The jobs in the order of their submission; one without a time began with its first stage."""
    first: dict[int, int] = {}
    for stage in stages:
        first.setdefault(stage.id, stage.submitted_ms)
    known = [job_of(number, facts, r.roots) for number, facts in r.jobs.items()]
    timed = [
        job
        if job.submitted_ms
        else replace(job, submitted_ms=min((first[s] for s in job.stages if s in first), default=0))
        for job in known
    ]
    ran = [job for job in timed if job.submitted_ms]
    return tuple(sorted(ran, key=lambda job: (job.submitted_ms, job.id)))


def _executors(
    r: Recorder,
    spans: list[ExecutorSpan],
    stages: tuple[StageRun, ...],
    start_ms: int,
    notes: list[str],
) -> tuple[ExecutorSpan, ...]:
    """Executors as the log adds them; those it never adds are known by their tasks."""
    known = {span.id for span in spans}
    missing = [name for name in r.executor_index if name not in known]
    used: dict[str, list[tuple[int, int]]] = {name: [] for name in missing}
    names = tuple(r.executor_index)
    for stage in stages:
        attempts = stage.attempts
        for number in np.unique(attempts.executor, return_counts=True)[0]:
            if (name := names[int(number)]) in used:
                mine = attempts.executor == number
                used[name] += zip(
                    attempts.launch_ms[mine].tolist(),
                    attempts.finish_ms[mine].tolist(),
                    strict=True,
                )
    local = LOCAL.match(r.settings.get("spark.master", ""))
    for name, times in used.items():
        if not times:
            continue  # a driver that runs no tasks
        cores = int(local[1]) if local else most_at_once(times)
        host = r.executor_hosts[r.executor_index[name]]
        added = start_ms if name in ("driver", "<driver>") else min(first for first, _ in times)
        spans.append(ExecutorSpan(name, host, max(1, cores), 0, added))
        if not local:
            notes.append(
                f"the log does not say how many cores executor {name} has; "
                f"it ran {cores} tasks at once at most, which are taken for its cores"
            )
    return tuple(spans)


def most_at_once(times: list[tuple[int, int]]) -> int:
    """The largest number of intervals that overlap."""
    changes = sorted([(end, -1) for _, end in times] + [(start, 1) for start, _ in times])
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def _note(r: Recorder, notes: list[str]) -> None:
    if r.cut:
        notes.append(f"{r.cut} {'line is' if r.cut == 1 else 'lines are'} cut off; passed over")
    if r.strange:
        notes.append(f"{r.strange} lines are not events of Spark; passed over")
    if r.ended_ms is None:
        notes.append(
            "the application did not end: it was killed, or it still runs; "
            "what it had done until then is used"
        )
    if r.running > 0:
        notes.append(f"{r.running} tasks started and are not in the log as ended; left out")

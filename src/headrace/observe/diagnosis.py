"""What is wrong with how an application runs on Spark, in words with numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from headrace.figures import data_size

if TYPE_CHECKING:
    from headrace.observe.spark_log.application import Application, ComponentFigures

SKEWED = 2.0  # slowest task over median task
SKEW_COSTS_S = 0.1  # below, nobody would feel it
REMOTE_BYTES = 1_000_000  # shuffles smaller than this are not worth a word
REMOTE = 0.1
IDLE, BUSY = 0.5, 1.5  # of the mean executor
OVERLOADED = 0.9  # of its cores' time
GC, GC_COSTS_S = 0.1, 1.0
WAITING, WAITING_COSTS_S = 0.5, 1.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know, where it is, and the numbers behind it."""

    kind: str
    where: str
    message: str
    numbers: dict[str, float] = field(default_factory=dict[str, float])

    def to_json(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "where": self.where,
            "message": self.message,
            "numbers": self.numbers,
        }


def diagnose(application: Application) -> Iterator[Finding]:
    """What each stage is, then findings stage by stage and executor by executor."""
    yield from map(_stage, application.components)
    for m in application.components:
        yield from _skew(m)
    yield from _remote(application)
    for m in application.components:
        yield from _waiting(m)
        yield from _spill(m)
        yield from _failures(m)
    yield from _executors(application)


def _stage(m: ComponentFigures) -> Finding:
    """One line on a stage, with nothing wrong said."""
    slowest = sum(run.slowest_ms for run in m.runs) / 1000
    median = sum(run.median_ms for run in m.runs) / 1000
    runs = f"{len(m.runs)} runs of " if len(m.runs) > 1 else ""
    message = (
        f"{runs}{m.component.tasks} tasks, "
        f"{_cpu(m)} in {m.work.run_ms / 1000:.3g} s of work, "
        f"{m.work.records_in:,.0f} records in, "
        f"{m.work.written_records:,.0f} ({data_size(m.work.written_bytes)}) to the shuffle, "
        f"slowest task {slowest / max(median, 0.001):.3g} times the median"
    )
    numbers = {
        "runs": len(m.runs),
        "tasks": m.component.tasks,
        "cpu_s": m.work.cpu_ms / 1000,
        "run_s": m.work.run_ms / 1000,
        "records_in": m.work.records_in,
        "records_written": m.work.written_records,
        "bytes_written": m.work.written_bytes,
        "slowest_s": slowest,
        "median_s": median,
    }
    return Finding("stage", m.component.name, message, numbers)


def _cpu(m: ComponentFigures) -> str:
    known = m.work.computing is not None
    return f"{m.work.cpu_ms / 1000:.3g} s of CPU" if known else "CPU not counted"


def _skew(m: ComponentFigures) -> Iterator[Finding]:
    """Slowest against median task, summed over the runs of a stage: both weigh as they delay.

    Skew is a matter of keys, so of what a shuffle brought to a task; a scan has no keys.
    """
    runs = [run for run in m.runs if run.succeeded > 1]
    slowest = sum(run.slowest_ms for run in runs) / 1000
    median = sum(run.median_ms for run in runs) / 1000
    if not runs or slowest < SKEWED * median or (slowest - median) < SKEW_COSTS_S * len(runs):
        return
    ratio = slowest / max(median, 0.001)
    records = sum(run.records for run in runs)
    tasks = sum(run.succeeded for run in runs) / len(runs)
    share = min(sum(run.slowest_records for run in runs) / records, 1.0) if records else 0.0
    message = (
        f"its slowest task takes {slowest / len(runs):.3g} s, "
        f"its median task {median / len(runs):.3g} s: {ratio:.3g} times"
    )
    by_key = bool(m.component.inputs) and share > SKEWED / tasks
    if by_key:
        message += (
            f"; it reads {share:.0%} of the records, an even share is {1 / tasks:.0%}, "
            "so the keys are skewed: split the heavy ones or let adaptive execution do it"
        )
    elif records:
        message += (
            f"; it reads {share:.0%} of the records: it is the machine, the split or the code, "
            "not the keys"
        )
    numbers = {"slowest_s": slowest, "median_s": median, "ratio": ratio, "records": share}
    yield Finding("skew" if by_key else "straggler", m.component.name, message, numbers)


def _remote(application: Application) -> Iterator[Finding]:
    total = reduce(add, (m.work for m in application.components))
    if total.shuffle_bytes == 0 or len(application.executors) < 2:
        return
    share = total.remote_bytes / total.shuffle_bytes
    hosts = len({executor.host for executor in application.executors})
    executors = len(application.executors)
    waited = min(total.fetch_wait_ms / max(total.run_ms, 1), 1.0)
    message = (
        f"{share:.0%} of {data_size(total.shuffle_bytes)} of shuffle reads came from another "
        f"executor; spread by chance over {executors} executors on {hosts} hosts it would be "
        f"{1 - 1 / executors:.0%}; tasks waited {waited:.0%} of their time for it"
    )
    numbers = {"share": share, "bytes": total.shuffle_bytes, "waiting": waited}
    yield Finding("remote", "application", message, numbers)
    for m in application.components:
        read = m.work.shuffle_bytes
        if read >= REMOTE_BYTES and (share := m.work.remote_bytes / read) >= REMOTE:
            message = f"{share:.0%} of its {data_size(read)} of shuffle reads are remote"
            yield Finding("remote", m.component.name, message, {"share": share, "bytes": read})


def _waiting(m: ComponentFigures) -> Iterator[Finding]:
    """Tasks that run without computing: the only sign in a log of a machine that others use too."""
    if (computing := m.work.computing) is None:
        return  # not counted before Spark 2.1: unknown
    share = 1 - computing
    if share > WAITING and share * m.work.run_ms > WAITING_COSTS_S * 1000:
        why = (
            "for Python workers, mostly"
            if m.component.in_python
            else "for disk, network, or cores that others use"
        )
        yield Finding(
            "waiting",
            m.component.name,
            f"its tasks wait {share:.0%} of their time: {why}",
            {"share": share},
        )


def _spill(m: ComponentFigures) -> Iterator[Finding]:
    if m.work.spilled_disk > 0:
        message = (
            f"spills {data_size(m.work.spilled_disk)} to disk "
            f"({data_size(m.work.spilled_memory)} in memory): "
            "give executors more memory, or the stage more and smaller tasks"
        )
        numbers = {"disk_bytes": m.work.spilled_disk, "memory_bytes": m.work.spilled_memory}
        yield Finding("spill", m.component.name, message, numbers)


def _failures(m: ComponentFigures) -> Iterator[Finding]:
    if m.work.failed:
        of = m.work.failed + m.work.succeeded
        message = (
            f"{m.work.failed} of {of} task attempts failed ({m.work.error}), "
            f"{m.work.wasted_ms / 1000:.3g} s of work lost"
        )
        numbers: dict[str, float] = {"failed": m.work.failed, "attempts": of}
        yield Finding("failed", m.component.name, message, numbers)
    if m.work.killed:
        message = (
            f"{m.work.killed} task attempts were killed (speculation, or a stage that was given up)"
        )
        yield Finding("killed", m.component.name, message, {"killed": m.work.killed})


def _executors(application: Application) -> Iterator[Finding]:
    """How much of its cores' time each executor worked, while it was up."""
    first, last = application.span_ms
    busy: dict[str, float] = {}
    for executor in application.executors:
        up_ms = min(executor.removed_ms or last, last) - max(executor.added_ms, first)
        works = [m.on[executor.id] for m in application.components if executor.id in m.on]
        work = reduce(add, works) if works else None
        run_ms = work.run_ms + work.wasted_ms if work else 0.0
        busy[executor.node] = min(run_ms / max(up_ms * executor.cores, 1), 1.0)
        if work and work.gc_ms > max(GC * work.run_ms, GC_COSTS_S * 1000):
            share = min(work.gc_ms / work.run_ms, 1.0)
            message = f"collects garbage {share:.0%} of its tasks' time: it is short of memory"
            yield Finding("gc", executor.node, message, {"share": share})
        gone = executor.removed_ms is not None and first <= executor.removed_ms < last
        if gone and not executor.given_back:
            after_s = ((executor.removed_ms or first) - first) / 1000
            reason = executor.removed_reason or "no reason given"
            message = f"was lost {after_s:.3g} s into the work: {reason}"
            yield Finding("lost", executor.node, message, {"after_s": after_s})
    mean = sum(busy.values()) / max(len(busy), 1)
    for node, share in busy.items():
        compared = f", those of all {len(busy)} executors {mean:.0%}" if len(busy) > 1 else ""
        message = f"its cores work {share:.0%} of the time{compared}"
        numbers = {"busy": share, "mean": mean}
        if share < IDLE * (mean if len(busy) > 1 else 1):
            yield Finding("idle", node, message, numbers)
        elif share > OVERLOADED or (share > BUSY * mean and share > IDLE):
            yield Finding("overloaded", node, message, numbers)

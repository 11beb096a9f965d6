"""The reports of a batch: one for every task, put together where a spout has read in parts."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import reduce

from headrace.run.compiling import CompiledBatch
from headrace.run.placement import Place
from headrace.run.seats import Reports, Seat, TaskReport
from headrace.run.task import where_am_i


def reports_of(ready: CompiledBatch, found: Reports) -> list[TaskReport]:
    """One report per task that works or replays, in the order of the seats."""
    by_task: dict[tuple[str, str, int], list[TaskReport]] = {}
    for (batch, role, component, number, _), report in sorted(found.items()):
        if batch == ready.stages[0].batch:
            by_task.setdefault((role, component, number), []).append(report)
    return [
        merge_reports(seat, by_task.get((seat.role, seat.component, seat.number), []), place)
        for stage, places in zip(ready.stages, ready.places, strict=True)
        for seat, place in zip(stage.seats, places, strict=True)
        if seat.role != "wait"
    ]


def merge_reports(seat: Seat, reports: list[TaskReport], place: Place | None) -> TaskReport:
    """What a spout's task did with all its source partitions; with none it has not run."""
    if not reports:
        where = where_am_i() if place is None else (place[0],)
        return TaskReport(seat.role, seat.component, seat.number, where, time.time())
    return reduce(_add, reports)


def _add(one: TaskReport, other: TaskReport) -> TaskReport:
    times = [t for t in (one.latest, other.latest) if t is not None]
    return replace(
        one,
        began=min(one.began, other.began),
        ended=max(one.ended, other.ended),
        tuples_in=one.tuples_in + other.tuples_in,
        tuples_out=one.tuples_out + other.tuples_out,
        cpu_ms=one.cpu_ms + other.cpu_ms,
        memory_mb=max(one.memory_mb, other.memory_mb),
        edges=one.edges + other.edges,
        carried=one.carried + other.carried,
        parts=one.parts + other.parts,
        latest=max(times, default=None),
        failure=one.failure or other.failure,
        storage=one.storage or other.storage,
    )

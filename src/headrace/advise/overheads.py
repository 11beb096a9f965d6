"""What Spark itself takes, fitted to a log's stages: until executors are ready, and per stage.

Both come from how long whole stages took, never from when a task was launched.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from headrace.advise.work import Slots, StageWork, Work
from headrace.observe.spark_log.trace import StageRun, Trace

LATE_S = 1.0  # an executor that takes tasks so much after it registered was not ready
MOST_START_S = 1.0  # a stage that takes longer to start waits for something else


def fit_overheads(work: Work, trace: Trace) -> Work:
    """The work with executors that take tasks when they did, and stages that start as fast."""
    runs = {(run.id, run.attempt): run for run in trace.stages}
    ready = _ready(work, trace, runs)
    return replace(work, fleet=ready, stage_start_s=_stage_start(work, trace, ready, runs))


def makespan(durations: Sequence[float], slots: int) -> float:
    """How long tasks take on so many slots, each next task to the first free one."""
    if len(durations) <= slots:
        return max(durations, default=0.0)
    free = list(durations[:slots])
    heapq.heapify(free)
    for takes in durations[slots:]:
        heapq.heapreplace(free, free[0] + takes)
    return max(free)


def chains(stage: StageWork) -> list[float]:
    """Each task with its retries after it."""
    return [takes + sum(stage.retries.get(i, ())) for i, takes in enumerate(stage.task_s.tolist())]


def _ready(work: Work, trace: Trace, runs: dict[tuple[int, int], StageRun]) -> tuple[Slots, ...]:
    """Executors register before their plug-ins have started: the first stage shows how long."""
    if not work.stages or not work.fleet:
        return work.fleet
    first = min(work.stages, key=lambda s: (runs[(s.id, s.attempt)].submitted_ms, s.id))
    run = runs[(first.id, first.attempt)]
    alike = [s for s in work.fleet if s.profile == first.profile]
    if run.completed_ms is None or not alike:
        return work.fleet
    ended_s = (run.completed_ms - trace.start_ms) / 1000 - first.tail_s
    submitted_s = (run.submitted_ms - trace.start_ms) / 1000
    here = [s for s in alike if s.added_s < ended_s]
    slots = max(1, sum(s.slots for s in here))
    beside_s = sum(_busy_until(r, run.completed_ms) for r in runs.values() if r is not run)
    # Another job's stage may take the slots first.
    took = max(makespan(chains(first), slots), (sum(chains(first)) + beside_s) / slots)
    began_s = ended_s - took
    expected_s = max(submitted_s, min((s.added_s for s in here), default=submitted_s))
    if began_s - expected_s <= LATE_S:
        return work.fleet
    return tuple(replace(s, ready_s=began_s) if s.added_s <= began_s else s for s in work.fleet)


def _busy_until(run: StageRun, end_ms: int) -> float:
    """Slot seconds of the tasks of a stage that ended by then."""
    done = run.attempts.finish_ms <= end_ms
    return float(run.attempts.duration_ms[done].sum()) / 1000


def _stage_start(
    work: Work,
    trace: Trace,
    fleet: Sequence[Slots],
    runs: dict[tuple[int, int], StageRun],
) -> float:
    """The median of what stages take beyond their slowest task.

    Only stages that had a slot for every task and ran alone tell it.
    """
    spans = sorted((r.submitted_ms, r.completed_ms or r.submitted_ms, r.id) for r in trace.stages)
    crowded: set[tuple[int, int]] = set()
    end, last = -1, (-1, -1)
    for first, until, number in spans:
        if first < end:
            crowded |= {last, (first, number)}
        if until > end:
            end, last = until, (first, number)
    found: list[float] = []
    for stage in work.stages:
        run = runs[(stage.id, stage.attempt)]
        at_s = (run.submitted_ms - trace.start_ms) / 1000
        slots = sum(
            s.slots
            for s in fleet
            if s.profile == stage.profile
            and s.takes_tasks_s <= at_s
            and (s.removed_s is None or s.removed_s > at_s)
        )
        alone = (run.submitted_ms, run.id) not in crowded
        if run.completed_ms is None or len(stage.task_s) > slots or not alone:
            continue
        took_s = (run.completed_ms - run.submitted_ms) / 1000
        found.append(took_s - stage.tail_s - max(chains(stage), default=0.0))
    likely = [value for value in found if 0 <= value <= MOST_START_S]
    return median(likely) if likely else 0.0

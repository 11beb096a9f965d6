"""What the replay gets of a log: work, dependencies, driver time and slots; no launch time.

A task is the time it held a slot. A stage waits for its parents, a job for what the driver waited
for, and both for the driver's own time before them, which is what the log shows as a gap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Floats
from headrace.observe.spark_log.trace import (
    KILLED,
    SUCCEEDED,
    ExecutorSpan,
    Job,
    StageRun,
    Trace,
)


@dataclass(frozen=True, slots=True)
class StageWork:
    """A run of a stage: its tasks in the order of their partitions."""

    id: int
    attempt: int
    profile: int
    waits: tuple[int, ...]  # stages of the same job, by their place in Work.stages
    delay_s: float  # the driver's time between what it waits for and its submission
    task_s: Floats  # [tasks] the first attempt at each
    retries: Mapping[int, tuple[float, ...]]  # by task: the attempts after a failed one
    copies: tuple[float, ...]  # speculative copies that were killed: slots taken, nobody waits
    tail_s: float  # from the last task to the end of the stage: results brought to the driver
    records: Floats | None  # [tasks] what each read; None: not counted
    bytes_in: Floats | None  # [tasks]
    fetch_s: Floats | None = None  # [tasks] what each waited for blocks of other executors
    cold_s: tuple[float, ...] = ()  # what the first, second, .. task of a slot takes longer


@dataclass(frozen=True, slots=True)
class JobWork:
    """A job: it waits for earlier jobs and the driver, then runs its stages."""

    id: int
    waits: tuple[int, ...]  # places in Work.jobs
    delay_s: float
    stages: tuple[int, ...]  # places in Work.stages
    tail_s: float
    pool: str


@dataclass(frozen=True, slots=True)
class Slots:
    """Executors that come at one time and go at another."""

    added_s: float
    removed_s: float | None
    slots: int
    cores: int
    profile: int
    ready_s: float | None = None  # when it takes tasks, where that is later

    @property
    def takes_tasks_s(self) -> float:
        return self.added_s if self.ready_s is None else self.ready_s


@dataclass(frozen=True, slots=True)
class Work:
    """An application without its clock."""

    jobs: tuple[JobWork, ...]
    stages: tuple[StageWork, ...]
    tail_s: float  # the driver's time after the last job
    fair: bool  # pools share the slots; else the first job comes first
    fleet: tuple[Slots, ...]  # as it came and went
    stage_start_s: float = 0.0  # from a stage's submission to its first task, fitted


def work_of(trace: Trace) -> Work:
    """The work of an application."""
    belongs = _jobs_of_stages(trace)
    jobs: list[JobWork] = []
    stages: list[StageWork] = []
    ended: list[float] = []
    of_job: dict[int, list[StageRun]] = {}
    for stage, job in zip(trace.stages, belongs, strict=True):
        of_job.setdefault(job, []).append(stage)
    known = _with_strays(trace.jobs, of_job)
    for job in known:
        runs = of_job.get(job.id, [])
        first = len(stages)
        stages += _stages(job, runs, first)
        last_ms = max((_completed(run) for run in runs), default=job.submitted_ms)
        end_ms = max(job.ended_ms or last_ms, job.submitted_ms)
        waits = _waits(job, known[: len(jobs)], ended)
        free_ms = max((ended[i] for i in waits), default=trace.start_ms)
        jobs.append(
            JobWork(
                id=job.id,
                waits=waits,
                delay_s=max(job.submitted_ms - free_ms, 0) / 1000,
                stages=tuple(range(first, len(stages))),
                tail_s=max(end_ms - max(last_ms, job.submitted_ms), 0) / 1000,
                pool=job.pool or "default",
            )
        )
        ended.append(end_ms)
    return Work(
        jobs=tuple(jobs),
        stages=tuple(stages),
        tail_s=max(trace.end_ms - max(ended, default=trace.start_ms), 0) / 1000,
        fair=trace.setting("spark.scheduler.mode", "FIFO").upper() == "FAIR",
        fleet=tuple(_slots(trace, span) for span in trace.executors),
    )


def slots_of(trace: Trace, cores: int, profile: int, resources: Mapping[str, int]) -> int:
    """How many tasks an executor runs at once: by its cores, and by its GPUs where tasks ask."""
    asked = trace.profiles.get(profile)
    cpus = float(trace.setting("spark.task.cpus", "1") or 1)
    if asked is not None:
        cpus = asked.task_cpus
    slots = int(cores // max(cpus, 1e-9)) or 1
    for name, amount in asked.task_resources.items() if asked is not None else ():
        if resources.get(name) and amount > 0:
            # Below one, a device is shared by a whole number of tasks.
            each = int(1 / amount + 1e-9) if amount < 1 else 1 / amount
            slots = min(slots, int(resources[name] * each) or 1)
    return max(1, slots)


def _slots(trace: Trace, span: ExecutorSpan) -> Slots:
    added_s = max(span.added_ms - trace.start_ms, 0) / 1000
    removed = span.removed_ms
    gone = removed is not None and span.added_ms < removed < trace.end_ms
    return Slots(
        added_s=added_s,
        removed_s=(removed - trace.start_ms) / 1000 if gone and removed is not None else None,
        slots=slots_of(trace, span.cores, span.profile, span.resources),
        cores=span.cores,
        profile=span.profile,
    )


def _jobs_of_stages(trace: Trace) -> list[int]:
    """The job that each stage run belongs to: the first that lists it and ran at its submission."""
    listing: dict[int, list[Job]] = {}
    for job in trace.jobs:
        for stage in job.stages:
            listing.setdefault(stage, []).append(job)
    found: list[int] = []
    for run in trace.stages:
        jobs = listing.get(run.id, [])
        running = [
            j
            for j in jobs
            if j.submitted_ms <= run.submitted_ms + 1000
            and (j.ended_ms is None or j.ended_ms >= run.submitted_ms)
        ]
        chosen = running or jobs
        # A stage that no job lists, where the log's beginning is lost, is a job of its own.
        found.append(chosen[0].id if chosen else -1 - run.id)
    return found


def _with_strays(jobs: Sequence[Job], of_job: Mapping[int, list[StageRun]]) -> list[Job]:
    strays = [
        Job(
            id=number,
            submitted_ms=min(run.submitted_ms for run in runs),
            ended_ms=max(_completed(run) for run in runs),
            succeeded=None,
            stages=tuple(run.id for run in runs),
            parents={run.id: run.parents for run in runs},
        )
        for number, runs in of_job.items()
        if number < 0
    ]
    return sorted([*jobs, *strays], key=lambda job: (job.submitted_ms, job.id))


def _waits(job: Job, before: Sequence[Job], ended: Sequence[float]) -> tuple[int, ...]:
    """The jobs that the driver waited for before it submitted this one.

    Within one SQL execution, adaptive execution goes on when all it started has ended. Else the
    thread that submits a job is the one whose job ended last.
    """
    done = [i for i, end in enumerate(ended) if end <= job.submitted_ms]
    if not done:
        return ()
    same = [i for i in done if job.execution is not None and before[i].execution == job.execution]
    if same:
        return tuple(same)
    last = max(done, key=lambda i: (ended[i], i))
    return (last,)


def _completed(run: StageRun) -> int:
    """When a stage run ended; one that the log leaves open ended with its last task."""
    last = int(run.attempts.finish_ms.max())
    return last if run.completed_ms is None else max(run.completed_ms, run.submitted_ms)


def _stages(job: Job, runs: Sequence[StageRun], first: int) -> list[StageWork]:
    place = {(run.id, run.attempt): first + i for i, run in enumerate(runs)}
    found: list[StageWork] = []
    for run in runs:
        waited = _parents(job, run, runs)
        free_ms = max((_completed(other) for other in waited), default=job.submitted_ms)
        task_s, retries, copies, order = _chains(run)
        succeeded = run.attempts.status == SUCCEEDED
        last_ms = int(run.attempts.finish_ms[succeeded].max()) if succeeded.any() else None
        tail_ms = 0 if last_ms is None else max(_completed(run) - last_ms, 0)
        records = _read(run, ("input_records", "shuffle_records"))
        read = _read(run, ("input_bytes", "shuffle_bytes"))
        fetch = run.attempts.metrics["fetch_wait_ms"] / 1000
        found.append(
            StageWork(
                id=run.id,
                attempt=run.attempt,
                profile=run.profile,
                waits=tuple(place[(other.id, other.attempt)] for other in waited),
                delay_s=max(run.submitted_ms - max(free_ms, job.submitted_ms), 0) / 1000,
                task_s=task_s,
                retries=retries,
                copies=copies,
                tail_s=tail_ms / 1000,
                records=None if records is None else records[order],
                bytes_in=None if read is None else read[order],
                fetch_s=np.nan_to_num(fetch[order]) if np.isfinite(fetch).any() else None,
            )
        )
    return found


def _parents(job: Job, run: StageRun, runs: Sequence[StageRun]) -> list[StageRun]:
    """The runs of this job that a run waited for: its parents and, for a retry, what failed."""
    wanted: set[int] = set()
    waiting = list(run.parents)
    ran = {other.id for other in runs}
    while waiting:  # through stages that were skipped
        stage = waiting.pop()
        if stage in ran:
            wanted.add(stage)
        else:
            waiting += [p for p in job.parents.get(stage, ()) if p < stage]
    done = [other for other in runs if other is not run and _completed(other) <= run.submitted_ms]
    found = [other for other in done if other.id in wanted]
    if run.attempt > 0:
        found += [other for other in done if other.failure and other not in found]
    return found


def _chains(
    run: StageRun,
) -> tuple[Floats, dict[int, tuple[float, ...]], tuple[float, ...], list[int]]:
    """Per partition the attempts one after the other; speculative losers apart.

    A partition that a speculative copy finished took until then: its first attempt, which was
    killed at that moment, is the measure.
    """
    a = run.attempts
    held = a.duration_ms / 1000
    by_partition: dict[int, list[int]] = {}
    for i in np.argsort(a.finish_ms, kind="stable").tolist():
        by_partition.setdefault(int(a.partition[i]), []).append(i)
    several = Counter({p: len(rows) for p, rows in by_partition.items() if len(rows) > 1})
    firsts: list[float] = []
    order: list[int] = []
    retries: dict[int, tuple[float, ...]] = {}
    copies: list[float] = []
    for partition in sorted(by_partition):
        rows = by_partition[partition]
        if several[partition]:
            winner = next((i for i in rows if a.status[i] == SUCCEEDED), rows[-1])
            killed = [i for i in rows if a.status[i] == KILLED and i != winner]
            if a.speculative[winner] and killed:  # the copy won: who was first waits as long
                slow = max(killed, key=lambda i: held[i])
                copies.append(float(held[winner]))
                copies += [float(held[i]) for i in killed if i != slow]
                rows = [i for i in rows if i not in (winner, *killed)] + [slow]
            else:
                copies += [float(held[i]) for i in killed]
                rows = [i for i in rows if i not in killed]
            retries[len(firsts)] = tuple(float(held[i]) for i in rows[1:])
            order.append(winner)
        else:
            order.append(rows[0])
        firsts.append(float(held[rows[0]]))
    return np.array(firsts), {k: v for k, v in retries.items() if v}, tuple(copies), order


def _read(run: StageRun, names: tuple[str, str]) -> Floats | None:
    columns = [run.attempts.metrics[name] for name in names]
    if not any(np.isfinite(column).any() for column in columns):
        return None
    return np.nansum(np.vstack(columns), axis=0)

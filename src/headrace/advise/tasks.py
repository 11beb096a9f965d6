"""The tasks of a stage, changed: split or merged by what they read, evened out, made faster.

A task takes a fixed time and a time that grows with what it reads. Both are fitted to the stage: a
straight line through its tasks, where they differ enough in size to tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headrace.advise.work import StageWork
from headrace.model.arrays import Floats
from headrace.observe.spark_log.trace import SUCCEEDED, StageRun

TELLING = 1.5  # largest over smallest task, from which on a line can be fitted
HEAVY = 2.0  # times the median: a task that a key, not chance, made so large


@dataclass(frozen=True, slots=True)
class TaskCost:
    """What a task takes beside its share of the work."""

    fixed_s: float
    fitted: bool  # from tasks of several sizes; else only what is outside the task's own code


def task_cost(stage: StageWork, run: StageRun) -> TaskCost:
    """The fixed cost of a task of this stage."""
    ok = run.attempts.status == SUCCEEDED
    run_ms = run.attempts.metrics["run_ms"]
    outside = (run.attempts.duration_ms - run_ms)[ok & np.isfinite(run_ms)] / 1000
    around_s = float(np.clip(np.median(outside), 0, None)) if len(outside) else 0.0
    least_s = float(stage.task_s.min()) if len(stage.task_s) else 0.0
    sizes = size_of_tasks(stage)
    if sizes is None or len(sizes) < 4 or sizes.max() <= TELLING * max(sizes.min(), 1.0):
        return TaskCost(min(around_s, least_s), False)
    slope, intercept = np.polyfit(sizes, stage.task_s, 1)
    if slope <= 0:
        return TaskCost(min(around_s, least_s), False)
    return TaskCost(float(np.clip(intercept, min(around_s, least_s), least_s)), True)


def size_of_tasks(stage: StageWork) -> Floats | None:
    """What each task read: records, else bytes; None if neither is counted."""
    for sizes in (stage.records, stage.bytes_in):
        if sizes is not None and np.isfinite(sizes).all() and sizes.sum() > 0:
            return sizes
    return None


def repartition(stage: StageWork, count: int, cost: TaskCost) -> StageWork:
    """The same work in another number of tasks.

    Tasks that are heavy by their records stay whole: a key cannot be divided.
    """
    tasks = len(stage.task_s)
    if count == tasks or tasks == 0 or count < 1:
        return stage
    work = np.maximum(stage.task_s - cost.fixed_s, 0.0)
    sizes = size_of_tasks(stage)
    heavy = np.zeros(tasks, bool)
    if sizes is not None and count > tasks:
        heavy = sizes > HEAVY * max(float(np.median(sizes)), 1.0)
    rest = work[~heavy]
    pieces = max(count - int(heavy.sum()), 1)
    if len(rest):
        edges = np.linspace(0, len(rest), pieces + 1)
        total = np.interp(edges, np.arange(len(rest) + 1), np.concatenate([[0.0], np.cumsum(rest)]))
        rest = np.diff(total)
    changed = np.concatenate([rest, work[heavy]]) + cost.fixed_s
    return replace(stage, task_s=changed, retries={}, records=None, bytes_in=None, fetch_s=None)


def fetch_from(stage: StageWork, before: int, after: int) -> StageWork:
    """On another number of executors: of n, each has its share and fetches the other n - 1.

    What a single executor would wait for others is in no log of it, and stays 0.
    """
    if stage.fetch_s is None or before == after or before < 2:
        return stage
    more = (1 - 1 / after) / (1 - 1 / before) - 1
    return replace(stage, task_s=np.maximum(stage.task_s + more * stage.fetch_s, 0.0))


def evened(stage: StageWork) -> StageWork:
    """All tasks of a stage as large as the mean one: what skew costs is the difference."""
    return replace(stage, task_s=np.full(len(stage.task_s), stage.task_s.mean()), retries={})


def without_stragglers(stage: StageWork) -> StageWork:
    """No task slower than its size explains."""
    takes = stage.task_s
    if len(takes) < 2:
        return stage
    usual = np.full(len(takes), float(np.median(takes)))
    sizes = size_of_tasks(stage)
    if sizes is not None:
        middle = max(float(np.median(sizes)), 1e-9)
        usual = usual * np.maximum(sizes / middle, 1.0)
    return replace(stage, task_s=np.minimum(takes, usual))


def at_speed(stage: StageWork, run: StageRun, factor: float) -> StageWork:
    """On machines so much faster: what a task computes shrinks, what it waits for does not."""
    share = computing_share(run)
    change = 1.0 if share is None else share
    scale = (1 - change) + change / factor
    return replace(
        stage,
        task_s=stage.task_s * scale,
        retries={k: tuple(t * scale for t in v) for k, v in stage.retries.items()},
        copies=tuple(t * scale for t in stage.copies),
    )


def computing_share(run: StageRun) -> float | None:
    """The share of its tasks' time that a stage computes; None if CPU is not counted.

    CPU and time are taken of the same: deserialization is in both.
    """
    total = run.attempts.total
    cpu, took = total("cpu_ms"), total("run_ms")
    if cpu is None or not took:
        return None
    cpu += total("deserialize_cpu_ms") or 0.0
    took += total("deserialize_ms") or 0.0
    return min(cpu / took, 1.0)

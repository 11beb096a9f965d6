"""Cold starts: a slot's first tasks of a stage are slower, and every slot has its own.

Classes are loaded, code is compiled and Python workers start once per executor. On more slots there
is more of it, so it has to be told apart from the work itself: by the place that a task had among
those of its slot.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.advise.tasks import HEAVY, size_of_tasks
from headrace.advise.work import StageWork, Work
from headrace.model.arrays import Bools, Floats, Ints
from headrace.observe.spark_log.trace import SUCCEEDED, StageRun, Trace

WAVES = 3  # after so many tasks a slot is warm
FELT_S = 0.02  # less is noise


def fit_cold_starts(work: Work, trace: Trace) -> Work:
    """The work with tasks as a warm slot would run them, and what cold slots add, per stage."""
    runs = {(run.id, run.attempt): run for run in trace.stages}
    slots = _slots_of_executors(work, trace)
    stages = [_fit(stage, runs[(stage.id, stage.attempt)], slots) for stage in work.stages]
    return replace(work, stages=tuple(stages))


def _slots_of_executors(work: Work, trace: Trace) -> dict[int, int]:
    index = {name: i for i, name in enumerate(trace.executor_ids)}
    return {
        index[span.id]: slots.slots
        for span, slots in zip(trace.executors, work.fleet, strict=True)
        if span.id in index
    }


def _fit(stage: StageWork, run: StageRun, slots: dict[int, int]) -> StageWork:
    wave, took = waves(run, slots)
    if len(wave) != len(stage.task_s):  # retried tasks: no clear order
        return stage
    like = _alike(stage)  # a task with a heavy key is long, not cold
    warm = took[like & (wave >= WAVES)]
    if len(warm) < WAVES:
        warm = took[like & (wave >= 1)]
    if len(warm) < 2:
        return stage  # one wave only: nothing tells a cold slot from a large task
    usual = float(np.median(warm))
    extra: list[float] = []
    for number in range(min(WAVES, int(wave.max()))):
        mine = took[like & (wave == number)]
        extra.append(max(float(np.median(mine)) - usual, 0.0) if len(mine) else 0.0)
    cold_s = tuple(value if value >= FELT_S else 0.0 for value in extra)
    if not any(cold_s):
        return stage
    table = np.array([*cold_s, *[0.0] * (int(wave.max()) + 1)])
    least = float(warm.min())
    base = np.maximum(stage.task_s - table[wave], np.minimum(stage.task_s, least))
    return replace(stage, task_s=base, cold_s=cold_s)


def _alike(stage: StageWork) -> Bools:
    """The tasks that read about as much as most."""
    sizes = size_of_tasks(stage)
    if sizes is None:
        return np.ones(len(stage.task_s), np.bool_)
    middle = float(np.median(sizes))
    return (sizes <= HEAVY * middle) & (HEAVY * sizes >= middle)


def waves(run: StageRun, slots: dict[int, int]) -> tuple[Ints, Floats]:
    """For each partition in order: which task of its slot it was, and how long it took."""
    a = run.attempts
    rows = np.flatnonzero(a.status == SUCCEEDED)
    if len(np.unique(a.partition[rows], return_counts=True)[0]) != len(a):
        return np.empty(0, np.int64), np.empty(0)
    wave = np.zeros(len(rows), np.int64)
    for executor in np.unique(a.executor[rows], return_counts=True)[0]:
        mine = np.flatnonzero(a.executor[rows] == executor)
        order = mine[np.argsort(a.finish_ms[rows][mine], kind="stable")]
        wave[order] = np.arange(len(order)) // max(slots.get(int(executor), 1), 1)
    by_partition = np.argsort(a.partition[rows], kind="stable")
    return wave[by_partition], a.duration_ms[rows][by_partition] / 1000

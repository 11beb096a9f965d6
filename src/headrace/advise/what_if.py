"""The same application elsewhere: other executors, cores, partitions, machines, no stragglers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from statistics import median

from headrace.advise.replay import Allocation, Outcome, replay
from headrace.advise.tasks import (
    at_speed,
    fetch_from,
    repartition,
    task_cost,
    without_stragglers,
)
from headrace.advise.work import Slots, StageWork, Work, slots_of
from headrace.model.spans import in_seconds
from headrace.observe.spark_log.application import memory_in_mb
from headrace.observe.spark_log.trace import StageRun, Trace

MB = 2**20
DEFAULT_START_S = 10.0  # of an executor that dynamic allocation asks for, where no log shows it
TOGETHER_S = 1.5  # executors that came so close after the first were asked for with it
LONGEST_START_S = 120.0


@dataclass(frozen=True, slots=True)
class Shape:
    """The executors of an application: how many at its largest, and of what size."""

    executors: int
    cores: int
    slots: int
    profile: int
    local: bool  # the driver is the only executor: its cores are what can change


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What is different; None or 1: as it was."""

    executors: int | None = None
    cores: int | None = None  # per executor
    partitions: int | None = None  # of every stage that reads a shuffle
    speed: float = 1.0
    no_stragglers: bool = False


def shape_of(trace: Trace, work: Work) -> Shape:
    """The executors that did most of the work, at their largest number."""
    held: dict[int, float] = {}
    for stage in work.stages:
        held[stage.profile] = held.get(stage.profile, 0.0) + float(stage.task_s.sum())
    profile = max(held, key=lambda number: held[number]) if held else 0
    alike = [s for s in work.fleet if s.profile == profile] or list(work.fleet)
    (cores, slots), _ = Counter((s.cores, s.slots) for s in alike).most_common(1)[0]
    most = most_at_once(alike)
    local = {span.id for span in trace.executors} <= {"driver", "<driver>"}
    return Shape(most, cores, slots, alike[0].profile, local)


def most_at_once(fleet: list[Slots]) -> int:
    """The largest number of executors there were at a time."""
    moments = [s.added_s for s in fleet]
    return max(
        sum(s.added_s <= t and (s.removed_s is None or s.removed_s > t) for s in fleet)
        for t in moments
    )


def is_dynamic(trace: Trace) -> bool:
    """Whether dynamic allocation is on: it is not where there is nothing to allocate."""
    return trace.is_on("spark.dynamicAllocation.enabled") and not trace.setting(
        "spark.master", ""
    ).startswith("local")


def fleet_for(
    work: Work, shape: Shape, executors: int, slots: int, cores: int
) -> tuple[Slots, ...]:
    """So many executors that come as the log's first ones did, and stay."""
    alike = sorted((s for s in work.fleet if s.profile == shape.profile), key=lambda s: s.added_s)
    arrivals = [(s.added_s, s.ready_s) for s in alike][: shape.executors]
    late = arrivals[-1] if arrivals else (0.0, None)
    times = [arrivals[i] if i < len(arrivals) else late for i in range(executors)]
    others = tuple(s for s in work.fleet if s.profile != shape.profile)
    came = (Slots(added, None, slots, cores, shape.profile, ready) for added, ready in times)
    return (*came, *others)


def allocation_for(
    trace: Trace, work: Work, shape: Shape, most: int, slots: int, cores: int
) -> Allocation:
    """Dynamic allocation as the settings have it, with at most so many executors."""
    least = int(_number(trace, "spark.dynamicAllocation.minExecutors", 0))
    stated = int(_number(trace, "spark.dynamicAllocation.initialExecutors", least))
    alike = sorted(s.takes_tasks_s for s in work.fleet if s.profile == shape.profile)
    # Vendors ask for some at once in ways that are in no setting: they came together.
    together = sum(at <= alike[0] + TOGETHER_S for at in alike) if alike else 0
    initial = max(stated, least, together, int(_number(trace, "spark.executor.instances", 0)))
    return Allocation(
        least=min(least, most),
        most=most,
        initial=min(initial, most),
        slots=slots,
        cores=cores,
        starts_s=_start_time(trace, work, shape),
        first_s=alike[0] if alike else 0.0,
        backlog_s=_seconds(trace, "spark.dynamicAllocation.schedulerBacklogTimeout", 1.0),
        idle_s=_seconds(trace, "spark.dynamicAllocation.executorIdleTimeout", 60.0),
        profile=shape.profile,
    )


def _start_time(trace: Trace, work: Work, shape: Shape) -> float:
    """From the stage that made Spark ask for an executor until it came; the median."""
    submitted = sorted((run.submitted_ms - trace.start_ms) / 1000 for run in trace.stages)
    waits: list[float] = []
    for slots in work.fleet:
        before = [t for t in submitted if t < slots.added_s]
        if slots.profile == shape.profile and before:
            waits.append(slots.added_s - before[-1])
    likely = [wait for wait in waits if wait <= LONGEST_START_S]
    return median(likely) if likely else DEFAULT_START_S


def _seconds(trace: Trace, name: str, default: float) -> float:
    return in_seconds(trace.setting(name)) or default


def _number(trace: Trace, name: str, default: float) -> float:
    try:
        return float(trace.setting(name, str(default)))
    except ValueError:
        return default


def change_tasks(
    trace: Trace, work: Work, change: WhatIf, slots: int, executors: tuple[int, int]
) -> Work:
    """The work with its tasks as the change has them, and as adaptive execution would cut them."""
    runs = {(run.id, run.attempt): run for run in trace.stages}
    stages: list[StageWork] = []
    for stage in work.stages:
        run = runs[(stage.id, stage.attempt)]
        changed = fetch_from(stage, *executors)
        if change.no_stragglers:
            changed = without_stragglers(changed)
        count = wanted_tasks(trace, run, change.partitions, slots)
        if count is not None and count != len(stage.task_s):
            changed = repartition(changed, count, task_cost(stage, run))
        if change.speed != 1.0:
            changed = at_speed(changed, run, change.speed)
        stages.append(changed)
    return replace(work, stages=tuple(stages))


def reads_shuffle(run: StageRun) -> bool:
    return bool(run.parents) or bool(run.attempts.total("shuffle_bytes"))


def is_adaptive(trace: Trace) -> bool:
    """Whether adaptive execution merges small shuffle partitions; on by default since 3.2."""
    new = tuple(int(part) for part in trace.version.split(".")[:2] if part.isdecimal()) >= (3, 2)
    return trace.is_on("spark.sql.adaptive.enabled", new) and trace.is_on(
        "spark.sql.adaptive.coalescePartitions.enabled", True
    )


def wanted_tasks(trace: Trace, run: StageRun, partitions: int | None, slots: int) -> int | None:
    """How many tasks a shuffle stage would have; None: as many as it had."""
    if not reads_shuffle(run) or run.tasks <= 1:
        return None
    if is_adaptive(trace) and _merged(trace, run):
        return _adaptive_tasks(trace, run, slots)
    return partitions


def _merged(trace: Trace, run: StageRun) -> bool:
    """Whether adaptive execution cut the number of tasks of this stage."""
    stated = int(_number(trace, "spark.sql.shuffle.partitions", 200))
    full = int(_number(trace, "spark.sql.adaptive.coalescePartitions.initialPartitionNum", stated))
    return any("AQEShuffleRead" in op or "CustomShuffleReader" in op for op in run.operators) and (
        run.tasks < full
    )


def _adaptive_tasks(trace: Trace, run: StageRun, slots: int) -> int | None:
    """As Spark computes it: the advisory size, but no fewer tasks than cores if it can."""
    size = run.attempts.total("shuffle_bytes")
    if not size or not trace.is_on("spark.sql.adaptive.coalescePartitions.parallelismFirst", True):
        return None  # the advisory size alone: the same wherever it runs
    advisory = bytes_of(trace.setting("spark.sql.adaptive.advisoryPartitionSizeInBytes"), 64 * MB)
    least = bytes_of(trace.setting("spark.sql.adaptive.coalescePartitions.minPartitionSize"), MB)
    target = max(least, min(advisory, size / max(slots, 1)))
    stated = int(_number(trace, "spark.sql.shuffle.partitions", 200))
    return max(1, min(round(size / target), stated))


def bytes_of(setting: str, default: float) -> float:
    found = memory_in_mb(setting) if setting else None
    if found is None:
        return default
    return found if setting.strip().isdecimal() else found * MB


def replay_with(trace: Trace, work: Work, change: WhatIf) -> Outcome:
    """The replay with something different; executors as settings, not as they came and went."""
    shape = shape_of(trace, work)
    executors = shape.executors if change.executors is None else change.executors
    cores = shape.cores if change.cores is None else change.cores
    span = next((s for s in trace.executors if s.profile == shape.profile), None)
    resources = span.resources if span is not None else {}
    slots = (
        shape.slots if cores == shape.cores else slots_of(trace, cores, shape.profile, resources)
    )
    changed = change_tasks(trace, work, change, executors * slots, (shape.executors, executors))
    if is_dynamic(trace) and not shape.local:
        others = fleet_for(work, shape, 0, slots, cores)
        return replay(changed, others, allocation_for(trace, work, shape, executors, slots, cores))
    return replay(changed, fleet_for(work, shape, executors, slots, cores))

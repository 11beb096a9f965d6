"""Settings to run with next time, each with its reason and what it should change."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headrace.advise.curve import MOST_GROWTH, Point
from headrace.advise.memory import LEAST_OVERHEAD_MB, OVERHEAD, SPARE, Memory
from headrace.advise.what_if import (
    MB,
    WhatIf,
    bytes_of,
    is_adaptive,
    is_dynamic,
    reads_shuffle,
    replay_with,
    shape_of,
)
from headrace.advise.work import Work
from headrace.figures import duration
from headrace.observe.spark_log.trace import Trace

WORTH = 0.02  # of the wall time: what a change must save to be advised
STEP_MB = 256
MOST_PARTITIONS = 100_000  # beyond, the driver is what is slow
GC_FINE = 0.05
# With how many executors dynamic allocation starts, and to how many it goes back.
STARTING = (
    "spark.dynamicAllocation.minExecutors",
    "spark.dynamicAllocation.initialExecutors",
    "spark.executor.instances",
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting; the reason says what is expected to change."""

    name: str
    value: str
    reason: str

    def to_json(self) -> dict[str, str]:
        return {"name": self.name, "value": self.value, "reason": self.reason}


def settings_for(
    trace: Trace, work: Work, chosen: Point, why: str, memory: Memory
) -> tuple[list[Setting], list[str]]:
    """The settings of a point of the curve, and what the log cannot tell about others."""
    found = _executors(trace, work, chosen, why)
    more, unknown = _memory(trace, memory)
    found += more
    partitions, silent = _partitions(trace, work, chosen)
    return found + partitions, unknown + silent + _silent(trace, work, chosen)


def _executors(trace: Trace, work: Work, chosen: Point, why: str) -> list[Setting]:
    shape = shape_of(trace, work)
    was = f"{shape.executors} before" if chosen.executors != shape.executors else "as before"
    promise = f"{duration(chosen.wall_s)} and {chosen.core_hours:.3g} core-hours expected"
    if shape.local:
        was = f"{shape.cores} before" if chosen.cores != shape.cores else "as before"
        return [Setting("spark.master", f"local[{chosen.cores}]", f"{why}; {was}; {promise}")]
    found: list[Setting] = []
    if is_dynamic(trace):
        name = "spark.dynamicAllocation.maxExecutors"
        found.append(Setting(name, str(chosen.executors), f"{why}; at most {was}; {promise}"))
        for lower in STARTING:
            if (stated := trace.setting(lower)).isdecimal() and int(stated) > chosen.executors:
                reason = f"{stated} before: no more than there may be at most"
                found.append(Setting(lower, str(chosen.executors), reason))
    else:
        name = "spark.executor.instances"
        found.append(Setting(name, str(chosen.executors), f"{why}; {was}; {promise}"))
        if trace.setting("spark.master").startswith("spark://"):
            total = str(chosen.executors * chosen.cores)
            reason = "a standalone cluster counts cores, not executors; changes nothing else"
            found.append(Setting("spark.cores.max", total, reason))
    reason = "as before: a log of one size does not show how tasks share a machine"
    found.append(Setting("spark.executor.cores", str(chosen.cores), reason))
    return found


def _memory(trace: Trace, memory: Memory) -> tuple[list[Setting], list[str]]:
    """Heap and overhead from the peaks that Spark polled; nothing where it polled none."""
    if trace.setting("spark.master").startswith("local"):
        return [], []
    found: list[Setting] = []
    unknown: list[str] = []
    fraction = _fraction(trace)
    needed = memory.heap_needed_mb(fraction)
    if needed is None:
        unknown.append(
            "memory: the log has no peaks of it (Spark reports them since 3.0, "
            "with spark.eventLog.logStageExecutorMetrics=true); keep what is set"
        )
    elif memory.spilled_bytes > 0:
        unknown.append(
            "memory: tasks spilled, so the peak shows what was there, not what was needed; "
            "do not lower it"
        )
    elif memory.gc_share is not None and memory.gc_share > GC_FINE:
        unknown.append(
            f"memory: {memory.gc_share:.0%} of the tasks' time is garbage collection, "
            "so less heap would cost time; do not lower it"
        )
    elif _rounded(needed) < 0.8 * memory.heap_mb:
        reason = (
            f"execution and storage held {memory.used_mb:.0f} MB at their peak, the heap "
            f"{memory.heap_used_mb:.0f} MB of {memory.heap_mb:.0f}; time should not change, memory "
            f"asked for falls by {1 - _rounded(needed) / memory.heap_mb:.0%}"
        )
        found.append(Setting("spark.executor.memory", f"{_rounded(needed)}m", reason))
    if memory.outside_mb is None:
        unknown.append("memory overhead: no peak outside the heap in the log; keep what is set")
    else:
        heap = float(found[0].value[:-1]) if found else memory.heap_mb
        usual = max(OVERHEAD * heap, LEAST_OVERHEAD_MB)
        wanted = max(usual, SPARE * (memory.outside_mb + (memory.python_mb or 0.0)))
        if wanted > memory.overhead_mb:
            reason = (
                f"the JVM held {memory.outside_mb:.0f} MB beside its heap, "
                f"{memory.overhead_mb:.0f} MB were set; executors are less likely to be killed"
            )
            found.append(Setting("spark.executor.memoryOverhead", f"{_rounded(wanted)}m", reason))
    in_python = any(
        "Python" in op or "Pandas" in op for run in trace.stages for op in run.operators
    )
    if in_python and memory.python_mb is None:
        unknown.append(
            "memory of Python workers: not in the log "
            "(spark.executor.processTreeMetrics.enabled=true writes it)"
        )
    return found, unknown


def _fraction(trace: Trace) -> float:
    try:
        return min(max(float(trace.setting("spark.memory.fraction", "0.6")), 0.1), 0.95)
    except ValueError:
        return 0.6


def _rounded(mb: float) -> int:
    return max(2 * STEP_MB, math.ceil(mb / STEP_MB) * STEP_MB)


def _partitions(trace: Trace, work: Work, chosen: Point) -> tuple[list[Setting], list[str]]:
    """The number of shuffle partitions that the replay likes best, if it is worth a setting."""
    shuffled = [run for run in trace.stages if reads_shuffle(run) and run.tasks > 1]
    if not shuffled:
        return [], []
    shape = shape_of(trace, work)
    slots = max(1, chosen.executors * chosen.cores * shape.slots // max(shape.cores, 1))
    size = max(run.attempts.total("shuffle_bytes") or 0.0 for run in shuffled)
    if is_adaptive(trace):
        return _adaptive_size(trace, slots, size)
    candidates = {max(slots, 2), 2 * slots, 3 * slots, math.ceil(size / (128 * MB)) or 1}
    before = chosen.wall_s
    best, count = before, None
    least = math.ceil(size / (200 * MB))
    for partitions in sorted(c for c in candidates if least <= c <= MOST_PARTITIONS):
        what_if = WhatIf(executors=chosen.executors, cores=chosen.cores, partitions=partitions)
        wall_s = replay_with(trace, work, what_if).wall_s
        if wall_s < best * (1 - 1e-3):
            best, count = wall_s, partitions
    if count is None or before - best < WORTH * before:
        return [], []
    now = trace.setting("spark.sql.shuffle.partitions", "200")
    reason = (
        f"{count / slots:.2g} tasks per slot instead of {now} partitions; "
        f"{duration(best)} instead of {duration(before)} expected"
    )
    return [Setting("spark.sql.shuffle.partitions", str(count), reason)], []


def _adaptive_size(trace: Trace, slots: int, size: float) -> tuple[list[Setting], list[str]]:
    """With adaptive execution it is the size of a partition that is set, not their number."""
    now = bytes_of(trace.setting("spark.sql.adaptive.advisoryPartitionSizeInBytes"), 64 * MB)
    if trace.is_on("spark.sql.adaptive.coalescePartitions.parallelismFirst", True):
        return [], []  # it cuts for the cores already
    wanted = max(MB, math.ceil(size / max(slots, 1) / MB) * MB)
    if size <= 0 or wanted >= now:
        return [], []
    reason = (
        f"the largest shuffle of {size / MB:.0f} MB then has a task for each of {slots} slots; "
        f"now partitions are merged up to {now / MB:.0f} MB"
    )
    name = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
    return [Setting(name, f"{round(wanted / MB)}m", reason)], []


def _silent(trace: Trace, work: Work, chosen: Point) -> list[str]:
    """What one log cannot show."""
    found: list[str] = []
    shape = shape_of(trace, work)
    slots = shape.executors * shape.slots
    if shape.executors == 1 and not shape.local and any(reads_shuffle(r) for r in trace.stages):
        found.append("one executor only: what tasks would wait for blocks of others")
    if chosen.executors * chosen.cores > MOST_GROWTH * shape.executors * shape.cores:
        found.append(
            f"{chosen.executors} executors are more than twice the log's: what they cost each "
            "other may make the promise too good; better go there in steps, with a log of each"
        )
    single = [s for s in work.stages if 1 < len(s.task_s) <= slots]
    if single and len(single) == len([s for s in work.stages if len(s.task_s) > 1]):
        found.append(
            "one wave of tasks only: every stage has a slot for each task, so what is a cold "
            "executor and what is work cannot be told apart"
        )
    if all(not run.attempts.known("cpu_ms") for run in trace.stages):
        found.append("CPU: this version of Spark does not count it; what waits is not known")
    found.append("other cores per executor: how tasks share a machine's disk, network and caches")
    return found

"""What executors need of memory, as far as a log shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.observe.spark_log.application import SPARKS_DEFAULT_MEMORY_MB, memory_in_mb
from headrace.observe.spark_log.trace import Trace

MB = 2**20
RESERVED_MB = 300.0  # Spark keeps so much of the heap for itself
FRACTION = 0.6  # of the rest goes to execution and storage, unless set otherwise
SPARE = 1.2  # a peak is polled every now and then: it may have been higher
HEAP_SPARE = 1.1  # the heap's peak counts garbage too
LEAST_PEAK_MB = 16.0  # below, Spark polled an executor that did nothing
OVERHEAD, LEAST_OVERHEAD_MB = 0.1, 384.0


@dataclass(frozen=True, slots=True)
class Memory:
    """Heap asked for and used, per executor; None: the log does not say."""

    heap_mb: float  # as it was set
    overhead_mb: float
    used_mb: float | None  # execution and storage together, at their peak
    heap_used_mb: float | None  # all of the heap, garbage included
    outside_mb: float | None  # of the JVM, beside its heap
    python_mb: float | None
    spilled_bytes: float
    gc_share: float | None

    @property
    def asked_mb(self) -> float:
        return self.heap_mb + self.overhead_mb

    def heap_needed_mb(self, fraction: float = FRACTION) -> float | None:
        """The heap that would have held the peaks, with some to spare; None: they are not known.

        Objects of the program are in the heap and in no other figure, so both peaks count.
        """
        if self.used_mb is None or self.heap_used_mb is None or self.used_mb < LEAST_PEAK_MB:
            return None
        managed = self.used_mb * SPARE / fraction + RESERVED_MB
        return max(managed, self.heap_used_mb * HEAP_SPARE)


def memory_of(trace: Trace) -> Memory:
    """What the log says about memory."""
    profile = trace.profiles.get(0)
    stated = memory_in_mb(trace.setting("spark.executor.memory"))
    local = trace.setting("spark.master").startswith("local")
    if local:
        stated = memory_in_mb(trace.setting("spark.driver.memory"))
    heap = stated or (profile.memory_mb if profile and not local else None)
    heap = float(heap or SPARKS_DEFAULT_MEMORY_MB)
    given = memory_in_mb(trace.setting("spark.executor.memoryOverhead"))
    given = given or (profile.overhead_mb if profile else None)
    peaks = [p for name, p in trace.peaks.items() if local or name not in ("driver", "<driver>")]
    unified = _largest(peaks, ("OnHeapUnifiedMemory",))
    return Memory(
        heap_mb=heap,
        overhead_mb=float(given or max(OVERHEAD * heap, LEAST_OVERHEAD_MB)),
        used_mb=unified or _largest(peaks, ("OnHeapExecutionMemory", "OnHeapStorageMemory")),
        heap_used_mb=_largest(peaks, ("JVMHeapMemory",)),
        outside_mb=_largest(peaks, ("JVMOffHeapMemory", "DirectPoolMemory", "MappedPoolMemory")),
        python_mb=_largest(peaks, ("ProcessTreePythonRSSMemory",)),
        spilled_bytes=sum(run.attempts.total("spilled_disk") or 0.0 for run in trace.stages),
        gc_share=_gc_share(trace),
    )


def _largest(peaks: Sequence[Mapping[str, float]], names: tuple[str, ...]) -> float | None:
    """The largest sum over an executor's peaks, in MB; None where Spark polled none of it."""
    found = [
        sum(float(p.get(name, 0.0)) for name in names)
        for p in peaks
        if any(name in p for name in names)
    ]
    return max(found) / MB if found and max(found) > 0 else None


def _gc_share(trace: Trace) -> float | None:
    gc = run = 0.0
    known = False
    for stage in trace.stages:
        both = np.isfinite(stage.attempts.metrics["gc_ms"]) & np.isfinite(
            stage.attempts.metrics["run_ms"]
        )
        known |= bool(both.any())
        # A collection stops all tasks of an executor and is counted for each: never above its run.
        run_ms = stage.attempts.metrics["run_ms"][both]
        gc += float(np.minimum(stage.attempts.metrics["gc_ms"][both], run_ms).sum())
        run += float(run_ms.sum())
    return gc / run if known and run else None

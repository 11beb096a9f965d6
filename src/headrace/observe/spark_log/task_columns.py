"""The attempts of a stage run while they are read: one column per figure, no objects."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace.observe.spark_log.trace import METRICS, Attempts

WHOLE = ("partition", "executor", "launch_ms", "finish_ms", "status", "speculative", "locality")


class TaskColumns:
    """The attempts of one stage run while they are read."""

    def __init__(self) -> None:
        self.whole = {name: array("q") for name in (*WHOLE, "fetch_failed")}
        self.metrics = {name: array("d") for name in METRICS}

    def add(self, whole: Mapping[str, int], figures: Mapping[str, Any]) -> None:
        """Take an attempt, all of it or, where a figure is none, nothing."""
        row = array("q", [whole[name] for name in self.whole])
        found = [figures.get(name) for name in self.metrics]
        numbers = array("d", [math.nan if value is None else value for value in found])
        for column, value in zip(self.whole.values(), row, strict=True):
            column.append(value)
        for column, value in zip(self.metrics.values(), numbers, strict=True):
            column.append(value)

    def freeze(self) -> Attempts:
        whole = {name: np.array(values, np.int64) for name, values in self.whole.items()}
        metrics = {name: np.array(values, np.float64) for name, values in self.metrics.items()}
        return Attempts(**whole, metrics=metrics)


def figures_of(m: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a task by our names; what its version of Spark does not count is None."""
    found: dict[str, Any] = {
        "run_ms": m.get("Executor Run Time"),
        "cpu_ms": _milliseconds(m.get("Executor CPU Time")),
        "deserialize_ms": m.get("Executor Deserialize Time"),
        "deserialize_cpu_ms": _milliseconds(m.get("Executor Deserialize CPU Time")),
        "gc_ms": m.get("JVM GC Time"),
        "result_ms": m.get("Result Serialization Time"),
        "peak_bytes": m.get("Peak Execution Memory"),
        "spilled_memory": m.get("Memory Bytes Spilled"),
        "spilled_disk": m.get("Disk Bytes Spilled"),
    }
    # Spark before 2.0 leaves these out where a task had none of it.
    if (read := m.get("Shuffle Read Metrics")) is not None:
        remote = read.get("Remote Bytes Read") or 0
        found["shuffle_bytes"] = remote + (read.get("Local Bytes Read") or 0)
        found["remote_bytes"] = remote
        found["shuffle_records"] = read.get("Total Records Read")
        found["fetch_wait_ms"] = read.get("Fetch Wait Time")
    if (written := m.get("Shuffle Write Metrics")) is not None:
        found["written_bytes"] = written.get("Shuffle Bytes Written")
        found["written_records"] = written.get("Shuffle Records Written")
    if (source := m.get("Input Metrics")) is not None:
        found["input_bytes"] = source.get("Bytes Read")
        found["input_records"] = source.get("Records Read")
    if (sink := m.get("Output Metrics")) is not None:
        found["output_bytes"] = sink.get("Bytes Written")
        found["output_records"] = sink.get("Records Written")
    return found


def _milliseconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6

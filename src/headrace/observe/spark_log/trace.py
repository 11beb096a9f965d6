"""What an application did, as frozen data: jobs, stage runs with their tasks, executors, streams.

Times are milliseconds of the driver's clock. A figure that the log does not have is NaN or None:
unknown, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace.model.arrays import Floats, Ints

SUCCEEDED, FAILED, KILLED = 0, 1, 2
# One float per attempt at a task; NaN where the version of Spark does not count it.
METRICS = (
    "run_ms",
    "cpu_ms",
    "deserialize_ms",
    "deserialize_cpu_ms",
    "gc_ms",
    "result_ms",
    "fetch_wait_ms",
    "peak_bytes",
    "spilled_memory",
    "spilled_disk",
    "input_bytes",
    "input_records",
    "shuffle_bytes",
    "remote_bytes",
    "shuffle_records",
    "written_bytes",
    "written_records",
    "output_bytes",
    "output_records",
)
LOCALITY = ("PROCESS_LOCAL", "NODE_LOCAL", "NO_PREF", "RACK_LOCAL", "ANY")


@dataclass(frozen=True, slots=True)
class Attempts:
    """The attempts at the tasks of one stage run, in the order they ended; equal lengths."""

    partition: Ints
    executor: Ints  # into Trace.executor_ids
    launch_ms: Ints
    finish_ms: Ints
    status: Ints  # SUCCEEDED, FAILED, KILLED
    speculative: Ints  # 0 or 1
    locality: Ints  # into LOCALITY; -1: not said
    fetch_failed: Ints  # 0 or 1
    metrics: Mapping[str, Floats]  # by the names in METRICS

    def __len__(self) -> int:
        return len(self.partition)

    @property
    def duration_ms(self) -> Ints:
        """How long each attempt held its slot."""
        return np.maximum(self.finish_ms - self.launch_ms, 0)

    def known(self, metric: str) -> bool:
        """Whether any successful attempt has this figure."""
        return bool(np.isfinite(self.metrics[metric][self.status == SUCCEEDED]).any())

    def total(self, metric: str) -> float | None:
        """Sum over successful attempts; None if no attempt has the figure."""
        values = self.metrics[metric][self.status == SUCCEEDED]
        return float(np.nansum(values)) if np.isfinite(values).any() else None


@dataclass(frozen=True, slots=True)
class StageRun:
    """One attempt at a stage."""

    id: int
    attempt: int
    name: str
    tasks: int
    parents: tuple[int, ...]
    operators: tuple[str, ...]
    submitted_ms: int
    completed_ms: int | None  # None: the log ends before it
    failure: str | None
    profile: int
    attempts: Attempts


@dataclass(frozen=True, slots=True)
class Job:
    """A job: what the driver asked for at once."""

    id: int
    submitted_ms: int
    ended_ms: int | None
    succeeded: bool | None
    stages: tuple[int, ...]  # all it lists, also those it could skip
    parents: Mapping[int, tuple[int, ...]]  # of every stage it lists
    execution: str | None = None  # the root SQL execution
    query: str | None = None  # the streaming query's id
    batch: int | None = None
    pool: str | None = None
    group: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class ExecutorSpan:
    """An executor while it was there."""

    id: str
    host: str
    cores: int
    profile: int
    added_ms: int
    removed_ms: int | None = None
    removed_reason: str | None = None
    resources: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class ResourceProfile:
    """What an executor has and what a task takes; the profile 0 is what the settings say."""

    id: int
    cores: int | None
    memory_mb: float | None
    off_heap_mb: float | None
    overhead_mb: float | None
    task_cpus: float
    task_resources: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """One report of a streaming query about a micro-batch."""

    query: str  # its id
    name: str | None
    batch: int
    at_ms: int  # when the trigger fired
    input_rows: float
    input_per_s: float | None
    processed_per_s: float | None
    duration_ms: Mapping[str, float]
    state: tuple[Mapping[str, Any], ...]
    sources: tuple[Mapping[str, Any], ...]
    sink: str | None


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything the replay and the diagnosis need of an application."""

    id: str
    name: str
    version: str
    start_ms: int
    end_ms: int
    ended: bool
    settings: Mapping[str, str]
    executors: tuple[ExecutorSpan, ...]
    executor_ids: tuple[str, ...]  # what Attempts.executor counts in
    executor_hosts: tuple[str, ...]
    profiles: Mapping[int, ResourceProfile]
    jobs: tuple[Job, ...]
    stages: tuple[StageRun, ...]  # by submission
    progress: tuple[QueryProgress, ...]
    peaks: Mapping[str, Mapping[str, float]]  # executor -> metric -> peak, as Spark polled it
    block_memory: Mapping[str, float]  # executor -> bytes that execution and storage may use
    files_read: float | None
    file_bytes: float | None
    notes: tuple[str, ...]

    @property
    def wall_s(self) -> float:
        return max(self.end_ms - self.start_ms, 0) / 1000

    @property
    def streaming(self) -> bool:
        return bool(self.progress) or any(job.query is not None for job in self.jobs)

    def setting(self, name: str, default: str = "") -> str:
        return self.settings.get(name, default)

    def is_on(self, name: str, default: bool = False) -> bool:
        """A setting that is true or false."""
        return self.settings.get(name, str(default)).strip().lower() == "true"

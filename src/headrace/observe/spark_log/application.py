"""What an event log says, as frozen data: the application, its executors and its components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.observe.spark_log.components import Component
from headrace.observe.spark_log.trace import QueryProgress

SPARKS_DEFAULT_MEMORY_MB = 1024.0
GIVEN_BACK = ("idle", "driver request", "decommission", "killed by driver", "termination request")
UNITS_MB = {"b": 2**-20, "k": 2**-10, "m": 1.0, "g": 2.0**10, "t": 2.0**20}


@dataclass(frozen=True, slots=True)
class Executor:
    """A process that runs tasks; in local mode the driver is the only one."""

    id: str
    host: str
    cores: int
    memory_mb: float
    added_ms: int
    removed_ms: int | None = None
    removed_reason: str | None = None

    @property
    def node(self) -> str:
        return self.id if self.id == "driver" else f"executor-{self.id}"

    @property
    def given_back(self) -> bool:
        """Whether it went because dynamic allocation had nothing for it to do."""
        return given_back(self.removed_reason)

    @property
    def type(self) -> str:
        """Executors of one size are one machine type: a log says no more of a machine."""
        return f"{self.cores}-core-{self.memory_mb:g}-mb"


@dataclass(frozen=True, slots=True)
class TaskTotals:
    """What the tasks of a component did on an executor or, summed, on all; only successful ones.

    The exceptions are in the names: failed, killed, wasted.
    """

    succeeded: int = 0
    failed: int = 0
    killed: int = 0
    error: str | None = None
    wasted_ms: float = 0.0  # run time of tasks that did not succeed
    byte_seconds: float = 0.0  # execution memory held, over time
    cpu_ms: float = 0.0
    run_ms: float = 0.0
    deserialize_ms: float = 0.0
    gc_ms: float = 0.0
    spilled_memory: float = 0.0
    spilled_disk: float = 0.0
    source_records: float = 0.0
    shuffle_records: float = 0.0
    remote_bytes: float = 0.0
    local_bytes: float = 0.0
    fetch_wait_ms: float = 0.0
    written_records: float = 0.0
    written_bytes: float = 0.0
    sink_records: float = 0.0

    def __add__(self, other: TaskTotals) -> TaskTotals:
        mine = {name: getattr(self, name) for name in self.__slots__}
        sums = {
            name: value + getattr(other, name) for name, value in mine.items() if name != "error"
        }
        return TaskTotals(error=self.error or other.error, **sums)

    @property
    def records_in(self) -> float:
        return self.source_records + self.shuffle_records

    @property
    def computing(self) -> float | None:
        """The share of their time that tasks compute; None where Spark counts no CPU time.

        Deserialization is in both, or in neither.
        """
        took = self.run_ms + self.deserialize_ms
        return min(self.cpu_ms / took, 1.0) if self.cpu_ms > 0 and took > 0 else None

    @property
    def shuffle_bytes(self) -> float:
        return self.remote_bytes + self.local_bytes


@dataclass(frozen=True, slots=True)
class Run:
    """One stage of a component: when it ran, and how even its tasks were."""

    first_ms: int
    last_ms: int
    succeeded: int
    slowest_ms: float
    median_ms: float
    slowest_records: float
    records: float


@dataclass(frozen=True, slots=True)
class ComponentFigures:
    """A component with its figures."""

    component: Component
    work: TaskTotals
    on: dict[str, TaskTotals]  # by executor
    runs: tuple[Run, ...]
    # Received through the shuffle, by partition; empty: not comparable between runs.
    partition_records: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Application:
    """Everything that is needed of an event log."""

    id: str
    name: str
    version: str
    ended: bool
    executors: tuple[Executor, ...]
    components: tuple[ComponentFigures, ...]
    seconds: float  # what rates are per: see `observed_seconds`
    notes: tuple[str, ...]
    progress: tuple[QueryProgress, ...] = ()  # reports of streaming queries

    @property
    def streaming(self) -> bool:
        return any(m.component.query is not None for m in self.components)

    @property
    def span_ms(self) -> tuple[int, int]:
        """First task's launch and last task's end."""
        runs = [run for m in self.components for run in m.runs]
        return min(run.first_ms for run in runs), max(run.last_ms for run in runs)


def observed_seconds(runs: Sequence[Run], streaming: bool) -> float:
    """The time that rates are counted over.

    A streaming query is up all the time from its first task to its last. A batch application is
    judged by the time in which it had work: a notebook that waits for its user does not make its
    stages slow.
    """
    spans = sorted((run.first_ms, run.last_ms) for run in runs)
    if streaming:
        return max((max(last for _, last in spans) - spans[0][0]) / 1000, 0.001)
    busy, end = 0, spans[0][0]
    for first, last in spans:
        busy += max(0, last - max(first, end))
        end = max(end, last)
    return max(busy / 1000, 0.001)


def given_back(reason: str | None) -> bool:
    """Whether an executor was removed because it was idle, or decommissioned in order."""
    words = (reason or "").lower()
    return any(word in words for word in GIVEN_BACK)


def executors_at_peak(executors: Sequence[Executor]) -> tuple[Executor, ...]:
    """The executors at the moment with most cores: dynamic allocation replaces one by another."""
    best: list[Executor] = []
    for moment in sorted({executor.added_ms for executor in executors}):
        up = [
            e
            for e in executors
            if e.added_ms <= moment and (e.removed_ms is None or e.removed_ms > moment)
        ]
        if sum(e.cores for e in up) > sum(e.cores for e in best):
            best = up
    return tuple(best)


def memory_in_mb(setting: str | None) -> float | None:
    """`4g` -> 4096, and a bare number as it is; None if it is not set, or not a size."""
    text = (setting or "").strip().lower().removesuffix("b")
    if text.isdecimal():
        return float(text)
    if text[:-1].isdecimal() and text[-1:] in UNITS_MB:
        return int(text[:-1]) * UNITS_MB[text[-1]]
    return None

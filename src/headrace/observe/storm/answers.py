"""Storm's answers, with the field names of Storm 2.

Six answers are used, each known by what it holds, whatever its file is called:

    /api/v1/topology/ID                 `spouts`, `bolts` (executors, latencies, capacity,
                                        requested resources), `workers`
    /api/v1/topology/ID/component/C     `outputStats` and `inputStats` per stream, and
                                        `executorStats` with the uptime of every executor
    /api/v1/topology/ID/metrics         the same per stream, of Storm 1 (2 answers with the page)
    /api/v1/topology/ID/visualization   `:inputs` of every component, with stream and grouping
    /api/v1/supervisor/summary          `supervisors` with slots, memory and CPU
    /api/v1/cluster/summary             totals; only its `stormVersion` is used
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from headrace.errors import InvalidInput

ALL_TIME = ":all-time"
Model = TypeVar("Model", bound=BaseModel)


def or_zero(value: Any) -> Any:
    """Storm writes null or "N/A" where it has no figure yet."""
    return 0 if value in (None, "", "N/A") else value


Figure = Annotated[float, Field(ge=0, allow_inf_nan=False), BeforeValidator(or_zero)]
Window = Annotated[str, BeforeValidator(str)]


class Answer(BaseModel):
    """A part of Storm's JSON; it holds much that does not matter here."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


class Vertex(Answer):
    """A spout or bolt on a topology's page."""

    id: str
    executors: int = Field(ge=1)
    emitted: Figure = 0.0
    failed: Figure = 0.0
    executed: Figure = 0.0
    execute_ms: Figure = Field(default=0.0, alias="executeLatency")
    capacity: Figure = 0.0
    on_heap_mb: Figure = Field(default=0.0, alias="requestedMemOnHeap")
    off_heap_mb: Figure = Field(default=0.0, alias="requestedMemOffHeap")
    cpu: Figure = Field(default=0.0, alias="requestedCpu")


class Spout(Vertex):
    id: str = Field(alias="spoutId")


class Bolt(Vertex):
    id: str = Field(alias="boltId")


class Worker(Answer):
    """A process of the topology."""

    supervisor: str = Field(alias="supervisorId")
    port: int = 0
    cpu: Figure = Field(default=0.0, alias="assignedCpu")
    on_heap_mb: Figure = Field(default=0.0, alias="assignedMemOnHeap")
    off_heap_mb: Figure = Field(default=0.0, alias="assignedMemOffHeap")


class Page(Answer):
    """`/topology/ID`."""

    id: str
    name: str
    window: Window = ALL_TIME
    uptime_s: Figure = Field(alias="uptimeSeconds")
    workers_total: int = Field(default=0, alias="workersTotal")
    executors_total: int = Field(default=0, alias="executorsTotal")
    scheduler_info: str | None = Field(default=None, alias="schedulerInfo")
    shows_resources: bool = Field(default=False, alias="schedulerDisplayResource")
    workers: tuple[Worker, ...] = ()
    spouts: tuple[Spout, ...] = Field(min_length=1)
    bolts: tuple[Bolt, ...] = ()
    configuration: dict[str, Any] = Field(default_factory=dict[str, Any])


class Count(Answer):
    """A figure of one stream; of an input also the component it comes from."""

    stream: str = Field(alias="stream_id")
    source: str = Field(default="", alias="component_id")
    value: Figure = 0.0


class VertexMetrics(Answer):
    id: str
    emitted: tuple[Count, ...] = ()
    executed: tuple[Count, ...] = ()
    executed_ms_avg: tuple[Count, ...] = ()


class Metrics(Answer):
    """`/topology/ID/metrics`."""

    window: Window = ALL_TIME
    spouts: tuple[VertexMetrics, ...] = ()
    bolts: tuple[VertexMetrics, ...] = ()


class Output(Answer):
    """What a component emitted on a stream."""

    stream: str
    emitted: Figure = 0.0


class Entry(Answer):
    """What a bolt executed of a stream."""

    source: str = Field(alias="component")
    stream: str
    executed: Figure = 0.0
    execute_ms: Figure = Field(default=0.0, alias="executeLatency")


class Executor(Answer):
    """A thread, which counts from the start of its worker."""

    id: str
    uptime_s: Figure = Field(alias="uptimeSeconds")
    emitted: Figure = 0.0
    executed: Figure = 0.0


class ComponentPage(Answer):
    """`/topology/ID/component/C`."""

    id: str
    window: Window = ALL_TIME
    outputs: tuple[Output, ...] = Field(default=(), alias="outputStats")
    inputs: tuple[Entry, ...] = Field(default=(), alias="inputStats")
    executors: tuple[Executor, ...] = Field(default=(), alias="executorStats")


class Subscription(Answer):
    source: str = Field(alias=":component")
    stream: str = Field(alias=":stream")
    grouping: str = Field(alias=":grouping")


class Drawn(Answer):
    """A component in `/topology/ID/visualization`."""

    inputs: tuple[Subscription, ...] = Field(default=(), alias=":inputs")


class Supervisor(Answer):
    id: str
    host: str
    slots: int = Field(alias="slotsTotal", ge=0)
    slots_used: int = Field(default=0, alias="slotsUsed")
    cpu: Figure = Field(default=0.0, alias="totalCpu")
    memory_mb: Figure = Field(default=0.0, alias="totalMem")
    cpu_used: Figure = Field(default=0.0, alias="usedCpu")
    memory_mb_used: Figure = Field(default=0.0, alias="usedMem")


class Supervisors(Answer):
    """`/supervisor/summary`."""

    supervisors: tuple[Supervisor, ...] = Field(min_length=1)
    shows_resources: bool = Field(default=False, alias="schedulerDisplayResource")


@dataclass(frozen=True, slots=True)
class Answers:
    """What Storm said."""

    page: Page
    drawn: Mapping[str, Drawn]
    metrics: Metrics | None
    components: Mapping[str, ComponentPage]
    supervisors: Supervisors | None
    version: str | None

    @property
    def shows_resources(self) -> bool:
        """Whether Storm schedules by CPU and memory; its own flag for that is off by default."""
        page, cluster = self.page, self.supervisors
        scheduler = f"{page.configuration.get('storm.scheduler', '')} {page.scheduler_info or ''}"
        return (
            page.shows_resources
            or "ResourceAware" in scheduler
            or (cluster is not None and cluster.shows_resources)
            or (cluster is not None and any(s.cpu_used > 0 for s in cluster.supervisors))
        )


def recognize(parts: Mapping[str, Any], where: str) -> Answers:
    """Answers by what they hold; the names of `parts` only say where something is wrong."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    components: dict[str, ComponentPage] = {}
    for name, part in parts.items():
        kind = kind_of(part)
        if kind == "component":
            page = _conforming(ComponentPage, part, f"{where}: {name}")
            components[page.id] = page
        elif kind is not None:
            found.setdefault(kind, (name, part))
    if "page" not in found:
        raise InvalidInput(
            f"{where}: holds no topology page; "
            "needed is the answer of /api/v1/topology/ID, with `spouts` and `bolts`"
        )
    if "drawn" not in found:
        raise InvalidInput(
            f"{where}: does not say who reads from whom; "
            "needed is the answer of /api/v1/topology/ID/visualization"
        )

    def read(kind: str, model: type[Model]) -> Model:
        name, part = found[kind]
        return _conforming(model, part, f"{where}: {name}")

    name, drawn = found["drawn"]
    return Answers(
        read("page", Page),
        {
            c: _conforming(Drawn, part, f"{where}: {name}: {c}")
            for c, part in drawn.items()
            if not of_storm(c)
        },
        read("metrics", Metrics) if "metrics" in found else None,
        components,
        read("supervisors", Supervisors) if "supervisors" in found else None,
        found["cluster"][1].get("stormVersion") if "cluster" in found else None,
    )


def kind_of(part: Any) -> str | None:
    """Which of the answers it is; None if it is none of them."""
    if not isinstance(part, dict):
        return None
    content = cast("dict[str, Any]", part)
    if "executorStats" in content:
        return "component"
    if "spouts" in content:
        return "page" if "uptimeSeconds" in content else "metrics"
    if isinstance(content.get("supervisors"), list):
        return "supervisors"
    if "stormVersion" in content and "slotsTotal" in content:
        return "cluster"
    return (
        "drawn" if any(isinstance(c, dict) and ":inputs" in c for c in content.values()) else None
    )


def _conforming(model: type[Model], content: Any, where: str) -> Model:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InvalidInput(
            f"{where}: {place}: {first['msg'].lower()}, which is not how Storm answers"
        ) from None


def of_storm(name: str) -> bool:
    """Whether it is one of Storm's own components or streams: ackers, metrics consumers."""
    return name.startswith("__")

"""The file format `headrace/1`: every section and key, with its meaning, range and default.

These classes are the only definition of the format: they validate files, and `headrace schema` is
generated from them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from headrace.model.section import (
    Count,
    Headroom,
    Index,
    NotNegative,
    Positive,
    Scalar,
    Section,
    no_switch,
)
from headrace.model.simulation_sections import Arrivals, Event, Latency, Service

FORMAT = "headrace/1"

Grouping = Literal[
    "shuffle",
    "load-aware",
    "none",
    "custom",
    "fields",
    "global",
    "all",
    "direct",
    "local-or-shuffle",
]


class Input(Section):
    """How a component subscribes to another one's stream."""

    stream: str = Field(
        default="default",
        description="name of the stream, where two components are joined by several",
    )
    grouping: Grouping = Field(
        default="shuffle",
        description="which task receives a tuple; none and custom count as shuffle; load-aware is "
        "Storm 2's shuffle: same worker first, then node, rack, all",
    )
    fields: tuple[str, ...] = Field(default=(), description="key fields of a fields grouping")
    order: tuple[str, ...] = Field(
        default=(),
        description="columns by which a fields grouping sorts the rows of a batch; absent: as read",
    )


def as_inputs(value: Any) -> Any:
    """Spell out the short forms: `shuffle`, one mapping, or a list of either."""
    entries: list[Any] = list(value) if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownArgumentType]
    return tuple({"grouping": entry} if isinstance(entry, str) else entry for entry in entries)


Inputs = Annotated[
    tuple[Input, ...],
    BeforeValidator(as_inputs, json_schema_input_type=Grouping | Input | list[Grouping | Input]),
]


class Component(Section):
    """A spout or a bolt, run as parallel tasks."""

    spout: bool = Field(default=False, description="true: a source of tuples, without inputs")
    tasks: Count = Field(
        default=1, description="parallel tasks; only the starting count in `size` and `provision`"
    )
    max_tasks: Count | None = Field(
        default=None, description="sizing never plans more tasks than this"
    )
    rate: NotNegative | None = Field(
        default=None, description="tuples/s out of the whole spout; absent: 1"
    )
    inputs: dict[str, Inputs] = Field(
        default_factory=dict, description="source component -> grouping, or a list of streams"
    )
    selectivity: NotNegative = Field(
        default=1.0, description="tuples out per tuple in, on every output stream"
    )
    bytes: NotNegative | None = Field(default=None, description="bytes of one output tuple")
    cpu: NotNegative | None = Field(
        default=None, description="CPU points one task needs at the given rates; 100 = one core"
    )
    memory_mb: NotNegative = Field(default=0.0, description="memory of one task")
    state_mb: NotNegative = Field(
        default=0.0,
        description="state of one task, moved with it; keyed state is divided again with counts",
    )
    resources: dict[str, NotNegative] = Field(
        default_factory=dict, description="further resources one task takes"
    )
    join: Literal["sum", "zip"] = Field(
        default="sum", description="inputs add up, or one tuple of each input is taken together"
    )
    nodes: tuple[str, ...] | None = Field(
        default=None, description="the only nodes its tasks may run on; ranges as in a-{1..3}"
    )
    apart: bool = Field(default=False, description="true: no two of its tasks on one node")


class Ackers(Section):
    """Storm's ackers, where their number does not say enough."""

    tasks: Count
    cpu: NotNegative | None = Field(default=None, description="CPU points of one")
    memory_mb: NotNegative = Field(default=0.0, description="memory of one")


class Topology(Section):
    """A graph of components."""

    name: str = Field(default="topology", min_length=1, pattern="^[^/]+$")
    workers: Count | None = Field(
        default=None,
        description="worker processes over the cluster; absent: min(tasks, nodes with a free slot)",
    )
    priority: Annotated[int, Field(ge=-(2**62), le=2**62), BeforeValidator(no_switch)] = Field(
        default=0, description="smaller is placed first"
    )
    bound_by: Literal["cpu", "memory", "network", "io"] = Field(
        default="cpu", description="what node power weighs in TOP, A3 and BAN"
    )
    isolated_machines: Count | None = Field(
        default=None, description="machines of its own under storm-isolation"
    )
    worker_max_heap_mb: Positive | None = Field(
        default=None, description="memory one worker may hold"
    )
    fanout: Literal["copy", "divide", "tasks"] = Field(
        default="copy",
        description="every subscriber gets the whole stream, or output is divided: evenly over "
        "the subscribing components, or over all their tasks",
    )
    ackers: Count | Ackers | None = Field(
        default=None,
        description="tasks of `__acker`, or what they need too; they get a tuple for every one "
        "that is emitted by a spout or processed by a bolt; absent: nothing is acked",
    )
    core_per_task: bool = Field(
        default=False,
        description="true: tasks of a stage run at once, each on a core of its own, as on Spark",
    )
    components: dict[str, Component] = Field(default_factory=dict)


class BareTask(Section):
    """A task of a research instance that has no topology."""

    component: str | None = Field(
        default=None, description="tasks of one component are one operator; absent: the task itself"
    )
    cpu: NotNegative = 0.0
    memory_mb: NotNegative = 0.0
    state_mb: NotNegative = 0.0
    resources: dict[str, NotNegative] = Field(default_factory=dict)
    nodes: tuple[str, ...] | None = None


class Taken(Section):
    """What others already use on a node."""

    slots: tuple[Index, ...] = Field(default=(), description="indexes of slots in use")
    cpu: NotNegative = 0.0
    memory_mb: NotNegative = 0.0
    resources: dict[str, NotNegative] = Field(default_factory=dict)


class Machine(Section):
    """What a machine has; what is absent does not limit (slots: 4, as Storm's supervisors have)."""

    cpu: NotNegative | None = Field(default=None, description="CPU points, 100 = one core")
    memory_mb: NotNegative | None = None
    slots: Index = 4
    bandwidth_mbps: Positive | None = Field(
        default=None, description="10^6 bit/s, in and out separately"
    )
    sockets: Count | None = None
    cores: Count | None = None
    ghz: Positive | None = None
    flops_per_cycle: Positive | None = None
    resources: dict[str, NotNegative] = Field(default_factory=dict)


class Node(Machine):
    """A machine of the cluster."""

    type: str = Field(default="", description="machine type, the key into `profile` and `catalog`")
    rack: str = ""
    taken: Taken = Taken.model_construct()  # as Taken(), which would build it now


class Network(Section):
    """What a tuple costs, by the highest level that it crosses."""

    worker: NotNegative = Field(default=0.0, description="between workers of a node")
    node: NotNegative = Field(default=1.0, description="between nodes of a rack")
    rack: NotNegative = Field(default=3.0, description="between racks")


class Rack(Section):
    """What the nodes of a rack share."""

    uplink_mbps: Positive | None = Field(
        default=None, description="10^6 bit/s to other racks, in and out separately"
    )


class Cluster(Section):
    """The machines there are."""

    nodes: dict[str, Node] = Field(description="name or range such as big-{1..3} -> machine")
    network: Network | None = Field(
        default=None, description="what `--objective network` counts; absent: 0, 1 and 3"
    )
    racks: dict[str, Rack] = Field(
        default_factory=dict, description="facts of racks; nodes say which rack they are in"
    )
    headroom: Headroom | None = Field(default=None, description="as the section `headroom`")


class MachineType(Machine):
    """A machine that can be rented."""

    price: NotNegative = Field(description="per machine and time unit, the same unit as the budget")
    available: Annotated[int, Field(ge=0), BeforeValidator(no_switch)] | None = Field(
        default=None, description="how many there are; absent: any number"
    )


class ThreadPoint(Section):
    """What a task reaches with so many threads in one slot (LSA, MBA)."""

    rate: NotNegative
    cpu: NotNegative = Field(description="percent of one slot")
    memory: NotNegative = Field(default=0.0, description="percent of one slot's memory")


class Cost(Section):
    """CPU of a task on a machine type: rate x cpu_ms / 10 + cpu_fixed points."""

    cpu_ms: NotNegative | None = Field(default=None, description="CPU milliseconds per tuple")
    cpu_fixed: NotNegative = Field(default=0.0, description="CPU points one task takes at no load")
    threads: dict[Count, ThreadPoint] = Field(default_factory=dict[int, ThreadPoint])
    r2: float | None = Field(default=None, description="measured: quality of the fit")
    windows: int | None = Field(default=None, description="measured: number of windows in the fit")
    flag: str | None = Field(default=None, description="measured: what is doubtful about it")
    estimated: bool = Field(
        default=False, description="true: taken from similar components, not measured"
    )


class MeasuredStream(Section):
    """What was measured on a stream between two components."""

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    stream: str | None = Field(default=None, description="absent: every stream between the two")
    tuples_per_s: NotNegative | None = Field(
        default=None, description="tuples emitted, before they are copied to several tasks"
    )
    selectivity: NotNegative | None = None
    bytes: NotNegative | None = Field(default=None, description="per tuple")
    shares: tuple[NotNegative, ...] | None = Field(
        default=None, description="share of each target task, in order; scaled to sum to 1"
    )


class Facts(Section):
    """Measured facts of a node; each replaces what `cluster` says."""

    type: str | None = None
    rack: str | None = None
    cpu: NotNegative | None = None
    memory_mb: NotNegative | None = None
    slots: Index | None = None
    bandwidth_mbps: Positive | None = None
    sockets: Count | None = None
    cores: Count | None = None
    ghz: Positive | None = None
    flops_per_cycle: Positive | None = None
    power: dict[str, float] = Field(
        default_factory=dict, description="computing power as reported; not used for planning"
    )


class Placed(Section):
    """Where a task runs."""

    node: str
    worker: Index = Field(default=0, description="slot index on the node")


class Rented(Section):
    """What a component got from `provision`."""

    type: str
    tasks: Count = 1


class PlanSection(Section):
    """The parts that were decided."""

    assignment: dict[str, Placed] | None = None
    placement: dict[str, tuple[tuple[str, Index, Count, Count], ...]] | None = Field(
        default=None,
        description="compact assignment: component -> [node, worker, first task, last task]",
    )
    tasks: dict[str, Count] | None = None
    machines: dict[str, int] | None = None
    components: dict[str, Rented] | None = None


class Document(Section):
    """A file: any of these sections. Several files are merged section by section."""

    format: Literal["headrace/1"] = Field(description="version of this format")
    topology: Topology | None = None
    topologies: tuple[Topology, ...] | None = Field(
        default=None, description="several topologies; tasks are then called topology/component.N"
    )
    tasks: dict[str, BareTask] | None = Field(
        default=None, description="a bare task graph, instead of components"
    )
    cluster: Cluster | None = None
    profile: dict[str, dict[str, Cost]] | None = Field(
        default=None, description='component -> machine type or "*" -> cost'
    )
    streams: tuple[MeasuredStream, ...] | None = None
    traffic: (
        tuple[tuple[str, str, NotNegative] | tuple[str, str, NotNegative, NotNegative], ...] | None
    ) = Field(default=None, description="measured: [from task, to task, tuples/s, bytes/s]")
    inventory: dict[str, Facts] | None = None
    history: dict[str, tuple[tuple[float, NotNegative], ...]] | None = Field(
        default=None,
        description="measured input: spout -> [[seconds, tuples/s], ..]; the last one is its rate",
    )
    catalog: dict[str, MachineType] | None = None
    machine_per_task: bool | None = Field(
        default=None, description="true: every task gets a machine of its own"
    )
    headroom: Headroom | None = Field(
        default=None,
        description="share of every machine that plans leave free: one number, "
        "or resource (cpu, memory_mb, bandwidth_mbps, ..) -> share",
    )
    options: dict[str, dict[str, Scalar]] | None = Field(
        default=None, description="scheduler (or `judge`) -> option -> value"
    )
    # What a simulation starts from.
    arrivals: Arrivals | None = None
    service: Service | None = None
    max_spout_pending: Count | None = Field(
        default=None, description="trees that a task of a spout may have open; absent: any number"
    )
    queue_size: Count | None = Field(
        default=None, description="tuples that may wait before a task of a bolt; absent: any number"
    )
    latency_ms: Latency | None = None
    events: tuple[Event, ...] | None = Field(
        default=None, description="what happens while a plan is simulated"
    )
    # What a plan file holds besides.
    plan: PlanSection | None = None
    version: str | None = None
    scheduler: str | None = None
    objective: str | None = None
    seed: int | None = None
    seconds: float | None = None
    report: dict[str, Any] | None = None
    made_from: dict[str, Any] | None = Field(
        default=None, description="the sections a plan was made from"
    )


SECTIONS = (
    "topology", "topologies", "tasks", "cluster", "profile", "streams", "traffic", "inventory",
    "history", "catalog", "machine_per_task", "headroom", "options",
    "arrivals", "service", "max_spout_pending", "queue_size", "latency_ms", "events",
)  # fmt: skip


def schema() -> dict[str, Any]:
    """The JSON Schema of the format."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Document.model_json_schema(mode="validation"),
    }

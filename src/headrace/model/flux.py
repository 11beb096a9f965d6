"""From Storm's Flux YAML to a headrace/1 document.

What is read: name, workers, priority, worker heap, spouts, bolts and streams with their groupings,
includes, and properties.

- A task of ours is one thread, which Storm calls an executor: `tasks` is the `parallelism`.
  `numTasks` is how many of Storm's tasks those executors share in turn; it only counts where it is
  smaller, since an executor without a task is not started (as with
  `topology.max.task.parallelism`).
- `cpuLoad` and the memory loads are what one executor asks for. Where a component says nothing, its
  own `config` or the topology's decides; where these say nothing either, nothing is filled in.
- Flux starts a bolt when a stream reaches it: bolts that nothing reaches are left out.
- Includes work as in Flux: one level deep; names, configuration and components that both files have
  are taken from the included file only if it says `override: true`; streams are added, and of two
  equal ones the last decides.
- A Flux file has no rates and no cluster, nor Storm's own components (ackers, metrics).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from headrace.errors import InvalidInput, Unsupported
from headrace.model.document import FORMAT
from headrace.model.nearest import nearest
from headrace.model.read import File, parse, read_text, validate_file_as
from headrace.model.section import Count, Key, NotNegative, Positive

NEEDED = "a Flux file is YAML with `name`, `spouts`, `bolts` and `streams`"
LARGEST = 4_000_000  # characters; a Flux file is written by hand
PROPERTY = re.compile(r"\$\{([^}\n]+)\}")
ELEMENT = re.compile(r"(.+)\[(\d+)\]")


def require_value(value: Any) -> Any:
    """Refuse a number that is still a `${..}`."""
    missing = PROPERTY.search(value) if isinstance(value, str) else None
    if missing is not None:
        raise PydanticCustomError("property", "no property `{name}` is given", {"name": missing[1]})
    return value


Given = BeforeValidator(require_value)


class Part(BaseModel):
    """A mapping of a Flux file; keys that say how to build Java objects do not matter here."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class Config(Part):
    """The settings of Storm that matter for planning; a component may have its own."""

    workers: Annotated[Count | None, Given] = Field(default=None, alias="topology.workers")
    priority: Annotated[int | None, Given] = Field(default=None, alias="topology.priority")
    worker_max_heap_mb: Annotated[Positive | None, Given] = Field(
        default=None, alias="topology.worker.max.heap.size.mb"
    )
    most_tasks: Annotated[Count | None, Given] = Field(
        default=None, alias="topology.max.task.parallelism"
    )
    tasks: Annotated[Count | None, Given] = Field(default=None, alias="topology.tasks")
    cpu: Annotated[NotNegative | None, Given] = Field(
        default=None, alias="topology.component.cpu.pcore.percent"
    )
    on_heap_mb: Annotated[NotNegative | None, Given] = Field(
        default=None, alias="topology.component.resources.onheap.memory.mb"
    )
    off_heap_mb: Annotated[NotNegative | None, Given] = Field(
        default=None, alias="topology.component.resources.offheap.memory.mb"
    )


class Vertex(Part):
    """A spout or a bolt; Flux writes -1 for what is not set."""

    id: str
    parallelism: Annotated[Count, Given] = 1
    numTasks: Annotated[int, Given] = -1
    cpuLoad: Annotated[float, Given] = -1
    onHeapMemoryLoad: Annotated[float, Given] = -1
    offHeapMemoryLoad: Annotated[float, Given] = -1
    config: Config | None = None


class Grouped(Part):
    """How a stream is dealt out to tasks."""

    type: Literal[
        "SHUFFLE", "FIELDS", "ALL", "GLOBAL", "DIRECT", "LOCAL_OR_SHUFFLE", "NONE", "CUSTOM"
    ]
    streamId: str | None = None
    args: tuple[str, ...] | None = None


class Edge(Part):
    """A stream from a spout or bolt to a bolt."""

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    grouping: Grouped


class Include(Part):
    """Another file whose content counts as part of this one."""

    file: str
    resource: bool = False
    override: bool = False


class FluxFile(Part):
    """The parts of a Flux file that matter for planning."""

    name: str | None = None
    config: Config | None = None
    spouts: tuple[Vertex, ...] | None = None
    bolts: tuple[Vertex, ...] | None = None
    streams: tuple[Edge, ...] | None = None
    includes: tuple[Include, ...] | None = None
    topologySource: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written."""

    file: File
    path: tuple[Key, ...]

    def invalid(self, message: str) -> InvalidInput:
        return InvalidInput(f"{self.file.at(self.path)}: {message}")


@dataclass(slots=True)
class Gathered:
    """A Flux file with its includes."""

    name: str | None = None
    config: dict[str, Any] = field(default_factory=dict[str, Any])
    spouts: dict[str, tuple[Vertex, Place]] = field(default_factory=dict[str, tuple[Vertex, Place]])
    bolts: dict[str, tuple[Vertex, Place]] = field(default_factory=dict[str, tuple[Vertex, Place]])
    streams: list[tuple[Edge, Place]] = field(default_factory=list[tuple[Edge, Place]])


def flux(path: str | Path, properties: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The headrace/1 document of a Flux file.

    `properties` fill in `${..}`; an environment variable X is the property ENV-X.
    """
    file, parsed = _read(path, properties or {})
    topology = Gathered()
    _add(topology, file, parsed, override=False)
    for i, include in enumerate(parsed.includes or ()):
        where = _included(Path(path), include, Place(file, ("includes", i, "file")))
        _add(topology, *_read(where, properties or {}), override=include.override)
    if not topology.spouts:
        raise InvalidInput(f"{path}: has no spouts; {NEEDED}")
    name = {} if topology.name is None else {"name": topology.name}
    stated = {
        key: topology.config[key]
        for key in ("workers", "priority", "worker_max_heap_mb")
        if key in topology.config
    }
    return {"format": FORMAT, "topology": {**name, **stated, "components": _components(topology)}}


def read_properties(path: str | Path) -> dict[str, str]:
    """The properties of a Java properties file, as `flux --filter` takes it."""
    text = read_text(path, "a properties file has lines such as name=value") or ""
    joined = re.sub(r"\\\n[ \t]*", "", text.replace("\r\n", "\n"))
    lines = [line.strip() for line in joined.split("\n")]
    pairs = [
        re.split(r"\s*[=:\s]\s*", line, maxsplit=1)
        for line in lines
        if line and line[0] not in "#!"
    ]
    return {pair[0]: pair[1] if len(pair) > 1 else "" for pair in pairs}


def _read(path: str | Path, properties: Mapping[str, str]) -> tuple[File, FluxFile]:
    text = read_text(path, NEEDED) or ""
    if len(text) > LARGEST:
        raise InvalidInput(
            f"{path}: has {len(text):,} characters, more than anybody writes; {NEEDED}"
        )
    # Line by line, as Flux does, so that lines keep their numbers. What is not given stays as it
    # is: most of it does not matter here.
    filled = PROPERTY.sub(lambda match: _property(match[1], properties) or match[0], text)
    content = parse(str(path), filled)
    if not isinstance(content, dict):
        raise InvalidInput(f"{path}: is not a mapping; {NEEDED}")
    file = File(str(path), filled, cast("dict[str, Any]", content))
    parsed = validate_file_as(FluxFile, file)
    if parsed.topologySource is not None:
        java = parsed.topologySource.get("className", "a class")
        raise Unsupported(
            f"{file.at(('topologySource',))}: this topology is built in Java ({java}), "
            "so its components are not in the file",
            fix="import the running topology, or list its spouts, bolts and streams in YAML",
        )
    return file, parsed


def _property(name: str, properties: Mapping[str, str]) -> str | None:
    """The value of `name`, or of one element of a list as in `hosts[0]`."""
    element = ELEMENT.fullmatch(name)
    if name in properties or element is None:
        return properties.get(name)
    values = properties.get(element[1], "").strip("[] ").split(",")
    return values[int(element[2])].strip(" \"'") if int(element[2]) < len(values) else None


def _included(path: Path, include: Include, place: Place) -> Path:
    """The included file, relative to the including one; a resource of the jar may lie beside it."""
    wanted = [path.parent / include.file]
    if include.resource:
        wanted += [path.parent / include.file.lstrip("/"), path.parent / Path(include.file).name]
    found = next((file for file in wanted if file.is_file()), None)
    if found is None:
        kind = "the jar's resource" if include.resource else "the included file"
        raise place.invalid(
            f"{kind} `{include.file}` is not there; looked for {', '.join(map(str, wanted))}"
        )
    return found


def _add(topology: Gathered, file: File, parsed: FluxFile, *, override: bool) -> None:
    """Add a file's content; of what is already there only an override replaces anything."""
    if parsed.name is not None and (topology.name is None or override):
        topology.name = parsed.name
    config = parsed.config.model_dump(exclude_none=True) if parsed.config else {}
    topology.config = {**topology.config, **config} if override else {**config, **topology.config}
    for section, vertices, given in (
        ("spouts", topology.spouts, parsed.spouts),
        ("bolts", topology.bolts, parsed.bolts),
    ):
        here: set[str] = set()
        for i, vertex in enumerate(given or ()):
            place = Place(file, (section, i, "id"))
            if vertex.id in here:
                raise place.invalid(f"`{vertex.id}` is given twice")
            here.add(vertex.id)
            if vertex.id not in vertices or override:
                vertices[vertex.id] = (vertex, place)
    topology.streams += [
        (edge, Place(file, ("streams", i))) for i, edge in enumerate(parsed.streams or ())
    ]


def _components(topology: Gathered) -> dict[str, dict[str, Any]]:
    """Spouts, then the bolts that streams reach, each in the order of the file."""
    for name in topology.spouts:
        if name in topology.bolts:
            raise topology.bolts[name][1].invalid(f"`{name}` is a spout as well; ids must differ")
    inputs = _inputs(topology)
    components = {
        name: {"spout": True, **_demand(vertex, topology.config)}
        for name, (vertex, _) in topology.spouts.items()
    }
    for name, (vertex, _) in topology.bolts.items():
        if name in inputs:
            components[name] = {**_demand(vertex, topology.config), "inputs": inputs[name]}
    return components


def _inputs(topology: Gathered) -> dict[str, dict[str, Any]]:
    """For every bolt that streams reach, source -> groupings in the short form of the document."""
    reached = {edge.target for edge, _ in topology.streams}
    found: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    for edge, place in topology.streams:
        if edge.target not in topology.bolts:
            what = (
                "a spout, which has no inputs"
                if edge.target in topology.spouts
                else "no bolt of this topology"
            )
            raise _at(place, "to").invalid(
                f"`{edge.target}` is {what}{nearest(edge.target, list(topology.bolts))}"
            )
        if edge.source not in topology.spouts and edge.source not in topology.bolts:
            near = nearest(edge.source, [*topology.spouts, *topology.bolts])
            raise _at(place, "from").invalid(f"there is no spout or bolt `{edge.source}`{near}")
        if edge.source in topology.bolts and edge.source not in reached:
            raise _at(place, "from").invalid(
                f"no stream reaches the bolt `{edge.source}`, so Flux does not start it"
            )
        if edge.grouping.type == "FIELDS" and not edge.grouping.args:
            raise _at(place, "grouping").invalid(
                "a FIELDS grouping needs `args`, the names of its fields"
            )
        stream = edge.grouping.streamId or "default"
        found.setdefault(edge.target, {}).setdefault(edge.source, {})[stream] = _input(
            edge.grouping, stream
        )
    return {
        bolt: {source: _short(list(streams.values())) for source, streams in by.items()}
        for bolt, by in found.items()
    }


def _at(place: Place, key: str) -> Place:
    return Place(place.file, (*place.path, key))


def _input(grouping: Grouped, stream: str) -> dict[str, Any]:
    entry: dict[str, Any] = {} if stream == "default" else {"stream": stream}
    entry["grouping"] = grouping.type.lower().replace("_", "-")
    if grouping.type == "FIELDS":
        entry["fields"] = list(grouping.args or ())
    return entry


def _short(entries: Sequence[dict[str, Any]]) -> Any:
    """`shuffle` instead of [{grouping: shuffle}], where nothing else is said."""
    short = [entry["grouping"] if len(entry) == 1 else entry for entry in entries]
    return short[0] if len(short) == 1 else short


def _demand(vertex: Vertex, config: Mapping[str, Any]) -> dict[str, Any]:
    """How many executors run, and what one of them asks for."""
    said = {**config, **(vertex.config.model_dump(exclude_none=True) if vertex.config else {})}
    own = {
        "tasks": vertex.numTasks,
        "cpu": vertex.cpuLoad,
        "on_heap_mb": vertex.onHeapMemoryLoad,
        "off_heap_mb": vertex.offHeapMemoryLoad,
    }
    said |= {key: value for key, value in own.items() if value >= 0}
    limits = [said[key] for key in ("tasks", "most_tasks") if key in said]
    demand: dict[str, Any] = {
        "tasks": max(1, min(vertex.parallelism, *limits)) if limits else vertex.parallelism
    }
    if "cpu" in said:
        demand["cpu"] = said["cpu"]
    if "on_heap_mb" in said or "off_heap_mb" in said:
        demand["memory_mb"] = said.get("on_heap_mb", 0.0) + said.get("off_heap_mb", 0.0)
    return demand

"""From a production cluster's JSON to a headrace/1 document.

The layout: `nodes` is a list of machines, `topologies` a list with `components`, whose `inputs`
name a component, a stream and a grouping. It has resource requests, but nothing in it says how much
flows. So every stream is taken to carry 1 tuple/s for each task of its source, as if measured: what
one component receives does not change what it sends on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, cast

from pydantic import Field

from headrace.errors import InvalidInput
from headrace.model.document import FORMAT, Grouping
from headrace.model.nearest import nearest
from headrace.model.read import File, parse, read_text, validate_file_as
from headrace.model.section import Count, Index, NotNegative, Positive, Section

NEEDED = "a production cluster is a JSON object with `nodes` and `topologies`"
GROUPINGS: dict[str, Grouping] = {
    "shuffle": "shuffle",
    "none": "none",
    "fields": "fields",
    "global": "global",
    "all": "all",
    "direct": "direct",
    "local_or_shuffle": "local-or-shuffle",
    "custom_serialized": "custom",
    "custom_object": "custom",
}


class Subscription(Section):
    """A stream a component receives."""

    source: str = Field(alias="from")
    stream: str = "default"
    grouping: str


class Part(Section):
    """A spout or bolt, and what one of its tasks asks for."""

    id: str
    kind: Literal["spout", "bolt"]
    tasks: Count
    cpu: NotNegative
    memory_mb: NotNegative
    inputs: tuple[Subscription, ...] = ()


class Submitted(Section):
    """A topology as it was submitted."""

    name: str = Field(min_length=1, pattern="^[^/]+$")
    priority: int = 0
    worker_max_heap_mb: Positive | None = None
    components: tuple[Part, ...]


class Supervisor(Section):
    """A machine."""

    id: str
    rack: str = ""
    cpu: NotNegative
    memory_mb: NotNegative
    slots: Index


class Layout(Section):
    """The whole file."""

    source: str = ""
    cpu_unit: Literal["100 = one core"] = "100 = one core"
    nodes: tuple[Supervisor, ...] = Field(min_length=1)
    topologies: tuple[Submitted, ...] = Field(min_length=1)


def production(path: str | Path) -> dict[str, Any]:
    """The headrace/1 document of a production cluster's JSON file."""
    text = read_text(path, NEEDED, holds=b'"topologies"')
    content = parse(str(path), text) if text is not None else None
    if text is None or not isinstance(content, dict):
        raise InvalidInput(f"{path}: has no `topologies`; {NEEDED}")
    file = File(str(path), text, cast("dict[str, Any]", content))
    layout = validate_file_as(Layout, file)
    _check_names(file, layout)
    if not any(topology.components for topology in layout.topologies):
        raise InvalidInput(f"{file.at(('topologies',))}: no topology has components")
    return {
        "format": FORMAT,
        "topologies": [_topology(topology) for topology in layout.topologies],
        "cluster": {"nodes": {node.id: node.model_dump(exclude={"id"}) for node in layout.nodes}},
        "streams": [stream for topology in layout.topologies for stream in _streams(topology)],
    }


def _check_names(file: File, layout: Layout) -> None:
    """Check what the layout cannot say: names are unique, and every input exists."""
    _unique(file, ("nodes",), [node.id for node in layout.nodes])
    _unique(file, ("topologies",), [topology.name for topology in layout.topologies], key="name")
    for t, topology in enumerate(layout.topologies):
        names = [part.id for part in topology.components]
        _unique(file, ("topologies", t, "components"), names)
        for c, part in enumerate(topology.components):
            here = ("topologies", t, "components", c, "inputs")
            if part.kind == "spout" and part.inputs:
                raise InvalidInput(
                    f"{file.at(here)}: the spout `{part.id}` has inputs; only bolts have"
                )
            seen: set[tuple[str, str]] = set()
            for i, given in enumerate(part.inputs):
                if given.source not in names:
                    message = f"`{topology.name}` has no component `{given.source}`"
                    near = nearest(given.source, names)
                    raise InvalidInput(f"{file.at((*here, i, 'from'))}: {message}{near}")
                if given.grouping not in GROUPINGS:
                    message = f"{given.grouping!r} is not one of {', '.join(GROUPINGS)}"
                    near = nearest(given.grouping, list(GROUPINGS))
                    raise InvalidInput(f"{file.at((*here, i, 'grouping'))}: {message}{near}")
                if (given.source, given.stream) in seen:
                    message = f"the stream `{given.stream}` of `{given.source}` is given twice"
                    raise InvalidInput(f"{file.at((*here, i))}: {message}")
                seen.add((given.source, given.stream))


def _unique(file: File, path: tuple[str | int, ...], names: list[str], key: str = "id") -> None:
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        if first.setdefault(name, i) != i:
            raise InvalidInput(f"{file.at((*path, i, key))}: `{name}` is given twice")


def _topology(topology: Submitted) -> dict[str, Any]:
    stated = topology.model_dump(exclude={"components"}, exclude_none=True)
    return {**stated, "components": {part.id: _component(part) for part in topology.components}}


def _component(part: Part) -> dict[str, Any]:
    component: dict[str, Any] = {"tasks": part.tasks, "cpu": part.cpu, "memory_mb": part.memory_mb}
    if part.kind == "spout":
        return {"spout": True, "rate": part.tasks, **component}
    inputs: dict[str, list[dict[str, str]]] = {}
    for given in part.inputs:
        inputs.setdefault(given.source, []).append(
            {"stream": given.stream, "grouping": GROUPINGS[given.grouping]}
        )
    return {**component, "inputs": inputs} if inputs else component


def _streams(topology: Submitted) -> list[dict[str, Any]]:
    """1 tuple/s from each source task, on every stream."""
    tasks = {part.id: part.tasks for part in topology.components}
    return [
        {
            "from": f"{topology.name}/{given.source}",
            "to": f"{topology.name}/{part.id}",
            "stream": given.stream,
            "tuples_per_s": tasks[given.source],
        }
        for part in topology.components
        for given in part.inputs
    ]

"""The components of all topologies, in file order, with the names reports use."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from headrace.errors import InvalidInput
from headrace.model.document import BareTask, Component, Topology
from headrace.model.read import Inputs, Key, nearest

RANGE = re.compile(r"\{([0-9]{1,9})\.\.([0-9]{1,9})\}")
LONGEST_RANGE = 1_000_000


@dataclass(frozen=True, slots=True)
class Named:
    """A component (or bare task) with the name reports use and the place it came from."""

    name: str
    topology: int
    spec: Component
    path: tuple[Key, ...]
    operator: str
    measured_tasks: int | None = (
        None  # the file's number of tasks, which task-level measurements speak of, if another is planned
    )


def expand(name: str) -> Iterator[str]:
    """`big-{1..3}` gives big-1, big-2, big-3; leading zeros are kept."""
    bounds = [(int(low), int(high)) for low, high in RANGE.findall(name)]
    if any(low > high for low, high in bounds):
        raise InvalidInput(f"{name}: a range counts up, from the smaller number to the larger")
    if math.prod(high - low + 1 for low, high in bounds) > LONGEST_RANGE:
        raise InvalidInput(f"{name}: a range of more than {LONGEST_RANGE:,} names")
    return _numbered(name)


def _numbered(name: str) -> Iterator[str]:
    match = RANGE.search(name)
    if match is None:
        yield name
        return
    low, high = match.groups()
    width = len(low) if low.startswith("0") else 0
    for number in range(int(low), int(high) + 1):
        yield from _numbered(f"{name[: match.start()]}{number:0{width}d}{name[match.end() :]}")


def components_of(inputs: Inputs, tasks: Mapping[str, int]) -> tuple[list[Topology], list[Named]]:
    document = inputs.document
    if document.topologies:
        topologies: list[tuple[Topology, tuple[Key, ...]]] = [
            (t, ("topologies", i)) for i, t in enumerate(document.topologies)
        ]
    elif document.topology is not None or document.tasks is not None:
        topologies = [(document.topology or Topology(), ("topology",))]
    else:
        raise InvalidInput("no topology: give a file with `topology`, `topologies` or `tasks`")
    names = [topology.name for topology, _ in topologies]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise inputs.invalid(
                ("topologies", i, "name"),
                f"the topology `{name}` is given twice; names must differ",
            )
    components: list[Named] = []
    for g, (topology, path) in enumerate(topologies):
        prefix = f"{topology.name}/" if document.topologies is not None else ""
        here = (*path, "components")
        if document.tasks is not None:
            if topology.components:
                raise inputs.invalid(
                    here, "a file gives either components or bare `tasks`, not both"
                )
            components += [_bare(name, task) for name, task in document.tasks.items()]
        else:
            components += [
                Named(prefix + name, g, spec, (*here, name), prefix + name)
                for name, spec in topology.components.items()
            ]
        if not any(c.topology == g for c in components):
            raise inputs.invalid(path, f"the topology `{topology.name}` has no components")
    known = {c.name: c for c in components}
    for name in tasks:
        if name not in known:
            raise InvalidInput(f"no component `{name}`{nearest(name, list(known))}")
    components = [
        replace(
            c, spec=c.spec.model_copy(update={"tasks": tasks[c.name]}), measured_tasks=c.spec.tasks
        )
        if tasks.get(c.name, c.spec.tasks) != c.spec.tasks
        else c
        for c in components
    ]
    for c in components:
        if c.spec.spout and c.spec.inputs:
            raise inputs.invalid(
                (*c.path, "inputs"), "a spout has no inputs; take away `spout: true` or the inputs"
            )
        if c.spec.rate is not None and not c.spec.spout:
            raise inputs.invalid(
                (*c.path, "rate"), "only a spout has a rate; a bolt's follows from its inputs"
            )
    return [topology for topology, _ in topologies], components


def _bare(name: str, task: BareTask) -> Named:
    spec = Component(
        cpu=task.cpu,
        memory_mb=task.memory_mb,
        state_mb=task.state_mb,
        resources=task.resources,
        nodes=task.nodes,
    )
    return Named(name, 0, spec, ("tasks", name), task.component or name)

"""The components of all topologies, in file order, with the names reports use."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.errors import InvalidInput
from headrace.model.document import Ackers, BareTask, Component, Topology
from headrace.model.nearest import nearest
from headrace.model.read import Inputs
from headrace.model.section import Key

RANGE = re.compile(r"\{([0-9]{1,9})\.\.([0-9]{1,9})\}")
LONGEST_RANGE = 1_000_000
ACKER = "__acker"  # Storm's names of the component and of its streams
ACK_INIT, ACK = "__ack_init", "__ack_ack"
ACK_BYTES = 32.0  # header 6, task and stream 3, two numbers of up to 10 with their types
MOST_TASKS = 20_000_000  # of all components together; more do not fit into memory


@dataclass(frozen=True, slots=True)
class NamedComponent:
    """A component (or bare task) with the name reports use and its place in the file."""

    name: str
    topology: int
    spec: Component
    path: tuple[Key, ...]
    operator: str
    # The file's number of tasks, if another is planned: measurements of tasks speak of it.
    measured_tasks: int | None = None


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


def components_of(
    inputs: Inputs, tasks: Mapping[str, int]
) -> tuple[list[Topology], list[NamedComponent]]:
    """All topologies and their components; `tasks` replaces task counts by component name."""
    topologies = _topologies(inputs)
    components = [
        c
        for g, (topology, path) in enumerate(topologies)
        for c in _listed(inputs, g, topology, path)
    ]
    components = _recount(components, tasks)
    total = sum(c.spec.tasks for c in components)
    if total > MOST_TASKS:
        largest = max(components, key=lambda c: c.spec.tasks)
        raise InvalidInput(
            f"{total:,} tasks, {largest.spec.tasks:,} of them of `{largest.name}`; "
            f"at most {MOST_TASKS:,} can be planned"
        )
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


def _topologies(inputs: Inputs) -> list[tuple[Topology, tuple[Key, ...]]]:
    """The topologies, each with its place in the file; their names differ."""
    document = inputs.document
    if not document.topologies:
        if document.topology is None and document.tasks is None:
            raise InvalidInput("no topology: give a file with `topology`, `topologies` or `tasks`")
        return [(document.topology or Topology(), ("topology",))]
    names = [topology.name for topology in document.topologies]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise inputs.invalid(
                ("topologies", i, "name"),
                f"the topology `{name}` is given twice; names must differ",
            )
    found = [(topology, ("topologies", i)) for i, topology in enumerate(document.topologies)]
    if document.tasks is not None or not any(t.components for t in document.topologies):
        return found
    return [(topology, path) for topology, path in found if topology.components]


def empty_topology_notes(inputs: Inputs) -> tuple[str, ...]:
    """A line for every topology without components, beside others that have some."""
    document = inputs.document
    if document.tasks is not None or not any(t.components for t in document.topologies or ()):
        return ()
    return tuple(
        f"the topology `{topology.name}` has no components; it is left out"
        for topology in document.topologies or ()
        if not topology.components
    )


def _listed(
    inputs: Inputs, number: int, topology: Topology, path: tuple[Key, ...]
) -> list[NamedComponent]:
    """The components of one topology, or the bare tasks of the file."""
    document = inputs.document
    here = (*path, "components")
    if document.tasks is not None and topology.components:
        raise inputs.invalid(here, "a file gives either components or bare `tasks`, not both")
    if document.tasks is not None:
        components = [_bare(name, task) for name, task in document.tasks.items()]
    else:
        prefix = f"{topology.name}/" if document.topologies is not None else ""
        components = [
            NamedComponent(prefix + name, number, spec, (*here, name), prefix + name)
            for name, spec in topology.components.items()
        ]
        components += _ackers(inputs, number, topology, path, prefix)
    if not any(c.topology == number for c in components):
        raise inputs.invalid(path, f"the topology `{topology.name}` has no components")
    return components


def _ackers(
    inputs: Inputs, number: int, topology: Topology, path: tuple[Key, ...], prefix: str
) -> list[NamedComponent]:
    """Storm's ackers, where the topology has some: they hear of every tuple.

    A spout says when it emits one, a bolt when it has processed one. Which acker is asked follows
    from the id of the spout's tuple, which is random.
    """
    if topology.ackers is None or not topology.components:
        return []
    here = (*path, "ackers")
    if ACKER in topology.components:
        raise inputs.invalid(here, f"the component `{ACKER}` is given too; leave one of them out")
    heard = {
        name: {"stream": ACK_INIT if c.spout else ACK, "grouping": "fields", "fields": ("id",)}
        for name, c in topology.components.items()
    }
    ackers = topology.ackers
    facts = ackers.model_dump() if isinstance(ackers, Ackers) else {"tasks": ackers}
    spec = Component.model_validate({**facts, "inputs": heard})
    return [NamedComponent(prefix + ACKER, number, spec, (*here, ACKER), prefix + ACKER)]


def _recount(
    components: Sequence[NamedComponent], tasks: Mapping[str, int]
) -> list[NamedComponent]:
    """The components with other numbers of tasks; measurements still speak of the file's."""
    names = {c.name for c in components}
    for name in tasks:
        if name not in names:
            near = nearest(name, [c.name for c in components])
            raise InvalidInput(f"no component `{name}`{near}")
    return [
        replace(
            c, spec=c.spec.model_copy(update={"tasks": tasks[c.name]}), measured_tasks=c.spec.tasks
        )
        if tasks.get(c.name, c.spec.tasks) != c.spec.tasks
        else c
        for c in components
    ]


def _bare(name: str, task: BareTask) -> NamedComponent:
    spec = Component(
        cpu=task.cpu,
        memory_mb=task.memory_mb,
        state_mb=task.state_mb,
        resources=task.resources,
        nodes=task.nodes,
    )
    return NamedComponent(name, 0, spec, ("tasks", name), task.component or name)

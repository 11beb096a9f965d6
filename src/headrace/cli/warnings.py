"""What `check` remarks on: files that are valid, and probably do not say what is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from headrace.errors import InvalidInput
from headrace.model.components import RANGE, NamedComponent, components_of, expand
from headrace.model.document import Topology
from headrace.model.nearest import nearest
from headrace.model.read import Inputs
from headrace.registry import FOLDERS, find, names

MANY_NODES = 100_000
BRACES = re.compile(r"\{[^{}]*\}")
NOT_SCHEDULERS = ("judge",)  # what else may stand in `options`

# Keys that few schedulers look at, and those that do. All others plan as if they were not there.
OF_TOPOLOGIES: dict[str, frozenset[str]] = {
    "isolated_machines": frozenset({"storm-isolation"}),
    "bound_by": frozenset({"top-storm", "a3-storm", "ban-storm"}),
    "worker_max_heap_mb": frozenset(
        {"headrace", "optimal", "storm-ras", "p-scheduler", "p-scheduler-hard", "t3-scheduler",
         "i-scheduler", "i-scheduler-hard"}
    ),
}  # fmt: skip
OF_COMPONENTS: dict[str, frozenset[str]] = {
    "nodes": frozenset({"headrace", "optimal"}),
    "apart": frozenset({"headrace", "optimal"}),
}


def warnings_of(inputs: Inputs, by: str) -> list[str]:
    """One line for everything that looks wrong, with its place in the files."""
    return [f"{inputs.at(path)}: {words}" for path, words in _found(inputs, by)]


def _found(inputs: Inputs, by: str) -> Iterator[tuple[Sequence[str | int], str]]:
    document = inputs.document
    if any(s is not None for s in (document.topology, document.topologies, document.tasks)):
        topologies, components = components_of(inputs, {})
        for c in components:
            yield from _of_component(inputs, c)
        yield from _ignored(topologies, components, by)
    yield from _of_nodes(inputs)
    yield from _of_options(document.options or {})


def _of_component(inputs: Inputs, c: NamedComponent) -> Iterator[tuple[Sequence[str | int], str]]:
    spec, measured = c.spec, inputs.document.traffic or inputs.document.streams
    if not spec.spout and not spec.inputs and inputs.document.tasks is None and not measured:
        yield c.path, "a bolt without inputs gets no tuples; give it `inputs`, or `spout: true`"
    if spec.max_tasks is not None and spec.tasks > spec.max_tasks:
        yield (*c.path, "tasks"), f"{spec.tasks} tasks, and `max_tasks` is {spec.max_tasks}"
    if spec.memory_mb and spec.state_mb > spec.memory_mb:
        more = f"{spec.state_mb:g} MB of state do not fit into `memory_mb` {spec.memory_mb:g}"
        yield (*c.path, "state_mb"), more


def _of_nodes(inputs: Inputs) -> Iterator[tuple[Sequence[str | int], str]]:
    cluster = inputs.document.cluster
    for name, node in (cluster.nodes if cluster is not None else {}).items():
        path = ("cluster", "nodes", name)
        for braces in BRACES.findall(RANGE.sub("", name)):
            yield path, f"`{braces}` is no range and is taken as a name; one is written {{1..9}}"
        try:
            count = sum(1 for _ in expand(name))
        except InvalidInput:
            continue  # an error, which is said elsewhere
        if count > MANY_NODES:
            yield path, f"stands for {count:,} nodes"
        for resource, has in (("cpu", node.cpu), ("memory_mb", node.memory_mb)):
            taken = getattr(node.taken, resource)
            if has is not None and taken > has:
                yield (*path, "taken"), f"{taken:g} {resource} taken of {has:g}: nothing is left"


def _of_options(
    options: Mapping[str, Mapping[str, object]],
) -> Iterator[tuple[Sequence[str | int], str]]:
    folders = {name: folder for folder in FOLDERS for name in names(folder)}
    for name, chosen in options.items():
        if name in NOT_SCHEDULERS or ":" in name:
            continue
        if name not in folders:
            yield ("options", name), f"there is no scheduler `{name}`{nearest(name, [*folders])}"
            continue
        for key, value in chosen.items():
            try:
                find(folders[name], name).checked_options({key: value})
            except InvalidInput as error:
                yield ("options", name, key), error.message


def _ignored(
    topologies: Sequence[Topology], components: Sequence[NamedComponent], by: str
) -> Iterator[tuple[Sequence[str | int], str]]:
    """Keys that the chosen scheduler plans without."""
    many = len(topologies) > 1 or (components and components[0].path[0] == "topologies")
    for g, topology in enumerate(topologies):
        for key, who in OF_TOPOLOGIES.items():
            if key in topology.model_fields_set and by not in who:
                path = ("topologies", g, key) if many else ("topology", key)
                yield path, f"{by} does not look at `{key}`"
    for c in components:
        for key, who in OF_COMPONENTS.items():
            if getattr(c.spec, key) and by not in who:
                yield (*c.path, key), f"{by} does not look at `{key}`"

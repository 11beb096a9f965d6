"""A core for every task of a stage: how Spark runs a topology, as resources of nodes and tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headrace.model.components import NamedComponent
from headrace.model.document import Node, Topology
from headrace.model.levels import levels


def cores_of(node: Node) -> int:
    """Cores that Spark counts on a node: one per 100 points, and at least one."""
    if node.cpu is not None:
        return max(1, int(node.cpu // 100))
    return (node.cores or 1) * (node.sockets or 1)


def with_stage_cores(
    topologies: Sequence[Topology], components: Sequence[NamedComponent], nodes: Mapping[str, Node]
) -> tuple[list[NamedComponent], dict[str, Node]]:
    """Components and nodes of topologies whose tasks of a stage run at once, each on its own core.

    A node has as many places for each stage as it has cores.
    """
    places: dict[str, None] = {}
    found: list[NamedComponent] = []
    stage = [_stages(topology) if topology.core_per_task else {} for topology in topologies]
    for c in components:
        at = stage[c.topology].get(c.name.rpartition("/")[2])
        if at is not None:
            owner = f" of {topologies[c.topology].name}" if len(topologies) > 1 else ""
            place = f"cores of stage {at}{owner}"
            places[place] = None
            resources = {**c.spec.resources, place: 1.0}
            c = replace(c, spec=c.spec.model_copy(update={"resources": resources}))
        found.append(c)
    if not places:
        return found, dict(nodes)
    return found, {
        name: node.model_copy(
            update={"resources": {**node.resources, **dict.fromkeys(places, cores_of(node))}}
        )
        for name, node in nodes.items()
    }


def _stages(topology: Topology) -> dict[str, int]:
    """The stage of each component, from 1."""
    components = topology.components
    targets: dict[str, dict[str, None]] = {name: {} for name in components}
    for name, component in components.items():
        for source in component.inputs:
            if source in targets:
                targets[source][name] = None
    found, _ = levels(targets, {name for name, c in components.items() if c.spout})
    return {name: level + 1 for name, level in found.items()}

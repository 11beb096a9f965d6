"""From a document to the problem: names become numbers, rates and demands are worked out, references are checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headrace.errors import InvalidInput
from headrace.model.arrays import Bools
from headrace.model.cluster import expanded, inventory_notes, known, nodes_of, prices, slot_taken
from headrace.model.components import Named, components_of
from headrace.model.document import Node
from headrace.model.plan import read_assignment
from headrace.model.problem import CPU, Problem
from headrace.model.profile import profile_of
from headrace.model.read import Inputs, nearest
from headrace.model.streams import Flowing


def build(inputs: Inputs, *, tasks: Mapping[str, int] | None = None) -> Problem:
    """The problem that merged files describe; `tasks` replaces task counts by component name."""
    document = inputs.document
    topologies, components = components_of(inputs, tasks or {})
    nodes = nodes_of(inputs)
    index = {node: i for i, node in enumerate(nodes)}
    types = tuple(dict.fromkeys(node.type for node in nodes.values()))
    racks = tuple(dict.fromkeys(node.rack for node in nodes.values()))
    resources = ("cpu", "memory_mb", *sorted(_further(nodes, components)))
    notes = list(inventory_notes(inputs))

    flow = Flowing.of(inputs, topologies, components, notes)
    task_count = np.array([c.spec.tasks for c in components], dtype=np.int64)
    profile, cpu_rate, cpu_fixed = profile_of(inputs, components, types, flow.rate, notes)
    demand = np.array([_vector(c.spec, resources) for c in components])
    demand[profile, CPU] = 0.0
    allowed = _allowed(inputs, components, index)
    slots = np.array([node.slots for node in nodes.values()], dtype=np.int64)
    operators = {name: i for i, name in enumerate(dict.fromkeys(c.operator for c in components))}
    problem = Problem(
        topologies=tuple(t.name for t in topologies),
        components=tuple(c.name for c in components),
        nodes=tuple(nodes),
        types=types,
        racks=racks,
        resources=resources,
        workers=np.array([t.workers or 0 for t in topologies], dtype=np.int64),
        priority=np.array([t.priority for t in topologies], dtype=np.int64),
        bound_by=tuple(t.bound_by for t in topologies),
        isolated_machines=np.array([t.isolated_machines or 0 for t in topologies], dtype=np.int64),
        worker_heap_mb=np.array([t.worker_max_heap_mb or np.inf for t in topologies]),
        tasks=task_count,
        topology=np.array([c.topology for c in components], dtype=np.int64),
        operator=np.array([operators[c.operator] for c in components], dtype=np.int64),
        spout=np.array([c.spec.spout for c in components]),
        rate=flow.rate,
        demand=demand,
        cpu_rate=cpu_rate,
        cpu_fixed=cpu_fixed,
        profiled=profile,
        state_mb=np.array([c.spec.state_mb for c in components]),
        allowed=allowed,
        apart=np.array([c.spec.apart for c in components]),
        task_share=flow.task_share,
        bare=document.tasks is not None,
        streams=flow.streams,
        pairs=flow.pairs,
        capacity=np.array([_vector(node, resources, absent=np.inf) for node in nodes.values()]),
        taken=np.array([_vector(node.taken, resources) for node in nodes.values()]),
        slots=slots,
        slot_taken=slot_taken(inputs, nodes, slots),
        bandwidth_mbps=known(nodes, "bandwidth_mbps", np.inf),
        rack=np.array([racks.index(node.rack) for node in nodes.values()], dtype=np.int64),
        node_type=np.array([types.index(node.type) for node in nodes.values()], dtype=np.int64),
        sockets=known(nodes, "sockets", np.nan),
        cores=known(nodes, "cores", np.nan),
        ghz=known(nodes, "ghz", np.nan),
        flops_per_cycle=known(nodes, "flops_per_cycle", np.nan),
        price=prices(document.catalog, types),
        options=document.options or {},
        notes=tuple(notes),
    )
    if document.plan is None or (
        document.plan.assignment is None and document.plan.placement is None
    ):
        return problem
    try:
        return replace(problem, current=read_assignment(problem, document.plan))
    except InvalidInput as error:
        raise inputs.invalid(("plan",), error.message) from None


def _further(nodes: Mapping[str, Node], components: Sequence[Named]) -> set[str]:
    names = {name for node in nodes.values() for name in (*node.resources, *node.taken.resources)}
    return names | {name for c in components for name in c.spec.resources}


def _vector(thing: Any, resources: Sequence[str], absent: float = 0.0) -> list[float]:
    values: dict[str, float | None] = {
        "cpu": thing.cpu,
        "memory_mb": thing.memory_mb,
        **thing.resources,
    }
    return [absent if (value := values.get(name)) is None else value for name in resources]


def _allowed(inputs: Inputs, components: Sequence[Named], index: Mapping[str, int]) -> Bools | None:
    if all(c.spec.nodes is None for c in components):
        return None
    allowed = np.ones((len(components), len(index)), dtype=bool)
    for i, c in enumerate(components):
        if c.spec.nodes is not None:
            allowed[i] = False
            for name in (
                name
                for pattern in c.spec.nodes
                for name in expanded(inputs, (*c.path, "nodes"), pattern)
            ):
                if name not in index:
                    raise inputs.invalid(
                        (*c.path, "nodes"),
                        f"the cluster has no node `{name}`{nearest(name, list(index))}",
                    )
                allowed[i, index[name]] = True
    return allowed

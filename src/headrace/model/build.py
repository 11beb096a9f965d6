"""From a document to the problem: names become numbers, rates and demands are worked out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headrace.errors import InvalidInput
from headrace.model.arrays import Bools, Floats
from headrace.model.cluster import (
    collect_fact,
    expand_at,
    inventory_notes,
    mark_taken_slots,
    nodes_of,
    prices,
)
from headrace.model.components import NamedComponent, components_of, empty_topology_notes
from headrace.model.document import Network, Node, Topology
from headrace.model.dynamics import dynamics_of
from headrace.model.headroom import headroom_of
from headrace.model.keys import holding_of
from headrace.model.nearest import nearest
from headrace.model.plan import read_assignment
from headrace.model.problem import CPU, Problem
from headrace.model.profile import profile_of
from headrace.model.read import Inputs
from headrace.model.stage_cores import with_stage_cores
from headrace.model.streams import DataFlow

Fields = dict[str, Any]  # of a Problem


def build(inputs: Inputs, *, tasks: Mapping[str, int] | None = None) -> Problem:
    """The problem that merged files describe; `tasks` replaces task counts by component name."""
    document = inputs.document
    topologies, components = components_of(inputs, tasks or {})
    components, nodes = with_stage_cores(topologies, components, nodes_of(inputs))
    resources = ("cpu", "memory_mb", *sorted(_further_resources(nodes, components)))
    notes = [*empty_topology_notes(inputs), *inventory_notes(inputs)]
    flow = DataFlow.of(inputs, topologies, components, notes)
    of_components = _component_fields(inputs, components, nodes, resources, flow.rate, notes)
    problem = Problem(
        resources=resources,
        **_topology_fields(topologies),
        **of_components,
        task_share=flow.task_share,
        bare=document.tasks is not None,
        streams=flow.streams,
        pairs=flow.pairs,
        **_node_fields(inputs, nodes, resources),
        options=document.options or {},
        headroom=headroom_of(inputs, resources),
        dynamics=dynamics_of(inputs),
        notes=tuple(notes),
    )
    return _with_current_plan(inputs, problem)


def _topology_fields(topologies: Sequence[Topology]) -> Fields:
    return {
        "topologies": tuple(t.name for t in topologies),
        "workers": np.array([t.workers or 0 for t in topologies], dtype=np.int64),
        "priority": np.array([t.priority for t in topologies], dtype=np.int64),
        "bound_by": tuple(t.bound_by for t in topologies),
        "isolated_machines": np.array(
            [t.isolated_machines or 0 for t in topologies], dtype=np.int64
        ),
        "worker_heap_mb": np.array([t.worker_max_heap_mb or np.inf for t in topologies]),
    }


def _component_fields(
    inputs: Inputs,
    components: Sequence[NamedComponent],
    nodes: Mapping[str, Node],
    resources: Sequence[str],
    rate: Floats,
    notes: list[str],
) -> Fields:
    profiled, cpu_rate, cpu_fixed = profile_of(inputs, components, _types(nodes), rate, notes)
    demand = np.array([_vector(c.spec, resources) for c in components])
    demand[profiled, CPU] = 0.0
    operators = {name: i for i, name in enumerate(dict.fromkeys(c.operator for c in components))}
    return {
        "components": tuple(c.name for c in components),
        "tasks": np.array([c.spec.tasks for c in components], dtype=np.int64),
        "topology": np.array([c.topology for c in components], dtype=np.int64),
        "operator": np.array([operators[c.operator] for c in components], dtype=np.int64),
        "spout": np.array([c.spec.spout for c in components]),
        "rate": rate,
        "demand": demand,
        "cpu_rate": cpu_rate,
        "cpu_fixed": cpu_fixed,
        "profiled": profiled,
        "state_mb": np.array([c.spec.state_mb for c in components]),
        "holding": tuple(holding_of(c.spec) for c in components),
        "allowed": _allowed(inputs, components, {node: i for i, node in enumerate(nodes)}),
        "apart": np.array([c.spec.apart for c in components]),
    }


def _node_fields(inputs: Inputs, nodes: Mapping[str, Node], resources: Sequence[str]) -> Fields:
    types = _types(nodes)
    racks = tuple(dict.fromkeys(node.rack for node in nodes.values()))
    slots = np.array([node.slots for node in nodes.values()], dtype=np.int64)
    return {
        "nodes": tuple(nodes),
        "types": types,
        "racks": racks,
        "capacity": np.array([_vector(node, resources, absent=np.inf) for node in nodes.values()]),
        "taken": np.array([_vector(node.taken, resources) for node in nodes.values()]),
        "slots": slots,
        "slot_taken": mark_taken_slots(inputs, nodes, slots),
        "bandwidth_mbps": collect_fact(nodes, "bandwidth_mbps", np.inf),
        "rack": np.array([racks.index(node.rack) for node in nodes.values()], dtype=np.int64),
        **_network_fields(inputs, racks),
        "node_type": np.array([types.index(node.type) for node in nodes.values()], dtype=np.int64),
        "sockets": collect_fact(nodes, "sockets", np.nan),
        "cores": collect_fact(nodes, "cores", np.nan),
        "ghz": collect_fact(nodes, "ghz", np.nan),
        "flops_per_cycle": collect_fact(nodes, "flops_per_cycle", np.nan),
        "price": prices(inputs.document.catalog, types),
    }


def _network_fields(inputs: Inputs, racks: Sequence[str]) -> Fields:
    cluster = inputs.document.cluster
    network = (cluster and cluster.network) or Network()
    prices = (network.worker, network.node, network.rack)
    if list(prices) != sorted(prices):
        given = "worker {:g}, node {:g}, rack {:g}".format(*prices)
        raise InvalidInput(f"cluster.network: a higher level may not cost less: {given}")
    facts = cluster.racks if cluster is not None else {}
    for name in facts:
        if name not in racks:
            known = ", ".join(f"`{rack}`" for rack in racks)
            raise InvalidInput(
                f"cluster.racks: no node is in rack `{name}`{nearest(name, racks)}; racks: {known}"
            )
    uplinks = [facts[rack].uplink_mbps if rack in facts else None for rack in racks]
    return {
        "network": prices,
        "uplink_mbps": np.array([np.inf if u is None else u for u in uplinks]),
    }


def _with_current_plan(inputs: Inputs, problem: Problem) -> Problem:
    """The problem with the plan of the files, where they hold one, as the current one."""
    plan = inputs.document.plan
    if plan is None or (plan.assignment is None and plan.placement is None):
        return problem
    try:
        return replace(problem, current=read_assignment(problem, plan))
    except InvalidInput as error:
        raise inputs.invalid(("plan",), error.message) from None


def _types(nodes: Mapping[str, Node]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node.type for node in nodes.values()))


def _further_resources(nodes: Mapping[str, Node], components: Sequence[NamedComponent]) -> set[str]:
    names = {name for node in nodes.values() for name in (*node.resources, *node.taken.resources)}
    return names | {name for c in components for name in c.spec.resources}


def _vector(thing: Any, resources: Sequence[str], absent: float = 0.0) -> list[float]:
    values: dict[str, float | None] = {
        "cpu": thing.cpu,
        "memory_mb": thing.memory_mb,
        **thing.resources,
    }
    return [absent if (value := values.get(name)) is None else value for name in resources]


def _allowed(
    inputs: Inputs, components: Sequence[NamedComponent], index: Mapping[str, int]
) -> Bools | None:
    """Which nodes each component may use, [C, N]; None if nothing is pinned."""
    if all(c.spec.nodes is None for c in components):
        return None
    allowed = np.ones((len(components), len(index)), dtype=bool)
    for i, c in enumerate(components):
        if c.spec.nodes is None:
            continue
        allowed[i] = False
        path = (*c.path, "nodes")
        for name in (n for pattern in c.spec.nodes for n in expand_at(inputs, path, pattern)):
            if name not in index:
                near = nearest(name, list(index))
                raise inputs.invalid(path, f"the cluster has no node `{name}`{near}")
            allowed[i, index[name]] = True
    return allowed

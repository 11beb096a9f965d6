"""Workloads on machines that are smaller by the headroom, for sizers and provisioners.

What they plan there is given the true machines back before it is judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from headrace.model.cluster import nodes_of
from headrace.model.document import Facts, Machine
from headrace.model.headroom import BANDWIDTH, headroom_in, headroom_of, headroom_share
from headrace.model.problem import Problem
from headrace.model.section import Headroom
from headrace.model.workload import Workload

Thing = TypeVar("Thing", bound=Machine | Facts)


def shrink_machines(workload: Workload) -> Workload:
    """The workload on machines that are smaller by the headroom, which it does not name."""
    inputs, document = workload.inputs, workload.inputs.document
    headroom = headroom_in(inputs)
    if headroom is None:
        return workload
    cluster, inventory, catalog = document.cluster, document.inventory, document.catalog
    update: dict[str, Any] = {"headroom": None}
    if cluster is not None:
        nodes = {name: _shrink(node, headroom) for name, node in cluster.nodes.items()}
        update["cluster"] = cluster.model_copy(update={"nodes": nodes, "headroom": None})
    if inventory is not None:
        update["inventory"] = {name: _shrink(f, headroom) for name, f in inventory.items()}
    if catalog is not None:
        update["catalog"] = {name: _shrink(kind, headroom) for name, kind in catalog.items()}
    return Workload(replace(inputs, document=document.model_copy(update=update)))


def restore_machines(planned: Workload, workload: Workload) -> Workload:
    """What was planned on shrunk machines, with the machines and the headroom there are."""
    headroom, truth = headroom_in(workload.inputs), workload.inputs.document
    if headroom is None:
        return planned
    document = planned.inputs.document
    update: dict[str, Any] = {"headroom": headroom}
    if document.cluster is not None and truth.cluster is not None:
        update["cluster"] = truth.cluster.model_copy(update={"headroom": None})
    if document.inventory is not None:
        update["inventory"] = truth.inventory
    if document.catalog is not None:
        update["catalog"] = {kind: (truth.catalog or {})[kind] for kind in document.catalog}
    return Workload(replace(planned.inputs, document=document.model_copy(update=update)))


def restore_nodes(
    problem: Problem, workload: Workload, machines: Mapping[str, int] | None = None
) -> Problem:
    """A problem on shrunk machines, with the machines and the headroom of the workload."""
    if headroom_in(workload.inputs) is None:
        return problem
    inputs = workload.with_machines(machines)
    nodes = nodes_of(inputs)
    capacity, bandwidth_mbps = problem.capacity.copy(), problem.bandwidth_mbps.copy()
    for n, name in enumerate(problem.nodes):
        node = nodes[name]
        has: dict[str, float | None] = {
            "cpu": node.cpu,
            "memory_mb": node.memory_mb,
            **node.resources,
        }
        for k, resource in enumerate(problem.resources):
            found = has.get(resource)
            capacity[n, k] = np.inf if found is None else found
        bandwidth_mbps[n] = np.inf if node.bandwidth_mbps is None else node.bandwidth_mbps
    return replace(
        problem,
        capacity=capacity,
        bandwidth_mbps=bandwidth_mbps,
        headroom=headroom_of(inputs, problem.resources),
    )


def _shrink(thing: Thing, headroom: Headroom) -> Thing:
    """A machine, or what was measured of one, smaller by the headroom."""
    update: dict[str, Any] = {
        name: value * (1 - headroom_share(headroom, name))
        for name in ("cpu", "memory_mb", BANDWIDTH)
        if (value := getattr(thing, name)) is not None
    }
    if isinstance(thing, Machine):
        update["resources"] = {
            name: value * (1 - headroom_share(headroom, name))
            for name, value in thing.resources.items()
        }
    return thing.model_copy(update=update)

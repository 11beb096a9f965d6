"""A topology whose counts, or machines, are still to be chosen: what `size` and `provision` get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from headrace.model.build import build
from headrace.model.components import Named, components_of
from headrace.model.document import Cluster, Cost, MachineType, Node
from headrace.model.problem import Problem
from headrace.model.read import Inputs


@dataclass(frozen=True)
class Workload:
    """The files, and the problems they become once counts and machines are chosen."""

    inputs: Inputs

    def problem(self, tasks: Mapping[str, int] | None = None, machines: Mapping[str, int] | None = None) -> Problem:
        """The problem with these task counts, on these numbers of machines of the catalog (absent: on the file's cluster).

        Nodes are called after their type: vt1-1, vt1-2, ..
        """
        inputs = self.inputs
        if machines is not None:
            nodes = {f"{kind}-{i}": self._node(kind) for kind, count in machines.items() for i in range(1, count + 1)}
            inputs = replace(inputs, document=inputs.document.model_copy(update={"cluster": Cluster(nodes=nodes)}))
        return build(inputs, tasks=tasks)

    def _node(self, kind: str) -> Node:
        facts = self.catalog[kind].model_dump(exclude={"price", "available"})
        return Node(type=kind, **facts)

    @cached_property
    def components(self) -> tuple[Named, ...]:
        """The components of all topologies, with their starting counts."""
        return tuple(components_of(self.inputs, {})[1])

    @property
    def catalog(self) -> Mapping[str, MachineType]:
        """Machine types that can be rented; empty where no file has a catalog."""
        return self.inputs.document.catalog or {}

    @property
    def machine_per_task(self) -> bool:
        """Whether every task gets a machine of its own."""
        return bool(self.inputs.document.machine_per_task)

    def cost(self, component: str, kind: str) -> Cost | None:
        """The profile entry of a component on a machine type; None where there is none."""
        costs = (self.inputs.document.profile or {}).get(component, {})
        return costs.get(kind) or costs.get("*")

"""A topology whose counts, or machines, are still to be chosen: what `size` and `provision` get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from headrace.model.build import build
from headrace.model.components import NamedComponent, components_of
from headrace.model.document import (
    Cluster,
    Component,
    Cost,
    Document,
    MachineType,
    MeasuredStream,
    Node,
)
from headrace.model.flow import FlowByCounts
from headrace.model.problem import Problem
from headrace.model.read import Inputs
from headrace.model.streams import DataFlow
from headrace.model.what_if import multiply_rates


@dataclass(frozen=True)
class Workload:
    """The files, and the problems they become once counts and machines are chosen."""

    inputs: Inputs

    def problem(
        self, tasks: Mapping[str, int] | None = None, machines: Mapping[str, int] | None = None
    ) -> Problem:
        """The problem with these task counts, on so many machines of the catalog's types.

        Absent: on the file's cluster. Nodes are called after their type: vt1-1, vt1-2, ..
        """
        return build(self.with_machines(machines), tasks=tasks)

    def _node(self, kind: str) -> Node:
        facts = self.catalog[kind].model_dump(exclude={"price", "available"})
        return Node(type=kind, **facts)

    @cached_property
    def components(self) -> tuple[NamedComponent, ...]:
        """The components of all topologies, with their starting counts."""
        return tuple(components_of(self.inputs, {})[1])

    @cached_property
    def flow(self) -> FlowByCounts:
        """How tuples flow, whatever the number of tasks."""
        one_each = {c.name: 1 for c in self.components}
        topologies, components = components_of(self.inputs, one_each)
        return DataFlow.of(self.inputs, topologies, components, []).by_counts

    @cached_property
    def spout_rate(self) -> float:
        """Tuples/s of all spouts together, as the files have them."""
        return float(sum(self.flow.spout_rate))

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

    def document_of_plan(
        self, problem: Problem, machines: Mapping[str, int] | None = None
    ) -> Document:
        """All that a plan's file needs: its counts, its machines as the cluster, and its rates.

        What was measured task by task speaks of other counts; it is kept as totals per stream.
        """
        tasks = {name: int(n) for name, n in zip(problem.components, problem.tasks, strict=True)}
        same = {c.name for c in self.components if tasks[c.name] == c.spec.tasks}
        factor = (
            float(problem.rate[problem.spout].sum()) / self.spout_rate
            if self.spout_rate > 0
            else 1.0
        )
        document = multiply_rates(self.with_machines(machines).document, factor)
        update: dict[str, Any] = with_components(
            document,
            {
                c.name: c.spec.model_copy(update={"tasks": tasks[c.name]})
                for c in _components(self.inputs, document)
            },
        )
        if document.traffic is not None:
            kept = tuple(
                row for row in document.traffic if {_owner(row[0]), _owner(row[1])} <= same
            )
            update["traffic"] = kept or None
            if len(kept) < len(document.traffic):
                update["streams"] = _totals(problem)
        elif document.streams is not None:
            update["streams"] = tuple(
                s if s.target in same or s.shares is None else s.model_copy(update={"shares": None})
                for s in document.streams
            )
        return document.model_copy(update=update)

    def with_fanout(self, fanout: Literal["copy", "divide", "tasks"]) -> Workload:
        """The same with output that every topology copies, or divides, in this way."""
        document = self.inputs.document
        update: dict[str, Any] = {}
        if document.topology is not None:
            update["topology"] = document.topology.model_copy(update={"fanout": fanout})
        if document.topologies is not None:
            update["topologies"] = tuple(
                t.model_copy(update={"fanout": fanout}) for t in document.topologies
            )
        return Workload(replace(self.inputs, document=document.model_copy(update=update)))

    def with_machines(self, machines: Mapping[str, int] | None) -> Inputs:
        """The files with a cluster of so many machines of each catalog type; None: as they are."""
        if machines is None:
            return self.inputs
        nodes = {
            f"{kind}-{i}": self._node(kind)
            for kind, count in machines.items()
            for i in range(1, count + 1)
        }
        return replace(
            self.inputs,
            document=self.inputs.document.model_copy(update={"cluster": Cluster(nodes=nodes)}),
        )


def with_components(document: Document, known: Mapping[str, Component]) -> dict[str, Any]:
    """An update of the document that puts these components in place of its own."""
    if document.topology is not None:
        components = {
            name: known.get(name, spec) for name, spec in document.topology.components.items()
        }
        return {"topology": document.topology.model_copy(update={"components": components})}
    changed = [
        t.model_copy(
            update={
                "components": {
                    n: known.get(f"{t.name}/{n}", spec) for n, spec in t.components.items()
                }
            }
        )
        for t in document.topologies or ()
    ]
    return {"topologies": tuple(changed) or None}


def _components(inputs: Inputs, document: Document) -> list[NamedComponent]:
    return components_of(replace(inputs, document=document), {})[1]


def _owner(task: str) -> str:
    return task.rpartition(".")[0]


def _totals(problem: Problem) -> tuple[MeasuredStream, ...]:
    """What flows between components, as if it had been measured."""
    rows = [
        {
            "from": problem.components[s.source],
            "to": problem.components[s.target],
            "stream": s.name,
            "tuples_per_s": s.tuples_per_s,
            **({"bytes": s.bytes} if s.bytes == s.bytes else {}),
        }
        for s in problem.streams
    ]
    return tuple(MeasuredStream.model_validate(row) for row in rows)

"""How things are in a simulated world: who is up, which keys are hot, what tuples truly cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.errors import InvalidInput
from headrace.model.build import build
from headrace.model.cluster import nodes_of
from headrace.model.components import components_of
from headrace.model.document import Cluster, Component, Document, MeasuredStream
from headrace.model.problem import Problem
from headrace.model.read import Inputs
from headrace.model.simulation_sections import Event
from headrace.model.workload import Workload, with_components


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key that gets more than the others: where it is among all keys, and its share of tuples."""

    position: float  # from 0 to 1
    share: float


@dataclass(frozen=True)
class Truth:
    """The files, and what of them is otherwise."""

    inputs: Inputs
    # Component -> what its tuples truly cost, as a factor of what the files say; absent: 1.
    cost: Mapping[str, float] = field(default_factory=dict[str, float])
    down: frozenset[str] = frozenset()
    hot: Mapping[str, HotKey] = field(default_factory=dict[str, HotKey])  # by component
    machines: Mapping[str, int] | None = None  # rented

    def with_machines(self, machines: Mapping[str, int]) -> Truth:
        """The same on other rented machines."""
        return replace(self, machines=dict(machines))

    def after(self, event: Event, problem: Problem) -> Truth:
        """How things are after an event; `problem` has the counts of the running plan."""
        if event.lose is not None:
            return replace(self, down=self.down | {event.lose})
        if event.join is not None:
            return replace(self, down=self.down - {event.join})
        if event.cost is not None:
            return replace(self, cost={**self.cost, event.cost: event.factor})
        assert event.hot is not None
        component, _, number = event.hot.rpartition(".")
        tasks = int(problem.tasks[problem.components.index(component)])
        key = HotKey((min(int(number), tasks) - 0.5) / tasks, event.share)
        return replace(self, hot={**self.hot, component: key})

    def problem(
        self, tasks: Mapping[str, int], *, costs: Mapping[str, float] | None = None
    ) -> Problem:
        """The problem with these counts, at the rates of the files."""
        document = self.document(tasks, costs=costs)
        return build(replace(self.inputs, document=document), tasks=tasks)

    def document(
        self, tasks: Mapping[str, int], *, costs: Mapping[str, float] | None = None
    ) -> Document:
        """The files as things are; with `costs` as somebody thinks that they are."""
        inputs = Workload(self.inputs).with_machines(self.machines)
        document = with_cost_factors(inputs, self.cost if costs is None else costs)
        up = {
            name: node
            for name, node in nodes_of(replace(inputs, document=document)).items()
            if name not in self.down
        }
        if not up:
            raise InvalidInput("every node is lost")
        cluster = document.cluster or Cluster(nodes={})
        update: dict[str, Any] = {"cluster": cluster.model_copy(update={"nodes": up})}
        if self.hot:
            # Shares are of the tasks there are now, so those are what the file has to say.
            update |= with_components(document, self._components(document, tasks))
            update["streams"] = self._streams(document, tasks)
        return document.model_copy(update=update)

    def _components(self, document: Document, tasks: Mapping[str, int]) -> dict[str, Component]:
        """The components with these counts, and the same CPU in all."""
        found: dict[str, Component] = {}
        for c in components_of(replace(self.inputs, document=document), {})[1]:
            count = tasks[c.name]
            cpu = None if c.spec.cpu is None else c.spec.cpu * c.spec.tasks / count
            found[c.name] = c.spec.model_copy(update={"tasks": count, "cpu": cpu})
        return found

    def _streams(self, document: Document, tasks: Mapping[str, int]) -> tuple[MeasuredStream, ...]:
        """What was measured of streams, with the shares of hot keys."""
        given = list(document.streams or ())
        named = components_of(replace(self.inputs, document=document), {})[1]
        for component in named:
            key = self.hot.get(component.name)
            count = tasks[component.name]
            if key is None or count < 2:
                continue
            rest = (1 - key.share) / (count - 1)
            shares = [rest] * count
            shares[int(key.position * count)] = key.share
            prefix = component.name.rpartition("/")[0]
            for source, streams in component.spec.inputs.items():
                if any(stream.grouping == "fields" for stream in streams):
                    full = f"{prefix}/{source}" if prefix else source
                    row = {"from": full, "to": component.name, "shares": shares}
                    given.append(MeasuredStream.model_validate(row))
        return tuple(given)


def with_cost_factors(inputs: Inputs, factors: Mapping[str, float]) -> Document:
    """The files with the CPU of components multiplied."""
    document = inputs.document
    if all(factor == 1.0 for factor in factors.values()):
        return document
    known: dict[str, Component] = {
        c.name: c.spec.model_copy(update={"cpu": c.spec.cpu * factors.get(c.name, 1.0)})
        for c in components_of(inputs, {})[1]
        if c.spec.cpu is not None
    }
    update: dict[str, Any] = with_components(document, known) if known else {}
    if document.profile is not None:
        update["profile"] = {
            name: {
                kind: cost
                if cost.cpu_ms is None
                else cost.model_copy(update={"cpu_ms": cost.cpu_ms * factors.get(name, 1.0)})
                for kind, cost in costs.items()
            }
            for name, costs in document.profile.items()
        }
    return document.model_copy(update=update)

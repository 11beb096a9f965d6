"""A workload made ready for sizing: every component has a cost per tuple, or the file is refused.

A component that states `cpu` per task does so for the counts of its file. With other counts its
tasks handle other shares, so the cost is turned into milliseconds per tuple first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from headrace.errors import Infeasible, InvalidInput, Unsupported
from headrace.model.arrays import TOLERANCE, Bools, Floats, Ints
from headrace.model.components import NamedComponent, components_of
from headrace.model.document import Component, Cost
from headrace.model.problem import CPU, THREAD, Problem
from headrace.model.streams import DataFlow
from headrace.model.workload import Workload, with_components

UNLIMITED = 10**9  # tasks


@dataclass(frozen=True, eq=False)
class Load:
    """What a workload costs on some kinds of machines.

    `problem` has one task of each component. C components, N nodes.
    """

    problem: Problem
    workload: Workload
    most: Ints  # [C] most tasks of a component
    spout_rate: float  # tuples/s of all spouts at the file's rates; planned rates are factors of it

    @cached_property
    def by_rate(self) -> Floats:
        """CPU points of a whole component at the file's rates on every node, [C, N]."""
        return self.problem.demand[:, [CPU]] + self.problem.cpu_rate[:, self.problem.node_type]

    @cached_property
    def fixed(self) -> Floats:
        """CPU points of one task at no load on every node, [C, N]."""
        return self.problem.cpu_fixed[:, self.problem.node_type]

    @cached_property
    def thread(self) -> Floats:
        """The most points a task can use on every node, [N]."""
        return np.minimum(THREAD, self.problem.free[:, CPU])

    @cached_property
    def fits(self) -> Bools:
        """Whether one task, at no load, fits an empty node it may use, [C, N]."""
        problem = self.problem
        fits = np.tile(problem.free_slots > 0, (len(problem.components), 1))
        if problem.allowed is not None:
            fits &= problem.allowed
        fits &= (problem.demand[:, None, 1:] <= problem.free[None, :, 1:] * (1 + TOLERANCE)).all(
            axis=2
        )
        memory = problem.demand[:, 1]
        fits &= (memory <= problem.worker_heap_mb[problem.topology] * (1 + TOLERANCE))[:, None]
        idle = (self.by_rate == 0) & (self.fixed <= self.thread * (1 + TOLERANCE))
        return fits & (idle | (self.fixed < self.thread))

    @property
    def copied(self) -> bool:
        """Whether rates depend on counts: a stream goes to every task, or is divided by tasks."""
        return self.workload.flow.depends

    @property
    def least_at_one_each(self) -> bool:
        """Whether no counts mean less load than one task each: nothing is divided by tasks."""
        return not any(link.sharing for link in self.workload.flow.links)

    def at(self, tasks: Mapping[str, int]) -> Load:
        """The load at other counts; it differs only where rates depend on them."""
        if not self.copied:
            return self
        count = np.array([tasks[name] for name in self.problem.components], dtype=np.int64)
        rate, _ = self.workload.flow.rates(count)
        own = self.problem.rate
        more = np.divide(rate, own, out=np.ones_like(rate), where=own > 0)
        cpu_rate = self.problem.cpu_rate * more[:, None]
        return replace(self, problem=replace(self.problem, rate=rate, cpu_rate=cpu_rate))

    def refuse_what_fits_nowhere(self) -> None:
        """Raise for the first component of which no node can take even one idle task."""
        problem = self.problem
        for c in np.flatnonzero(~self.fits.any(axis=1)).tolist():
            name = problem.components[c]
            for k in range(1, len(problem.resources)):
                need, largest = float(problem.demand[c, k]), float(problem.free[:, k].max())
                if need > largest * (1 + TOLERANCE):
                    resource = problem.resources[k]
                    raise Infeasible(
                        f"no machine fits a task of `{name}`: it needs {need:g} {resource}, "
                        f"the largest has {largest:g}",
                        task=f"{name}.1",
                        resource=resource,
                        needed=need,
                        available=largest,
                        fix=f"add a machine with {need:g} {resource}",
                    )
            need, largest = float(self.fixed[c].min()), float(self.thread.max())
            raise Infeasible(
                f"no machine that `{name}` may use has room for one of its tasks, "
                f"which takes {need:g} cpu at no load; a task can use {largest:g}",
                task=f"{name}.1",
                resource="cpu",
                needed=need,
                available=largest,
                fix="add a larger machine, or allow more nodes",
            )


def load_of(workload: Workload, *, catalog: bool) -> Load:
    """The load of a sizable workload on its cluster, or on one machine of each catalog type."""
    one_each = {c.name: 1 for c in workload.components}
    problem = workload.problem(one_each, dict.fromkeys(workload.catalog, 1) if catalog else None)
    spout_rate = float(problem.rate[problem.spout].sum())
    if not spout_rate > 0:
        raise InvalidInput("no spout emits anything: give at least one spout a `rate` above 0")
    if not (problem.cpu_rate.any() or problem.demand[:, CPU].any()):
        raise InvalidInput(
            "no component costs CPU per tuple, so nothing limits the rate: give a `profile`"
        )
    costs_nothing = ~(problem.demand[:, [CPU]] + problem.cpu_rate).any(axis=1)
    most = np.where(costs_nothing, 1, [_most(c) for c in workload.components])
    return Load(problem, workload, most.astype(np.int64), spout_rate)


def _most(component: NamedComponent) -> int:
    """The most tasks that are of use: one where every input goes to one task, or to all of them."""
    spec = component.spec
    groupings = {entry.grouping for entries in spec.inputs.values() for entry in entries}
    limit = UNLIMITED if spec.max_tasks is None else spec.max_tasks
    return 1 if groupings and groupings <= {"global", "all"} else limit


def sizable(workload: Workload, *, catalog: bool) -> Workload:
    """The workload with a cost per tuple for every component.

    Where machines are rented (`catalog`), only with the types that every component is profiled on.
    """
    document = workload.inputs.document
    if document.tasks is not None:
        raise Unsupported(
            "a bare task graph has no components whose tasks could be counted",
            fix="describe it as a topology",
        )
    profile = {name: dict(costs) for name, costs in (document.profile or {}).items()}
    known: dict[str, Component] = {}
    for c, per_tuple_ms in zip(workload.components, _per_tuple_ms(workload), strict=True):
        if any(
            cost.cpu_ms is not None or cost.cpu_fixed for cost in profile.get(c.name, {}).values()
        ):
            continue
        if c.spec.cpu is None and not c.spec.spout:
            only = (
                "has only thread points, which are for lsa and mba"
                if profile.get(c.name)
                else "has neither a profile nor `cpu`"
            )
            raise workload.inputs.invalid(
                c.path,
                f"`{c.name}` {only}, so what a tuple costs is not known; add it to `profile`",
            )
        if per_tuple_ms is not None:
            profile[c.name] = {"*": Cost(cpu_ms=per_tuple_ms)}
            known[c.name] = c.spec.model_copy(update={"cpu": None})
    update: dict[str, Any] = {
        "profile": profile or None,
        **with_components(document, known),
        "plan": None,
    }
    if catalog:
        update |= {"catalog": _usable(workload, profile), "cluster": None, "inventory": None}
    return Workload(replace(workload.inputs, document=document.model_copy(update=update)))


def _per_tuple_ms(workload: Workload) -> list[float | None]:
    """What `cpu` says as milliseconds per tuple; None where nothing is said or no tuple passes."""
    topologies, components = components_of(workload.inputs, {})
    rate = DataFlow.of(workload.inputs, topologies, components, []).rate
    return [
        float(c.spec.cpu * c.spec.tasks * 10 / r) if c.spec.cpu and r > 0 else None
        for c, r in zip(components, rate, strict=True)
    ]


def unused_type_notes(workload: Workload) -> tuple[str, ...]:
    """A line for every type of the catalog that some component's profile lacks."""
    profile = workload.inputs.document.profile or {}
    return tuple(
        f"catalog: {kind} left out, since `{name}` has no profile for it"
        for kind in workload.catalog
        for name in [
            name for name, costs in profile.items() if "*" not in costs and kind not in costs
        ][:1]
    )


def _usable(workload: Workload, profile: dict[str, dict[str, Cost]]) -> dict[str, Any]:
    """The types of the catalog on which every profiled component has a cost, each with a price."""
    catalog = workload.catalog
    inputs = workload.inputs
    if not catalog:
        raise InvalidInput(
            "no catalog: give a file with `catalog`, the machine types that can be rented"
        )
    for kind, machine in catalog.items():
        if not machine.price > 0:
            raise inputs.invalid(
                ("catalog", kind, "price"), f"the price is {machine.price:g}; it must be above 0"
            )
    for c in workload.components:
        if c.spec.nodes is not None:
            raise Unsupported(
                f"`{c.name}` is pinned to nodes, but the machines are still to be chosen",
                fix="take `nodes` away, or use `size`",
            )
        costs = profile.get(c.name)
        if costs and "*" not in costs and not any(kind in costs for kind in catalog):
            had = ", ".join(f"`{kind}`" for kind in costs)
            raise inputs.invalid(
                ("profile", c.name),
                f"has {had}, but no machine type of the catalog ({', '.join(catalog)})",
            )
    usable = {
        kind: machine
        for kind, machine in catalog.items()
        if all("*" in costs or kind in costs for costs in profile.values())
    }
    if not usable:
        raise InvalidInput(
            "every machine type of the catalog lacks the profile of some component",
            fix="profile each component on one type at least",
        )
    return usable

"""Several topologies on one cluster, as one world: one problem, one plan, and a history for each.

Components are called topology/component in the common problem, as files have them. A decision is
kept twice: as it was taken, in a folder that all share, and for each topology in its own folder,
with its own plan and its own figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headrace.control import history
from headrace.control.draining import drained_nodes
from headrace.control.history import Entry, find_plan
from headrace.control.loop import figures
from headrace.control.on_spark import (
    Measured,
    OnSpark,
    assignment_from_placement,
    inputs_on_spark,
    placement_from_plan,
    with_judge_options,
    with_measured_pairs,
)
from headrace.control.planning import View, fingerprint_of, judge_plan
from headrace.errors import Infeasible, InvalidInput
from headrace.model.build import build
from headrace.model.document import FORMAT, Node
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.read import Inputs, validated
from headrace.model.topology import Topology
from headrace.model.workload import Workload
from headrace.planner import Plan, place
from headrace.run.placement import Place, Placement

Section = Mapping[str, Any]  # a plan's counts and places


def join_inputs(parts: Mapping[str, Inputs]) -> Inputs:
    """The files of single topologies on the same cluster as one; what they measured is kept."""
    content: dict[str, Any] = {"format": FORMAT, "topologies": [], "profile": {}, "streams": []}
    for name, inputs in parts.items():
        document = inputs.document
        dumped = document.model_dump(mode="json", by_alias=True, exclude_unset=True)
        content["topologies"].append(dumped["topology"])
        content["cluster"] = dumped["cluster"]
        for component, costs in dumped.get("profile", {}).items():
            content["profile"][f"{name}/{component}"] = costs
        for stream in dumped.get("streams", ()):
            ends = {end: f"{name}/{stream[end]}" for end in ("from", "to")}
            content["streams"].append({**stream, **ends})
    return validated({key: value for key, value in content.items() if value}, {})


def join_placements(parts: Mapping[str, Placement], name: str = "plan") -> Placement:
    """The plans of single topologies as one."""
    tasks: dict[str, int] = {}
    places: dict[tuple[str, int], Place] = {}
    nodes: dict[str, Node] = {}
    for topology, own in parts.items():
        tasks |= {f"{topology}/{component}": n for component, n in own.tasks.items()}
        places |= {(f"{topology}/{c}", k): place for (c, k), place in own.places.items()}
        nodes |= own.nodes
    return Placement(name, tasks, places, nodes)


def split_placement(joined: Placement, topologies: Sequence[str]) -> dict[str, Placement]:
    """The share of each topology in a common plan."""
    found: dict[str, Placement] = {}
    for name in topologies:
        own = f"{name}/"
        tasks = {c[len(own) :]: n for c, n in joined.tasks.items() if c.startswith(own)}
        places = {(c[len(own) :], k): p for (c, k), p in joined.places.items() if c.startswith(own)}
        found[name] = Placement(joined.name, tasks, places, joined.nodes)
    return found


def plan_first_together(
    topologies: Sequence[Topology], nodes: Mapping[str, Node], by: str
) -> dict[str, Placement]:
    """A scheduler's plan for topologies of which nothing was measured yet; it bears its name."""
    single = {t.name: inputs_on_spark(t, nodes, {}, None) for t in topologies}
    planned = place(build(join_inputs(single)), by)
    for name in planned.report.unplaced:
        raise Infeasible(
            f"there is no room for topology {name} beside those that come before it",
            resource="nodes",
            fix="run it elsewhere, or give the cluster more nodes",
        )
    return split_placement(placement_from_plan(planned, by, nodes), list(single))


@dataclass(slots=True)
class Together:
    """Topologies that run beside each other, as the loop sees them."""

    parts: Sequence[OnSpark]
    store: Path  # of what was decided for all
    clock: Callable[[], float] = time.time
    over: set[str] = field(default_factory=set[str])  # topologies that have ended
    _seen: dict[str, Measured] = field(default_factory=dict[str, Measured])
    _problem: Problem | None = None
    _planned: Plan | None = None  # since the last look

    @property
    def running(self) -> list[OnSpark]:
        return [part for part in self.parts if part.topology.name not in self.over]

    def now(self) -> float:
        return self.clock()

    def look(self) -> View:
        self._planned = self._problem = None
        parts = self.running
        if not parts:
            raise InvalidInput("all topologies have ended")
        self._seen = {part.topology.name: part.measure() for part in parts}
        for name, seen in self._seen.items():
            if seen.running is None:
                raise InvalidInput(f"topology {name} runs without a plan")
        inputs = join_inputs(
            {name: with_judge_options(seen.inputs, seen.timed) for name, seen in self._seen.items()}
        )
        placed = {name: seen.running for name, seen in self._seen.items() if seen.running}
        problem = build(inputs)
        current = assignment_from_placement(problem, join_placements(placed))
        problem = replace(problem, current=current)
        if any(part.pairs for part in parts):
            rows = [
                (f"{name}/{row[0]}", f"{name}/{row[1]}", *row[2:])
                for name, seen in self._seen.items()
                for row in seen.traffic
            ]
            problem = with_measured_pairs(problem, rows)
        self._problem = problem
        stores = [self.store, *(part.store for part in parts)]
        drained = frozenset[str]().union(*(drained_nodes(store) for store in stores))
        return View(problem, Workload(inputs), self._crossing(), drained=drained)

    def _crossing(self) -> dict[str, float]:
        """What crosses in all; batches of several topologies have no time in common."""
        every = [seen.measured for seen in self._seen.values()]
        names = ("inter_node_traffic", "inter_worker_traffic")
        return {n: sum(m[n] for m in every) for n in names if all(n in m for m in every)}

    def history(self) -> Sequence[Entry]:
        return history.entries(self.store)

    def keep(self, entry: Entry) -> None:
        before = self.history()
        history.keep(self.store, entry)
        for part in self.running:
            history.keep(part.store, self._own_entry(part, entry, before))

    def apply(self, planned: Plan) -> None:
        parts = {part.topology.name: part for part in self.running}
        number = 1 + sum(entry.applied for entry in self.history())
        joined = placement_from_plan(planned, f"plan-{number}", self.parts[0].nodes())
        shares = split_placement(joined, list(parts))
        for name, part in parts.items():  # all or none
            part.plan.check(shares[name])
        for name, part in parts.items():
            part.plan.set(shares[name])
        self._planned = planned

    def wait(self, seconds: float) -> bool:
        time.sleep(seconds)
        return True

    def _own_entry(self, part: OnSpark, entry: Entry, before: Sequence[Entry]) -> Entry:
        """A decision as one topology has it: its own plan, what moves of it, its own figures."""
        name = part.topology.name
        known = [*before, entry]
        sections = {
            which: own_section(find_plan(known, getattr(entry, which)), name)
            for which in ("left", "plan")
        }
        left, plan = (fingerprint_of(section) if section else "" for section in sections.values())
        own_before = history.entries(part.store)
        fresh = {
            fingerprint_of(section): section
            for section in sections.values()
            if section and find_plan(own_before, fingerprint_of(section)) is None
        }
        seen, moves = self._seen.get(name), left != plan
        others = ", ".join(p.topology.name for p in self.running if p is not part)
        beside = f" (one decision, with {others})" if others else ""
        return replace(
            entry,
            move=entry.move and (moves or not entry.applied),
            applied=entry.applied and moves,
            reason=entry.reason + beside,
            plan=plan,
            left=left,
            plans=fresh,
            moved_tasks=count_moved(sections["left"], sections["plan"]),
            measured={} if seen is None else dict(seen.measured),
            rate_per_s=0.0 if seen is None else seen.rate_per_s,
            tasks=_strip(entry.tasks, name),
            before=self._figures(name, self._problem, None),
            after=self._figures(name, self._planned and self._planned.problem, self._planned),
        )

    def _figures(self, name: str, problem: Problem | None, planned: Plan | None) -> dict[str, Any]:
        """What a plan is predicted to do for one topology."""
        plan = planned.assignment if planned is not None else problem and problem.current
        if problem is None or plan is None or (plan.node == UNPLACED).any():
            return {}
        which = problem.topologies.index(name)
        here = problem.topology[problem.component_of] == which
        alone = problem.only(which, problem.taken, problem.slot_taken)
        own = Assignment(plan.node[here], plan.worker[here])
        found = figures(judge_plan(alone, own, "traffic"))
        del found["batch_seconds"]  # batches are timed one topology at a time
        return found


def own_section(section: Section | None, topology: str) -> dict[str, Any] | None:
    """A topology's share of a plan that was kept."""
    if section is None:
        return None
    return {key: _strip(section[key], topology) for key in section}


def _strip(named: Mapping[str, Any], topology: str) -> dict[str, Any]:
    """The entries of a topology's components, under their own names."""
    own = f"{topology}/"
    return {name[len(own) :]: value for name, value in named.items() if name.startswith(own)}


def count_moved(left: Section | None, plan: Section | None) -> int:
    """Tasks that run on another node than before, or are new."""
    before, after = ({} if s is None else _nodes_of_tasks(s) for s in (left, plan))
    return sum(before.get(task) != node for task, node in after.items())


def _nodes_of_tasks(section: Section) -> dict[tuple[str, int], str]:
    placement: Mapping[str, Sequence[tuple[str, int, int, int]]] = section["placement"]
    return {
        (component, number): node
        for component, runs in placement.items()
        for node, _, first, last in runs
        for number in range(first, last + 1)
    }

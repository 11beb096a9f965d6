"""The loop's world on Storm: the state that Nimbus sends and telemetry in, plans for Nimbus out.

Everything is kept in the files of a store, so that a service that starts again goes on:

    state.json       the cluster as Nimbus last described it (written by answering.py)
    plans.json       the plans in force, as Nimbus gets them
    measured.json    what was last measured, for the time after a change, and what plans cost
    telemetry/       samples of Storm's workers
    decisions.jsonl  every decision with its reason
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headrace.control import history
from headrace.control.draining import drained_nodes
from headrace.control.history import Entry
from headrace.control.planning import View
from headrace.errors import HeadraceError, InvalidInput
from headrace.model.build import build
from headrace.model.document import Node
from headrace.model.files import write_whole
from headrace.model.problem import UNPLACED
from headrace.model.read import validated
from headrace.planner import Plan
from headrace.storm.answering import PLANS, STATE
from headrace.storm.collect import collect
from headrace.storm.costs import learn_costs
from headrace.storm.state import (
    PROTOCOL,
    State,
    current_plan,
    describe,
    executor_names,
    misplaced,
    plans_for_nimbus,
    read_state,
)

MEASURED = "measured.json"
TELEMETRY = "telemetry"
RESTART_S = 8.5  # from a new assignment until a worker runs again: 8 to 9 s were measured
SETTLE_S = 30.0  # after a change: workers start again, and figures come 14 to 30 s later
WINDOWS = 3  # that are needed after a change
LOOKS_S = 0.25  # between two looks at what Nimbus sent
STALE_S = 60.0  # a state older than that is not planned on: Nimbus is away


@dataclass(eq=False)
class OnStorm:
    """A Storm cluster as the loop sees it."""

    store: Path
    known: Mapping[str, Node] = field(default_factory=dict[str, Node])  # nodes, from files
    rest: Mapping[str, Any] = field(default_factory=dict[str, Any])  # other sections of the files
    source: Path | None = None  # where Storm's workers write telemetry
    window_s: int = 10
    acks: bool = True  # plan with what ackers send and get
    clock: Callable[[], float] = time.time
    stop: threading.Event = field(default_factory=threading.Event)
    seen: object = None  # the shape of the state that was last planned for
    gathered_s: float = 0.0

    def now(self) -> float:
        return self.clock()

    def state(self) -> State | None:
        """The newest state; None before Nimbus sent one."""
        file = self.store / STATE
        if not file.exists():
            return None
        try:
            return read_state(json.loads(file.read_text(encoding="utf-8")))
        except ValueError:
            return None

    def plans(self) -> dict[str, Any]:
        """The plans in force, by topology's id."""
        try:
            return json.loads((self.store / PLANS).read_text())["plans"]
        except (OSError, ValueError, KeyError):
            return {}

    def needs_plan(self, state: State) -> bool:
        """Whether an executor has no place, and the plan in force is not one for it."""
        plans, nodes = self.plans(), state.nodes
        for running in state.topologies:
            places = plans.get(running.id, {}).get("assignment", {})
            if {e.name for e in running.executors} != set(places):
                return True
            if any(place["node"] not in nodes for place in places.values()):
                return True
        return False

    def gather(self) -> None:
        """Take over what Storm's workers have written."""
        state = self.state()
        self.gathered_s = self.now()
        if self.source is not None and state is not None:
            collect(self.source, self.store / TELEMETRY, executor_names(state), self.now())

    def look(self) -> View:
        state = self.state()
        if state is None:
            raise InvalidInput("Nimbus has not sent the state of its cluster yet")
        self.seen = state.shape
        if self.now() - state.at_s > STALE_S:
            raise InvalidInput(f"Nimbus was last heard of {self.now() - state.at_s:.0f} s ago")
        if not state.topologies:
            raise InvalidInput("no topology runs on the cluster")
        if not state.nodes:
            raise InvalidInput("the cluster has no supervisor with a slot")
        fresh, measured = self.measure(state)
        if not fresh and not self.needs_plan(state):
            raise InvalidInput("there are not enough measurements since the last change")
        content = describe(state, self.known, measured, self.rest, acks=self.acks)
        inputs = validated(content, {})
        problem = build(inputs)
        problem = replace(problem, current=current_plan(state, problem))
        return View(problem, None, self.figures(measured, state), drained=drained_nodes(self.store))

    def figures(self, measured: Mapping[str, Any], state: State) -> dict[str, float]:
        """What the running plan was measured to do: tuples/s between nodes."""
        if misplaced(state, self.plans()) or not measured.get("traffic"):
            return {}
        several = len(state.topologies) > 1
        node: dict[str, str] = {}
        for running in state.topologies:
            for executor in running.executors:
                place = state.place_of(executor)
                name = f"{running.name}/{executor.name}" if several else executor.name
                node[name] = place[0] if place else ""
        crossing = sum(
            row[2]
            for row in measured["traffic"]
            if row[0] in node and row[1] in node and node[row[0]] != node[row[1]]
        )
        return {"inter_node_traffic": crossing}

    def measure(self, state: State) -> tuple[bool, dict[str, Any]]:
        """What telemetry says, and whether it is of the time since the last change."""
        from headrace.observe.pipeline import Question
        from headrace.observe.small import observe_small

        changed = max((e.at_s for e in self.history() if e.applied), default=0.0)
        since_ms = (changed + SETTLE_S) * 1000
        folder = self.store / TELEMETRY
        new = [f for f in (folder / "tasks").glob("*.parquet") if int(f.name[:15]) > since_ms]
        if len(new) < WINDOWS + 1:
            return False, self.measured_before()
        names = tuple(running.name for running in state.topologies)
        question = Question(self.window_s, "average", names, prefixed=len(names) > 1)
        try:
            sections = dict(observe_small(folder, question, newest=len(new)).sections)
        except HeadraceError:
            return False, self.measured_before()
        kept = {key: sections[key] for key in ("profile", "streams", "traffic") if key in sections}
        kept = learn_costs(folder, state, kept, self.measured_before(), since_ms)
        write_whole(self.store / MEASURED, json.dumps(kept))
        return True, kept

    def measured_before(self) -> dict[str, Any]:
        """What was measured before the last change."""
        try:
            return json.loads((self.store / MEASURED).read_text())
        except (OSError, ValueError):
            return {}

    def history(self) -> Sequence[Entry]:
        return history.entries(self.store)

    def keep(self, entry: Entry) -> None:
        if entry.cause == "lost" and (state := self.state()) is not None:
            new = [r.name for r in state.topologies if len(r.homeless) == len(r.executors)]
            if new:
                words = f"{', '.join(new)} has no place yet: {int(entry.numbers['homeless'])}"
                entry = replace(entry, reason=f"{words} executors get one")
        history.keep(self.store, entry)

    def apply(self, planned: Plan) -> None:
        """Give Nimbus a plan: it takes it at its next look, some seconds later."""
        state = self.state()
        if state is None or (planned.assignment.node == UNPLACED).any():
            raise InvalidInput("the plan does not place every executor")
        number = 1 + sum(entry.applied for entry in self.history())
        made = plans_for_nimbus(state, planned.problem, planned.assignment, f"plan-{number}")
        before = self.plans()
        for id, plan in made.items():  # what does not change keeps its name
            if before.get(id, {}).get("assignment") == plan["assignment"]:
                made[id] = before[id]
        self.write_plans(made, {})

    def refuse(self, reason: str) -> None:
        """Say why a topology that needs a plan gets none, so that the fallback takes it at once."""
        state = self.state()
        plans = self.plans()
        waiting = [] if state is None else [r.id for r in state.topologies if r.id not in plans]
        self.write_plans(plans, dict.fromkeys(waiting, reason))

    def write_plans(self, plans: Mapping[str, Any], refusals: Mapping[str, str]) -> None:
        content = {"protocol": PROTOCOL, "plans": plans, "refusals": refusals}
        write_whole(self.store / PLANS, json.dumps(content), durable=True)

    def wait(self, seconds: float) -> bool:
        """Wait for the next interval, or until an executor needs a place; False ends the loop."""
        end = self.now() + seconds
        while self.now() < end:
            if self.stop.wait(LOOKS_S):
                return False
            if self.now() - self.gathered_s >= self.window_s:
                self.gather()
            state = self.state()
            # What was planned for in vain is tried again at the interval, not at once.
            if state is not None and state.shape != self.seen and self.needs_plan(state):
                return True
        return not self.stop.is_set()

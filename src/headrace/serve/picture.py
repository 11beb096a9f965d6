"""A plan of a run as the reports draw it, and two plans side by side."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from headrace.control.planning import read_plan
from headrace.errors import HeadraceError, InvalidInput
from headrace.judge.diff import diff
from headrace.judge.report import judge
from headrace.model.build import build
from headrace.model.problem import Problem
from headrace.model.read import validated
from headrace.page.change import before_and_after
from headrace.page.live import draw_cards, live_picture
from headrace.planner import Plan
from headrace.serve.runs import Run

Section = Mapping[str, Any]
MOST_PICTURES = 32
RATE = 12_345.0  # of a spout whose file says none: drawings leave room for what is measured


def problem_of(document: Mapping[str, Any], section: Section) -> Problem:
    """A run's topology with the counts of a plan, on all nodes that either knows."""
    content = copy.deepcopy(dict(document))
    components = content.get("topology", {}).get("components", {})
    for name, facts in components.items():
        facts["tasks"] = section["tasks"].get(name, facts.get("tasks", 1))
        if facts.get("spout"):
            facts.setdefault("rate", RATE)
    nodes: dict[str, Any] = content.setdefault("cluster", {}).setdefault("nodes", {})
    for runs in section["placement"].values():
        for node, worker, *_ in runs:
            facts = nodes.setdefault(node, {})
            facts["slots"] = max(int(facts.get("slots") or 1), worker + 1)
    return build(validated(content, {}))


def plan_of(run: Run, section: Section, name: str) -> Plan:
    """A plan of a run, judged at the rates that its file says."""
    problem = problem_of(run.document, section)
    assignment = read_plan(problem, section)
    report = judge(problem, assignment, bounded=False)
    return Plan(name, "traffic", 0, 0.0, problem, assignment, report)


class Pictures:
    """Drawings of plans, kept as long as they are asked for."""

    def __init__(self) -> None:
        self._plans: dict[tuple[str, str], Plan] = {}
        self._drawn: dict[tuple[str, str], dict[str, Any]] = {}

    def plan(self, run: Run, name: str) -> Plan:
        """A plan of a run by its name, or by its fingerprint in a decision."""
        key = (run.id, name)
        if key not in self._plans:
            section = find_section(run, name)
            if section is None:
                raise InvalidInput(f"the run has no plan `{name}`")
            _make_room(self._plans)
            self._plans[key] = plan_of(run, section, name)
        return self._plans[key]

    def draw(self, run: Run, name: str) -> dict[str, Any]:
        """The drawings of a plan."""
        key = (run.id, name)
        if key not in self._drawn:
            plan = self.plan(run, name)
            _make_room(self._drawn)
            self._drawn[key] = {"plan": name, **live_picture(plan.problem, plan.assignment)}
        return self._drawn[key]

    def cards(self, run: Run, name: str, rack: str, most: int) -> str:
        """The cards of a rack's nodes."""
        plan = self.plan(run, name)
        problem = plan.problem
        if rack not in problem.racks:
            raise InvalidInput(f"there is no rack `{rack}`")
        number = problem.racks.index(rack)
        members = [n for n in range(len(problem.nodes)) if problem.rack[n] == number]
        return draw_cards(problem, plan.assignment, members[:most])

    def change(self, run: Run, old: str, new: str) -> dict[str, Any]:
        """What moves from one plan to another, drawn and as data."""
        a, b = self.plan(run, old), self.plan(run, new)
        found = diff((a.problem, a.assignment, a.report), (b.problem, b.assignment, b.report))
        html = before_and_after(a, b, "What would change", ("now", "then"))
        return {"html": html, "change": found.to_json()}


def find_section(run: Run, name: str) -> Section | None:
    """Counts and places of a plan, by its name in the journal or its fingerprint."""
    if name in run.plans:
        return run.plans[name]
    return next((e.plans[name] for e in run.decisions if name in e.plans), None)


def current_plan(run: Run) -> str:
    """The name of the plan in force."""
    if not run.changes:
        raise HeadraceError("no plan is in force: the run places its tasks anywhere")
    return run.changes[-1][1]


def _make_room(kept: dict[Any, Any]) -> None:
    while len(kept) >= MOST_PICTURES:
        kept.pop(next(iter(kept)))

"""The loop in a simulated world: rates double, a key gets hot, a node is lost, nothing happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.checks.problems import Content, problem_of
from headrace.control.history import Entry, entries, keep
from headrace.control.loop import decide, describe, run, step
from headrace.control.planning import LoopSettings, View
from headrace.errors import InvalidInput
from headrace.judge.report import judge
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.move.change import carry_plan
from headrace.planner import Plan, place


def content(rate: float = 2000, lost: str = "", shares: Sequence[float] = ()) -> Content:
    components: Content = {
        "sentence": {"spout": True, "tasks": 2, "rate": rate, "bytes": 60},
        "split": {"tasks": 8, "inputs": {"sentence": "shuffle"}, "selectivity": 7, "bytes": 200},
        "count": {"tasks": 16, "inputs": {"split": "fields"}, "state_mb": 5},
    }
    large, small = {"cpu": 400, "cores": 4}, {"cpu": 100, "cores": 1}
    nodes = {
        f"n{i}": {**size, "slots": 2, "bandwidth_mbps": 25}
        for i, size in enumerate((large, large, small, small), 1)
    }
    document: Content = {
        "topology": {"name": "word-count", "components": components},
        "cluster": {"nodes": {name: facts for name, facts in nodes.items() if name != lost}},
        "profile": {
            "sentence": {"*": {"cpu_ms": 0.05}},
            "split": {"*": {"cpu_ms": 0.2}},
            "count": {"*": {"cpu_ms": 0.1}},
        },
    }
    if shares:
        document["streams"] = [{"from": "split", "to": "count", "shares": list(shares)}]
    return document


class Simulated:
    """A world whose measurements are set by the test; a plan takes effect at once."""

    def __init__(self, now: Content, store: Path, intervals: int = 1) -> None:
        self.content, self.store, self.left = now, store, intervals
        self.clock = 1000.0
        measured = problem_of(now)
        start = place(measured, "storm-even")
        assert start.assignment is not None
        self.running: tuple[Problem, Assignment] = (measured, start.assignment)

    def now(self) -> float:
        return self.clock

    def problem(self) -> Problem:
        new = problem_of(self.content)
        return replace(new, current=carry_plan(*self.running, new).plan)

    def look(self) -> View:
        return View(self.problem())

    def history(self) -> Sequence[Entry]:
        return entries(self.store)

    def keep(self, entry: Entry) -> None:
        keep(self.store, entry)

    def apply(self, planned: Plan) -> None:
        assert planned.assignment is not None
        self.running = (planned.problem, planned.assignment)

    def wait(self, seconds: float) -> bool:
        self.clock += seconds
        self.left -= 1
        return self.left > 0


SETTINGS = LoopSettings(objective="batch", interval_s=60, rule_options={"improve_percent": 5})


def settled(store: Path, **changes: Any) -> Simulated:
    """A world that has found its plan."""
    world = Simulated(content(**changes), store, intervals=4)
    run(world, SETTINGS)
    return world


def batch_of(world: Simulated) -> float:
    problem = world.problem()
    assert problem.current is not None
    seconds = judge(problem, problem.current, objective="batch", bounded=False).batch_seconds
    assert seconds is not None
    return seconds


def test_a_poor_plan_is_left_and_twenty_quiet_intervals_change_nothing(tmp_path: Path) -> None:
    world = settled(tmp_path)
    assert any(entry.applied for entry in world.history())
    before = len([entry for entry in world.history() if entry.applied])
    world.left = 20
    run(world, SETTINGS)
    assert len(world.history()) == 24
    assert len([entry for entry in world.history() if entry.applied]) == before
    assert all(entry.reason for entry in world.history())


@pytest.mark.parametrize(
    "change",
    [{"rate": 4000}, {"shares": [0.4, *[0.04] * 15]}],
    ids=["the rate doubles", "a key gets hot"],
)
def test_a_change_leads_to_a_plan_as_good_as_any_within_three_decisions(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    world = settled(tmp_path)
    world.content = content(**change)
    fresh = place(problem_of(world.content), "headrace", objective="batch").report
    assert fresh is not None
    assert fresh.batch_seconds is not None
    for _ in range(3):
        step(world, SETTINGS)
        world.wait(60)
    assert (
        batch_of(world) <= fresh.batch_seconds * 1.051
    )  # what is left is below what a move must gain


def test_a_lost_node_is_left_at_once_though_the_plan_is_young(tmp_path: Path) -> None:
    world = settled(tmp_path)
    assert (world.running[1].node == 0).any()
    world.content = content(lost="n1")
    entry = step(world, replace(SETTINGS, rule_options={"dwell_s": 1e9}))
    assert entry.applied
    assert "nodes that are gone" in entry.reason
    running = world.problem().current
    assert running is not None
    assert (running.node != UNPLACED).all()


def test_advice_is_kept_and_not_followed(tmp_path: Path) -> None:
    world = Simulated(content(), tmp_path)
    before = world.running[1]
    entry = step(world, replace(SETTINGS, advise=True))
    assert entry.move
    assert not entry.applied
    assert world.running[1] is before
    assert entries(tmp_path) == [entry]


def test_what_cannot_be_planned_is_a_decision_too(tmp_path: Path) -> None:
    world = Simulated(content(), tmp_path)
    world.content = content(rate=2_000_000)
    entry = step(world, SETTINGS)
    assert not entry.move
    assert entry.reason.startswith("nothing is moved: ")
    assert entries(tmp_path) == [entry]


def test_a_plan_that_is_refused_leaves_the_running_one_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Simulated(content(), tmp_path)

    def refuses(self: Simulated, planned: Plan) -> None:
        raise InvalidInput("node n2 has gone meanwhile")

    monkeypatch.setattr(Simulated, "apply", refuses)
    before = world.running[1]
    entry = step(world, SETTINGS)
    assert entry.reason == "nothing is moved: node n2 has gone meanwhile"
    assert not entry.applied
    assert world.running[1] is before
    assert world.history() == [entry]


def test_a_plan_is_needed() -> None:
    with pytest.raises(InvalidInput, match="the loop needs a running plan"):
        describe(View(problem_of(content())), [], 0.0)


def test_a_restart_reads_on_and_a_torn_line_is_left_out(tmp_path: Path) -> None:
    first, second = Entry(1.0, True, True, "a", plan="x"), Entry(2.0, False, False, "b", plan="x")
    keep(tmp_path, first)
    with (tmp_path / "decisions.jsonl").open("a") as lines:
        lines.write('{"at_s": 1.5, "mo')
    keep(tmp_path, second)
    assert entries(tmp_path) == [first, second]
    assert entries(tmp_path / "none") == []
    (tmp_path / "decisions.jsonl").write_text('{"at": 3}\n')
    with pytest.raises(InvalidInput, match="jsonl:1: not a decision"):
        entries(tmp_path)


def test_the_same_measurements_give_the_same_decision() -> None:
    world = Simulated(content(), Path("nowhere"))
    problem = world.problem()
    view = View(problem)
    start = describe(view, [], 0.0)
    (a, plan_a), (b, plan_b) = (decide(view, start, [], SETTINGS) for _ in range(2))
    assert a == b
    assert plan_a is not None
    assert plan_b is not None
    assert plan_a.assignment is not None
    assert plan_b.assignment is not None
    assert np.array_equal(plan_a.assignment.node, plan_b.assignment.node)

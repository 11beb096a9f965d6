"""What the loop plans when counts may change, nodes are to be emptied, or nothing fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.checks.problems import problem_of
from headrace.control.adaptive import simulate_adaptive
from headrace.control.choice import carries_load
from headrace.control.history import Entry
from headrace.control.loop import describe, step
from headrace.control.need import Outlook, needed_factor
from headrace.control.planning import (
    LoopSettings,
    View,
    judge_plan,
    keep_counts_with_state,
    place_within_reach,
    plan_again,
)
from headrace.errors import InvalidInput
from headrace.model.simulation_sections import Event
from tests.control.worlds import run_all, word_count, world_of

RESIZE = LoopSettings(objective="nodes", interval_s=60.0, resize=True)


def rates(*values: float) -> list[Entry]:
    return [Entry(60.0 * i, False, False, "", rate_per_s=v) for i, v in enumerate(values)]


def test_a_rising_rate_goes_on_rising_and_a_fallen_one_counts_after_a_while() -> None:
    assert needed_factor([], 0, 100, 0, 60) == 1
    # 2 more in every interval, for three more of them.
    assert needed_factor(rates(90, 92, 94, 96, 98), 300, 100, 0, 60) == pytest.approx(1.06)
    assert needed_factor(rates(10), 60, 100, 0, 60) == pytest.approx(1.25), "at most a quarter"
    assert needed_factor(rates(300), 60, 100, 0, 60) == 3
    assert needed_factor(rates(300, 100, 100), 180, 100, 0, 60) == 1, "calm for three intervals"
    assert needed_factor([], 0, 100, 1200, 60) == pytest.approx(1.2), "and what waits"
    more = Outlook(150.0)
    assert needed_factor([], 0, 100, 0, 60, lambda known, ahead: more) == pytest.approx(1.5)


def test_counts_follow_the_rate_up_and_down() -> None:
    events = [Event(at=200, rate=3.0), Event(at=600, rate=1.0)]
    world = world_of(word_count(), events, seconds=1500, resizable=True)
    run_all(world, RESIZE)
    tasks = [one.tasks for one in world.intervals]
    cores = [one.cores for one in world.intervals]
    assert max(tasks[4:9]) > tasks[2]
    assert max(cores[4:9]) > cores[2] == 4.0
    assert cores[-1] == cores[2], "given back"
    assert not any(one.behind for one in world.intervals[6:])
    grown = next(entry for entry in world.entries if entry.applied and entry.at_s > 200)
    assert grown.tasks["count"] > 1
    assert grown.moved_mb > 0, "keyed state is divided again"


def test_machines_are_rented_and_given_back_within_the_budget() -> None:
    catalog = {"vt": {"price": 1.0, "cpu": 400, "slots": 4, "bandwidth_mbps": 1000}}
    inputs = word_count(catalog=catalog)
    rented = replace(inputs, document=inputs.document.model_copy(update={"cluster": None}))
    events = [Event(at=60, rate=3.0), Event(at=180, rate=1.0)]
    done = simulate_adaptive(rented, RESIZE, seconds=480, events=events, noise=0.0)
    nodes = [one.nodes for one in done.intervals]
    # 4,000 sentences/s take 2.4 cores, 12,000 take 7.2 of 4 each: with the reserve 3 machines, and
    # one more to work off what waits.
    assert (nodes[0], max(nodes), nodes[-1]) == (1, 4, 1)
    grown = next(entry for entry in done.decisions if entry.applied and entry.at_s > 60)
    assert grown.machines == {"vt": 4}
    poor = replace(RESIZE, budget=2.0)
    done = simulate_adaptive(rented, poor, seconds=240, events=events[:1], noise=0.0)
    assert max(one.nodes for one in done.intervals) == 2
    assert done.behind > 0, "and what does not fit waits"


def test_counts_of_state_that_no_other_task_can_take_over_stay() -> None:
    components = {
        "s": {"spout": True, "rate": 10},
        "own": {"tasks": 3, "inputs": {"s": "shuffle"}, "state_mb": 1},
        "keyed": {"tasks": 3, "inputs": {"s": "fields"}, "state_mb": 1},
        "bare": {"tasks": 3, "inputs": {"s": "shuffle"}},
    }
    nodes = {"n": {"cpu": 100}}
    problem = problem_of({"topology": {"components": components}, "cluster": {"nodes": nodes}})
    wanted = {"s": 2, "own": 5, "keyed": 5, "bare": 5}
    assert keep_counts_with_state(problem, wanted) == {**wanted, "own": 3}


def test_where_nothing_carries_the_load_the_plan_that_carries_most_is_found() -> None:
    # 60,000 sentences/s take 36 cores; there are 16.
    problem = world_of(word_count(60_000)).look().problem
    found = place_within_reach(problem, LoopSettings(objective="traffic"), 1.0)
    report = judge_plan(problem, found.assignment, "traffic")
    assert not carries_load(report, "traffic")
    assert report.max_rate is not None
    # A thread of count does 20,000 words/s: 4 of them 11,429 sentences/s.
    assert report.max_rate == pytest.approx(80_000 / 7 / 60_000, rel=0.01)


def test_a_drained_node_is_emptied_and_refused_where_that_would_overload() -> None:
    world = world_of(word_count(8000))
    view = replace(world.look(), drained=frozenset({"n2"}))
    found = plan_again(view, LoopSettings(objective="traffic"))
    used = {found.problem.nodes[n] for n in np.unique(found.plan.assignment.node)}
    assert "n2" not in used
    look = world.look
    world.look = lambda: replace(look(), drained=frozenset({"n2"}))  # pyright: ignore[reportAttributeAccessIssue]
    entry = step(world, LoopSettings(objective="traffic", rule="never"))
    assert entry.applied, "whatever the rule"
    assert entry.reason == "node n2 is emptied"
    world.look = lambda: replace(look(), drained=frozenset({"n1", "n2", "n3", "n4"}))  # pyright: ignore[reportAttributeAccessIssue]
    entry = step(world, LoopSettings(objective="traffic"))
    assert not entry.applied
    assert entry.reason.startswith("nothing is moved: ")


def test_the_loop_needs_a_running_plan() -> None:
    world = world_of(word_count())
    with pytest.raises(InvalidInput, match="the loop needs a running plan"):
        describe(View(replace(world.look().problem, current=None)), [], 0.0)

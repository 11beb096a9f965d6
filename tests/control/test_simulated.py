"""The simulated world against figures worked out by hand, and the loop in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.control.choice import Choice, Decision
from headrace.control.loop import step
from headrace.control.planning import LoopSettings, plan_again
from headrace.errors import InvalidInput
from headrace.model.plan import counts_section
from headrace.model.problem import UNPLACED, Assignment
from headrace.model.simulation_sections import Event
from tests.control.worlds import run_all, word_count, world_of

SETTINGS = LoopSettings(objective="traffic", interval_s=60.0)
NEVER = replace(SETTINGS, rule="never")


def test_a_plan_with_room_keeps_up_and_its_use_is_what_the_work_takes() -> None:
    world = world_of(word_count(), seconds=300)
    run_all(world, NEVER)
    last = world.intervals[-1]
    # Four tasks of count at 28,000 words/s of 0.05 ms: each 0.35 of its thread. Of the nodes, those
    # with a spout hold 0.1 + 0.2 + 0.35 of 4 cores.
    assert last.use == pytest.approx(0.35, abs=0.01)
    assert (last.lag_s, last.cores, last.tasks) == (pytest.approx(0, abs=0.01), 16, 10)
    assert not last.behind
    assert world.look().rate_per_s == pytest.approx(4000)


def test_a_plan_without_room_falls_behind_by_what_it_cannot_do() -> None:
    # count does 4 / 0.05 ms = 80,000 words/s = 11,429 sentences/s of 16,000.
    world = world_of(word_count(16_000), seconds=120)
    run_all(world, NEVER)
    assert world.intervals[0].behind
    behind_s = 60 * (1 - 80_000 / 7 / 16_000)
    assert world.intervals[0].lag_s == pytest.approx(behind_s, rel=0.05)
    assert world.look().measured["max_rate"] == pytest.approx(80_000 / 7 / 16_000, rel=0.05)


def test_what_waits_is_kept_when_the_plan_changes() -> None:
    world = world_of(word_count(16_000), seconds=600)
    step(world, NEVER)
    world.wait(60)
    waited = sum(world._waiting().values())  # pyright: ignore[reportPrivateUsage]
    world.apply(plan_again(world.look(), SETTINGS).plan)
    now = sum(world._waiting().values())  # pyright: ignore[reportPrivateUsage]
    assert now == pytest.approx(waited)


def always(choice: Choice) -> Decision:
    return Decision(True, f"always, to {choice.plan}")


def test_a_rule_of_ones_own_is_named_in_the_decision() -> None:
    world = world_of(word_count())
    entry = step(world, replace(SETTINGS, rule=always, by="a3-storm"))
    assert (entry.by, entry.rule, entry.applied) == ("a3-storm", "always", True)
    assert entry.reason == f"always, to {entry.plan}"
    with pytest.raises(InvalidInput, match=r"no rule `gian`.*gain.*there are: gain, muhammad"):
        step(world, replace(SETTINGS, rule="gian"))


@pytest.mark.parametrize("rule", ["gain", "muhammad", "aniello", "once"])
def test_every_rule_leaves_storms_plan_for_one_with_less_traffic(rule: str) -> None:
    world = world_of(word_count(), seconds=300)
    run_all(world, replace(SETTINGS, rule=rule))
    moves = [entry for entry in world.entries if entry.applied]
    assert len(moves) == 1
    [move] = moves
    assert move.after["inter_node_traffic"] < 0.5 * move.before["inter_node_traffic"]
    assert (move.at_s > 0) == (rule == "once"), "once measures first"
    assert all(entry.reason for entry in world.entries)


@pytest.mark.parametrize(
    "by",
    ["storm-even", "a3-storm", "ban-storm", "p-scheduler", "t3-scheduler", "i-scheduler",
     "aniello-online", "headrace"],
)  # fmt: skip
def test_every_scheduler_of_the_theses_drives_the_loop(by: str) -> None:
    first = "headrace" if by == "storm-even" else "storm-even"
    # With its default beta Aniello's scheduler uses every node, as Storm's does.
    options = {"beta": 0.0} if by == "aniello-online" else {}
    world = world_of(word_count(), seconds=180, first=first)
    run_all(world, replace(SETTINGS, by=by, rule="once", options=options))
    [move] = [entry for entry in world.entries if entry.applied]
    assert (move.by, move.rule) == (by, "once")
    assert move.reason.startswith("the one move, after 60 s: traffic between nodes goes from")
    assert move.plans[move.plan]["tasks"] == {"sentence": 2, "split": 4, "count": 4}


def test_a_lost_node_is_replaced_and_one_that_joins_is_used_when_it_is_needed() -> None:
    events = [
        Event(at=0, lose="n4"),
        Event(at=90, lose="n1"),
        Event(at=90, lose="n2"),
        Event(at=200, join="n4"),
        Event(at=200, rate=2.4),
    ]
    world = world_of(word_count(), events, seconds=480, first="headrace")
    run_all(world, SETTINGS)
    lost = [entry for entry in world.entries if entry.cause == "lost"]
    assert lost
    assert all("nodes that are gone" in entry.reason for entry in lost)
    problem, plan = world.running
    assert (plan.node != UNPLACED).all()
    assert "n1" not in problem.nodes
    used = {problem.nodes[n] for n in np.unique(plan.node)}
    assert used == {"n3", "n4"}, "9,600 sentences/s take 5.8 cores"
    lag_s = [one.lag_s for one in world.intervals]
    assert lag_s[-1] < lag_s[-2], "it catches up"


def test_a_hot_key_and_a_wrong_profile_are_seen_as_measured() -> None:
    events = [
        Event(at=0, cost="split", factor=1.5),
        Event(at=10, hot="count.2", share=0.6),
    ]
    world = world_of(word_count(), events)
    before = world.look().problem
    world.wait(60)
    after = world.look().problem
    split = before.components.index("split")
    assert after.cpu_rate[split, 0] / before.cpu_rate[split, 0] == pytest.approx(1.5)
    count = after.tasks_of(after.components.index("count"))
    assert after.share[count].tolist() == pytest.approx([0.4 / 3, 0.6, 0.4 / 3, 0.4 / 3])
    assert world.intervals[-1].use == pytest.approx(28_000 * 0.6 * 0.05 / 1000, abs=0.2)


def test_with_a_hot_key_other_counts_than_those_of_the_file_can_be_planned() -> None:
    world = world_of(word_count(), [Event(at=10, hot="count.2", share=0.6)], resizable=True)
    world.wait(60)
    seen = world.look().problem
    problem = world.truth.problem({**counts_section(seen), "count": 3})
    world.running = (problem, Assignment(np.zeros(9, np.int64), np.zeros(9, np.int64)))
    workload = world.look().workload
    assert workload is not None
    for count in (1, 2, 4, 5):
        planned = workload.problem({**counts_section(seen), "count": count})
        assert any("shares left out, since they are of 3 tasks" in note for note in planned.notes)
    shares = workload.problem({**counts_section(seen), "count": 3}).task_share
    assert shares is not None
    assert shares.max() == pytest.approx(0.6)


def test_wrong_events_are_named() -> None:
    with pytest.raises(InvalidInput, match="there is no component `splt`"):
        world_of(word_count(), [Event(at=1, cost="splt")])
    with pytest.raises(InvalidInput, match="here the loop plans"):
        world_of(word_count(), [Event(at=1, plan="other.json")])
    with pytest.raises(InvalidInput, match="there is no node `n9`"):
        world_of(word_count(), [Event(at=1, lose="n9")])

"""Predicted against measured: the margin, what is taken back, and what is not tried again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.control.history import Entry
from headrace.control.learning import (
    is_barred,
    outcomes,
    plan_to_take_back,
    prediction_error_percent,
)
from headrace.control.loop import step
from headrace.control.planning import LoopSettings, View
from tests.control.worlds import word_count, world_of

# At 0 s the loop leaves a for b, whose batches it predicts to take 1 s instead of 2.
MOVE = Entry(
    0, True, True, "", plan="b", left="a", nodes="n", rate_per_s=100,
    after={"batch_seconds": 1.0}, measured={"batch_seconds": 2.0},
)  # fmt: skip


def after(batch_s: float, rate: float = 100) -> Entry:
    return Entry(
        60, False, False, "", plan="b", left="b", nodes="n", rate_per_s=rate,
        measured={"batch_seconds": batch_s},
    )  # fmt: skip


def test_the_next_decision_says_what_came_of_a_move() -> None:
    [outcome] = outcomes([MOVE, after(1.2)])
    assert (outcome.figure, outcome.predicted, outcome.measured) == ("batch_seconds", 1.0, 1.2)
    assert outcome.error == pytest.approx(0.2)
    assert prediction_error_percent([MOVE, after(1.2)]) == pytest.approx(20)
    assert prediction_error_percent([MOVE, after(1.0)]) == 0
    assert outcomes([MOVE, after(1.2, rate=150)]) == [], "more came in: nothing to compare"
    assert outcomes([MOVE]) == []


def test_more_of_a_rate_is_better() -> None:
    move = replace(MOVE, after={"max_rate": 2.0}, measured={"max_rate": 1.0})
    [outcome] = outcomes([move, replace(after(1), measured={"max_rate": 1.6})])
    assert outcome.error == pytest.approx(0.25)
    assert not outcome.got_worse


@pytest.mark.parametrize(
    ("batch_s", "taken_back"),
    [(1.0, False), (1.9, False), (2.05, False), (2.2, True)],
    ids=["as predicted", "worse, but better than before", "no better", "worse than before"],
)
def test_only_a_plan_that_did_worse_than_the_one_before_is_taken_back(
    batch_s: float, taken_back: bool
) -> None:
    assert (plan_to_take_back([MOVE, after(batch_s)]) is not None) == taken_back


def test_a_figure_that_was_given_up_for_another_is_no_disappointment() -> None:
    given_up = replace(MOVE, after={"batch_seconds": 3.0})
    assert plan_to_take_back([given_up, after(3.5)]) is None


def test_a_plan_is_taken_back_once_and_not_tried_until_something_changes() -> None:
    back = replace(after(2.2), move=True, applied=True, plan="a", cause="back")
    history = [MOVE, back]
    assert plan_to_take_back([*history, replace(after(3), at_s=120, left="a")]) is None
    assert is_barred(history, "b", 100, "n")
    assert not is_barred(history, "b", 120, "n"), "more comes in"
    assert not is_barred(history, "b", 100, "other nodes")
    assert not is_barred(history, "c", 100, "n")


def test_the_loop_goes_back_to_the_plan_before_when_the_new_one_disappoints() -> None:
    """A world that lies: whatever is moved does half of what it did before."""
    world = world_of(word_count())
    settings = LoopSettings(objective="traffic", interval_s=60.0)

    def look() -> View:
        moved = any(entry.applied for entry in world.entries)
        first = world.entries[0].left if world.entries else ""
        bad = moved and world.entries[-1].plan != first
        view = true_look()
        return replace(view, measured={"batch_seconds": 9.0 if bad else 8.0})

    true_look = world.look
    world.look = look  # pyright: ignore[reportAttributeAccessIssue]
    first = step(world, settings)
    world.wait(60)
    second = step(world, settings)
    world.wait(60)
    third = step(world, settings)
    assert first.applied
    assert (second.applied, second.cause, second.plan) == (True, "back", first.left)
    assert "did worse than predicted" in second.reason
    assert not third.applied
    assert "was taken back" in third.reason

"""What the judge predicts of a batch, against batches whose every figure is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.control.on_spark import assignment_from_placement
from headrace.control.prediction import (
    emission_rates,
    median_figures,
    predict_batch,
    with_batch_times,
)
from headrace.model.build import build
from headrace.model.document import FORMAT
from headrace.model.problem import Problem
from headrace.model.read import validated
from headrace.run.batches import BatchDone
from headrace.run.placement import Placement
from headrace.run.task import TaskReport

TASKS = {"lines": 1, "split": 2}
APART = Placement(
    "apart", TASKS, {("lines", 0): ("a", 0), ("split", 0): ("b", 0), ("split", 1): ("b", 0)}
)
BESIDE = Placement(
    "beside", TASKS, {("lines", 0): ("a", 0), ("split", 0): ("a", 0), ("split", 1): ("b", 0)}
)
LINES, BYTES = 1000, 500  # of one batch
BATCH_S = 3.0


def problem(rate: float) -> Problem:
    components = {
        "lines": {"spout": True, "rate": rate, "bytes": BYTES},
        "split": {"tasks": 2, "inputs": {"lines": "shuffle"}},
    }
    profile = {"lines": {"*": {"cpu_ms": 0.1}}, "split": {"*": {"cpu_ms": 0.2, "cpu_fixed": 5}}}
    nodes = {name: {"cpu": 200, "bandwidth_mbps": 4} for name in "ab"}
    content = {
        "topology": {"components": components},
        "cluster": {"nodes": nodes},
        "profile": profile,
    }
    found = build(validated({"format": FORMAT, **content}, {}))
    return replace(found, current=assignment_from_placement(found, APART))


def batch(number: int, seconds: float = BATCH_S) -> BatchDone:
    """A batch under APART; a split task takes 0.2 ms for each of its 500 lines, and 50 ms more."""
    half = LINES // 2
    edges = tuple(("split", n, half, half * BYTES) for n in (0, 1))
    spout = TaskReport("work", "lines", 0, ("a",), 0.0, 0, LINES, cpu_ms=100.0, edges=edges)
    bolts = tuple(
        TaskReport("work", "split", n, ("b",), 0.0, half, 0, cpu_ms=150.0) for n in (0, 1)
    )
    return BatchDone(
        number, seconds, "apart", LINES, LINES * BYTES, LINES * BYTES, (), (spout, *bolts)
    )


@pytest.mark.parametrize(
    ("starts", "rate"),
    [([0, 4, 8, 12], LINES / 4), ([0, 1, 11, 12], LINES / 4), ([5], None), ([], None)],
)
def test_a_rate_is_what_batches_hold_over_the_time_they_take_however_they_come(
    starts: list[float], rate: float | None
) -> None:
    seen = [
        replace(batch(n, seconds=1.0 + n % 2), ended=start + 1.0 + n % 2)
        for n, start in enumerate(starts)
    ]
    assert emission_rates(seen).get("lines") == rate


@pytest.mark.parametrize("interval_s", [2.0, 10.0])
def test_the_running_plan_is_predicted_as_it_was_measured_however_often_batches_come(
    interval_s: float,
) -> None:
    # The profile's 5 points were measured in windows of one second with one batch in each: 50 ms a
    # batch.
    told = with_batch_times(
        problem(LINES / interval_s), [batch(0), batch(1), batch(2, 99.0)], window_s=1
    )
    assert told.current is not None
    predicted, found = predict_batch(told, told.current), median_figures([batch(0)], APART)
    assert predicted.seconds == pytest.approx(found.seconds)
    assert predicted.remote_bytes == pytest.approx(found.remote_bytes)
    assert predicted.cpu_ms == pytest.approx(found.cpu_ms)
    assert found.cpu_ms == {"a": 100, "b": 300}


def test_another_plan_is_predicted_from_the_same_batches() -> None:
    told = with_batch_times(problem(LINES / 5), [batch(0)], window_s=1)
    predicted = predict_batch(told, assignment_from_placement(told, BESIDE))
    assert predicted.remote_bytes == pytest.approx(LINES * BYTES / 2)
    assert predicted.cpu_ms == pytest.approx({"a": 250, "b": 150})
    # Half the bytes stay: 250 kB less at 4 Mbit/s are half a second; both split tasks still run at
    # once.
    assert predicted.seconds == pytest.approx(BATCH_S - 0.5)


def test_without_batches_nothing_is_known_of_their_times() -> None:
    given = problem(100)
    assert with_batch_times(given, [], window_s=1) is given


def test_the_work_of_a_plan_whose_node_is_gone_is_not_asked_for() -> None:
    given = problem(LINES / 5)
    gone = Placement("gone", TASKS, {task: ("lost", 0) for task in APART.places})
    told = with_batch_times(
        replace(given, current=assignment_from_placement(given, gone)), [batch(0)], window_s=1
    )
    assert told.options["judge"] == {"batch_interval_s": 5.0, "batch_overhead_s": 0.0}

"""Findings: what is found, what it could save, and what is not claimed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from headrace.advise.findings import Saving
from headrace.advise.report import Advice, advise_on
from tests.advise.builders import LogBook, ms, two_stage_app, waves


def finding(advice: Advice, kind: str) -> Saving:
    (found,) = (f for f in advice.findings if f.kind == kind)
    return found


def kinds(advice: Advice) -> set[str]:
    return {f.kind for f in advice.findings}


def job_of(tasks: Sequence[tuple[float, float]], last: float, **more: Any) -> LogBook:
    """4 slots; a stage of 1 s to read from, then the stage in question."""
    book = LogBook()
    book.executor("1", 4)
    book.job(0, 0, last, {0: [], 1: [0]})
    book.stage(0, 0, 1, waves(4, 4, 1, 0))
    book.stage(1, 1, last, tasks, parents=[0], **more)
    book.end(last)
    return book


def test_driver_time_is_what_no_job_covers() -> None:
    found = finding(advise_on(two_stage_app().trace()), "driver")
    assert found.seconds == pytest.approx(3.0)
    assert found.numbers["share"] == pytest.approx(3 / 7)


def test_too_few_tasks_for_the_slots() -> None:
    found = finding(advise_on(job_of([(1, 9)], 9).trace()), "few-tasks")
    assert found.seconds == pytest.approx(8 - 2, abs=0.1)
    assert "1 task for 4 slots" in found.evidence


def test_skew_is_a_matter_of_records_not_of_time() -> None:
    spans = [(1, 2.0), (1, 2.0), (1, 2.0), (1, 9.0)]
    by_key = advise_on(job_of(spans, 9, records=[10, 10, 10, 90]).trace())
    assert finding(by_key, "skew").seconds == pytest.approx(8 - 2.75, abs=0.1)
    assert "stragglers" not in kinds(by_key)
    slow = advise_on(job_of(spans, 9, records=[10, 10, 10, 10]).trace())
    assert "skew" not in kinds(slow)
    assert finding(slow, "stragglers").seconds == pytest.approx(7, abs=0.1)


def test_a_scan_has_no_keys() -> None:
    book = LogBook()
    book.executor("1", 4)
    book.job(0, 0, 9, {0: []})
    book.stage(0, 0, 9, [(0, 1), (0, 1), (0, 1), (0, 9)], records=[10, 10, 10, 90])
    book.end(9)
    assert "skew" not in kinds(advise_on(book.trace()))


def test_tiny_tasks_cost_more_around_than_in_the_work() -> None:
    spans = waves(400, 4, 0.02, 1)
    metrics = {"Executor Run Time": 5}
    found = finding(advise_on(job_of(spans, 3, metrics=metrics).trace()), "tiny-tasks")
    assert found.seconds == pytest.approx(2 - (0.5 + 2 * 0.015), abs=0.1)


def test_garbage_collection_is_told_per_job_and_never_above_the_time() -> None:
    metrics = {"Executor Run Time": 8000, "JVM GC Time": 99_000}
    found = finding(advise_on(job_of([(1, 9)] * 4, 9, metrics=metrics).trace()), "gc")
    assert found.numbers["share"] <= 1.0
    assert found.numbers["job"] == 0


def test_spill_without_anything_to_compare_with_has_no_seconds() -> None:
    metrics = {"Disk Bytes Spilled": 5_000_000}
    found = finding(advise_on(job_of([(1, 9)] * 4, 9, metrics=metrics).trace()), "spill")
    assert found.seconds is None
    assert "20 MB" in found.evidence


def test_failed_attempts_cost_what_the_replay_gains_without_them() -> None:
    book = job_of([(1, 5), (1, 2)], 9, kinds={0: "ExceptionFailure"})
    again = {**book.events[-3], "Task End Reason": {"Reason": "Success"}}
    again["Task Info"] = {**again["Task Info"], "Launch Time": ms(5), "Finish Time": ms(9)}
    book.events.insert(-1, again)
    found = finding(advise_on(book.trace()), "failed")
    assert found.seconds == pytest.approx(4.0)
    assert found.numbers == {"attempts": 1, "slot_s": 4.0}


@pytest.mark.parametrize(
    ("reason", "lost"), [("Executor killed by driver.", False), ("OutOfMemoryError", True)]
)
def test_an_executor_given_back_is_not_lost(reason: str, lost: bool) -> None:
    book = two_stage_app()
    book.executor("3", 2, 0, 2, reason)
    assert ("lost" in kinds(advise_on(book.trace()))) == lost


def test_idle_cores_cost_money_not_seconds() -> None:
    book = LogBook()
    book.executor("1", 16)
    book.job(0, 0, 10, {0: []})
    book.stage(0, 0, 10, [(0, 10)])
    book.end(10)
    found = finding(advise_on(book.trace()), "idle")
    assert found.seconds == 0.0
    assert found.numbers["busy"] == pytest.approx(1 / 16)


def test_findings_are_ranked_and_are_json() -> None:
    metrics = {"Disk Bytes Spilled": 5_000_000}
    advice = advise_on(job_of([(1, 9)], 20, metrics=metrics).trace())
    seconds = [f.seconds for f in advice.findings]
    known = [s for s in seconds if s is not None]
    assert known == sorted(known, reverse=True)
    assert seconds[len(known) :] == [None] * (len(seconds) - len(known))
    json.dumps(advice.to_json(), allow_nan=False)

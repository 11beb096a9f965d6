"""The replay against figures done by hand, and against a list scheduler written another way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headrace.advise.replay import replay
from headrace.advise.report import prepare
from headrace.advise.what_if import WhatIf, fleet_for, replay_with, shape_of
from headrace.advise.work import Slots, Work, work_of
from headrace.observe.spark_log.local_files import find_local_logs
from headrace.observe.spark_log.read_trace import read_trace
from tests.advise.builders import SHARED, LogBook, two_stage_app, waves

MOST_TASKS = 3000  # the other scheduler looks through all slots for every task
OURS = Path(__file__).parents[1] / "observe" / "spark_log" / "logs"


def list_schedule(work: Work, slots: int) -> float:
    """Another list scheduler: no events, slots in a list, the next moment looked for each time.

    Jobs in a row and stages of one profile; tasks in the order of job, stage and partition.
    """
    free = [0.0] * slots
    ended: dict[int, float] = {}
    job_end: dict[int, float] = {}
    opened: dict[int, float] = {}
    todo: dict[int, list[float]] = {}
    given: dict[int, int] = {}
    last: dict[int, float] = {}
    owner = {s: j for j, job in enumerate(work.jobs) for s in job.stages}

    def open_what_can() -> None:
        for j, job in enumerate(work.jobs):
            if j in job_end or not all(w in job_end for w in job.waits):
                continue
            start = max([job_end[w] for w in job.waits], default=0.0) + job.delay_s
            for s in job.stages:
                stage = work.stages[s]
                if s not in opened and all(w in ended for w in stage.waits):
                    began = max([ended[w] for w in stage.waits], default=start)
                    opened[s] = max(began, start) + stage.delay_s + work.stage_start_s
                    todo[s], given[s], last[s] = stage.task_s.tolist(), 0, opened[s]
            if all(s in ended for s in job.stages):
                job_end[j] = max([ended[s] for s in job.stages], default=start) + job.tail_s

    while len(job_end) < len(work.jobs):
        open_what_can()
        waiting = [s for s in opened if todo[s]]
        if not waiting:
            for s in opened:
                if s not in ended and not todo[s]:
                    ended[s] = last[s] + work.stages[s].tail_s
            open_what_can()
            continue
        # The slot that is free first, and the stage that is first among those open by then.
        slot = min(range(slots), key=lambda i: free[i])
        moment = max(free[slot], min(opened[s] for s in waiting))
        done = [s for s in opened if s not in ended and not todo[s] and last[s] <= moment]
        if done:  # what it lets begin may come before
            first = min(done, key=lambda s: last[s])
            ended[first] = last[first] + work.stages[first].tail_s
            continue
        ready = [s for s in waiting if opened[s] <= moment]
        chosen = min(ready, key=lambda s: (work.jobs[owner[s]].id, work.stages[s].id))
        takes = todo[chosen].pop(0)
        cold, wave = work.stages[chosen].cold_s, given[chosen] // slots
        takes += cold[wave] if wave < len(cold) else 0.0
        given[chosen] += 1
        free[slot] = moment + takes
        last[chosen] = max(last[chosen], free[slot])
    return max(job_end.values()) + work.tail_s


def without_retries(work: Work) -> Work:
    plain = [replace(s, retries={}, copies=()) for s in work.stages]
    return replace(work, stages=tuple(plain), fair=False)


def test_a_log_is_reproduced_under_its_own_settings() -> None:
    trace = two_stage_app().trace()
    outcome = replay(prepare(trace))
    assert outcome.wall_s == pytest.approx(7.0)
    assert outcome.core_s == pytest.approx(28.0)
    assert outcome.busy_slot_s == pytest.approx(16.0)


@pytest.mark.parametrize(("executors", "seconds"), [(1, 1 + 4 + 4 + 2), (2, 7), (4, 1 + 1 + 2 + 2)])
def test_other_executors_give_the_waves_one_counts_by_hand(executors: int, seconds: float) -> None:
    trace = two_stage_app().trace()
    assert replay_with(trace, prepare(trace), WhatIf(executors=executors)).wall_s == seconds


def test_launch_times_do_not_matter() -> None:
    """The same durations, launched at any time within their stage, give the same replay."""
    book = two_stage_app()
    for line in book.events:
        if line["Event"] == "SparkListenerTaskEnd" and line["Stage ID"] == 0:
            info = line["Task Info"]
            if info["Index"] < 7:  # the last keeps the end of the stage where it is
                info["Finish Time"] += 700 - 100 * info["Index"]
                info["Launch Time"] += 700 - 100 * info["Index"]
            info["Finish Time"] = min(info["Finish Time"], 1_003_000)
            info["Launch Time"] = info["Finish Time"] - 1000
    moved = replay(work_of(book.trace()))
    assert moved.stages == replay(work_of(two_stage_app().trace())).stages


def test_the_first_job_comes_first_and_pools_share() -> None:
    def wall(mode: str) -> tuple[float, float]:
        book = LogBook(settings={"spark.scheduler.mode": mode})
        book.executor("1", 2)
        for number in (0, 1):
            pool = {"spark.scheduler.pool": f"pool-{number}"}
            book.job(number, 0, 8, {number: []}, pool)
            book.stage(number, 0, 8, [(7, 8)] * 4)
        book.end(8)
        outcome = replay(work_of(book.trace()))
        return outcome.jobs[0][1], outcome.jobs[1][1]

    assert wall("FIFO") == (2.0, 4.0)
    # At first only the first is there, and takes both slots; then they take turns.
    assert wall("FAIR") == (3.0, 4.0)


def test_a_job_waits_for_what_the_driver_waited_for() -> None:
    """Two threads: the third job follows the first, which ended last before it."""
    book = LogBook()
    book.executor("1", 4)
    book.job(0, 0, 4, {0: []})
    book.stage(0, 0, 4, [(0, 4)])
    book.job(1, 0, 2, {1: []})
    book.stage(1, 0, 2, [(0, 2)])
    book.job(2, 5, 6, {2: []})
    book.stage(2, 5, 6, [(5, 6)])
    book.end(6)
    work = work_of(book.trace())
    assert [job.waits for job in work.jobs] == [(), (), (0,)]
    assert work.jobs[2].delay_s == pytest.approx(1.0)


def test_a_failed_attempt_is_done_again() -> None:
    book = LogBook()
    book.executor("1", 2)
    book.job(0, 0, 6, {0: []})
    book.stage(0, 0, 6, [(0, 2), (0, 3)], kinds={1: "ExceptionFailure"})
    again = dict(book.events[-1])
    again["Task Info"] = {**again["Task Info"], "Launch Time": 1_003_000, "Finish Time": 1_006_000}
    again["Task End Reason"] = {"Reason": "Success"}
    book.events.append(again)
    book.end(6)
    work = work_of(book.trace())
    assert work.stages[0].retries == {1: (3.0,)}
    assert replay(work).wall_s == pytest.approx(6.0)


def test_a_speculative_copy_takes_a_slot_and_nobody_waits_for_the_loser() -> None:
    book = LogBook()
    book.executor("1", 2)
    book.job(0, 0, 5, {0: []})
    book.stage(0, 0, 5, [(0, 5)], kinds={0: "TaskKilled"})
    copy = dict(book.events[-1])
    copy["Task Info"] = {**copy["Task Info"], "Speculative": True, "Launch Time": 1_003_000}
    copy["Task End Reason"] = {"Reason": "Success"}
    book.events.append(copy)
    book.end(5)
    work = work_of(book.trace())
    assert work.stages[0].task_s.tolist() == [5.0]
    assert work.stages[0].copies == (2.0,)
    assert replay(work).wall_s == pytest.approx(5.0)


def test_tasks_of_a_resource_profile_keep_to_its_executors() -> None:
    work = work_of(two_stage_app().trace())
    other = replace(work.stages[1], profile=1)
    fleet = (*work.fleet, Slots(0.0, None, 1, 1, 1))
    outcome = replay(replace(work, stages=(work.stages[0], other)), fleet)
    assert outcome.wall_s == pytest.approx(1 + 2 + 4 * 2 + 2)


def test_cold_slots_are_told_from_work() -> None:
    """Tasks of 1 s, the first of a slot 3 s: twice the slots have twice the cold starts."""
    book = LogBook()
    book.executor("1", 1)
    book.job(0, 0, 10, {0: []})
    book.stage(0, 0, 10, [(0, 3), *((2.0 + i, 3.0 + i) for i in range(1, 8))])
    book.end(10)
    trace = book.trace()
    work = prepare(trace)
    assert work.stages[0].cold_s[0] == pytest.approx(2.0)
    assert replay(work).wall_s == pytest.approx(10.0)
    assert replay_with(trace, work, WhatIf(executors=2)).wall_s == pytest.approx(3 + 3)


def test_dynamic_allocation_grows_while_tasks_wait_and_gives_back() -> None:
    settings = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.executorIdleTimeout": "10s",
    }
    book = LogBook(settings=settings)
    book.executor("1", 1, at=2)
    book.job(0, 0, 14, {0: []})
    book.stage(0, 0, 14, waves(12, 1, 1, 2))
    book.end(100)
    trace = book.trace()
    work = prepare(trace)
    one = replay_with(trace, work, WhatIf(executors=1))
    many = replay_with(trace, work, WhatIf(executors=12))
    assert many.jobs[0][1] < one.jobs[0][1]
    assert 1 < many.most_executors <= 12
    # Held for the work and some idle time, not for the 86 s after it.
    assert one.core_s < 40


def logs_to_try() -> list[Path]:
    return sorted(p for p in OURS.iterdir() if not p.name.startswith("."))


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_half_and_twice_the_executors_agree_with_another_list_scheduler(factor: float) -> None:
    compared = 0
    paths = [*logs_to_try(), *(sorted(SHARED.iterdir()) if SHARED.exists() else ())]
    for path in paths:
        if path.suffix == ".md":
            continue
        trace = read_trace(find_local_logs(path)[0])
        work = without_retries(prepare(trace))
        shape = shape_of(trace, work)
        if {stage.profile for stage in work.stages} != {shape.profile}:
            continue
        if sum(len(stage.task_s) for stage in work.stages) > MOST_TASKS:
            continue
        count = max(1, round(shape.executors * factor))
        fleet = fleet_for(work, shape, count, shape.slots, shape.cores)
        fleet = tuple(replace(s, added_s=0.0, ready_s=None) for s in fleet)
        ours = replay(work, fleet).wall_s
        other = list_schedule(work, count * shape.slots)
        assert ours == pytest.approx(other, rel=0.02), path.name
        compared += 1
    assert compared >= 3


def test_random_work_agrees_with_the_other_list_scheduler() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        book = LogBook()
        book.executor("1", 3)
        moment = 0.0
        for number in range(4):
            takes = rng.uniform(0.1, 3, rng.integers(1, 9))
            spans = [(moment, moment + float(t)) for t in takes]
            book.job(number, moment, moment + 20, {number: []})
            book.stage(number, moment, moment + 20, spans)
            moment += 21
        book.end(moment)
        work = work_of(book.trace())
        for slots in (1, 2, 5):
            fleet = (Slots(0.0, None, slots, slots, 0),)
            assert replay(work, fleet).wall_s == pytest.approx(list_schedule(work, slots))


def test_a_heavy_key_is_not_taken_for_a_cold_slot() -> None:
    """Eight tasks of 1 s on two slots, the third with ten times the records and the time."""
    book = LogBook()
    book.executor("1", 2)
    spans = [(0.0, 1.0), (0.0, 1.0), (1.0, 11.0), *((1.0 + i, 2.0 + i) for i in range(7))]
    book.job(0, 0, 11, {0: []})
    book.stage(0, 0, 11, spans, records=[100, 100, 1000, *[100] * 7])
    book.end(11)
    assert not any(prepare(book.trace()).stages[0].cold_s)


def test_executors_are_ready_although_another_job_takes_their_slots() -> None:
    """The first stage's two tasks wait for ten of a job that came after it, by its number."""
    book = LogBook()
    book.executor("1", 1)
    book.job(1, 0, 12, {0: []})
    book.stage(0, 0, 12, [(0, 1), (11, 12)])
    book.job(0, 0.5, 11, {1: []})
    book.stage(1, 0.5, 11, waves(10, 1, 1, 1))
    book.end(12)
    work = prepare(book.trace())
    assert work.fleet[0].ready_s is None
    assert replay(work).wall_s == pytest.approx(12.0)

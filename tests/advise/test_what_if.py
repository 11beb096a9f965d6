"""What-ifs, the curve and the point that is chosen on it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from headrace.advise.curve import Point, choose_point, knee, price_of
from headrace.advise.report import advise_on, prepare
from headrace.advise.tasks import (
    TaskCost,
    evened,
    fetch_from,
    repartition,
    task_cost,
    without_stragglers,
)
from headrace.advise.what_if import WhatIf, is_adaptive, replay_with, wanted_tasks
from headrace.advise.work import StageWork, slots_of, work_of
from headrace.errors import Infeasible, InvalidInput
from headrace.observe.spark_log.trace import ResourceProfile
from tests.advise.builders import LogBook, two_stage_app, waves


def stage(task_s: list[float], records: list[float] | None = None) -> StageWork:
    sizes = None if records is None else np.array(records)
    return StageWork(0, 0, 0, (), 0.0, np.array(task_s), {}, (), 0.0, sizes, None)


def test_tasks_are_merged_and_split_by_their_work_beside_a_fixed_cost() -> None:
    four = stage([1.1, 2.1, 3.1, 4.1])
    merged = repartition(four, 2, TaskCost(0.1, True))
    assert merged.task_s.tolist() == pytest.approx([3.1, 7.1])
    split = repartition(four, 8, TaskCost(0.1, True))
    assert split.task_s.tolist() == pytest.approx([0.6, 0.6, 1.1, 1.1, 1.6, 1.6, 2.1, 2.1])


def test_a_heavy_key_stays_whole() -> None:
    skewed = stage([1.0, 1.0, 1.0, 9.0], [10, 10, 10, 90])
    assert repartition(skewed, 7, TaskCost(0.0, False)).task_s.max() == 9.0


def test_the_fixed_cost_is_fitted_where_tasks_differ_in_size() -> None:
    book = LogBook()
    book.executor("1", 8)
    book.job(0, 0, 5, {0: []})
    sizes = [100, 200, 300, 400]
    book.stage(0, 0, 5, [(0, 0.5 + size / 100) for size in sizes], records=sizes)
    book.end(5)
    trace = book.trace()
    cost = task_cost(work_of(trace).stages[0], trace.stages[0])
    assert cost.fitted
    assert cost.fixed_s == pytest.approx(0.5, abs=0.01)


def test_evened_and_without_stragglers() -> None:
    assert evened(stage([1, 1, 4])).task_s.tolist() == [2, 2, 2]
    by_size = stage([1, 1, 4, 4], [10, 10, 40, 10])
    assert without_stragglers(by_size).task_s.tolist() == pytest.approx([1, 1, 4, 2.5])


def test_faster_machines_shrink_what_is_computed_only() -> None:
    """9 of 10 parts of a task compute: at twice the speed 1 s takes 0.55 s."""
    trace = two_stage_app().trace()
    outcome = replay_with(trace, prepare(trace), WhatIf(speed=2.0))
    assert outcome.wall_s == pytest.approx(1 + 2 * 0.55 + 2 * 0.55 + 2)


def test_a_gpu_that_tasks_share_limits_the_slots() -> None:
    trace = two_stage_app().trace()
    profile = ResourceProfile(0, 16, None, None, None, 1.0, {"gpu": 0.25})
    object.__setattr__(trace, "profiles", {0: profile})
    assert slots_of(trace, 16, 0, {"gpu": 1}) == 4
    assert slots_of(trace, 16, 0, {"gpu": 2}) == 8
    assert slots_of(trace, 2, 0, {"gpu": 2}) == 2


def test_adaptive_execution_cuts_for_the_cores_there_are() -> None:
    book = LogBook(settings={"spark.sql.shuffle.partitions": "200"})
    book.executor("1", 2)
    book.job(0, 0, 6, {0: [], 1: [0]})
    book.stage(0, 0, 2, waves(4, 2, 1, 0))
    ops = ["AQEShuffleRead"]
    many = [400_000] * 2  # 80 MB in all
    book.stage(1, 2, 6, [(2, 6), (2, 6)], parents=[0], records=many, operators=ops)
    book.end(6)
    trace = book.trace()
    assert is_adaptive(trace)
    assert wanted_tasks(trace, trace.stages[1], None, 8) == 8
    assert wanted_tasks(trace, trace.stages[0], None, 8) is None
    doubled = replay_with(trace, prepare(trace), WhatIf(executors=4))
    assert doubled.stages[1][1] - doubled.stages[1][0] == pytest.approx(1.0, abs=0.05)


CURVE = [
    Point(1, 4, 100.0, 0.11, None),
    Point(2, 4, 60.0, 0.13, None),
    Point(4, 4, 45.0, 0.20, None),
    Point(8, 4, 40.0, 0.36, None),
]


def test_a_deadline_takes_the_cheapest_a_budget_the_fastest() -> None:
    assert choose_point(CURVE, CURVE[1], deadline_s=50, budget=None)[0].executors == 4
    assert choose_point(CURVE, CURVE[1], deadline_s=None, budget=0.15)[0].executors == 2
    with pytest.raises(Infeasible, match="8 take 40 s"):
        choose_point(CURVE, CURVE[1], deadline_s=10, budget=None)
    with pytest.raises(Infeasible, match=r"the least is 0\.11"):
        choose_point(CURVE, CURVE[1], deadline_s=None, budget=0.01)
    with pytest.raises(InvalidInput, match="one of them"):
        choose_point(CURVE, CURVE[1], deadline_s=1, budget=1)


def test_the_knee_does_not_ask_to_wait_longer_than_before() -> None:
    assert knee(CURVE, replace(CURVE[1], wall_s=100)).executors == 2
    assert knee(CURVE, replace(CURVE[1], wall_s=45)).executors == 4


def test_the_knee_is_at_most_twice_what_the_log_had() -> None:
    """From 100 s on one executor to 26 s on four, for hardly more: in two steps."""
    curve = [Point(n, 1, 100 / n + 1, 0.03 + 0.001 * n, None) for n in (1, 2, 3, 4)]
    chosen, why = choose_point(curve, curve[0], deadline_s=None, budget=None)
    assert chosen.executors == 2
    assert why == (
        "twice the log's at most: 4 executors of 1 core may be better, and a log of this will tell"
    )
    assert choose_point(curve, curve[1], deadline_s=None, budget=None)[0].executors == 4


def test_a_price_is_that_of_the_cheapest_machine_that_holds_an_executor() -> None:
    catalog = {
        "small": SimpleNamespace(price=1.0, cpu=200, memory_mb=4096),
        "large": SimpleNamespace(price=3.0, cpu=1600, memory_mb=65536),
    }
    price = price_of(catalog, 4, 8192)
    assert price is not None
    assert (price.machine, price.per_hour) == ("large", 0.75)  # four of them share one
    with pytest.raises(Infeasible, match="no machine type of the catalog"):
        price_of(catalog, 32, None)


def test_money_and_core_hours_of_the_curve() -> None:
    catalog = {"m": SimpleNamespace(price=3.6, cpu=200, memory_mb=65536)}
    advice = advise_on(two_stage_app().trace(), catalog=catalog)
    own = next(p for p in advice.curve if p.executors == 2)
    assert own.core_hours == pytest.approx(4 * 7 / 3600)
    assert own.cost == pytest.approx(2 * 7 * 0.001)


def test_what_a_task_waits_for_other_executors_follows_their_number() -> None:
    """On 4 executors 3 of 4 blocks are elsewhere, on 2 a half, on 1 none."""
    four = replace(stage([1.0, 2.0]), fetch_s=np.array([0.3, 0.6]))
    assert fetch_from(four, 4, 4).task_s.tolist() == [1.0, 2.0]
    assert fetch_from(four, 4, 2).task_s.tolist() == pytest.approx([0.9, 1.8])
    assert fetch_from(four, 4, 1).task_s.tolist() == pytest.approx([0.7, 1.4])
    assert fetch_from(four, 1, 4).task_s.tolist() == [1.0, 2.0]  # a log of one cannot tell


def test_an_executor_that_has_just_come_is_not_given_back() -> None:
    """Two come at 100 s and idle for 50 s until the first job; the idle timeout is 60 s."""
    settings = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.executorIdleTimeout": "60s",
    }
    book = LogBook(settings=settings)
    for name in ("1", "2"):
        book.executor(name, 1, at=100.0)
    book.job(0, 150, 160, {0: []})
    book.stage(0, 150, 160, [(150, 160), (150, 160)])
    book.end(160)
    trace = book.trace()
    assert replay_with(trace, prepare(trace), WhatIf()).wall_s == pytest.approx(160.0)

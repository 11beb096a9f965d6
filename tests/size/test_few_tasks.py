"""As few tasks as the rate needs, and an end in time where nothing seems to limit them."""

from __future__ import annotations

import time
from typing import Any

import pytest

import headrace as hr
from headrace.errors import InvalidInput, Unsupported
from headrace.model.starter import STARTER
from tests.size.workloads import chain

# One bolt, 1 point per tuple/s, on nodes of 100 and 51 points. All tasks carry the same, so two
# tasks on the larger node and one on the smaller carry 3 * 50 = 150. Only many small tasks come
# nearer to the 151 there are.
UNEVEN: dict[str, Any] = {
    **chain([10]),
    "cluster": {"nodes": {"large": {"cpu": 100}, "small": {"cpu": 51}}},
}
RENTED: dict[str, Any] = {
    "topology": UNEVEN["topology"],
    "profile": UNEVEN["profile"],
    "catalog": {
        "large": {"price": 1, "cpu": 100, "available": 1},
        "small": {"price": 1, "cpu": 51, "available": 1},
    },
}


def test_the_last_hundredth_of_the_rate_is_not_worth_many_tasks() -> None:
    few, most = hr.size(UNEVEN), hr.size(UNEVEN, within=0.0)
    assert few.tasks == {"source": 1, "b1": 3}
    assert few.report.max_rate == pytest.approx(150)
    assert most.report.max_rate is not None
    assert most.report.max_rate > 150.5
    assert most.tasks["b1"] > 10
    assert any(note.startswith("4 tasks: more of them") for note in few.report.notes)
    # A third less: one task on the larger node carries 100.
    assert hr.size(UNEVEN, within=0.34).tasks["b1"] == 1
    with pytest.raises(InvalidInput, match="within is 1"):
        hr.size(UNEVEN, within=1.0)


def test_a_rate_that_is_asked_for_is_carried_by_the_fewest() -> None:
    assert hr.size(UNEVEN, rate=149).tasks["b1"] == 3
    assert hr.size(UNEVEN, rate=100).tasks["b1"] == 1
    assert hr.size(UNEVEN, rate=150.5).report.max_rate >= 150.5  # pyright: ignore[reportOptionalOperand]


def test_rented_machines_get_no_more_tasks_than_they_need() -> None:
    few = hr.provision(RENTED, budget=2, within=0.01)
    assert few.tasks["b1"] == 3
    assert few.report.max_rate == pytest.approx(150)
    most = hr.provision(RENTED, budget=2)
    assert most.report.max_rate is not None
    assert most.report.max_rate > 150.5
    assert hr.provision(RENTED, rate=149).tasks["b1"] == 3
    assert hr.plan(RENTED, rate=149).tasks["b1"] == 3


def test_the_starter_file_gets_half_the_tasks_for_a_hundredth_of_the_rate(tmp_path: Any) -> None:
    file = tmp_path / "app.yaml"
    file.write_text(STARTER)
    few, most = hr.size(file), hr.size(file, within=0.0)
    assert few.report.max_rate is not None
    assert most.report.max_rate is not None
    assert few.report.max_rate >= 0.99 * most.report.max_rate
    assert sum(few.tasks.values()) <= 0.6 * sum(most.tasks.values())
    assert hr.plan(file).tasks == few.tasks


def test_a_node_without_cpu_or_memory_does_not_keep_sizing_busy() -> None:
    components = {
        "s": {"spout": True, "rate": 1000, "cpu": 10, "memory_mb": 100},
        "b": {"inputs": {"s": "shuffle"}, "cpu": 40, "tasks": 3},
        "c": {"inputs": {"b": "shuffle"}, "cpu": 20, "tasks": 2},
    }
    nodes = {"n{1..2}": {"cpu": 400}, "m{1..2}": {"memory_mb": 4000}}
    content = {"topology": {"components": components}, "cluster": {"nodes": nodes}}
    start = time.process_time()
    # 40 spout tasks fit the memory of each m, and 400 points are 4 on each n: 88 threads of 1
    # point per 100 tuples/s.
    plan = hr.size(content, seconds=5)
    assert plan.report.max_rate == pytest.approx(880_000, rel=0.011)
    assert plan.report.feasible
    endless = {**content, "cluster": {"nodes": {"n{1..2}": {}, "small": {"cpu": 100}}}}
    with pytest.raises(Unsupported, match="`n1` states no cpu, so any number of tasks fits there"):
        hr.size(endless, seconds=5)
    assert hr.size(endless, rate=50_000, seconds=5).report.feasible
    limited: dict[str, Any] = {
        **endless,
        "topology": {"components": {k: {**c, "max_tasks": 3} for k, c in components.items()}},
    }
    # Three tasks of b, 120 points per 1000 tuples/s, are three threads.
    assert hr.size(limited, seconds=5).report.max_rate == pytest.approx(2500)
    assert time.process_time() - start < 100  # compiling included; it used to go on for ever


def test_a_great_many_tasks_are_dealt_out_in_time() -> None:
    content = chain([10, 30, 5], nodes=200, cpu=100_000)
    plan = hr.size(content, seconds=5)
    assert plan.report.feasible
    assert plan.report.max_rate is not None
    assert plan.report.max_rate > 0

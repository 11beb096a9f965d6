"""The predicted latency: closed forms where there are any, and near the simulator elsewhere."""

from __future__ import annotations

import pytest

import headrace as hr


def single(rate: float, cpu: float = 100) -> hr.Plan:
    case = hr.case(
        {
            "topology": {"components": {"a": {"spout": True, "rate": rate}}},
            "profile": {"a": {"*": {"cpu_ms": 1}}},
            "cluster": {"nodes": {"n": {"cpu": cpu}}},
        }
    )
    return hr.place(case, by="storm-even")


def test_one_queue_is_m_m_1() -> None:
    latency = single(600).report.latency_ms
    assert latency is not None
    assert latency.mean == pytest.approx(2.5)
    assert latency.p99 == pytest.approx(2.5 * 4.605, rel=0.01)


def test_a_plan_that_cannot_hold_its_rate_has_none() -> None:
    assert single(1001, cpu=400).report.latency_ms is None
    assert single(600, cpu=50).report.latency_ms is None
    assert single(600).report.to_json()["latency_ms"]["mean"] == pytest.approx(2.5)


@pytest.mark.parametrize("by", ["storm-even", "dstorm"])
def test_it_is_near_the_simulator(by: str) -> None:
    case = hr.load(hr.example("quickstart.yaml"))
    first = hr.place(case, by=by)
    assert first.report.max_rate is not None
    slower = case.what_if(rate_factor=0.6 * first.report.max_rate)
    plan = hr.judge(slower, first)
    found = hr.simulate(plan, seconds=10)
    assert plan.report.latency_ms is not None
    assert plan.report.latency_ms.mean == pytest.approx(found.latency_ms["mean"], rel=0.35)
    assert plan.report.latency_ms.p99 == pytest.approx(found.latency_ms["p99"], rel=0.5)

"""Plans for a low latency: no worse in the simulator than those for traffic and for rate."""

from __future__ import annotations

import headrace as hr


def test_the_plan_for_latency_is_not_worse_than_those_for_traffic_and_rate() -> None:
    # 200 random problems are in benchmarks/simulating.py.
    case = hr.load(hr.example("quickstart.yaml"))
    plans = {name: hr.place(case, objective=name) for name in ("latency", "traffic", "rate")}
    tails = {name: hr.simulate(plan, seconds=10).latency_ms["p99"] for name, plan in plans.items()}
    assert tails["latency"] <= 1.05 * min(tails["traffic"], tails["rate"])
    assert plans["latency"].report.feasible
    assert plans["latency"].objective == "latency"
    again = hr.place(case, objective="latency")
    assert again.node_of == plans["latency"].node_of


def test_where_no_plan_holds_the_rates_it_says_so() -> None:
    case = hr.load(hr.example("quickstart.yaml")).what_if(rate_factor=20)
    plan = hr.place(case, by="storm-even", objective="latency")
    assert plan.report.latency_ms is None

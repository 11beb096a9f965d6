"""Between the least traffic and the highest rate: the ends are those plans, and none is beaten."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

import headrace as hr
from headrace.cli import main
from headrace.errors import HeadraceError, Unsupported
from headrace.lab.families import random_sections
from headrace.planner import Plan
from tests.failures import label_failure
from tests.page.pages import check_page

QUICKSTART = str(hr.example("quickstart.yaml"))
# Four pairs that send each other 10 tuples/s and take 40 points a task, on two nodes of 400: all on
# one node sustain 400 / 320 = 1.25 times that without traffic; with two pairs on each node threads
# limit, 100 / 40 = 2.5, and nothing crosses either.
PAIRS = {
    "topology": {
        "components": {
            name: spec
            for i in range(4)
            for name, spec in (
                (f"s{i}", {"spout": True, "rate": 10, "cpu": 40}),
                (f"b{i}", {"inputs": {f"s{i}": "shuffle"}, "cpu": 40}),
            )
        }
    },
    "cluster": {"nodes": {"n{1..2}": {"cpu": 400}}},
}
# One source for three bolts of 60 points: a node of 200 takes all but one, so one stream crosses
# (10 tuples/s) and 200 / 180 is the rate. Two and two tasks: two streams cross, 200 / 120.
STAR = {
    "topology": {
        "components": {
            "s": {"spout": True, "rate": 10, "cpu": 60},
            **{f"b{i}": {"inputs": {"s": "shuffle"}, "cpu": 60} for i in range(3)},
        }
    },
    "cluster": {"nodes": {"n{1..2}": {"cpu": 200}}},
}


def figures(plan: Plan) -> tuple[float, float]:
    assert plan.report.max_rate is not None
    return plan.report.inter_node_traffic, plan.report.max_rate


def test_a_star_has_two_plans_that_trade_traffic_for_rate() -> None:
    found = hr.trade_off(STAR)
    assert [figures(plan) for plan in found] == [
        pytest.approx((10, 200 / 180)),
        pytest.approx((20, 100 / 60)),
    ]
    assert found.chosen is found.plans[0]
    assert found.advice.startswith("Take plan 1 of 2 (10 tuples/s between nodes, sustains 1.11×")


def test_one_plan_is_enough_where_it_is_best_at_both() -> None:
    found = hr.trade_off(PAIRS)
    assert [figures(plan) for plan in found] == [pytest.approx((0, 2.5))]
    assert found.advice.startswith("One plan is best at both")


def test_a_plan_that_does_not_carry_the_given_rates_is_not_the_one_to_take() -> None:
    # Threads of slow nodes carry 100 / 120 of the rate; there both tasks fit one node. Fast ones
    # carry 100 / 60, one task each.
    content = {
        "topology": {
            "components": {
                "s": {"spout": True, "rate": 10},
                "b": {"inputs": {"s": "shuffle"}},
            }
        },
        "profile": {c: {"slow": {"cpu_ms": 120}, "fast": {"cpu_ms": 60}} for c in "sb"},
        "cluster": {
            "nodes": {
                "slow": {"type": "slow", "cpu": 400},
                "fast-{1..2}": {"type": "fast", "cpu": 100},
            }
        },
    }
    found = hr.trade_off(content)
    assert [figures(plan) for plan in found] == [
        pytest.approx((0, 100 / 120)),
        pytest.approx((10, 100 / 60)),
    ]
    assert found.chosen is found.plans[1]


def test_no_plan_is_beaten_and_the_ends_are_those_of_the_single_objectives() -> None:
    several = 0
    for seed in range(6):
        content = random_sections(seed)
        headroom = (0.0, 0.2)[seed % 2]
        with label_failure(seed=seed):
            try:
                least = hr.place(content, headroom=headroom, steps=5000)
                fastest = hr.place(content, objective="rate", headroom=headroom, steps=5000)
                found = hr.trade_off(content, headroom=headroom, steps=5000)
            except HeadraceError:
                continue
            rows = [figures(plan) for plan in found]
            for a, b in pairwise(rows):
                assert a[0] < b[0]
                assert a[1] < b[1]
            if len(rows) > 1:
                assert found.plans[0].node_of == least.node_of
                assert found.plans[-1].node_of == fastest.node_of
            assert rows[0][0] == min(figures(least)[0], figures(fastest)[0])
            assert rows[-1][1] == max(figures(least)[1], figures(fastest)[1])
            for plan in found:
                assert plan.report.feasible
                assert not headroom or plan.report.headroom["cpu"] >= headroom - 1e-9
            several += len(rows) > 2
    assert several >= 2, "hardly ever anything between the ends"


def test_the_command_prints_draws_and_writes_them(tmp_path: Path) -> None:
    page, rows = tmp_path / "t.html", tmp_path / "t.json"
    run = CliRunner().invoke(main, ["place", QUICKSTART, "--trade-off", "--out", str(page)])
    assert run.exit_code == 0, run.output
    assert "Take plan" in run.output
    assert "█" in run.output
    words = " ".join(check_page(page.read_text()).visible)
    assert "Rate against traffic" in words
    assert page.read_text().count('class="chosen"') == 1
    run = CliRunner().invoke(
        main, ["place", QUICKSTART, "--trade-off", "--json", "--out", str(rows)]
    )
    printed = json.loads(run.stdout)
    assert len(printed["results"]) == page.read_text().count("<circle")
    assert 1 <= printed["trade_off"]["take"] <= len(printed["results"])
    assert printed["trade_off"]["why"] in words
    assert json.loads(rows.read_text())["trade_off"] == printed["trade_off"]


def test_a_scheduler_that_does_not_know_both_objectives_is_refused() -> None:
    with pytest.raises(Unsupported, match="storm-even"):
        hr.trade_off(QUICKSTART, by="storm-even")

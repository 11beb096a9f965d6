"""What would help: changes are tried on the files, and the bound's prices stand beside them."""

from __future__ import annotations

import pytest
import yaml

import headrace as hr
from headrace.judge.bounds import bound, price_of_nodes
from headrace.model.starter import STARTER
from headrace.planner.suggesting import suggest


def starter() -> hr.Case:
    return hr.case(yaml.safe_load(STARTER))


def test_what_helps_is_tried_and_named_as_an_option() -> None:
    case = starter()
    plan = hr.place(case)
    found = suggest(case.inputs, plan)
    helps = {one.change: one for one in found.tried}
    # Without headroom both big nodes hold more; the same as a quarter more CPU.
    assert helps["--headroom 0"].traffic == pytest.approx(6420)
    assert helps["--headroom 0"].traffic_change == pytest.approx(6420 - 18570)
    more = helps["--set cluster.nodes.big-{1..2}.cpu=500"]
    again = hr.place(case.what_if(set={"cluster.nodes.big-{1..2}.cpu": 500}))
    assert more.traffic == pytest.approx(again.report.inter_node_traffic)
    faster = helps["--objective rate"]
    assert faster.rate_change is not None
    assert faster.rate_change > 0
    assert found.asked >= len(found.tried)


def test_a_pin_that_costs_traffic_is_named() -> None:
    case = starter().what_if(set={"topology.components.count.nodes": ["small-{1..3}"]})
    found = suggest(case.inputs, hr.place(case))
    assert any("components.count.nodes" in one.change for one in found.tried)


def test_the_bounds_price_is_what_one_more_node_changes_it_by() -> None:
    tasks = {f"t{i}": {"cpu": 50} for i in range(6)}
    pairs = [[f"t{i}", f"t{j}", 10] for i in range(6) for j in range(i)]

    def problem(nodes: int) -> hr.Problem:
        large = {"large": {"cpu": 150, "type": "large"}}
        small = {f"small-{i}": {"cpu": 50, "type": "small"} for i in range(6)}
        more = {f"large-{i}": large["large"] for i in range(nodes)}
        return hr.case(tasks=tasks, traffic=pairs, cluster={"nodes": {**more, **small}}).problem

    # Three tasks on the large node exchange 30; a second one keeps another 30 inside.
    one, two = (bound(problem(n), "inter_node_traffic").value or 0.0 for n in (1, 2))
    prices = price_of_nodes(problem(1))
    assert prices["large"] == pytest.approx(one - two) == pytest.approx(30)
    assert prices["small"] == 0

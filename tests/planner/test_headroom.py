"""Headroom: no node is planned beyond what is left without it, whatever plans, and it is said."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

import headrace as hr
from headrace.checks.problems import Content, draw_document
from headrace.cli import main
from headrace.errors import HeadraceError, Infeasible, InvalidInput
from headrace.lab.families import random_sections
from headrace.model.generate import random_topology
from headrace.model.starter import STARTER
from headrace.planner import Plan, breaks_headroom
from tests.failures import label_failure

RESOURCES = ("cpu", "memory_mb")
TWO_TASKS: Content = {
    "topology": {
        "components": {
            "a": {"spout": True, "rate": 10, "cpu": 50, "memory_mb": 10},
            "b": {"inputs": {"a": "shuffle"}, "cpu": 40, "memory_mb": 10},
        }
    },
    "cluster": {"nodes": {"n{1..2}": {"cpu": 100, "memory_mb": 100}}},
}


def shares_in_use(plan: Plan, resource: str) -> dict[str, float]:
    """What the report says every node uses of a resource, ours and taken, as a share."""
    rows = plan.report.nodes.items()
    return {
        node: (float(row[resource] or 0) + float(row[f"{resource}_taken"] or 0)) / capacity
        for node, row in rows
        if row[resource] and (capacity := row[f"{resource}_capacity"])
    }


def assert_kept(plan: Plan, headroom: float) -> None:
    for resource in RESOURCES:
        for node, share in shares_in_use(plan, resource).items():
            assert share <= 1 - headroom + 1e-9, f"{resource} of {node}"


def test_two_tasks_that_fit_one_node_take_two_where_a_fifth_stays_free() -> None:
    # 50 + 40 = 90 of 100 points: allowed as it is, not with 20 % free. The stream of 10 tuples/s
    # then crosses. 1 - 50 / 100 = half of the fuller node is free; at twice the rate it is full.
    assert hr.place(TWO_TASKS).report.inter_node_traffic == 0
    plan = hr.place(TWO_TASKS, headroom=0.2)
    assert plan.report.inter_node_traffic == pytest.approx(10)
    assert plan.report.gap == 0
    assert plan.report.headroom == {"cpu": 0.5, "memory_mb": 0.9}
    assert plan.report.survives.rate == pytest.approx(2)
    assert plan.report.survives.any_node is True


def test_a_headroom_of_one_resource_leaves_the_others() -> None:
    assert hr.place(TWO_TASKS, headroom={"memory_mb": 0.5}).report.inter_node_traffic == 0
    assert hr.place(TWO_TASKS, headroom={"cpu": 0.2}).report.inter_node_traffic > 0


def test_what_others_take_counts_against_the_headroom() -> None:
    # 60 free points of 100, but 20 of them are to stay free: 40 are left for b, none for a.
    nodes = {"n1": {"cpu": 100, "taken": {"cpu": 40}}, "n2": {"cpu": 200}}
    plan = hr.place({**TWO_TASKS, "cluster": {"nodes": nodes, "headroom": 0.2}})
    assert plan.node_of == {"a.1": "n2", "b.1": "n2"}
    assert plan.report.headroom["cpu"] == pytest.approx(1 - 90 / 200)


@pytest.mark.parametrize("where", ["section", "cluster", "argument"])
def test_a_file_says_it_as_a_section_or_in_its_cluster(where: str) -> None:
    content: dict[str, Any] = dict(TWO_TASKS)
    if where == "section":
        content["headroom"] = 0.2
    elif where == "cluster":
        content["cluster"] = {**content["cluster"], "headroom": {"cpu": 0.2}}
    plan = hr.place(content, headroom=0.2 if where == "argument" else None)
    assert_kept(plan, 0.2)
    assert plan.to_json()["report"]["survives"] == {"rate": 2.0, "any_node": True, "node": None}


def test_an_argument_goes_before_the_file_and_a_saved_plan_keeps_it(tmp_path: Path) -> None:
    content = {**TWO_TASKS, "cluster": {**TWO_TASKS["cluster"], "headroom": 0.5}}
    plan = hr.place(content, headroom=0)
    assert plan.report.inter_node_traffic == 0
    saved = hr.place(content, headroom=0.45).save(tmp_path / "plan.yaml")
    assert hr.load_plan(saved).problem.headroom["cpu"] == 0.45
    sized = hr.size(content, headroom=0.3).save(tmp_path / "sized.yaml")
    assert hr.load_plan(sized).problem.headroom["cpu"] == 0.3
    assert hr.load_plan(sized).problem.capacity[:, 0].tolist() == [100, 100]


@pytest.mark.parametrize(
    ("content", "headroom", "said"),
    [
        ({}, 1.0, "headroom: is 1.0; it must be less than 1"),
        ({}, -0.1, "headroom: is -0.1; it must be at least 0"),
        ({}, {"gpu": 0.2}, "no machine has `gpu`"),
        ({"headroom": 0.1, "cluster": {**TWO_TASKS["cluster"], "headroom": 0.2}}, None, "once"),
    ],
)
def test_a_headroom_that_cannot_be_meant_is_refused(
    content: Content, headroom: Any, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        hr.place({**TWO_TASKS, **content}, headroom=headroom)


@pytest.mark.parametrize("verb", [hr.place, hr.size])
def test_a_headroom_that_leaves_no_room_is_refused_by_name(verb: Any) -> None:
    # Of 100 MB, 5 are left: less than the 10 of any task.
    with pytest.raises(Infeasible, match=r"95 %") as refusal:
        verb(TWO_TASKS, headroom=0.95)
    assert "lower the headroom" in (refusal.value.fix or "")


def test_a_refused_topology_names_the_headroom() -> None:
    large = {"name": "large", "components": {"c": {"spout": True, "cpu": 90}}}
    small = {"name": "small", "components": {"c": {"spout": True, "cpu": 10}}}
    content = {"topologies": [small, large], "cluster": TWO_TASKS["cluster"]}
    plan = hr.place(content, headroom=0.2)
    assert "20 %" in str(plan.report.unplaced["large"]["message"])


def test_schedulers_with_a_ceiling_of_their_own_are_not_held_back_twice() -> None:
    # Ceiling 80 of 100 points. Shrunk once more it would be 64, and 50 + 25 would need two nodes.
    content = {
        "topology": {
            "components": {
                "a": {"spout": True, "rate": 10, "cpu": 50},
                "b": {"inputs": {"a": "shuffle"}, "cpu": 25},
            }
        },
        "cluster": {"nodes": {"n{1..2}": {"cpu": 100}}},
    }
    for scheduler in ("p-scheduler", "t3-scheduler", "i-scheduler"):
        plan = hr.place(content, by=scheduler, headroom=0.2)
        assert plan.report.nodes_used == 1, scheduler
        assert plan.report.gap == 0, scheduler


def test_a_plan_that_does_not_keep_it_is_behind_those_that_do() -> None:
    everything = {"n1": {"cpu": 100}, "n2": {"cpu": 100}}
    content = {**TWO_TASKS, "cluster": {"nodes": everything}}

    def all_on_one(problem: hr.Problem) -> dict[str, str]:
        return {problem.task_name(t): "n1" for t in range(problem.task_count)}

    table = hr.compare(content, by=[all_on_one, "headrace"], headroom=0.2)
    careless = table["all_on_one"]
    assert isinstance(careless, Plan)
    assert careless.report.feasible
    assert careless.report.gap is None
    assert any("10 % of its cpu left, 20 % were" in note for note in careless.report.notes)
    assert table.best is not None
    assert table.best.scheduler == "headrace"


def test_headrace_keeps_it_on_random_problems() -> None:
    planned = tight = 0
    for seed in range(120):
        random = Random(seed)
        content, headroom = draw_document(random), random.choice((0.1, 0.2, 0.35, 0.5))
        content.pop("options", None)  # a price of sending is CPU that no scheduler looks at
        objective = random.choice(("traffic", "network", "rate", "batch", "nodes", "balance"))
        with label_failure(seed=seed, headroom=headroom, objective=objective):
            try:
                plan = hr.place(content, headroom=headroom, objective=objective, steps=2000)
            except Infeasible:
                continue
            assert_kept(plan, headroom)
            planned += 1
            tight += plan.report.headroom.get("cpu", 1) < headroom + 0.2
    assert planned >= 40
    assert tight >= 15, "the headroom hardly ever mattered"


def test_size_and_plan_keep_it_on_random_problems() -> None:
    planned = 0
    for seed in range(5):
        content, headroom = random_sections(seed), Random(seed).choice((0.1, 0.2, 0.4))
        with label_failure(seed=seed, headroom=headroom):
            try:
                sized = hr.size(content, headroom=headroom)
                full = hr.size(content, headroom=0)
                plan = hr.plan(content, headroom=headroom)
            except HeadraceError:
                continue
            for found in (sized, plan):
                assert_kept(found, headroom)
                assert not breaks_headroom(found)
                assert found.report.survives.rate is not None
                assert found.report.survives.rate >= 1
            assert sized.report.max_rate is not None
            assert full.report.max_rate is not None
            assert sized.report.max_rate <= full.report.max_rate
            value = sized.report.bound.value
            assert value is None or sized.report.max_rate <= value * (1 + 1e-6)
            planned += 1
    assert planned >= 4


@pytest.mark.parametrize("headroom", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("wanted", [{"rate": 40.0}, {"budget": 6.0}])
def test_provision_keeps_it(headroom: float, wanted: dict[str, Any]) -> None:
    content = {
        "topology": TWO_TASKS["topology"],
        "catalog": {
            "small": {"price": 1, "cpu": 100, "memory_mb": 100},
            "large": {"price": 3.5, "cpu": 400, "memory_mb": 300},
        },
    }
    for by in hr.schedulers("provision"):
        with label_failure(by=by):
            try:
                plan = hr.provision(content, by=by, headroom=headroom, **wanted)
            except HeadraceError:
                continue
            assert_kept(plan, headroom)
            assert plan.report.cost is not None
            assert plan.report.cost <= wanted.get("budget", plan.report.cost)
    plan = hr.plan(content, headroom=headroom, **wanted)
    assert_kept(plan, headroom)


def test_provision_and_plan_keep_it_on_random_workloads() -> None:
    checked = tight = 0
    for seed in range(6):
        content, headroom = random_topology(4, kinds=2, seed=seed), (0.1, 0.25, 0.4)[seed % 3]
        wanted: dict[str, Any] = {"rate": 300.0} if seed % 2 else {"budget": 0.5}
        with label_failure(seed=seed, headroom=headroom, **wanted):
            rented = hr.provision(content, headroom=headroom, **wanted)
            planned = hr.plan(content, headroom=headroom, **wanted)
            for found in (rented, planned):
                assert found.report.feasible
                assert_kept(found, headroom)
                assert not breaks_headroom(found)
                checked += len(shares_in_use(found, "cpu"))
                tight += found.report.headroom["cpu"] < headroom + 0.05
    assert checked >= 12, "nodes"
    assert tight >= 6, "the headroom hardly ever mattered"


def test_the_starter_file_plans_nobody_above_four_fifths(tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    file.write_text(STARTER)
    assert_kept(hr.place(file), 0.2)
    assert max(shares_in_use(hr.place(file, headroom=0), "cpu").values()) > 0.9


@pytest.mark.parametrize("command", ["place", "compare", "size", "plan"])
def test_every_planning_command_takes_it(command: str, tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    file.write_text(STARTER)
    choice = ["--by", "headrace"] if command == "compare" else []
    for value in ("0.97", "cpu=0.97,memory_mb=0"):
        arguments = [command, str(file), "--headroom", value, *choice]
        result = CliRunner().invoke(main, arguments)
        assert "97 %" in result.output, result.output
    wrong = CliRunner().invoke(main, [command, str(file), "--headroom", "much"])
    assert wrong.exit_code == 2

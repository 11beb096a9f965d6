"""Nodes with what they hold: bars, limits, and tasks that are nowhere."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from headrace.checks.problems import problem_of
from headrace.errors import Infeasible
from headrace.model.problem import UNPLACED, Assignment
from headrace.page import page
from tests.page.pages import (
    TOGETHER,
    check_page,
    judge_plan,
    refuse_plan,
    word_count,
)


def test_a_topology_without_room_is_named_as_left_out() -> None:
    topologies = [
        {"name": name, "components": {"in": {"spout": True, "tasks": 2, "rate": 10}}}
        for name in ("small", "huge")
    ]
    problem = problem_of(
        {"topologies": topologies, "cluster": {"nodes": {"n": {"cpu": 1000, "slots": 4}}}}
    )
    refusal = Infeasible("task huge/in.1 fits no node", fix="add a node")
    plan = Assignment(
        np.array([0, 0, UNPLACED, UNPLACED]), np.array([0, 0, 0, 0]), {"huge": refusal}
    )
    words = "".join(
        check_page(
            page([judge_plan(problem, plan, "careful"), refuse_plan(problem)], title="Partly")
        ).visible
    )
    assert "incomplete: topology huge is not placed: task huge/in.1 fits no node" in words
    assert "2 tasks are not placed." in words
    assert "fits no node; add a node" in words


def test_unlimited_nodes_show_use_without_a_bar() -> None:
    problem = problem_of(word_count() | {"cluster": {"nodes": {"n1": {"slots": 2}}}})
    words = "".join(check_page(page([judge_plan(problem, TOGETHER)], title="Unlimited")).visible)
    assert "90, no limit" in words
    assert "bottleneck task " in words  # its one thread, since no node is ever full


def test_others_and_overloads_show_in_the_bars() -> None:
    content = word_count()
    content["cluster"]["nodes"]["n1"] |= {"taken": {"cpu": 40}}
    html = page([judge_plan(problem_of(content), TOGETHER)], title="Full")
    check_page(html)
    # 40 taken and 90 used of 100: the bar's scale is 130.
    assert (
        '<i class="others" style="width:30.8%"></i><i class="over" style="width:69.2%"></i>'
        '<b style="left:76.9%"></b>' in html
    )
    assert "CPU: 90 used by this plan, 40 taken by others, capacity 100" in html


def test_many_tasks_on_a_node_are_counted() -> None:
    problem = problem_of(word_count(split={"tasks": 60, "inputs": {"sentence": "shuffle"}}))
    words = "".join(check_page(page([judge_plan(problem, [(0, 0)] * 63)], title="Many")).visible)
    assert "63 tasks in 1 worker" in words
    assert "split × 60" in words


def test_bars_turn_amber_and_red_as_a_node_gets_full() -> None:
    drawn: dict[float, str] = {}
    for capacity in (200, 110, 92):  # 90 points are 45, 82 and 98 % of them
        content = word_count() | {"cluster": {"nodes": {"n": {"cpu": capacity, "slots": 2}}}}
        html = page([judge_plan(problem_of(content), TOGETHER)], title="Filling")
        (drawn[capacity],) = re.findall(r'CPU</span><span class="bar"><i class="(\w+)"', html)
    assert drawn == {200: "ours", 110: "warm", 92: "hot"}


def test_idle_nodes_are_drawn_small_and_counted_where_there_are_many() -> None:
    def idle(nodes: int) -> str:
        content = word_count() | {"cluster": {"nodes": {f"n{{1..{nodes}}}": {"cpu": 100}}}}
        return page([judge_plan(problem_of(content), TOGETHER)], title="Idle")

    assert re.findall(r'class="idle"[^>]*>(\w+)<', idle(4)) == ["n2", "n3", "n4"]
    assert 'class="idle"' not in idle(100)
    assert "And 99 idle nodes." in idle(100)


def test_a_component_its_tasks_and_its_streams_carry_one_letter() -> None:
    html = page([judge_plan(problem_of(word_count()), TOGETHER)], title="Letters")
    check_page(html)
    marks = Counter(re.findall(r'data-c="([A-Z ]+)"', html))
    # Each box and each entry of the legend, then the tasks: 2 of A, 2 of B, 1 of C.
    assert marks == {"A": 4, "B": 4, "C": 3, "A B": 1, "B C": 1}
    assert 'querySelectorAll("[data-c]")' in html

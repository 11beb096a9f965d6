"""Topologies as they are drawn: cycles, several, bare task graphs, too many components."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from headrace.checks.problems import Content, problem_of
from headrace.model.problem import Assignment
from headrace.page import page
from headrace.page.drawing import FITTING_SCALE, FRAME
from tests.page.pages import (
    SPREAD,
    check_page,
    judge_plan,
    word_count,
)


def test_cycles_are_drawn_dashed() -> None:
    assert "Dashed" not in page([judge_plan(problem_of(word_count()), SPREAD)], title="No cycle")
    loop: Content = {
        "split": {
            "tasks": 2,
            "inputs": {"sentence": "shuffle", "count": "all", "split": "shuffle"},
            "selectivity": 0.1,
        },
        "count": {"tasks": 1, "inputs": {"split": "shuffle"}},
    }
    html = page([judge_plan(problem_of(word_count(**loop)), SPREAD)], title="Cycle")
    check_page(html)
    assert "Dashed streams close a cycle." in html
    assert html.count('class="back"') == 2


def test_the_largest_topologies_are_drawn_and_the_others_listed() -> None:
    def line(tasks: int) -> Content:
        return {
            "in": {"spout": True, "tasks": tasks, "rate": 10},
            "out": {"tasks": 1, "inputs": {"in": "shuffle"}},
        }

    topologies = [{"name": f"t{size}", "components": line(size)} for size in (2, 9, 1, 5)]
    problem = problem_of(
        {"topologies": topologies, "cluster": {"nodes": {"n{1..2}": {"cpu": 1000, "slots": 4}}}}
    )
    owner = problem.topology[problem.component_of]
    html = page([judge_plan(problem, Assignment(np.zeros_like(owner), owner))], title="Four")
    words = "".join(check_page(html).visible)
    assert html.count('class="topology"') == 3
    assert re.findall(r"<title>Topology (\w+)", html) == ["t9", "t5", "t2"]
    assert "Also planned, not drawn: t1 (2 components, 2 tasks)." in words


def test_a_bare_task_graph_is_drawn_by_its_operators() -> None:
    tasks: Content = {
        "a": {"cpu": 1},
        "b1": {"cpu": 1, "component": "b"},
        "b2": {"cpu": 1, "component": "b"},
    }
    traffic = [["a", "b1", 3.0], ["a", "b2", 4.0]]
    problem = problem_of(
        {
            "tasks": tasks,
            "traffic": traffic,
            "cluster": {"nodes": {"n{1..2}": {"cpu": 3, "slots": 1}}},
        }
    )
    html = page([judge_plan(problem, [(0, 0), (0, 0), (1, 0)])], title="Bare")
    words = "".join(check_page(html).visible)
    assert html.count('class="box"') == 2
    assert "b1 … b2" in words
    assert "<title>a → b1 … b2\n7 tuples/s, 57 % between nodes" in html
    assert re.findall(r"<td>(\d+)</td><td>(\d+)</td><td>57 %</td><td>100 %</td>", html) == [
        ("7", "4")
    ]
    assert 'title="b2"' in html


def test_many_components_are_drawn_by_traffic_and_the_rest_counted() -> None:
    bolts: Content = {f"b{i}": {"inputs": {"in": {"grouping": "shuffle"}}} for i in range(70)}
    components: Content = {"in": {"spout": True, "rate": 10}, **bolts}
    problem = problem_of(
        {"topology": {"components": components}, "cluster": {"nodes": {"n": {"slots": 1}}}}
    )
    html = page([judge_plan(problem, [(0, 0)] * 71)], title="Wide")
    words = "".join(check_page(html).visible)
    assert html.count('class="box"') == 60
    assert "Not drawn: 11 components with less traffic and 11 streams." in words


@pytest.mark.parametrize("count", [1, 2, 6, 7, 12])
def test_a_chain_of_components_fits_the_frame_of_a_wide_page(count: int) -> None:
    names = [f"component-{i}" for i in range(count)]
    components: Content = {names[0]: {"spout": True, "rate": 12_000, "tasks": 4}}
    for source, name in pairwise(names):
        components[name] = {"inputs": {source: {"grouping": "fields", "fields": ["user"]}}}
    problem = problem_of(
        {"topology": {"components": components}, "cluster": {"nodes": {"n": {"slots": 1}}}}
    )
    html = page([judge_plan(problem, [(0, 0)] * problem.task_count)], title="Chain")
    ((width, narrowest),) = re.findall(
        r'viewBox="0 \S+ (\S+) \S+" style="[^"]*min-width:(\d+)px', html
    )
    assert float(width) * FITTING_SCALE <= FRAME + 1
    assert float(narrowest) < FRAME
    boxes = [float(x) for x in re.findall(r'<rect x="([\d.]+)"[^>]*class="box"', html)]
    wide = [float(w) for w in re.findall(r'<rect x="[^>]*width="([\d.]+)"[^>]*class="box"', html)]
    assert all(
        right - left >= w + 20 for left, right, w in zip(boxes, boxes[1:], wide, strict=False)
    )


def test_a_long_name_without_marks_is_cut_into_two_lines() -> None:
    names = ["in", *(f"deduplicating{i:02}" for i in range(11))]
    components: Content = {"in": {"spout": True, "rate": 10}}
    for source, name in pairwise(names):
        components[name] = {"inputs": {source: "shuffle"}}
    problem = problem_of(
        {"topology": {"components": components}, "cluster": {"nodes": {"n": {"slots": 1}}}}
    )
    html = page([judge_plan(problem, [(0, 0)] * 12)], title="Names")
    assert ">deduplic-</text>" in html
    assert ">ating00</text>" in html

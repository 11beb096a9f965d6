"""The curve of rate against cost."""

from __future__ import annotations

from headrace.checks.problems import problem_of
from headrace.page import page
from headrace.planner import CostCurve, Point
from tests.page.pages import (
    HOSTILE,
    SPREAD,
    check_page,
    judge_plan,
    word_count,
)


def test_the_curve_is_drawn_with_the_chosen_plan_and_what_it_holds_is_escaped() -> None:
    problem = problem_of(word_count())
    points = tuple(
        Point(cost, 10 * cost, {HOSTILE: int(cost)}, (cost, 11 * cost)) for cost in (1.0, 2.0, 4.0)
    )
    curve = CostCurve(points, points[1], tuple(p.limit for p in points if p.limit is not None))
    html = page([judge_plan(problem, SPREAD)], title="t", curve=curve)
    parser = check_page(html)
    assert "Rate against cost" in " ".join(parser.visible)
    assert [
        value for tag, key, value in parser.attributes if tag == "circle" and key == "class"
    ] == ["point", "chosen", "point"]
    assert HOSTILE not in html
    without = page([judge_plan(problem, SPREAD)], title="t")
    assert "Rate against cost" not in without


def test_a_chosen_plan_that_another_one_beats_is_still_shown() -> None:
    problem = problem_of(word_count())
    chosen = Point(3.0, 5.0, {"a": 3}, None)
    curve = CostCurve(
        (Point(1.0, 4.0, {"a": 1}, None), Point(2.0, 9.0, {"a": 2}, None)), chosen, ()
    )
    html = page([judge_plan(problem, SPREAD)], title="t", curve=curve)
    assert html.count('class="chosen"') == 1
    assert html.count('class="point"') == 2

"""Two plans on one page: without and with a what-if, before and after a move."""

from __future__ import annotations

import re

from headrace.checks.problems import problem_of
from headrace.errors import Infeasible
from headrace.move.steps import Moves
from headrace.page import page
from headrace.page.steps import steps_page
from headrace.planner import moving
from tests.page.pages import SPREAD, TOGETHER, check_page, judge_plan, word_count


def rows(html: str) -> dict[str, tuple[str, ...]]:
    """The cells of every row of the page's tables, without bars, by their first one."""
    found = re.findall(r'<tr><th scope="row">([^<]+)</th>(.*?)</tr>', html)
    return {name: tuple(re.findall(r"<td>([^<]*)</td>", cells)) for name, cells in found}


def test_a_what_if_shows_every_figure_and_node_without_and_with_it() -> None:
    problem = problem_of(word_count())
    without, with_it = judge_plan(problem, SPREAD), judge_plan(problem, TOGETHER)
    html = page([with_it], title="t", before=[without])
    words = "".join(check_page(html).visible)
    assert "Without and with it" in words
    assert rows(html)["inter node traffic"] == ("400", "0", "-400 (-100.0 %)")
    assert rows(html)["n1"] == ("3", "5", "60 → 90")
    assert rows(html)["n2"] == ("2", "–", "30 → idle")
    assert "n2 → n1: sentence.2, split.2" in words
    assert "Without and with it" not in page([with_it], title="t")


def test_a_what_if_that_makes_a_plan_possible_says_what_was_missing() -> None:
    plan = judge_plan(problem_of(word_count()), TOGETHER)
    words = "".join(check_page(page([plan], before=Infeasible("no room for count.1"))).visible)
    assert "Without the change there is no plan. no room for count.1" in words


def test_a_move_shows_both_plans() -> None:
    content = word_count()
    for node in content["cluster"]["nodes"].values():
        node["bandwidth_mbps"] = 100
    problem = problem_of(content)
    old, new = judge_plan(problem, SPREAD), judge_plan(problem, TOGETHER)
    change = moving.move(old, new)
    html = steps_page(change.moves, change.gains, title="Move", plans=(old, new))
    check_page(html)
    assert rows(html)["nodes used"] == ("2", "1", "-1 (-50.0 %)")
    alone: Moves = moving.move_blocks("4x2:4x3")
    assert "Before and after" not in steps_page(alone, title="Blocks")

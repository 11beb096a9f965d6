"""Plans, comparisons and problems in a notebook: whole, harmless, styling only themselves."""

from __future__ import annotations

import re
from random import Random

import pytest

from headrace.checks.problems import draw_assignment, draw_document, problem_of
from headrace.errors import InvalidInput
from headrace.page import comparison_fragment, plan_fragment, problem_fragment
from tests.failures import label_failure
from tests.page.pages import (
    HOSTILE,
    OVERLOADED,
    SPREAD,
    TOGETHER,
    check_fragment,
    judge_plan,
    refuse_plan,
    word_count,
)


def test_a_plan_in_a_notebook_shows_its_meaning_its_streams_and_its_nodes() -> None:
    problem = problem_of(word_count())
    html = plan_fragment(judge_plan(problem, SPREAD, "wide"))
    words = "".join(check_fragment(html).visible)
    assert "wide keeps 50 % of the traffic inside nodes and uses 2 of 3 nodes" in words
    assert html.count('class="hr-topology"') == 1
    assert html.count("<article ") == 2
    assert 'title="sentence.2"' in html
    assert html == plan_fragment(judge_plan(problem, SPREAD, "wide"))


def test_a_notebook_says_why_a_plan_is_not_feasible_or_missing() -> None:
    problem = problem_of(word_count())
    rash = "".join(check_fragment(plan_fragment(judge_plan(problem, OVERLOADED, "rash"))).visible)
    assert "rash: not feasible.node n3: cpu needed 90, free 25" in rash
    shy = "".join(check_fragment(plan_fragment(refuse_plan(problem))).visible)
    assert shy == "shy: no plan.cannot cut cycles; use a3-storm"


def test_a_comparison_in_a_notebook_is_one_table_with_the_best_first() -> None:
    problem = problem_of(word_count())
    results = [
        refuse_plan(problem),
        judge_plan(problem, OVERLOADED, "rash"),
        judge_plan(problem, SPREAD, "wide"),
        judge_plan(problem, TOGETHER, "tight"),
    ]
    html = comparison_fragment(results)
    check_fragment(html)
    rows = re.findall(r'<th scope="row">(\w+)', html)
    assert rows == ["tight", "wide", "rash", "shy"]
    assert '<tr class="hr-best"><th scope="row">tight' in html
    none = "".join(check_fragment(comparison_fragment(results[:2])).visible)
    assert "No feasible plan." in none
    with pytest.raises(InvalidInput, match="at least one"):
        comparison_fragment([])


def test_a_problem_in_a_notebook_is_drawn_with_its_nodes_those_alike_together() -> None:
    html = problem_fragment(problem_of(word_count()))
    words = "".join(check_fragment(html).visible)
    assert "word-count (3 components, 5 tasks) on 3 nodes" in words
    assert "between nodes" not in words  # nothing is placed yet
    rows = re.findall(r'<th scope="row">([^<]+)</th><td>([^<]*)</td><td>[^<]*</td><td>(\d+)', html)
    assert rows == [("n1 … n2", "× 2", "100"), ("n3", "", "25")]


def test_names_in_notebooks_stay_text() -> None:
    content = word_count(**{HOSTILE: {"tasks": 1, "inputs": {"split": "shuffle"}}})
    content["cluster"]["nodes"] = {'<i class="x">': {"cpu": 500, "slots": 2, "type": "</style>"}}
    problem = problem_of(content)
    result = judge_plan(problem, [(0, 0)] * 6, "</script><b>evil")
    for html in (plan_fragment(result), comparison_fragment([result]), problem_fragment(problem)):
        check_fragment(html)
        assert "<b>evil" not in html
        assert '<i class="x">' not in html
        assert html.count("</style>") == 1


def test_any_problem_and_any_plan_gives_whole_fragments() -> None:
    for seed in range(20):
        with label_failure(seed=seed):
            random = Random(seed)
            problem = problem_of(draw_document(random))
            result = judge_plan(problem, draw_assignment(random, problem))
            for html in (
                plan_fragment(result),
                comparison_fragment([result, refuse_plan(problem)]),
                problem_fragment(problem),
            ):
                check_fragment(html)
                text = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
                assert not re.search(r"\b(nan|inf|None)\b", text)

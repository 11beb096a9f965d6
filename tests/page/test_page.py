"""The HTML report: complete, harmless, the same every time, and small for large problems."""

from __future__ import annotations

import re
import time
from random import Random

import numpy as np
import pytest

from headrace.checks.problems import Content, draw_assignment, draw_document, problem_of
from headrace.errors import Infeasible, InvalidInput
from headrace.model.problem import Assignment
from headrace.page import page
from headrace.planner import Refusal
from tests.failures import label_failure
from tests.page.pages import (
    HOSTILE,
    OVERLOADED,
    SPREAD,
    TOGETHER,
    check_page,
    judge_plan,
    refuse_plan,
    word_count,
)


def test_the_headline_says_what_the_best_plan_means() -> None:
    problem = problem_of(word_count())
    parser = check_page(
        page(
            [judge_plan(problem, SPREAD, "wide"), judge_plan(problem, TOGETHER, "tight")],
            title="Demo",
        )
    )
    words = "".join(parser.visible)
    assert "tight keeps 100 % of the traffic inside nodes and uses 1 of 3 nodes" in words
    assert "sustains 1.11× the given rates; bottleneck node n1: cpu" in words
    assert "No plan can do better in traffic between nodes (exact bound)." in words


def test_the_best_plan_shows_without_script_and_the_others_are_hidden() -> None:
    problem = problem_of(word_count())
    html = page(
        [judge_plan(problem, SPREAD, "wide"), judge_plan(problem, TOGETHER, "tight")], title="Demo"
    )
    parser = check_page(html)
    assert [value for _, key, value in parser.attributes if key == "data-plan"] == ["0", "1"]
    assert "tight: 1 node, 1 worker, 0 of 800 tuples/s between nodes" in "".join(parser.visible)
    assert "wide: 2 nodes, 3 workers" not in "".join(parser.visible)
    assert "wide: 2 nodes, 3 workers" in "".join(parser.text)
    assert 'class="idle" title="idle, 25 cpu, 1,000 memory_mb">n3</span>' in html
    assert '<label class="chooser" hidden>' in html
    assert 'title="sentence.2"' in html


def test_infeasible_and_refused_results_are_marked_with_their_reason() -> None:
    problem = problem_of(word_count())
    results = [
        refuse_plan(problem),
        judge_plan(problem, OVERLOADED, "rash"),
        judge_plan(problem, SPREAD, "wide"),
    ]
    html = page(results, title="Demo")
    words = "".join(check_page(html).visible)
    assert "infeasible: node n3: cpu needed 90, free 25" in words
    assert "refused: cannot cut cycles. Fix: use a3-storm." in words
    charts = re.findall(r'<li class="(\w*)"[^>]*><span class="name">(\w+)', html)
    assert charts[:3] == [("best", "wide"), ("infeasible", "rash"), ("infeasible", "shy")]
    assert "Hatched" in words


def test_without_a_feasible_plan_the_page_says_why() -> None:
    problem = problem_of(word_count())
    words = "".join(
        check_page(
            page([judge_plan(problem, OVERLOADED, "rash"), refuse_plan(problem)], title="Demo")
        ).visible
    )
    assert "No feasible plan." in words
    assert "rash: node n3: cpu needed 90, free 25" in words
    assert "shy: cannot cut cycles" in words
    assert "sustains" not in words
    check_page(page([refuse_plan(problem)], title="Only a refusal"))


def test_a_page_about_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        page([], title="Empty")


def test_one_scheduler_needs_no_choice_and_no_bars() -> None:
    html = page([judge_plan(problem_of(word_count()), SPREAD)], title="One")
    check_page(html)
    assert "<select" not in html
    assert 'class="charts"' not in html


def test_the_costliest_stream_comes_first_with_its_share() -> None:
    problem = problem_of(word_count())
    html = page([judge_plan(problem, SPREAD)], title="Demo")
    # sentence: half of 100 crosses; split: half of its 700 is emitted on n2 and counted on n1.
    rows = re.findall(
        r'<th scope="row">(\S+ → \S+?)<small>[^<]*</small></th><td>(\S+)</td><td>(\S+)</td>', html
    )
    assert rows == [("split → count", "700", "350"), ("sentence → split", "100", "50")]


def test_names_from_files_stay_text() -> None:
    content = word_count(
        **{
            HOSTILE: {
                "tasks": 1,
                "inputs": {"split": {"grouping": "fields", "fields": ["</svg><b>"]}},
            }
        }
    )
    content["topology"]["name"] = "<img src=x>"
    content["cluster"]["nodes"] = {
        f"<i>{n}'\"": {"cpu": 10, "slots": 2, "type": "</style>", "rack": "<u>"} for n in range(2)
    }
    problem = problem_of(content)
    result = judge_plan(problem, [(t % 2, 0) for t in range(6)], "</script><b>evil")
    refusal = Refusal("<a>", "traffic", 0, 0.0, problem, Infeasible("<em>no", fix="<em>yes"))
    html = page([result, refusal], title="</title><b>", command='headrace <x> && "y"')
    parser = check_page(html)
    assert not [
        tag
        for tag in ("<b>evil", "<img", "<em", "<u>", "<i>", "alert('x')<", "</title><b>")
        if tag in html
    ]
    assert HOSTILE in "".join(parser.text)
    assert 'headrace <x> && "y"' in parser.text


def test_the_same_results_give_the_same_bytes() -> None:
    content = draw_document(Random(5))

    def once() -> str:
        problem = problem_of(content)
        return page(
            [judge_plan(problem, draw_assignment(Random(6), problem)), refuse_plan(problem)],
            title="Same",
        )

    assert once() == once()


def test_any_problem_and_any_plan_gives_a_whole_page() -> None:
    for seed in range(40):
        with label_failure(seed=seed):
            random = Random(seed)
            problem = problem_of(draw_document(random))
            objectives = ("traffic", "rate", "batch", "nodes", "balance")
            results = [
                judge_plan(
                    problem,
                    draw_assignment(random, problem),
                    f"s{i}",
                    objective=objectives[seed % len(objectives)],
                )
                for i in range(3)
            ]
            html = page([*results, refuse_plan(problem)], title=f"Problem {seed}")
            check_page(html)
            assert not re.search(
                r"\b(nan|inf|None)\b", re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
            )


def test_a_large_problem_gives_a_small_page_quickly() -> None:
    components: Content = {
        f"stage-{i}": {"tasks": 2500, "cpu": 2, "memory_mb": 10} for i in range(40)
    }
    for i, spec in enumerate(components.values()):
        spec |= (
            {"spout": True, "rate": 50000}
            if i < 4
            else {"inputs": {f"stage-{i - 4}": "shuffle", f"stage-{i // 2}": "shuffle"}}
        )
    nodes = {"n-{1..1000}": {"cpu": 400, "memory_mb": 4000, "slots": 4, "bandwidth_mbps": 1000}}
    problem = problem_of(
        {"topology": {"name": "large", "components": components}, "cluster": {"nodes": nodes}}
    )
    tasks = np.arange(problem.task_count)
    plans = [
        judge_plan(problem, Assignment(tasks % (1000 - i), tasks // 1000 % 4), f"s{i}")
        for i in range(3)
    ]
    start = time.process_time()
    html = page(plans * 8, title="Large")
    took_s = time.process_time() - start
    check_page(html)
    assert len(html.encode()) < 2_000_000
    assert took_s < 10  # takes half a second; the slack is for a busy machine
    assert "All 1,000 nodes, rack by rack" in html

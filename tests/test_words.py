"""Sentences about a plan: what it means, why it is not feasible, how far from the best."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.checks.problems import problem_of
from headrace.judge.bounds import Bound
from headrace.words import distance, headline, plan_of, reasons, state
from tests.page.pages import (
    OVERLOADED,
    SPREAD,
    TOGETHER,
    judge_plan,
    refuse_plan,
    word_count,
)


def test_sentences_about_a_plan_say_what_it_means() -> None:
    problem = problem_of(word_count())
    together, spread = judge_plan(problem, TOGETHER, "tight"), judge_plan(problem, SPREAD, "wide")
    assert (found := plan_of(spread)) is not None
    assert headline(found) == (
        "Feasible, although the best possible is 0: 400 of 800 tuples/s cross between nodes. "
        "n1 is the bottleneck with 40 % of its cpu left. "
        "By wide. 50 % of the traffic stays inside nodes, 750 tuples/s cross between workers. "
        "2 of 3 nodes, 3 workers. Sustains 1.67× the given rates. "
        "Left free on the fullest node: 40 % of its cpu, 81 % of its memory_mb. "
        "Any one node may be lost. "
        "A batch takes 600 ms of work."
    )
    assert (best := plan_of(together)) is not None
    assert headline(best).startswith("Proven optimal: 0 of 800 tuples/s cross between nodes. ")
    assert plan_of(refuse_plan(problem)) is None
    assert reasons(refuse_plan(problem), fixes=True) == ["cannot cut cycles; use a3-storm"]
    assert reasons(judge_plan(problem, OVERLOADED))[0] == "node n3: cpu needed 90, free 25"
    assert [
        state(r) for r in (together, judge_plan(problem, OVERLOADED), refuse_plan(problem))
    ] == [
        "feasible",
        "infeasible",
        "refused",
    ]


@pytest.mark.parametrize(
    ("gap", "value", "proven", "word", "sentence"),
    [
        (None, None, False, "unknown", "No bound on the best possible cost is known."),
        (1e-12, 5.0, True, "0 %", "No plan can do better in cost (some bound)."),
        (
            0.0005,
            5.0,
            False,
            "under 0.1 %",
            "Under 0.1 % from the best possible cost (some bound).",
        ),
        (0.012, 5.0, False, "≤ 1.2 %", "At most 1.2 % from the best possible cost (some bound)."),
        (1.0, 0.0, True, "100 %", "The best possible cost is 0 (some bound)."),
        (
            1.0,
            0.0,
            False,
            "unknown",
            "How far the best possible cost is from this is not known (some bound: 0).",
        ),
    ],
)
def test_the_distance_to_the_bound_reads_well(
    gap: float | None, value: float | None, proven: bool, word: str, sentence: str
) -> None:
    problem = problem_of(word_count())
    report = judge_plan(problem, TOGETHER).report
    assert report is not None
    report = replace(report, gap=gap, bound=Bound("cost", value, proven, "some"))
    assert distance(report) == (word, sentence)

"""The scoreboard: ratios to the best rival, feasible plans only, `optimal` apart."""

from __future__ import annotations

import math

import pytest

from headrace.lab.jobs import RESULTS, Row
from headrace.lab.scoreboard import above_best, picture, scores, table


def row(
    problem: str,
    scheduler: str,
    traffic: float | None,
    status: str = "feasible",
    rate: float | None = None,
) -> Row:
    empty: Row = dict.fromkeys(RESULTS.names)
    return empty | {
        "family": "f", "problem": problem, "scheduler": scheduler, "seed": 0,
        "objective": "traffic" if rate is None else "rate",
        "status": status, "inter_node_traffic": traffic, "max_rate": rate, "nodes_used": 2,
        "seconds": 0.1,
    }  # fmt: skip


ROWS = [
    row("p", "headrace", 10.0),
    row("p", "optimal", 8.0),
    row("p", "storm-even", 40.0),
    row("p", "rstorm", 5.0, "infeasible"),
    row("q", "headrace", 0.0),
    row("q", "optimal", 0.0),
    row("q", "storm-even", 3.0),
    row("q", "rstorm", None, "refused"),
]


def test_infeasible_plans_do_not_count_and_optimal_is_no_rival() -> None:
    found = scores(ROWS, "traffic")
    assert found["f", "headrace"].ratios == [1.0, 1.0]
    assert found["f", "optimal"].ratios == [0.8, 1.0]
    assert found["f", "storm-even"].ratios == [4.0, math.inf]
    assert found["f", "storm-even"].mean == pytest.approx(4.0)
    assert (
        found["f", "rstorm"].infeasible,
        found["f", "rstorm"].refused,
        found["f", "rstorm"].ratios,
    ) == (1, 1, [])
    assert above_best(found) == []
    assert above_best(found, "storm-even") == ["f: inf"]


def test_a_larger_rate_is_better_and_no_limit_is_best() -> None:
    found = scores(
        [row("p", "headrace", None, rate=2.0), row("p", "storm-even", None, rate=1.0)], "rate"
    )
    assert found["f", "storm-even"].ratios == [2.0]
    assert found["f", "headrace"].best == 1


def test_the_table_names_everybody_and_the_picture_draws_them() -> None:
    found = scores(ROWS, "traffic")
    text = table(found, "traffic")
    assert "| `storm-even` | 4.00 (0 of 2), 1 × ∞ |" in text
    assert "| `rstorm` | – |" in text
    assert (
        picture(found, "t", ["headrace", "storm-even"]).count("<rect") == 3
    )  # the ground and two bars

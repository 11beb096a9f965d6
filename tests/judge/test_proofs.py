"""A proof that an algorithm brings is checked by the judge, and kept if it holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headrace.judge.report import confirm_proof
from headrace.lab.calibrate import CLUSTERS, layouts, problem_of
from headrace.model.problem import Assignment, Problem, StatedProof
from headrace.place.building_blocks.exact_model import ALIKE, DIFFERENT
from headrace.planner import place

FIGURE = "inter_node_traffic"


@pytest.fixture(scope="module")
def star() -> Problem:
    """The star of 14 tasks, every load and rate different, on unequal nodes."""
    return problem_of(list(layouts(14))[2], CLUSTERS[1], DIFFERENT)


def test_the_proof_of_the_optimum_is_kept(star: Problem) -> None:
    plan = place(star, "optimal")
    assert plan.assignment.proof is not None
    assert plan.report.bound.proven
    assert plan.report.gap == 0
    assert not any("could not confirm" in note for note in plan.report.notes)


def test_it_is_kept_where_the_judge_itself_would_not_look_for_one() -> None:
    # Above 60 tasks the judge gives a bound only.
    alike = problem_of([(2, [i - 1] if i else []) for i in range(32)], (4,) * 16, ALIKE)
    plan = place(alike, "optimal")
    # 31 streams of 4 pairs; each of 16 full nodes keeps the 4 pairs of two neighbouring operators.
    assert plan.report.bound.value == 31 * 4 - 16 * 4
    assert plan.report.bound.proven


def liar(value: float, of: str = FIGURE) -> Any:
    """A scheduler that says its plan is the best there is."""

    def one_task_per_node(problem: Problem) -> Assignment:
        nodes = np.arange(problem.task_count) % len(problem.nodes)
        return Assignment(nodes, np.zeros_like(nodes), proof=StatedProof(of, value, steps=2_000))

    return one_task_per_node


@pytest.fixture(scope="module")
def chain() -> Problem:
    """Six tasks in a row, of which any two neighbours could share a node."""
    return problem_of([(1, [i - 1] if i else []) for i in range(6)], (2,) * 6, ALIKE)


@pytest.mark.parametrize(
    ("value", "of"),
    [
        (5.0, FIGURE),  # what its plan has, but two would do
        (2.0, FIGURE),  # the optimum, but its plan has five
        (9.0, FIGURE),
        (5.0, "nodes_used"),
        (5.0, "no such figure"),
    ],
)
def test_a_proof_that_does_not_hold_is_not_kept(chain: Problem, value: float, of: str) -> None:
    report = place(chain, liar(value, of)).report
    assert report.inter_node_traffic == 5
    assert report.bound.value == 2
    assert report.gap == pytest.approx(0.6)
    assert any("could not confirm" in note for note in report.notes)


def test_the_proof_of_a_plan_that_breaks_a_rule_is_not_kept(chain: Problem) -> None:
    together = np.zeros(6, dtype=np.int64)
    overloaded = Assignment(together, together, proof=StatedProof(FIGURE, 0.0, steps=10))
    assert confirm_proof(chain, overloaded) is None
    roomy = replace(chain, capacity=np.full_like(chain.capacity, 6.0))
    found = confirm_proof(roomy, overloaded)
    assert found is not None
    assert found.proven


def test_a_plan_without_a_proof_has_none_to_confirm(chain: Problem) -> None:
    assert confirm_proof(chain, place(chain, "headrace").assignment) is None

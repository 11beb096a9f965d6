"""What a move costs where workers start again, as on Storm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.checks.problems import problem_of
from headrace.control.planning import Candidate
from headrace.model.problem import Assignment
from headrace.planner import place

PROBLEM = problem_of(
    {
        "topology": {"components": {"a": {"spout": True, "rate": 1, "tasks": 4}}},
        "cluster": {"nodes": {"n1": {"slots": 4}}},
    }
)


def candidate(before: list[int], after: list[int]) -> Candidate:
    old, new = (Assignment(np.zeros(4, np.int64), np.array(slots)) for slots in (before, after))
    return Candidate(replace(place(PROBLEM, "storm-even"), assignment=new), old, None)


def test_workers_that_keep_their_tasks_go_on() -> None:
    # Of four workers two swap a task: half of all work waits for 8.5 s.
    found = candidate([0, 1, 2, 3], [1, 0, 2, 3])
    assert found.pause_s(8.5) == pytest.approx(8.5 / 2)
    assert candidate([0, 1, 2, 3], [0, 1, 2, 3]).pause_s(8.5) == 0
    assert candidate([0, 0, 1, 1], [0, 1, 0, 1]).pause_s(8.5) == 8.5


def test_nothing_starts_again_where_an_engine_moves_tasks_alone() -> None:
    assert candidate([0, 1, 2, 3], [1, 0, 2, 3]).pause_s(0.0) == 0

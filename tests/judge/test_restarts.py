"""Workers that a change of plan starts again."""

from __future__ import annotations

import numpy as np

from headrace.checks.problems import problem_of
from headrace.judge.diff import restarted_workers
from headrace.model.problem import Assignment, Problem


def problem(tasks: int = 4) -> Problem:
    return problem_of(
        {
            "topology": {"components": {"a": {"spout": True, "rate": 1, "tasks": tasks}}},
            "cluster": {"nodes": {"n1": {}, "n2": {}}},
        }
    )


def plan(*places: tuple[int, int]) -> Assignment:
    node, worker = zip(*places, strict=True)
    return Assignment(np.array(node), np.array(worker))


def test_nothing_starts_again_where_nothing_changes() -> None:
    same = plan((0, 0), (0, 0), (1, 0), (1, 1))
    assert restarted_workers(problem(), same, problem(), same) == 0


def test_a_task_that_moves_starts_two_workers_again() -> None:
    before, after = (plan((0, 0), (0, 0), (1, 0), last) for last in ((1, 1), (0, 0)))
    assert restarted_workers(problem(), before, problem(), after) == 1  # the one it left is gone
    before, after = (plan((0, 0), second, (1, 0), (1, 1)) for second in ((0, 0), (1, 1)))
    assert restarted_workers(problem(), before, problem(), after) == 2


def test_two_tasks_that_change_places_start_two_workers_again() -> None:
    before = plan((0, 0), (0, 0), (1, 0), (1, 1))
    after = plan((1, 0), (0, 0), (0, 0), (1, 1))
    assert restarted_workers(problem(), before, problem(), after) == 2


def test_a_new_task_starts_its_worker_again() -> None:
    before = plan((0, 0), (0, 0), (1, 0), (1, 1))
    after = plan((0, 0), (0, 0), (1, 0), (1, 1), (1, 1))
    assert restarted_workers(problem(), before, problem(5), after) == 1
    assert restarted_workers(problem(5), after, problem(), before) == 1

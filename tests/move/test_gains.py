"""The gain of a single move, against the judge before and after it."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from headrace.checks.problems import draw_document, problem_of
from headrace.judge.traffic import traffic
from headrace.model.problem import Assignment, Problem
from headrace.move.gains import Gains


def between_nodes(problem: Problem, node: np.ndarray) -> float:
    return traffic(problem, Assignment(node, np.zeros_like(node))).inter_node


def test_every_gain_is_what_the_judge_says_before_and_after() -> None:
    compared = 0
    for seed in range(120):
        random = Random(seed)
        problem = problem_of(draw_document(random))
        if any(s.grouping == "local-or-shuffle" for s in problem.streams):
            continue  # counted as shuffle for the order; reported figures are the judge's
        node = np.array([random.randrange(len(problem.nodes)) for _ in range(problem.task_count)])
        target = np.array([random.randrange(len(problem.nodes)) for _ in range(problem.task_count)])
        gains = Gains(problem, Assignment(node, np.zeros_like(node)), target)
        for _ in range(6):
            now = between_nodes(problem, node)
            told = gains.of(np.arange(problem.task_count))
            for t in range(problem.task_count):
                there = node.copy()
                there[t] = target[t]
                assert told[t] == pytest.approx(
                    now - between_nodes(problem, there), abs=1e-9 * max(1.0, now)
                ), (seed, t)
                compared += 1
            t = random.randrange(problem.task_count)
            before = gains.snapshot()
            gains.move(t, random.randrange(len(problem.nodes)))
            gains.restore(before)
            to = int(target[t]) if random.random() < 0.5 else random.randrange(len(problem.nodes))
            gain = gains.move(t, to)
            node[t] = to
            assert gain == pytest.approx(
                now - between_nodes(problem, node), abs=1e-9 * max(1.0, now)
            )
    assert compared > 3000

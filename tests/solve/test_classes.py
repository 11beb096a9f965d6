"""Classes of interchangeable tasks say the same as the problem, and give every task a node."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from headrace.checks.problems import draw_document, problem_of
from headrace.judge.traffic import traffic
from headrace.model.arrays import Ints
from headrace.model.problem import Assignment, Problem
from headrace.solve.classes import classes_of
from tests.failures import label_failure

SEEDS = range(60)


def random_problem(seed: int) -> Problem:
    return problem_of(draw_document(Random(seed)))


def random_nodes(problem: Problem, seed: int) -> Ints:
    return np.random.default_rng(seed).integers(0, len(problem.nodes), problem.task_count)


def crossing_tuples(problem: Problem, node: Ints) -> float:
    return traffic(problem, Assignment(node, np.zeros_like(node))).inter_node


def test_what_crosses_between_classes_is_what_crosses_between_tasks() -> None:
    crossing = 0
    for seed in SEEDS:
        with label_failure(seed=seed):
            problem = random_problem(seed)
            if any(s.grouping == "local-or-shuffle" for s in problem.streams):
                continue
            node = random_nodes(problem, seed)
            classes = classes_of(problem)
            expected = crossing_tuples(problem, node)
            found = classes.instance.crossing(classes.counts(node))
            assert found == pytest.approx(expected, abs=1e-6)
            crossing += expected > 0
    assert crossing >= 20, "too few problems with traffic between nodes"


def test_with_at_least_no_plan_crosses_less_than_the_classes_say() -> None:
    crossing = 0
    for seed in SEEDS:
        with label_failure(seed=seed):
            problem = random_problem(seed)
            node = random_nodes(problem, seed)
            classes = classes_of(problem, at_least=True)
            found = classes.instance.crossing(classes.counts(node))
            assert found <= crossing_tuples(problem, node) + 1e-6
            crossing += found > 0
    assert crossing >= 25, "too few problems with traffic between nodes"


def test_demand_of_the_classes_is_demand_of_their_tasks() -> None:
    for seed in SEEDS:
        with label_failure(seed=seed):
            problem = random_problem(seed)
            classes = classes_of(problem)
            sizes = np.diff(classes.first)
            owner = np.empty(problem.task_count, dtype=np.int64)
            owner[classes.order] = np.repeat(np.arange(len(classes.component)), sizes)
            resources = len(problem.resources)  # what follows them keeps classes apart
            for y in range(len(problem.types)):
                own = classes.instance.demand[y][owner][:, :resources]
                assert own == pytest.approx(problem.task_demand(y))


def test_every_task_gets_a_node_and_stays_where_it_may() -> None:
    moves = 0
    for seed in SEEDS:
        with label_failure(seed=seed):
            problem = random_problem(seed)
            node, other = random_nodes(problem, seed), random_nodes(problem, seed + 1000)
            classes = classes_of(problem)
            x = classes.counts(node)
            assert (classes.counts(classes.nodes(x)) == x).all()
            assert (classes.nodes(x, node) == node).all()
            moved = (classes.nodes(classes.counts(other), node) != node).sum()
            fewest = np.maximum(classes.counts(other) - x, 0).sum()
            assert moved == fewest
            moves += moved > 0
    assert moves >= 30, "too few problems in which a task has to move"

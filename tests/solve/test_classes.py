"""Classes of alike tasks: they say the same as the problem, and give every task a node."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from headrace.judge.traffic import traffic
from headrace.model.problem import Assignment, Problem
from headrace.solve.classes import classes_of
from tests.problems import document, problem_of

SEEDS = range(60)


def random_problem(seed: int) -> Problem:
    return problem_of(document(Random(seed)))


def random_nodes(problem: Problem, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.random.default_rng(seed).integers(0, len(problem.nodes), problem.task_count)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_crosses_between_classes_is_what_crosses_between_tasks(seed: int) -> None:
    problem = random_problem(seed)
    if any(s.grouping == "local-or-shuffle" for s in problem.streams):
        return
    node = random_nodes(problem, seed)
    classes = classes_of(problem)
    crossing = classes.instance.crossing(classes.counts(node))
    assert crossing == pytest.approx(
        traffic(problem, Assignment(node, np.zeros_like(node))).inter_node, abs=1e-6
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_with_at_least_no_plan_crosses_less_than_the_classes_say(seed: int) -> None:
    problem = random_problem(seed)
    node = random_nodes(problem, seed)
    classes = classes_of(problem, at_least=True)
    crossing = classes.instance.crossing(classes.counts(node))
    assert crossing <= traffic(problem, Assignment(node, np.zeros_like(node))).inter_node + 1e-6


@pytest.mark.parametrize("seed", SEEDS)
def test_demand_of_the_classes_is_demand_of_their_tasks(seed: int) -> None:
    problem = random_problem(seed)
    classes = classes_of(problem)
    owner = np.empty(problem.task_count, dtype=np.int64)
    owner[classes.order] = np.repeat(np.arange(len(classes.component)), np.diff(classes.first))
    for y in range(len(problem.types)):
        own = classes.instance.demand[y][owner][
            :, : len(problem.resources)
        ]  # what follows keeps classes apart
        assert own == pytest.approx(problem.task_demand(y))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_task_gets_a_node_and_stays_where_it_may(seed: int) -> None:
    problem = random_problem(seed)
    node = random_nodes(problem, seed)
    classes = classes_of(problem)
    x = classes.counts(node)
    assert (classes.counts(classes.nodes(x)) == x).all()
    assert (classes.nodes(x, node) == node).all()
    other = random_nodes(problem, seed + 1000)
    moved = (classes.nodes(classes.counts(other), node) != node).sum()
    fewest = np.maximum(classes.counts(other) - x, 0).sum()
    assert moved == fewest

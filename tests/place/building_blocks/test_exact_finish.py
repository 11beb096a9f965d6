"""The last step on small problems: the least traffic there is, whatever the search ended with."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from headrace.checks.problems import problem_of
from headrace.lab.families import random_sections
from headrace.model.arrays import Ints
from headrace.model.request import Request
from headrace.place.building_blocks.exact_finish import MOST_COLUMNS, finish_exactly
from headrace.planner import place
from headrace.solve.instance import Instance
from headrace.solve.proof import integer_program
from headrace.solve.proof.integer_program import IntegerProgram, Outcome
from tests.failures import label_failure
from tests.solve.small_instances import fits, small_instance, spread

# Two pairs that exchange 5, joined by a stream of 1, two tasks to a node: 1 crosses at least.
PAIRS = Instance(
    count=np.ones(4, dtype=np.int64),
    edge_a=np.array([0, 1, 2]),
    edge_b=np.array([1, 2, 3]),
    edge_weight=np.array([5.0, 1.0, 5.0]),
    demand=np.ones((1, 4, 1)),
    node_type=np.zeros(2, dtype=np.int64),
    capacity=np.full((2, 1), 2.0),
    allowed=np.ones((4, 2), dtype=np.bool_),
    apart=np.zeros(4, dtype=np.bool_),
    group=np.zeros(4, dtype=np.int64),
    slots=np.full(2, 4, dtype=np.int64),
    heap=np.array([np.inf]),
    memory=np.zeros(4),
)
TORN = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])


def test_pairs_that_the_search_tore_apart_are_joined() -> None:
    assert PAIRS.crossing(TORN) == 11
    x, proven = finish_exactly(PAIRS, TORN, Request())
    assert PAIRS.crossing(x) == 1
    assert proven


def test_a_number_of_steps_leaves_the_search_as_it_is() -> None:
    x, proven = finish_exactly(PAIRS, TORN, Request(steps=10))
    assert x is TORN
    assert not proven


def list_plans(instance: Instance) -> list[Ints]:
    """All counts that fit."""
    nodes = len(instance.node_type)
    every = product(*(list(spread(int(n), nodes)) for n in instance.count))
    return [x for rows in every if fits(instance, x := np.array(rows, dtype=np.int64))]


def test_from_the_worst_plan_to_the_least_traffic() -> None:
    better = 0
    for seed in range(60):
        instance = small_instance(seed)
        plans = sorted(list_plans(instance), key=instance.crossing)
        if not plans:
            continue
        with label_failure(seed=seed):
            x, _ = finish_exactly(instance, plans[-1], Request())
            assert fits(instance, x)
            assert instance.crossing(x) == pytest.approx(instance.crossing(plans[0]))
            better += instance.crossing(x) < instance.crossing(plans[-1]) - 1e-9
    assert better >= 20


def test_a_program_too_large_to_be_stopped_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """On this problem the solver took minutes before it looked at its limits for the first time."""
    tried: list[int] = []

    def attempt(program: IntegerProgram, *limits: Any) -> Outcome:
        tried.append(len(program.gain))
        return solve(program, *limits)

    solve = integer_program.attempt
    monkeypatch.setattr(integer_program, "attempt", attempt)
    report = place(problem_of(random_sections(23)), bounded=False).report
    assert report.feasible
    assert tried
    assert max(tried) <= MOST_COLUMNS

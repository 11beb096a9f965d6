"""The last step on small problems: the least traffic there is, whatever the search ended with."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.model.request import Request
from headrace.place.building_blocks.exact_finish import finish_exactly
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.search import least_crossing_search
from tests.failures import label_failure
from tests.solve.small_instances import fits, least_by_brute_force, small_instance

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
    assert PAIRS.crossing(finish_exactly(PAIRS, TORN, Request())) == 1


def test_a_number_of_steps_leaves_the_search_as_it_is() -> None:
    assert finish_exactly(PAIRS, TORN, Request(steps=10)) is TORN


def test_small_problems_end_with_the_least_traffic() -> None:
    better = 0
    for seed in range(60):
        instance = small_instance(seed)
        start = least_crossing_search(instance, steps=0)
        if start is None:
            continue
        with label_failure(seed=seed):
            x = finish_exactly(instance, start.x, Request())
            assert fits(instance, x)
            assert instance.crossing(x) == pytest.approx(least_by_brute_force(instance))
            better += instance.crossing(x) < instance.crossing(start.x) - 1e-9
    assert better >= 3, "the search left nothing to find"

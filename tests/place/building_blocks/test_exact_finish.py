"""The last step on small problems: the least traffic there is, whatever the search ended with."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from headrace.model.arrays import Ints
from headrace.model.request import Request
from headrace.place.building_blocks.exact_finish import finish_exactly
from headrace.solve.instance import Instance
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
    assert PAIRS.crossing(finish_exactly(PAIRS, TORN, Request())) == 1


def test_a_number_of_steps_leaves_the_search_as_it_is() -> None:
    assert finish_exactly(PAIRS, TORN, Request(steps=10)) is TORN


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
            x = finish_exactly(instance, plans[-1], Request())
            assert fits(instance, x)
            assert instance.crossing(x) == pytest.approx(instance.crossing(plans[0]))
            better += instance.crossing(x) < instance.crossing(plans[-1]) - 1e-9
    assert better >= 20

"""Fills in fractions: worked out by hand, never worth less than any fill of whole tasks."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from headrace.model.arrays import Floats
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.search import least_crossing_search
from headrace.solve.proof.by_topology import crossing_bound_by_topology
from headrace.solve.proof.fractional_fills import best_fills, bounds_by_fractions, fills_of
from headrace.solve.proof.prices import Work
from headrace.solve.symmetry import quotient, traffic_inside
from tests.solve.small_instances import least_by_brute_force, small_instance


def chain(count: list[int], capacity: list[float], weight: float = 1.0) -> Instance:
    """Classes that each send to the next; a task needs a point of CPU."""
    classes = len(count)
    return Instance(
        count=np.array(count),
        edge_a=np.arange(classes - 1),
        edge_b=np.arange(1, classes),
        edge_weight=np.full(classes - 1, weight),
        demand=np.ones((1, classes, 1)),
        node_type=np.zeros(len(capacity), np.int64),
        capacity=np.array(capacity)[:, None],
        allowed=np.ones((classes, len(capacity)), np.bool_),
        apart=np.zeros(classes, np.bool_),
        group=np.zeros(classes, np.int64),
        slots=np.ones(len(capacity), np.int64),
        heap=np.array([np.inf]),
        memory=np.zeros(classes),
    )


def test_two_large_classes_share_a_node_half_and_half() -> None:
    # Room 10, price 2 a task: 5 and 5 keep 25 and cost 20. With all 4 tasks of a third class, which
    # exchange 0.9, x of the first and 6 - x of the second are worth 1.6 + 2.4 x - x^2: up to 3.04.
    instance = replace(chain([100, 100, 4], [10.0] * 21), edge_weight=np.array([1.0, 0.9]))
    fills = fills_of(quotient(instance))
    assert fills is not None
    worth, found = best_fills(fills[0], np.full(3, 2.0))
    assert worth == pytest.approx(5.0, abs=1e-6)
    assert found[0] == pytest.approx([5, 5, 0], abs=1e-5)
    # At prices 2, 1 and 0 they come along: 15.6 + 1.4 x - x^2 is 16.09 at x = 0.7, and without them
    # x of the first and 10 - x of the second are worth 9 x - x^2 - 10, 10.25 at most.
    worth, found = best_fills(fills[0], np.array([2.0, 1.0, 0.0]))
    assert worth == pytest.approx(16.09, abs=1e-6)
    assert found[0] == pytest.approx([0.7, 5.3, 4], abs=1e-5)


def test_nothing_is_worth_less_than_an_empty_node() -> None:
    q = quotient(chain([50, 50], [10.0] * 11))
    fills = fills_of(q)
    assert fills is not None
    assert best_fills(fills[0], np.full(len(q.count), 1e3))[0] == 0.0


@pytest.mark.parametrize("seed", range(40))
def test_no_fill_of_whole_tasks_is_worth_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(2, 6))
    a, b = np.triu_indices(classes, 1)
    chosen = rng.random(len(a)) < 0.7  # triangles and larger cliques among them
    instance = replace(
        chain(rng.integers(2, 9, classes).tolist(), [float(rng.integers(4, 15))] * 9),
        edge_a=a[chosen],
        edge_b=b[chosen],
        edge_weight=rng.lognormal(0.0, 1.0, int(chosen.sum())),
        demand=rng.uniform(0.5, 3.0, (1, classes, 1)),
    )
    q = quotient(instance)
    fills = fills_of(q)
    assert fills is not None
    every = np.array(list(product(*(range(m + 1) for m in q.most[0]))))
    every = every[(every @ q.demand[0, :, 0]) <= q.room[0, 0]]
    kept = traffic_inside(q, every)
    for price in rng.uniform(0.0, kept.max() / 4 + 0.1, (10, len(q.count))):
        worth, found = best_fills(fills[0], price)
        assert worth >= float((kept - every @ price).max()) - 1e-9
        assert worth == pytest.approx(value_of(q.weights(), found[0], price), abs=1e-6)
        assert (found @ fills[0].size <= q.room[0, 0] * (1 + 1e-6) + 1e-6).all()


def value_of(weight: Floats, fill: Floats, price: Floats) -> float:
    return float(fill @ weight @ fill / 2 - fill @ price)


def test_the_bound_is_never_above_the_optimum_wherever_it_is_stopped() -> None:
    bounded = 0
    for seed in range(3000, 3150):
        instance = small_instance(seed)
        q = quotient(instance)
        fills = fills_of(q) if q.most.any(axis=0).all() else None
        if fills is None:
            continue
        least = least_by_brute_force(instance)
        bounded += 1
        for estimate in bounds_by_fractions(q, fills, Work(5e7)):
            assert estimate is not None
            assert instance.total_weight - estimate.upper <= least + 1e-6, f"seed {seed}"
    assert bounded >= 20


def test_classes_that_exchange_inside_or_fills_that_are_too_many_are_left_to_others() -> None:
    inside = replace(chain([30, 30], [10.0] * 7), edge_a=np.array([0]), edge_b=np.array([0]),
                     edge_weight=np.array([1.0]))  # fmt: skip
    assert fills_of(quotient(inside)) is None
    assert fills_of(quotient(chain(list(range(2, 42)), [200.0] * 9))) is None


def test_the_default_bound_of_large_classes_is_near_the_plan() -> None:
    rng = np.random.default_rng(1)
    instance = chain(rng.integers(60, 300, 12).tolist(), rng.uniform(60, 200, 24).tolist())
    instance = replace(instance, edge_weight=rng.lognormal(0.0, 1.0, 11))
    found = least_crossing_search(instance, seed=0, steps=300_000)
    assert found is not None
    bound, kind = crossing_bound_by_topology(instance)
    assert kind == "column-generation"
    assert 0.95 * found.crossing <= bound <= found.crossing

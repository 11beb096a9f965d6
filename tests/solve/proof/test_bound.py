"""The bound for large instances: never above the optimum, above 0 where traffic must cross."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.instances import microbenchmark
from headrace.solve.instance import Instance
from headrace.solve.proof.bound import MOST_NODE_CLASSES, crossing_bound
from tests.solve.small_instances import fits, least_by_brute_force, small_instance


@pytest.mark.parametrize(("steps", "least_useful"), [(1, 0), (20, 1), (None, 15)])
def test_the_bound_is_never_above_the_optimum(steps: int | None, least_useful: int) -> None:
    useful = 0
    for seed in range(3000, 3150):
        instance = small_instance(seed)
        least = least_by_brute_force(instance)
        bound, _ = crossing_bound(instance, steps=steps)
        assert bound <= least + 1e-6, f"seed {seed}"
        useful += bound > 0.5 * least > 0
    assert useful >= least_useful


def test_the_bound_is_nearly_the_optimum_of_a_diamond() -> None:
    bound, kind = crossing_bound(microbenchmark("diamond", 32, "HET"))  # the optimum is 162
    assert kind == "lagrangian"
    assert 155 < bound <= 162


def test_the_bound_holds_for_a_plan_of_ten_thousand_tasks_and_is_most_of_it() -> None:
    instance = chain(classes=40, tasks_each=250, nodes=100)
    side_by_side = np.zeros(
        (40, 100), dtype=np.int64
    )  # 2 of 5 nodes' worth of each class, next to its neighbour in the chain
    for pair in range(20):
        for node in range(5):
            side_by_side[[2 * pair, 2 * pair + 1], 5 * pair + node] = 50
    assert fits(instance, side_by_side)
    bound, kind = crossing_bound(instance)
    assert kind == "lagrangian"
    assert 0.85 * instance.crossing(side_by_side) < bound <= instance.crossing(side_by_side)


def test_many_unlike_nodes_are_thrown_together_without_breaking_the_bound() -> None:
    compared = 0
    for seed in range(40):
        instance = small_instance(3200 + seed)
        least = least_by_brute_force(instance)
        if np.isinf(least):
            continue
        copies = -(-2 * MOST_NODE_CLASSES // len(instance.node_type))
        none_allowed = np.zeros((len(instance.count), len(instance.node_type)), dtype=np.bool_)
        more = np.arange(1, copies + 1)[:, None, None] * np.ones_like(instance.capacity)
        crowded = (
            replace(  # the further nodes differ from each other, and nothing may stand on them
                instance,
                node_type=np.tile(instance.node_type, copies + 1),
                capacity=np.concatenate([instance.capacity, *more]),
                allowed=np.concatenate([instance.allowed, *[none_allowed] * copies], axis=1),
                slots=np.tile(instance.slots, copies + 1),
            )
        )
        assert crossing_bound(crowded)[0] <= least + 1e-6, f"seed {seed}"
        compared += least > 0
    assert compared >= 5


def test_no_traffic_or_room_for_all_gives_the_trivial_bound() -> None:
    instance = microbenchmark("linear", 10, "HOM")
    assert crossing_bound(replace(instance, edge_weight=np.zeros_like(instance.edge_weight))) == (
        0.0,
        "trivial",
    )
    assert crossing_bound(replace(instance, capacity=np.full((10, 1), np.inf))) == (0.0, "trivial")


def test_a_deadline_that_has_passed_leaves_the_trivial_bound() -> None:
    assert crossing_bound(microbenchmark("diamond", 32, "HET"), deadline=lambda: True) == (
        0.0,
        "trivial",
    )


def test_a_deadline_on_the_way_weakens_the_bound_but_never_breaks_it() -> None:
    instance = microbenchmark("diamond", 32, "HET")  # the optimum is 162
    bounds: list[float] = []
    for rounds in (3, 30, 300):
        asked = iter([False] * rounds)
        bounds.append(crossing_bound(instance, deadline=lambda left=asked: next(left, True))[0])
    assert 0 < bounds[0] < bounds[1] < bounds[2] <= 162
    assert crossing_bound(instance, deadline=lambda: False) == crossing_bound(instance)


def chain(*, classes: int, tasks_each: int, nodes: int) -> Instance:
    """Components in a row, all their task pairs joined; the nodes just hold all tasks."""
    return Instance(
        count=np.full(classes, tasks_each),
        edge_a=np.arange(classes - 1),
        edge_b=np.arange(1, classes),
        edge_weight=np.ones(classes - 1),
        demand=np.ones((1, classes, 1)),
        node_type=np.zeros(nodes, dtype=np.int64),
        capacity=np.full((nodes, 1), classes * tasks_each / nodes),
        allowed=np.ones((classes, nodes), dtype=np.bool_),
        apart=np.zeros(classes, dtype=np.bool_),
        group=np.zeros(classes, dtype=np.int64),
        slots=np.ones(nodes, dtype=np.int64),
        heap=np.array([np.inf]),
        memory=np.zeros(classes),
    )

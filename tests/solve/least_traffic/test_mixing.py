"""Plans mixed from fills: each fill fits its node, and the plans cross less than annealed ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.model.arrays import Floats, Ints
from headrace.solve.instance import Instance
from headrace.solve.least_traffic import search as search_module
from headrace.solve.least_traffic.feasible import feasible
from headrace.solve.least_traffic.fills import (
    improve_fills,
    kinds_of,
    one_node_of_each_kind,
    pairs_of_classes,
)
from headrace.solve.least_traffic.mixing import Fills, mix_fills, mixing_pays
from headrace.solve.least_traffic.progress import new_search
from headrace.solve.least_traffic.search import least_crossing_search
from headrace.solve.least_traffic.terms import terms_of


def never(search: object, budget: int) -> bool:
    """No mixing, whatever the search."""
    return False


def operators(seed: int, classes: int = 50, nodes: int = 45, tasks: int = 12) -> Instance:
    """Components of several tasks, each reading one or two before it, on nodes 3:2:1."""
    rng = np.random.default_rng(seed)
    count = rng.integers(tasks // 2, 2 * tasks, classes)
    edges = {(int(rng.integers(max(0, b - 4), b)), b) for b in range(1, classes)}
    edges |= {(int(rng.integers(b)), b) for b in range(1, classes) if rng.random() < 0.3}
    a, b = np.array(sorted(edges), np.int64).T
    load = rng.integers(5, 50, classes).astype(np.float64)
    capacity = np.array([(3.0, 2.0, 1.0)[n % 3] for n in range(nodes)])
    capacity *= 1.25 * float(load @ count) / capacity.sum()
    return Instance(
        count=count,
        edge_a=a,
        edge_b=b,
        edge_weight=rng.lognormal(0.0, 1.0, len(a)) / (count[a] * count[b]),
        demand=load[None, :, None],
        node_type=np.zeros(nodes, np.int64),
        capacity=capacity[:, None],
        allowed=np.ones((classes, nodes), np.bool_),
        apart=np.zeros(classes, np.bool_),
        group=np.zeros(classes, np.int64),
        slots=np.ones(nodes, np.int64),
        heap=np.array([np.inf]),
        memory=np.zeros(classes),
    )


def traffic_inside(instance: Instance, row: Ints) -> float:
    """What one node keeps, pair by pair of classes."""
    kept = 0.0
    for a, b, weight in zip(instance.edge_a, instance.edge_b, instance.edge_weight, strict=True):
        kept += weight * (row[a] * (row[a] - 1) / 2 if a == b else row[a] * row[b])
    return kept


def improved(instance: Instance, price: Floats) -> tuple[Ints, Ints, Floats, Floats]:
    """Fills after improvement, their kinds, what they keep, and their value before it."""
    kinds = one_node_of_each_kind(instance)
    rows, kind = pairs_of_classes(instance, kinds)
    before = np.array([traffic_inside(instance, row) for row in rows]) - rows @ price
    kept = improve_fills(kinds, price, instance.count, rows, kind)
    return rows, kind, kept, before


@pytest.mark.parametrize("seed", range(4))
def test_a_fill_fits_its_node_and_keeps_what_it_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = operators(seed)
    instance = replace(
        instance,
        apart=rng.random(len(instance.count)) < 0.2,
        allowed=np.tile(rng.random((len(instance.count), 3)) < 0.8, 15),
        edge_a=np.concatenate([instance.edge_a, [1, 7]]),
        edge_b=np.concatenate([instance.edge_b, [1, 7]]),  # tasks that talk to their own kind
        edge_weight=np.concatenate([instance.edge_weight, [0.02, 0.05]]),
    )
    price = rng.uniform(0.0, 0.1, len(instance.count))
    rows, kind, kept, before = improved(instance, price)
    first = kinds_of(instance)[1]
    for row, q, value in zip(rows, kind, kept, strict=True):
        room = instance.capacity[first[q], 0]
        assert row @ instance.demand[0, :, 0] <= room * (1 + 1e-6)
        assert (row <= np.where(instance.apart, 1, instance.count)).all()
        assert not row[~instance.allowed[:, first[q]]].any()
        assert value == pytest.approx(traffic_inside(instance, row))
    assert (kept - rows @ price >= before - 1e-9).all()


def test_higher_prices_leave_fewer_tasks() -> None:
    instance = operators(1)
    cheap = improved(instance, np.zeros(len(instance.count)))[0]
    expensive = improved(instance, np.full(len(instance.count), 1e3))[0]
    assert cheap.sum() > 0
    assert expensive.sum() == 0


def test_a_mixture_keeps_most_within_tasks_and_nodes() -> None:
    # Three nodes of one kind; 4 + 4 tasks keep 16 on one node, and there are tasks for 1.5 of it.
    fills = Fills(
        np.array([0, 0]), np.array([[4, 4], [6, 2]], dtype=np.int64), np.array([16.0, 12.0])
    )
    mixture = mix_fills(fills, np.array([6, 6]), np.array([3]))
    assert mixture.kept == pytest.approx(24.0)
    assert mixture.share == pytest.approx([1.5, 0.0])
    # A node more is worth nothing, 8 tasks more are worth one more fill.
    assert mixture.node_price == pytest.approx([0.0])
    assert mixture.price @ np.array([4, 4]) == pytest.approx(16.0)
    assert (fills.margin(mixture) <= 1e-9).all()


@pytest.mark.parametrize("seed", range(3))
def test_mixing_crosses_less_than_annealing_alone(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = operators(seed, classes=100, nodes=30, tasks=20)
    mixed = least_crossing_search(instance, steps=600_000)
    again = least_crossing_search(instance, steps=600_000)
    monkeypatch.setattr(search_module, "mixing_pays", never)
    annealed = least_crossing_search(instance, steps=600_000)
    assert mixed is not None
    assert again is not None
    assert annealed is not None
    assert feasible(instance, mixed.x)
    assert mixed.crossing < annealed.crossing
    assert np.array_equal(mixed.x, again.x)


def test_only_what_has_kinds_and_several_tasks_to_a_class_is_mixed() -> None:
    instance = operators(0)

    def pays(changed: Instance, budget: int = 1_000_000) -> bool:
        return mixing_pays(new_search(changed, terms_of(changed), 0, None), budget)

    assert pays(instance)
    assert not pays(instance, budget=1_000)
    assert not pays(replace(instance, count=np.ones_like(instance.count)))
    unlike = instance.capacity + np.arange(len(instance.capacity))[:, None]
    assert not pays(replace(instance, capacity=unlike))
    assert not pays(replace(instance, group=np.arange(50) % 2, heap=np.full(2, np.inf)))


def test_a_deadline_ends_mixing_with_the_plan_so_far() -> None:
    instance = operators(2)
    looks = 0

    def late() -> bool:
        nonlocal looks
        looks += 1
        return looks > 12

    found = least_crossing_search(instance, steps=600_000, deadline=late)
    assert found is not None
    assert found.stopped == "deadline"
    assert feasible(instance, found.x)

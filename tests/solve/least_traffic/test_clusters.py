"""Clusters of classes: joined only where allowed, with their classes' traffic, for better plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.model.arrays import Ints
from headrace.solve.instance import Instance
from headrace.solve.least_traffic import cycles
from headrace.solve.least_traffic.clusters import (
    NOWHERE,
    find_clusters,
    merge_classes,
    node_shares,
)
from headrace.solve.least_traffic.cycles import to_classes, to_clusters
from headrace.solve.least_traffic.feasible import feasible
from headrace.solve.least_traffic.ledger import COST
from headrace.solve.least_traffic.progress import new_search
from headrace.solve.least_traffic.search import least_crossing_search
from headrace.solve.least_traffic.state import load_state
from headrace.solve.least_traffic.terms import terms_of


def operators(seed: int, classes: int = 400, nodes: int = 60, *, strict: bool = False) -> Instance:
    """Components that mostly read near ones, on nodes 3:2:1.

    `strict`: with two topologies, pins and separations.
    """
    rng = np.random.default_rng(seed)
    count = rng.integers(1, 12, classes)
    group = np.arange(classes) * (2 if strict else 1) // classes
    edges: dict[tuple[int, int], float] = {}
    for b in range(1, classes):
        a = max(0, b - int(rng.geometric(0.4)))
        if group[a] == group[b]:
            edges[a, b] = 1000.0 * float(rng.lognormal())
    edges[3, 3] = 40.0  # tasks of one class that talk to each other
    pairs = sorted(edges)
    a, b = np.array(pairs, np.int64).T
    load = rng.integers(5, 51, (2, classes, 1)).astype(np.float64)
    capacity = np.array([(3.0, 2.0, 1.0)[n % 3] for n in range(nodes)])
    capacity *= 1.4 * float(load.max(axis=0)[:, 0] @ count) / capacity.sum()
    allowed = np.ones((classes, nodes), np.bool_)
    if strict:
        allowed[10:30, nodes // 2 :] = False
    return Instance(
        count=count,
        edge_a=a,
        edge_b=b,
        edge_weight=np.array([edges[pair] for pair in pairs]) / (count[a] * count[b]),
        demand=load,
        node_type=np.arange(nodes) % 2,
        capacity=capacity[:, None],
        allowed=allowed,
        apart=(np.arange(classes) % 50 == 7) & strict,
        group=group,
        slots=np.full(nodes, 100),
        heap=np.full(2, np.inf),
        memory=rng.integers(10, 60, classes).astype(np.float64),
    )


def placed_at_random(instance: Instance, seed: int) -> Ints:
    rng = np.random.default_rng(seed)
    nodes = len(instance.slots)
    return np.array([rng.multinomial(count, np.full(nodes, 1 / nodes)) for count in instance.count])


def test_a_cluster_has_one_topology_the_same_pins_and_a_limited_size() -> None:
    instance = operators(1, strict=True)
    cluster = find_clusters(instance, 0.5)
    share = node_shares(instance)
    assert cluster.max() + 1 < 0.7 * len(cluster)
    several = np.flatnonzero(np.bincount(cluster) > 1).tolist()
    assert len(several) >= 50
    for k in several:
        members = np.flatnonzero(cluster == k)
        assert len(set(instance.group[members])) == 1
        assert (instance.allowed[members] == instance.allowed[members[0]]).all()
        assert not instance.apart[members].any()
        assert (share[members].sum(axis=0) <= 0.5 + 1e-9).all()


def test_classes_on_different_nodes_are_not_joined() -> None:
    instance = operators(2)
    home = np.random.default_rng(0).integers(NOWHERE, 3, len(instance.count))
    cluster = find_clusters(instance, 0.5, home)
    several = np.bincount(cluster)[cluster] > 1
    assert several.any()
    assert (home[several] != NOWHERE).all()
    assert all(len(set(home[cluster == k])) == 1 for k in np.unique(cluster[several]))


def test_a_plan_of_clusters_has_the_traffic_and_the_load_of_its_classes() -> None:
    instance = operators(3)
    cluster = find_clusters(instance, 0.5)
    smaller, each = merge_classes(instance, cluster)
    x = placed_at_random(smaller, 4)
    fine = x[cluster] * each[:, None]
    assert (fine.sum(axis=1) == instance.count).all()
    assert smaller.crossing(x) == pytest.approx(instance.crossing(fine))
    for y in range(2):
        assert np.allclose(x.T @ smaller.demand[y], fine.T @ instance.demand[y])


def test_plans_go_to_clusters_and_back_unchanged() -> None:
    instance = operators(5)
    cluster = find_clusters(instance, 0.5)
    smaller, each = merge_classes(instance, cluster)
    x = placed_at_random(smaller, 6)
    part, whole = (new_search(i, terms_of(i), 0, None) for i in (smaller, instance))
    part.load(np.ascontiguousarray(x.T))
    whole.load(np.zeros_like(whole.state.x))
    whole.load_list(to_classes(part.list_tasks(), cluster, each))
    assert (x[cluster] * each[:, None] == whole.state.x.T).all()
    cost = whole.ledger.tally[COST]
    assert cost == pytest.approx(load_state(whole.terms, whole.state, whole.state.x.copy()))
    part.load_list(to_clusters(whole.list_tasks(), cluster, each))
    assert (x == part.state.x.T).all()


@pytest.mark.parametrize("prefer", ["traffic", "nodes"])
@pytest.mark.parametrize("strict", [False, True])
def test_large_plans_keep_every_limit_and_are_the_same_again(prefer: str, strict: bool) -> None:
    instance = operators(7, strict=strict)
    found, again = (
        least_crossing_search(instance, steps=100_000, seed=3, prefer=prefer) for _ in range(2)
    )
    assert found is not None
    assert again is not None
    assert feasible(instance, found.x)
    assert (found.x == again.x).all()


def test_clusters_leave_less_traffic_than_the_same_steps_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def crossing() -> float:
        found = [least_crossing_search(operators(seed), steps=200_000) for seed in range(3)]
        return sum(f.crossing for f in found if f is not None)

    with_clusters = crossing()
    monkeypatch.setattr(cycles, "FEWER_CLUSTERS", 0.0)
    assert with_clusters < 0.95 * crossing()


def test_a_start_better_than_any_search_is_kept() -> None:
    instance = operators(8)
    good = least_crossing_search(instance, steps=1_000_000)
    assert good is not None
    found = least_crossing_search(instance, starts=[good.x], steps=3_000)
    assert found is not None
    assert found.crossing <= good.crossing * (1 + 1e-9)


def test_a_deadline_among_clusters_leaves_a_feasible_plan() -> None:
    looks = iter(range(1_000_000))
    instance = operators(9)
    found = least_crossing_search(instance, deadline=lambda: next(looks) > 1)
    assert found is not None
    assert found.stopped == "deadline"
    assert feasible(instance, found.x)


def test_classes_are_placed_without_clusters_where_those_cannot_be_packed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_large(instance: Instance, cluster: Ints) -> tuple[Instance, Ints]:
        smaller, each = merge_classes(instance, cluster)
        return replace(smaller, capacity=0.6 * instance.capacity), each

    monkeypatch.setattr(cycles, "merge_classes", too_large)
    instance = operators(10)
    found = least_crossing_search(instance, steps=100_000)
    assert found is not None
    assert feasible(instance, found.x)

"""The partitioner keeps every capacity, leaves no part empty, and cuts small graphs best."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

from headrace.errors import Unsupported
from headrace.model.arrays import Floats, Ints
from headrace.solve.cut.graph import crossing, graph_of
from headrace.solve.cut.partition import partition
from tests.failures import label_failure

Edges = tuple[Ints, Ints, Floats]


def random_graph(rng: np.random.Generator, vertices: int, edges: int) -> Edges:
    source, target = rng.integers(0, vertices, (2, edges))
    return source, target, rng.integers(1, 10, edges).astype(np.float64)


def chain_of_operators(operators: int, tasks: int) -> Edges:
    """Every task of an operator with every task of the next."""
    pairs = [
        (o * tasks + i, (o + 1) * tasks + j)
        for o in range(operators - 1)
        for i in range(tasks)
        for j in range(tasks)
    ]
    source, target = np.array(pairs, dtype=np.int64).T
    return source, target, np.ones(len(pairs))


def cut(edges: Edges, label: Ints) -> float:
    source, target, weight = edges
    return float(weight[label[source] != label[target]].sum())


def fills(label: Ints, load: Floats, parts: int) -> Floats:
    return np.stack([load[label == p].sum(axis=0) for p in range(parts)])


def test_labels_stay_within_capacities_and_use_every_part() -> None:
    rng = np.random.default_rng(1)
    found = 0
    for seed in range(60):
        vertices, parts = int(rng.integers(4, 40)), int(rng.integers(2, 6))
        edges = random_graph(rng, vertices, 3 * vertices)
        load = rng.uniform(0.0, 1.0, (vertices, 2))
        capacities = load.sum(axis=0) / parts * rng.uniform(1.0, 1.5, (parts, 1)) + 0.3
        label = partition(*edges, load, capacities, seed=seed)
        if label is None:
            continue
        found += 1
        assert (fills(label, load, parts) <= capacities * (1 + 1e-8)).all()
        assert set(label.tolist()) == set(range(parts))
    assert found > 50


def test_the_cut_of_a_small_graph_is_the_least_of_all() -> None:
    labels = np.array([x for x in itertools.product(range(3), repeat=8) if len(set(x)) == 3])
    for seed in range(12):
        with label_failure(seed=seed):
            rng = np.random.default_rng(seed)
            source, target, weight = edges = random_graph(rng, 8, 14)
            load = rng.integers(1, 4, 8).astype(np.float64)
            capacities = np.array([0.5, 0.4, 0.3]) * load.sum()
            full = np.stack([(labels == p) @ load for p in range(3)], axis=1)
            allowed = labels[(full <= capacities).all(axis=1)]
            best = ((allowed[:, source] != allowed[:, target]) @ weight).min()
            label = partition(*edges, load, capacities)
            assert label is not None
            assert (fills(label, load, 3) <= capacities).all()
            assert cut(edges, label) == best


@pytest.mark.parametrize(("operators", "parts"), [(8, 4), (14, 7), (24, 12)])
def test_a_chain_is_cut_between_operators_where_parts_must_be_full(
    operators: int, parts: int
) -> None:
    edges = chain_of_operators(operators, 2)
    label = partition(*edges, np.ones(2 * operators), np.full(parts, 4.0))
    assert label is not None
    assert np.bincount(label).tolist() == [4] * parts
    assert cut(edges, label) == 4 * (parts - 1)


def test_parts_may_differ_in_capacity() -> None:
    edges = chain_of_operators(6, 2)
    label = partition(*edges, np.ones(12), np.array([2.0, 6.0, 4.0]))
    assert label is not None
    assert np.bincount(label).tolist() == [2, 6, 4]
    assert cut(edges, label) == 8


def test_a_packing_that_leaves_no_room_is_found() -> None:
    # Bins of 10 that only 7 + 3, 6 + 4 and 5 + 5 fill; the traffic asks for the opposite.
    load = np.array([7.0, 6.0, 5.0, 5.0, 4.0, 3.0])
    edges = np.array([0, 1, 2]), np.array([4, 5, 4]), np.full(3, 100.0)
    label = partition(*edges, load, np.full(3, 10.0))
    assert label is not None
    assert label[0] == label[5]
    assert label[1] == label[4]
    assert label[2] == label[3]


def test_bins_that_fifteen_items_fill_exactly_are_filled() -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        edges = np.sort(rng.choice(np.arange(1, 1000), (5, 2)), axis=1)
        load = rng.permutation(np.diff(edges, axis=1, prepend=0, append=1000).ravel()).astype(
            np.float64
        )
        label = partition(*random_graph(rng, 15, 45), load, np.full(5, 1000.0))
        assert label is not None
        assert fills(label, load, 5).tolist() == [1000.0] * 5


def test_a_load_may_depend_on_the_kind_of_the_part() -> None:
    load = np.array(
        [[[4.0], [4.0], [1.0]], [[1.0], [1.0], [4.0]]]
    )  # the first two suit kind 1, the last kind 0
    edges = np.array([0, 1]), np.array([1, 2]), np.ones(2)
    label = partition(*edges, load, np.array([2.0, 2.0]), kind=np.array([0, 1]))
    assert label is not None
    assert label.tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("load", "capacities"),
    [
        ([3.0, 1.0], [2.0, 2.0]),  # a vertex too large for every part
        ([1.0, 1.0, 1.0], [1.0, 1.0]),  # too much in all
        ([3.0, 3.0, 3.0], [5.0, 5.0]),  # the sum fits, the pieces do not
        ([1.0], []),
    ],
)
def test_what_does_not_fit_gives_no_labels(load: list[float], capacities: list[float]) -> None:
    none = np.zeros(0, dtype=np.int64)
    assert partition(none, none, np.zeros(0), np.array(load), np.array(capacities)) is None


def test_both_directions_and_equal_pairs_add_up_and_loops_do_not_count() -> None:
    graph = graph_of(
        np.array([0, 1, 0, 2]), np.array([1, 0, 1, 2]), np.array([1.0, 2.0, 4.0, 9.0]), 3
    )
    assert graph.weight.tolist() == [7.0, 7.0]
    assert crossing(graph, np.array([0, 1, 1])) == 7.0
    assert crossing(graph, np.array([0, 0, 1])) == 0.0


@pytest.mark.parametrize("load", [0.0, 1.0])
def test_degenerate_graphs_work(load: float) -> None:
    none = np.zeros(0, dtype=np.int64)
    unlimited = np.full(2, np.inf)
    assert partition(none, none, np.zeros(0), np.zeros(0), unlimited) is not None  # no vertex
    for vertices in (1, 2, 5):
        label = partition(none, none, np.zeros(0), np.full(vertices, load), unlimited)  # no edge
        assert label is not None
        assert len(set(label.tolist())) == min(vertices, 2)
    assert (
        partition(none, none, np.zeros(0), np.full(2, load), np.full(4, 5.0)) is not None
    )  # more parts than vertices


def test_a_part_that_can_take_nothing_stays_empty() -> None:
    edges = chain_of_operators(3, 2)
    label = partition(*edges, np.ones(6), np.array([4.0, 0.5, 4.0]))
    assert label is not None
    assert 1 not in label


def test_the_same_seed_gives_the_same_labels_and_leaves_the_arrays_alone() -> None:
    edges = random_graph(np.random.default_rng(5), 60, 200)
    before = [array.copy() for array in edges]
    load, capacities = np.ones(60), np.full(5, 13.0)
    first, second = (partition(*edges, load, capacities, seed=7) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.tolist() == second.tolist()
    assert all(np.array_equal(a, b) for a, b in zip(before, edges, strict=True))


def test_a_large_graph_of_clusters_is_cut_between_them() -> None:
    # 300 rings of 20 with a weak edge to the next: too many vertices to be annealed, parts as full
    # as they can be.
    rings, size = 300, 20
    vertex = np.arange(rings * size)
    following = np.where(vertex % size == size - 1, vertex - size + 1, vertex + 1)
    source = np.concatenate([vertex, vertex[::size]])
    target = np.concatenate([following, (vertex[::size] + size) % len(vertex)])
    weight = np.concatenate([np.full(len(vertex), 10.0), np.ones(rings)])
    label = partition(source, target, weight, np.ones(len(vertex)), np.full(30, 200.0))
    assert label is not None
    assert (np.bincount(label) == 200).all()
    # Ten whole rings in a part cut 30; every ring that is cut open adds 20 or more, and few of the
    # 300 may be.
    assert cut((source, target, weight), label) < 300


def test_without_metis_the_partitioner_refuses_and_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    edges = chain_of_operators(3, 2)
    with pytest.raises(Unsupported, match="defined by METIS") as refused:
        partition(*edges, np.ones(6), np.full(3, 2.0))
    assert refused.value.fix == "pip install 'headrace[metis]'"

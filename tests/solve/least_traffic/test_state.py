"""Room on nodes: the running state agrees with counting again, and slots with a first fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.model.arrays import Ints
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.feasible import feasible, slots_taken
from headrace.solve.least_traffic.state import (
    State,
    empty_state,
    load_state,
    overload_after,
    put,
    room,
)
from headrace.solve.least_traffic.terms import Terms, terms_of
from tests.failures import label_failure


def random_instance(seed: int) -> Instance:
    """Three topologies with heaps, two machine types, two resources."""
    rng = np.random.default_rng(seed)
    classes, nodes, groups = 9, 4, 3
    pairs = [(a, b) for a in range(classes) for b in range(a, classes) if rng.random() < 0.4]
    return Instance(
        count=rng.integers(1, 30, classes),
        edge_a=np.array([a for a, _ in pairs], np.int64),
        edge_b=np.array([b for _, b in pairs], np.int64),
        edge_weight=rng.uniform(0.1, 5, len(pairs)),
        demand=rng.uniform(0, 3, (2, classes, 2)),
        node_type=rng.integers(0, 2, nodes),
        capacity=rng.uniform(5, 200, (nodes, 2)),
        allowed=np.ones((classes, nodes), np.bool_),
        apart=np.zeros(classes, np.bool_),
        group=rng.integers(0, groups, classes),
        slots=rng.integers(1, 12, nodes),
        heap=np.array([np.inf, 10.0, 17.0]),
        memory=rng.integers(0, 9, classes).astype(np.float64),
    )


def random_counts(instance: Instance, seed: int) -> Ints:
    """Every task somewhere."""
    rng = np.random.default_rng(seed)
    nodes = len(instance.slots)
    return np.array([rng.multinomial(c, np.ones(nodes) / nodes) for c in instance.count], np.int64)


def slots_by_task(instance: Instance, x: Ints, n: int) -> int:
    """First-fit decreasing with one task at a time."""
    slots = 0
    for g in range(len(instance.heap)):
        classes = np.nonzero((instance.group == g) & (x[:, n] > 0))[0]
        if not len(classes):
            continue
        bins = [0.0]
        for need in sorted(
            (float(instance.memory[c]) for c in classes for _ in range(int(x[c, n]))), reverse=True
        ):
            at = next(
                (i for i, used in enumerate(bins) if used + need <= instance.heap[g] * (1 + 1e-9)),
                len(bins),
            )
            bins[at : at + 1] = [bins[at] + need if at < len(bins) else need]
        slots += len(bins)
    return slots


def loaded(instance: Instance, x: Ints) -> tuple[Terms, State, float]:
    terms = terms_of(instance)
    state = empty_state(terms)
    return terms, state, load_state(terms, state, np.ascontiguousarray(x.T))


def test_slots_are_those_of_first_fit_decreasing() -> None:
    for seed in range(10):
        with label_failure(seed=seed):
            instance = random_instance(seed)
            x = random_counts(instance, seed)
            wanted = [slots_by_task(instance, x, n) for n in range(len(instance.slots))]
            _, state, _ = loaded(instance, x)
            assert state.taken.tolist() == wanted
            assert slots_taken(instance, x).tolist() == wanted


@pytest.mark.parametrize("seed", range(10))
def test_the_state_after_many_changes_equals_a_fresh_one(seed: int) -> None:
    instance = random_instance(seed)
    x = random_counts(instance, seed)
    terms, state, cost = loaded(instance, x)
    assert cost == pytest.approx(-instance.kept(x))
    rng = np.random.default_rng(seed)
    changes = 0
    for _ in range(300):
        c, n, m = int(rng.integers(x.shape[0])), *rng.choice(x.shape[1], 2, replace=False).tolist()
        k = int(rng.integers(0, x[c, n] + 1))
        if k == 0:
            continue
        foreseen = overload_after(terms, state, m, c, k, c, 0)
        cost += put(terms, state, c, n, -k) + put(terms, state, c, m, k)
        assert state.over[m] == pytest.approx(foreseen)
        x[c, n] -= k
        x[c, m] += k
        changes += 1
    assert changes >= 100
    _, fresh, fresh_cost = loaded(instance, x)
    assert cost == pytest.approx(fresh_cost)
    for name in (
        "x",
        "pull",
        "used",
        "tasks",
        "members",
        "bins",
        "taken",
        "over",
        "contents",
        "holders",
    ):
        assert getattr(state, name) == pytest.approx(getattr(fresh, name), abs=1e-9), name
    for n in range(x.shape[1]):
        assert set(state.content[n, : state.contents[n]].tolist()) == set(
            np.nonzero(x[:, n])[0].tolist()
        )
    for c in range(x.shape[0]):
        assert set(state.holder[c, : state.holders[c]].tolist()) == set(
            np.nonzero(x[c])[0].tolist()
        )


def test_room_is_the_most_that_fits() -> None:
    limited = fitting = 0
    for seed in range(10):
        instance = random_instance(seed)
        terms, state, _ = loaded(instance, random_counts(instance, seed) // 3)
        for c, n in np.ndindex(instance.allowed.shape):
            k = room(terms, state, c, n, 1000)
            need = instance.demand[instance.node_type[n], c]
            limit = instance.capacity[n] * (1 + 1e-9)
            if k:
                fitting += 1
                assert (state.used[n] + k * need <= limit).all()
            if k < 1000:
                limited += 1
                assert (state.used[n] + (k + 1) * need > limit * (1 - 1e-9)).any()
    assert min(fitting, limited) >= 100


def test_a_full_node_is_feasible_and_a_hair_more_is_not() -> None:
    one = random_instance(0)
    x = random_counts(one, 0)
    used = np.einsum("cn,nck->nk", x, one.demand[one.node_type])
    roomy = replace(one, slots=np.full(4, 1000), heap=np.full(3, 1e6), capacity=used)
    assert feasible(roomy, x)
    assert not feasible(replace(roomy, capacity=used * (1 - 1e-6)), x)
    assert not feasible(replace(roomy, slots=np.array([1000, 1000, 1000, 0])), x)

"""Tasks of a node into workers: few, within the heap, little traffic between them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from headrace.model.arrays import Floats, Ints
from headrace.solve.workers import split_tasks


def cut_of(pull: Floats, part: Ints) -> float:
    apart = part[:, None] != part[None, :]
    return float((pull * apart).sum() / 2)


def least_cut_by_trying(memory: Floats, pull: Floats, heap: float, bins: int) -> float:
    tasks, best = len(memory), np.inf
    for choice in itertools.product(range(bins), repeat=tasks - 1):
        part = np.array((0, *choice))
        if (np.bincount(part, memory, bins) <= heap).all():
            best = min(best, cut_of(pull, part))
    return best


def random_node(seed: int, tasks: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    memory = rng.integers(1, 6, tasks).astype(np.float64)
    pull = np.triu(rng.integers(0, 10, (tasks, tasks)) * (rng.random((tasks, tasks)) < 0.5), 1)
    return memory, (pull + pull.T).astype(np.float64)


@pytest.mark.parametrize("heap", [8.0, 12.0])
def test_as_few_workers_as_possible_and_nearly_the_least_traffic(heap: float) -> None:
    found, least, split = 0.0, 0.0, 0
    for seed in range(40):
        memory, pull = random_node(seed, 8)
        part = split_tasks(memory, pull, heap)
        bins = int(part.max()) + 1
        assert (np.bincount(part, memory) <= heap).all()
        assert sorted(set(part.tolist())) == list(range(bins))
        fewer = bins > 1 and np.isfinite(least_cut_by_trying(memory, pull, heap, bins - 1))
        assert not fewer
        split += bins > 1
        found += cut_of(pull, part)
        least += least_cut_by_trying(memory, pull, heap, bins) if bins > 1 else 0.0
    assert split > 30
    assert found <= 1.02 * least


def test_a_task_larger_than_the_heap_is_alone_and_nothing_is_split_without_need() -> None:
    memory, pull = np.array([9.0, 1.0, 1.0]), np.ones((3, 3))
    assert split_tasks(memory, pull, 4.0).tolist() == [0, 1, 1]
    assert split_tasks(memory, pull, 11.0).tolist() == [0, 0, 0]


def test_the_same_node_is_split_the_same_way() -> None:
    memory, pull = random_node(7, 40)
    first, again = (split_tasks(memory, pull, 12.0) for _ in range(2))
    assert first.tolist() == again.tolist()

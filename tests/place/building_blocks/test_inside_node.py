"""How many heaps the tasks of a node need at least: never more than it takes."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from headrace.place.building_blocks.inside_node import heaps_needed
from tests.failures import label_failure
from tests.solve.small_instances import fewest_bins


@pytest.mark.parametrize(
    ("memory", "heaps"),
    [
        ([4, 4], 1),  # together less than one
        ([6, 6, 6], 3),  # each above half
        ([6, 6, 5, 5], 3),  # 22 of 10: two above half, and 5 and 5 fit beside neither
        ([7, 7, 4, 4], 3),  # 4 does not fit beside 7, so 8 are left for a heap of their own
        ([5, 5, 5], 2),
    ],
)
def test_the_bound_of_a_few_tasks(memory: list[float], heaps: int) -> None:
    assert heaps_needed(np.array(memory, dtype=np.float64), 10.0) == heaps


def test_without_a_heap_one_is_enough() -> None:
    assert heaps_needed(np.array([6.0, 6.0]), np.inf) == 1


def test_tasks_never_fit_fewer_heaps_than_the_bound() -> None:
    exact = 0
    for seed in range(300):
        random = Random(seed)
        memory = [float(random.randint(1, 10)) for _ in range(random.randint(1, 6))]
        with label_failure(seed=seed):
            least = heaps_needed(np.array(memory), 10.0)
            fewest = fewest_bins(memory, 10.0)
            assert least <= fewest
            exact += least == fewest
    assert exact >= 270, "the bound is mostly the number itself"

"""Transfers at the bound: exact on matrices of every kind, few steps, and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.model.arrays import Floats, Ints
from headrace.solve.transfers import Schedule, longest_line, open_shop, shared_seconds, whole_ticks


def check(work: Ints, schedule: Schedule) -> None:
    """All work is served, no line twice in a step, no part longer than its step, none too late."""
    n, m = work.shape
    served = np.zeros_like(work)
    np.add.at(served, (schedule.source, schedule.target), schedule.ticks)
    assert (served == work).all()
    assert int(schedule.length.sum()) == max(work.sum(axis=0).max(), work.sum(axis=1).max())
    assert (schedule.length > 0).all()
    assert (schedule.ticks > 0).all()
    assert (schedule.ticks <= schedule.length[schedule.step]).all()
    assert len(np.unique(schedule.step * n + schedule.source)) == len(schedule.step)
    assert len(np.unique(schedule.step * m + schedule.target)) == len(schedule.step)


def random_times(seed: int) -> Floats:
    """Sparse, dense, skewed, with unequal bandwidth, without any slack; square and not."""
    rng = np.random.default_rng([seed, 3])
    n, m = int(rng.integers(1, 40)), int(rng.integers(1, 40))
    kind = seed % 5
    if kind == 4:
        times = np.zeros((n, n))
        for _ in range(int(rng.integers(1, 2 * n + 1))):
            times[np.arange(n), rng.permutation(n)] += rng.random()
        return times
    times = rng.random((n, m))
    if kind == 1:
        times *= rng.random((n, m)) < 0.1
    if kind == 2:
        times *= rng.pareto(1.0, n)[:, None] * rng.pareto(1.0, m)[None]
    if kind == 3:
        speed = rng.choice([10.0, 100.0, 1000.0], n), rng.choice([10.0, 100.0, 1000.0], m)
        times = rng.integers(0, 50, (n, m)) * 8 / np.minimum.outer(*speed)
    return times


@pytest.mark.parametrize("kind", range(5))
def test_the_bound_is_reached_on_random_matrices(kind: int) -> None:
    for seed in range(kind, 500, 5):
        times = random_times(seed)
        work = whole_ticks(times)
        check(work, open_shop(work))
        longest = longest_line(work.astype(np.float64))
        if longest:
            assert np.allclose(work / longest, times / longest_line(times), atol=1e-9), (
                f"seed {seed}"
            )


def test_a_dense_matrix_takes_few_steps() -> None:
    for seed in range(3):
        work = whole_ticks(np.random.default_rng(seed).random((256, 256)))
        schedule = open_shop(work)
        check(work, schedule)
        assert len(schedule.length) <= 4 * 256


def test_a_permutation_is_one_step_and_an_even_matrix_one_per_line() -> None:
    assert open_shop(np.eye(7, dtype=np.int64)[::-1] * 5).length.tolist() == [5]
    assert open_shop(np.full((6, 6), 4, dtype=np.int64)).length.tolist() == [4] * 6


def test_nothing_to_do_is_no_step() -> None:
    assert len(open_shop(np.zeros((3, 4), dtype=np.int64)).length) == 0
    assert len(open_shop(np.zeros((0, 0), dtype=np.int64)).length) == 0


def test_times_with_a_common_measure_become_small_whole_numbers() -> None:
    times = np.array([[0.0, 0.32 * 3], [0.1 * 3.2 * 7, 0.64]])
    assert whole_ticks(times).tolist() == [[0, 3], [7, 2]]


def test_times_without_one_are_kept_to_a_billionth() -> None:
    times = np.array([[1.0, np.pi], [np.e, 1e-15]])
    work = whole_ticks(times)
    assert work[1, 1] == 1, "the smallest transfer does not vanish"
    assert np.allclose(work / work.max(), times / times.max(), rtol=1e-9, atol=1e-11)


def test_sharing_evenly_can_be_slower_than_the_bound() -> None:
    # Source 0 sends 10 to target 0 and 1 to target 1, which nine others send 1 each: until second
    # 10 source 0 keeps half its time for target 1 and can use a tenth. Then 5 of the 10 are left:
    # 15 in all, where 11 would do.
    times = np.zeros((10, 2))
    times[0] = 10.0, 1.0
    times[1:, 1] = 1.0
    assert longest_line(times) == 11.0
    assert shared_seconds(times) == pytest.approx(15.0)


def test_sharing_among_equals_is_as_quick_as_can_be() -> None:
    assert shared_seconds(np.ones((5, 5))) == pytest.approx(5.0)
    assert shared_seconds(np.array([[1.0, 3.0]])) == pytest.approx(4.0)

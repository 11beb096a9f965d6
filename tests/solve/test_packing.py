"""Bins: both forms of first fit agree with each other, and the fewest are those of brute force."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.model.arrays import Floats, Ints
from headrace.solve.packing import TOO_MANY, few_bins, fewest_bins, first_fit, first_fit_bins
from tests.solve import small_instances


def item_by_item(sizes: Floats, heap: float) -> tuple[int, Ints]:
    bin_of = np.zeros(len(sizes) + 1)
    bins = first_fit(sizes, len(sizes), heap, np.zeros(len(sizes) + 1), bin_of)
    return bins, bin_of[:-1].astype(np.int64)


def by_runs(sizes: Floats, counts: Ints, heap: float) -> int:
    room = 3 * len(sizes) + 4
    return first_fit_bins(sizes, counts, heap, np.zeros(room), np.zeros(room, np.int64))


@pytest.mark.parametrize("seed", range(200))
def test_runs_of_equal_bins_give_as_many_bins_as_item_by_item(seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = rng.choice(np.arange(1, 30), rng.integers(1, 9), replace=False)
    sizes = np.sort(drawn)[::-1].astype(np.float64)
    counts = rng.integers(0, 25, len(sizes))
    heap = float(rng.integers(29, 70))
    bins, bin_of = item_by_item(np.repeat(sizes, counts), heap)
    assert by_runs(sizes, counts, heap) == bins
    load = np.bincount(bin_of, np.repeat(sizes, counts), minlength=bins)
    assert (load <= heap).all()
    assert (load > 0).all()


@pytest.mark.parametrize("seed", range(60))
def test_the_fewest_bins_are_those_of_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = np.sort(rng.integers(1, 9, rng.integers(1, 7)))[::-1].astype(np.float64)
    heap = float(rng.integers(8, 16))
    scratch = np.zeros((2, len(sizes) + 1))
    fewest = fewest_bins(sizes, len(sizes), heap, scratch[0], scratch[1])
    assert fewest == small_instances.fewest_bins(sizes.tolist(), heap)


def test_fewer_bins_than_first_fit_uses_are_found() -> None:
    sizes = np.array([5.0, 4.0, 4.0, 3.0, 2.0, 2.0])  # 5+3+2 and 4+4+2; first fit puts 4 on 5
    scratch = np.zeros((2, 7))
    assert item_by_item(sizes, 10.0)[0] == 3
    assert fewest_bins(sizes, 6, 10.0, scratch[0], scratch[1]) == 2


def test_what_fits_no_bin_needs_too_many() -> None:
    assert by_runs(np.array([5.0, 2.0]), np.array([1, 3]), 4.0) == TOO_MANY


@pytest.mark.parametrize("seed", range(20))
def test_few_bins_end_in_time_between_the_fewest_and_first_fit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = np.sort(rng.integers(20, 60, 12))[::-1].astype(np.float64)
    scratch = np.zeros((2, 13))
    exact = fewest_bins(sizes, 12, 100.0, scratch[0], scratch[1])
    assert few_bins(sizes, 12, 100.0, scratch[0], scratch[1], 10_000_000) == exact
    hurried = few_bins(sizes, 12, 100.0, scratch[0], scratch[1], 1)
    assert exact <= hurried <= item_by_item(sizes, 100.0)[0]


def test_few_bins_give_up_where_the_fewest_would_take_for_ever() -> None:
    # Two items to a bin: 41 bins; 34 would do if sizes were all that counts.
    sizes = np.full(82, 41.0) + np.linspace(0.9, 0.0, 82)
    scratch = np.zeros((2, 83))
    assert few_bins(sizes, 82, 100.0, scratch[0], scratch[1], 200_000) == 41

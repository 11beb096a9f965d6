"""Figures over time: means of groups, and a bound on memory."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.serve.columns import Columns
from headrace.serve.lines import add_all


def filled(rows: int, most_cells: int = 24_000_000) -> Columns:
    columns = Columns(most_cells)
    for i in range(rows):
        columns.add(float(i), {"a": float(i), "b": 2.0 * i})
    return columns


def test_a_group_is_the_mean_of_its_rows() -> None:
    columns = filled(100)
    bounds = columns.buckets(-np.inf, np.inf, 10)
    means = columns.series(["a", "b"], bounds)
    assert len(means["a"]) == 10
    for k in range(10):
        rows = range(int(bounds[k]), int(bounds[k + 1]))
        assert means["a"][k] == pytest.approx(sum(rows) / len(rows), rel=1e-4)
    assert sum(np.diff(bounds)) == 100


def test_few_rows_travel_one_by_one() -> None:
    columns = filled(5)
    assert columns.series(["a"], columns.buckets(1.0, 3.0, 100))["a"] == [1.0, 2.0, 3.0]


def test_a_figure_that_comes_later_is_absent_before() -> None:
    columns = filled(3)
    columns.add(3.0, {"late": 7.0})
    bounds = columns.buckets(-np.inf, np.inf, 100)
    assert columns.series(["late", "a"], bounds) == {
        "late": [None, None, None, 7.0],
        "a": [0.0, 1.0, 2.0, None],
    }
    assert columns.row(3) == {"late": 7.0}


def test_a_long_run_keeps_its_shape_in_bounded_memory() -> None:
    most = 64_000
    columns = filled(200_000, most)
    assert columns._cells.size <= most  # pyright: ignore[reportPrivateUsage]
    assert columns.rows <= most // 16
    values = columns.column("a")
    at = columns.at_s
    assert np.all(np.diff(at) > 0)
    assert at[-1] == pytest.approx(199_999, abs=200)
    # A line stays a line: each row is the mean of what it replaced, which ended at `at_s`.
    assert np.all(np.abs(values - at) <= 200)
    assert np.all(np.diff(values) > 0)


def test_time_never_goes_back() -> None:
    columns = Columns()
    for at_s in (5.0, 3.0, 6.0):
        columns.add(at_s, {"a": at_s})
    assert columns.at_s.tolist() == [5.0, 5.0, 6.0]


@pytest.mark.parametrize(("at_s", "row"), [(-9.0, 0), (0.0, 0), (1.5, 2), (99.0, 9)])
def test_a_moment_falls_into_the_row_that_ends_next(at_s: float, row: int) -> None:
    assert filled(10).nearest(at_s) == row


def test_blocks_and_single_rows_give_the_same_columns() -> None:
    rows = [(float(i), {"a": i * 1.0} if i % 3 else {"a": i * 1.0, "b": 1.0}) for i in range(50)]
    one, many = Columns(), Columns()
    for at_s, figures in rows:
        one.add(at_s, figures)
    add_all(many, rows)
    assert many.at_s.tolist() == one.at_s.tolist()
    for name in "ab":
        np.testing.assert_array_equal(many.column(name), one.column(name))

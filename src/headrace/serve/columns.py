"""Figures over time: columns of equal length in bounded memory, and what a page needs of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.model.arrays import Floats, Ints

MOST_CELLS = 24_000_000  # of 4 bytes: 96 MB for a run; beyond, pairs of rows become one
FIRST_ROWS, FIRST_COLUMNS = 1024, 16

Singles = NDArray[np.float32]


class Columns:
    """Rows of named figures, oldest first; a figure that a row lacks is not a number.

    When there are more cells than fit, every two rows become their mean: a run of any length keeps
    its shape, and loses detail.
    """

    def __init__(self, most_cells: int = MOST_CELLS) -> None:
        self.most_cells = most_cells
        self.rows = 0
        self.numbers: dict[str, int] = {}  # name -> column
        self._at = np.zeros(FIRST_ROWS)
        self._cells = np.full((FIRST_ROWS, FIRST_COLUMNS), np.nan, dtype=np.float32)
        self._merged, self._waiting = 1, 0  # rows of a run that make one of ours; those in the last

    @property
    def at_s(self) -> Floats:
        """When each row ended."""
        return self._at[: self.rows]

    def add(self, at_s: float, figures: Mapping[str, float]) -> None:
        """Add a row; time never goes back."""
        at_s = max(at_s, float(self._at[self.rows - 1])) if self.rows else at_s
        numbers = self._numbers(figures)
        values = np.fromiter(figures.values(), dtype=np.float32, count=len(figures))
        if self._waiting:  # the last row has room for more of the run's
            row, share = self.rows - 1, self._waiting / (self._waiting + 1)
            old = self._cells[row, numbers]
            mixed = old * share + values * (1 - share)
            self._cells[row, numbers] = np.where(np.isnan(old), values, mixed)
            self._at[row] = at_s
            self._waiting = (self._waiting + 1) % self._merged
            return
        if self.rows == len(self._at):
            self._grow()
        self._at[self.rows] = at_s
        self._cells[self.rows, numbers] = values
        self.rows += 1
        self._waiting = 1 % self._merged

    def add_block(self, times: Sequence[float], names: Sequence[str], values: Singles) -> None:
        """Add rows that have the same figures."""
        first = self.rows
        if self._merged > 1 or (first + len(times)) * len(self._cells[0]) > self.most_cells // 2:
            for at_s, row in zip(times, values.tolist(), strict=True):
                self.add(at_s, dict(zip(names, row, strict=True)))
            return
        numbers = self._numbers(dict.fromkeys(names, 0.0))
        while first + len(times) > len(self._at):
            self._grow()
        at = np.asarray(times)
        if first:
            at = np.maximum(at, self._at[first - 1])
        rows = slice(first, first + len(times))
        self._at[rows] = np.maximum.accumulate(at)
        self._cells[rows, numbers] = values
        self.rows += len(times)

    def column(self, name: str) -> Singles:
        """All values of a figure; not a number where there is none."""
        if name not in self.numbers:
            return np.full(self.rows, np.nan, dtype=np.float32)
        return self._cells[: self.rows, self.numbers[name]]

    def row(self, index: int) -> dict[str, float]:
        """The figures of one row, those that it has."""
        values = self._cells[index]
        known = ~np.isnan(values)
        return {name: float(values[c]) for name, c in self.numbers.items() if known[c]}

    def nearest(self, at_s: float) -> int:
        """The row that a moment falls into: the first that ends then or later, or the last."""
        return int(min(np.searchsorted(self.at_s, at_s), self.rows - 1))

    def buckets(self, first_s: float, last_s: float, points: int) -> Ints:
        """Where each of at most so many groups of rows begins, and where the last one ends."""
        first = int(np.searchsorted(self.at_s, first_s))
        last = int(np.searchsorted(self.at_s, last_s, side="right"))
        count = last - first
        if count <= points:
            return np.arange(first, last + 1)
        edges = np.linspace(self.at_s[first], self.at_s[last - 1], points + 1)[1:-1]
        inner = np.searchsorted(self.at_s[first:last], edges) + first
        return np.unique(np.concatenate(([first], inner, [last])))

    def series(self, names: Sequence[str], bounds: Ints) -> dict[str, list[float | None]]:
        """The mean of each figure in each group."""
        return {name: _means(self.column(name), bounds) for name in names}

    def _numbers(self, figures: Mapping[str, float]) -> Ints:
        for name in figures:
            if name not in self.numbers:
                self.numbers[name] = len(self.numbers)
        if len(self.numbers) > self._cells.shape[1]:
            more = max(len(self.numbers), 2 * self._cells.shape[1])
            wide = np.full((len(self._at), more), np.nan, dtype=np.float32)
            wide[:, : self._cells.shape[1]] = self._cells
            self._cells = wide
            while self._cells.size > self.most_cells and len(self._at) > FIRST_ROWS:
                self._halve()
        return np.fromiter((self.numbers[name] for name in figures), np.int64, len(figures))

    def _grow(self) -> None:
        if 2 * self._cells.size > self.most_cells and self.rows >= 2:
            self._halve()
            return
        rows = 2 * len(self._at)
        at, cells = np.zeros(rows), np.full((rows, self._cells.shape[1]), np.nan, dtype=np.float32)
        at[: self.rows], cells[: self.rows] = self._at[: self.rows], self._cells[: self.rows]
        self._at, self._cells = at, cells

    def _halve(self) -> None:
        """Make every two rows one."""
        pairs = self.rows // 2
        odd = self.rows % 2
        both = self._cells[: 2 * pairs].reshape(pairs, 2, -1)
        a, b = both[:, 0], both[:, 1]
        mean = np.where(np.isnan(a), b, np.where(np.isnan(b), a, (a + b) / 2))
        at = self._at[1 : 2 * pairs : 2].copy()
        left = (
            self._cells[self.rows - odd : self.rows].copy(),
            self._at[self.rows - odd : self.rows].copy(),
        )
        self._cells[:pairs], self._at[:pairs] = mean, at
        self._cells[pairs : pairs + odd], self._at[pairs : pairs + odd] = left
        self.rows = pairs + odd
        self._cells[self.rows :] = np.nan
        self._merged *= 2
        self._waiting = self._merged // 2 if odd else 0


def _means(values: Singles, bounds: Ints) -> list[float | None]:
    """The mean of each group of values, to five digits; None where a group has none."""
    if len(bounds) < 2:
        return []
    span = values[bounds[0] : bounds[-1]].astype(np.float64)
    known = ~np.isnan(span)
    starts = bounds[:-1] - bounds[0]
    total = np.add.reduceat(np.where(known, span, 0.0), starts)
    count = np.add.reduceat(known.astype(np.float64), starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / count
    return [None if np.isnan(value) else value for value in _five_digits(mean)]


def _five_digits(values: Floats) -> list[Any]:
    """Values with no more digits than a picture shows."""
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.floor(np.log10(np.abs(values)))
    places = np.clip(4 - np.where(np.isfinite(size), size, 0.0), -12, 12)
    scale = 10.0**places
    return (np.round(values * scale) / scale).tolist()

"""The cheapest way to give every row a column of its own.

Shortest augmenting paths, row after row (D. F. Crouse, On implementing 2D rectangular assignment
algorithms, 2016). Compiled here rather than taken from scipy, whose optimisers take longer to load
than most plans take to find.
"""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.solve.compiled import lean


def cheapest_matching(cost: Floats) -> Ints:
    """The column of each row, [R], for a finite cost[R, C] with no more rows than columns."""
    if cost.shape[0] > cost.shape[1]:
        raise ValueError(f"{cost.shape[0]} rows do not match {cost.shape[1]} columns")
    rows, columns = cost.shape
    column_of = np.full(rows, -1, np.int64)
    match_rows(
        np.ascontiguousarray(cost, dtype=np.float64),
        column_of,
        np.zeros((2, columns)),
        np.zeros((3, columns), np.int64),
        np.zeros(rows),
        np.zeros((2, columns), np.bool_),
    )
    return column_of


@lean
def match_rows(
    cost: Floats, column_of: Ints, lengths: Floats, links: Ints, row_price: Floats, seen: Bools
) -> None:
    """The same, as machine code; all but the first two arguments are scratch."""
    rows, columns = cost.shape
    length, column_price = lengths[0], lengths[1]
    row_of, came_from, left = links[0], links[1], links[2]
    row_seen, column_seen = seen[0], seen[1]
    row_of[:] = -1
    for start in range(rows):
        end, shortest = shortest_path(
            cost,
            row_price,
            column_price,
            row_of,
            start,
            came_from,
            length,
            row_seen,
            column_seen,
            left,
        )
        row_price[start] += shortest
        for i in range(rows):
            if row_seen[i] and i != start:
                row_price[i] += shortest - length[column_of[i]]
        for j in range(columns):
            if column_seen[j]:
                column_price[j] -= shortest - length[j]
        j = end
        while True:  # every row on the path takes the next one's column
            i = came_from[j]
            row_of[j] = i
            column_of[i], j = j, column_of[i]
            if i == start:
                break


@lean
def shortest_path(
    cost: Floats,
    row_price: Floats,
    column_price: Floats,
    row_of: Ints,
    start: int,
    came_from: Ints,
    length: Floats,
    row_seen: Bools,
    column_seen: Bools,
    left: Ints,
) -> tuple[int, float]:
    """The free column that is cheapest to reach from a row over taken ones, and what that costs."""
    columns = len(row_of)
    row_seen[:] = False
    column_seen[:] = False
    length[:] = np.inf
    for k in range(columns):
        left[k] = columns - k - 1  # backwards, so that equal costs give the first columns
    remaining = columns
    so_far = 0.0
    i = start
    while True:
        row_seen[i] = True
        lowest, at = np.inf, -1
        for k in range(remaining):
            j = left[k]
            way = so_far + cost[i, j] - row_price[i] - column_price[j]
            if way < length[j]:
                came_from[j] = i
                length[j] = way
            if length[j] < lowest or (length[j] == lowest and row_of[j] == -1):
                lowest = length[j]
                at = k
        so_far = lowest
        j = left[at]
        column_seen[j] = True
        if row_of[j] == -1:
            return j, float(so_far)
        i = row_of[j]
        remaining -= 1
        left[at] = left[remaining]

"""Array types, and the two small functions everybody needs."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Number = TypeVar("Number", np.float64, np.int64)

TOLERANCE = 1e-9  # relative: by how much a sum may miss a limit through rounding


def totals(index: Ints, amount: Floats, size: int) -> Floats:
    """The amounts added up by index, [size]; zeros where an index does not occur."""
    return np.bincount(index, amount, size).astype(np.float64, copy=False)  # of nothing: integers


def distinct(values: NDArray[Number], axis: int | None = None) -> NDArray[Number]:
    """Each value, or with an axis each row or column, once and sorted."""
    # Asked for the values alone, np.unique loads numpy.ma, which takes time at every start.
    return np.unique(values, axis=axis, return_counts=True)[0]

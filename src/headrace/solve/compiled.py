"""The one place where Python becomes machine code; it is kept on disk, so only the first call pays.

Constants that go from one compiled function to another are spelt `ZERO`, `ONE` or `NONE`: for a
bare literal numba would compile a version of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

ZERO, ONE, NONE = (cast("int", np.int64(value)) for value in (0, 1, -1))

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """The function as machine code; what it computes and its types stay the same."""
    return cast("_Function", numba.njit(cache=True, error_model="numpy")(function))


def lean(function: _Function) -> _Function:
    """The same for a function that makes no arrays of its own: no references are counted."""
    return cast("_Function", numba.njit(cache=True, error_model="numpy", _nrt=False)(function))  # pyright: ignore[reportCallIssue]


def kernel(function: _Function) -> _Function:
    """The same, with Python's errors: counting references made a step of a search five times slower."""
    return cast("_Function", numba.njit(cache=True, _nrt=False)(function))  # pyright: ignore[reportCallIssue]

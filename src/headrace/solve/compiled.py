"""The one place where Python becomes machine code; only the first call pays, the code is on disk.

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
    return _compile(function, error_model="numpy")


def lean(function: _Function) -> _Function:
    """The same for a function that makes no arrays of its own: no references are counted."""
    return _compile(function, error_model="numpy", _nrt=False)


def kernel(function: _Function) -> _Function:
    """The same with Python's errors, for the steps of a search.

    Counting references made a step five times slower.
    """
    return _compile(function, _nrt=False)


def inlined(function: _Function) -> _Function:
    """A kernel that always becomes part of its caller.

    Left alone, a call hands over every array of every tuple it passes, some 300 words: half as
    much work as a whole step of the search.
    """
    return _compile(function, _nrt=False, forceinline=True)


def _compile(function: _Function, *, forceinline: bool = False, **options: Any) -> _Function:
    # Stated even where False: numba hands the caller's choice down to functions that have none.
    compile_with = cast("Any", numba.njit(cache=True, forceinline=forceinline, **options))
    return cast("_Function", compile_with(function))

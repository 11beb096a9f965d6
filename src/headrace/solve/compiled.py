"""The one place where Python becomes machine code; only the first call pays, the code is on disk.

Constants that go from one compiled function to another are spelt `ZERO`, `ONE` or `NONE`: for a
bare literal numba would compile a version of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

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
    compile_with = cast("Any", numba.njit(forceinline=forceinline, **options))
    dispatcher = compile_with(function)
    kept = _KeptCode(function)
    kept.allocates = options.get("_nrt", True)
    dispatcher._cache = kept
    return cast("_Function", dispatcher)


class _KeptCode(FunctionCache):
    """Machine code on disk, loaded without setting up what only compiling needs.

    That setup imports half of numba and scipy's linear algebra, and takes longer than most
    searches. numba does it itself before it compiles.
    """

    allocates = True  # whether the function makes arrays of its own

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if self.allocates:
            rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            found = self._load_overload(sig, target_context)
        if found is None:
            _announce()
        return found


@cache
def _announce() -> None:
    """Say once what the wait is about."""
    print("headrace: compiling its kernels, once; this takes up to a minute ..", file=sys.stderr)

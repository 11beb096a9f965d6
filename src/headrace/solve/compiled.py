"""The one place where Python becomes machine code; only the first call pays, the code is on disk.

Constants that go from one compiled function to another are spelt `ZERO`, `ONE` or `NONE`: for a
bare literal numba would compile a version of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, cached_property, partial, update_wrapper
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.runtime.nrt import rtsys

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


def _compile(function: _Function, **options: Any) -> _Function:
    return cast("_Function", update_wrapper(_Kernel(function, options), function))


class _Kernel:
    """A function that meets numba at its first call.

    A command needs few of the kernels it imports, and each costs numba a look at its signature and
    a walk over the files on disk.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._function, self._options = function, options

    def __call__(self, *values: Any) -> Any:
        return self._dispatcher(*values)

    @cached_property
    def _dispatcher(self) -> Any:
        # Stated even where False: numba hands the caller's choice down to functions without one.
        options: dict[str, Any] = {"forceinline": False, **self._options}
        dispatcher = cast("Any", numba.njit(**options))(self._function)
        dispatcher._cache = _KeptCode(self._function, options.get("_nrt", True))
        return dispatcher

    @property
    def _numba_type_(self) -> Any:
        """What a kernel that calls this one gets to see."""
        return self._dispatcher._numba_type_


class _KeptKernel(CompileResultCacheImpl):
    """Machine code, loaded alone.

    The bitcode kept beside it is for kernels that call this one and are compiled later. It takes
    longer to read than the code, so it waits for them.
    """

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        try:
            (name, _, (code, bitcode)), described, *_ = payload
            codegen = target_context.codegen()
            codegen._engine._defined_symbols |= {
                described.llvm_func_name,
                described.llvm_cpython_wrapper_name,
                described.llvm_cfunc_wrapper_name,
            }
            nothing = llvm.parse_assembly("").as_bitcode()
            kept = ((name, "object", (code, nothing)), *payload[1:])
            result = super().rebuild(target_context, kept)
        except (AttributeError, TypeError, ValueError):  # another numba: its own way
            return super().rebuild(target_context, payload)
        result.library._get_module_for_linking = cache(partial(llvm.parse_bitcode, bitcode))
        return result


class _KeptCode(FunctionCache):
    """Machine code on disk, good as long as neither its own file nor one beside this changes.

    numba looks at a function's own file only, and functions call each other across files. Code is
    loaded without setting up what only compiling needs: that imports half of numba and scipy's
    linear algebra, and takes longer than most searches. numba does it before it compiles.
    """

    _impl_class = _KeptKernel

    def __init__(self, function: Callable[..., Any], allocates: bool) -> None:
        super().__init__(function)
        stamp = _stamp_of_sources(), _stamp_of(Path(function.__code__.co_filename))
        self._cache_file._source_stamp = stamp  # pyright: ignore[reportPrivateUsage]
        self._allocates = allocates

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if self._allocates:
            rtsys.initialize(target_context)
        try:
            found = self._load_overload(sig, target_context)
        except Exception:  # noqa: BLE001 - kept by another version, or cut off: compile again
            self._cache_file.flush()
            found = None
        if found is None:
            announce()
        return found


@cache
def _stamp_of_sources() -> tuple[tuple[str, int, int], ...]:
    """What changes when any file of this folder does."""
    return tuple(_stamp_of(file) for file in sorted(Path(__file__).parent.rglob("*.py")))


def _stamp_of(file: Path) -> tuple[str, int, int]:
    found = file.stat()
    return file.name, found.st_mtime_ns, found.st_size


@cache
def announce() -> None:
    """Say once what the wait is about."""
    print("headrace: compiling its kernels, once; this takes up to a minute ..", file=sys.stderr)

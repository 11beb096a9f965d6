"""Integer programs through scipy's HiGHS, without a word on standard output: it prints a line now and then whatever it is told."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

from scipy.optimize import Bounds, LinearConstraint, milp

# The stubs take single numbers only, and no options that are built step by step.
_milp = cast(Callable[..., Any], milp)
bounds = cast(Callable[..., Bounds], Bounds)
rows = cast(Callable[..., LinearConstraint], LinearConstraint)


def least(cost: Any, **arguments: Any) -> Any:
    """What scipy's `milp` gives."""
    with silent_stdout():
        return _milp(cost, **arguments)


@contextmanager
def silent_stdout() -> Generator[None]:
    """Nothing that C code writes to standard output gets out: that belongs to the plan."""
    try:
        kept = os.dup(1)
    except OSError:  # there is none
        yield
        return
    sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # C keeps lines back when standard output is no terminal
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)

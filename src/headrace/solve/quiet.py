"""HiGHS prints a line now and then whatever it is told; standard output belongs to the plan."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from scipy.optimize import milp

_milp = cast(Callable[..., Any], milp)  # the stub takes no options that are built step by step


def quiet_milp(cost: Any, **arguments: Any) -> Any:
    """scipy's `milp`, without a word."""
    with silent_stdout():
        return _milp(cost, **arguments)


@contextmanager
def silent_stdout() -> Iterator[None]:
    """Nothing that C code writes to standard output gets out."""
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

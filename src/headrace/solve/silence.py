"""Standard output is for the plan: C libraries print there, past Python, whatever they are told."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def silent_stdout() -> Generator[None]:
    """Nothing that C code writes to standard output gets out."""
    try:
        kept = os.dup(1)
    except OSError:  # there is none
        yield
        return
    c_library = ctypes.CDLL(None)
    sys.stdout.flush()
    c_library.fflush(None)  # what was written before goes where it was meant to go
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        c_library.fflush(None)  # C keeps lines back when standard output is no terminal
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)

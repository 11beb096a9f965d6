"""One test over many cases: which case failed stands below its traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def label_failure(**case: object) -> Iterator[None]:
    """Add what identifies the case, such as its seed, to whatever the block raises."""
    try:
        yield
    except BaseException as error:
        error.add_note("in the case " + ", ".join(f"{key}={value}" for key, value in case.items()))
        raise

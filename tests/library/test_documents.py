"""What the docstrings of the library show is what it gives."""

from __future__ import annotations

import doctest

import pytest

import headrace.checks.promises
import headrace.library.case
import headrace.library.changes
import headrace.library.verbs

MODULES = (
    headrace.library.case,
    headrace.library.changes,
    headrace.library.verbs,
    headrace.checks.promises,
)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_in_docstrings_give_what_they_say(module: object) -> None:
    result = doctest.testmod(module)  # pyright: ignore[reportArgumentType]
    assert result.attempted > 0
    assert result.failed == 0

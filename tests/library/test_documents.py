"""What the documents show of the library runs as it is shown."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from pathlib import Path

import pytest

import headrace.checks.promises
import headrace.library.case
import headrace.library.changes
import headrace.library.verbs

WALK = Path(__file__).parents[2] / "docs" / "guides" / "python.md"
MODULES = (
    headrace.library.case,
    headrace.library.changes,
    headrace.library.verbs,
    headrace.checks.promises,
)


def blocks() -> list[tuple[str, str]]:
    """Every Python block of the walk, with the output that is shown below it."""
    text = WALK.read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, flags=re.DOTALL)
    return [(code, output) for code, output in found]


def test_the_walk_runs_from_top_to_bottom_and_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "walk"}
    shown = 0
    for code, output in blocks():
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(WALK), "exec"), names)  # noqa: S102 - our own document
        assert printed.getvalue() == output
        shown += bool(output)
    assert shown >= 10


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_in_docstrings_give_what_they_say(module: object) -> None:
    result = doctest.testmod(module)  # pyright: ignore[reportArgumentType]
    assert result.attempted > 0
    assert result.failed == 0

"""The limits of CONTRIBUTING.md: functions and files that one can read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
FILE_LINES, LINES, BRANCHES = 400, 60, 25
REASONS = ("# Longer than 60 lines: ", "# More than 25 branches: ")  # inside, and then why
BRANCHING = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.match_case)


def too_long(source: str) -> Iterator[str]:
    """What is above the limits in a file, unless a comment in the function says why."""
    lines = source.splitlines()
    if len(lines) > FILE_LINES:
        yield f"{len(lines)} lines"
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            body = lines[function.lineno - 1 : function.end_lineno]
            measured = zip(REASONS, (len(body), branches(function)), (LINES, BRANCHES), strict=True)
            for reason, size, most in measured:
                if size > most and not any(reason in line for line in body):
                    yield f"{function.name}: {size}, and no comment `{reason}..`"


def branches(function: ast.AST) -> int:
    """How often the way through a function divides."""
    count = 0
    for part in ast.walk(function):
        if isinstance(part, ast.BoolOp):
            count += len(part.values) - 1
        elif isinstance(part, ast.comprehension):
            count += 1 + len(part.ifs)
        else:
            count += isinstance(part, BRANCHING)
    return count


def test_no_function_and_no_file_is_above_the_limits() -> None:
    files = {file: file.read_text(encoding="utf-8") for file in sorted(SOURCE.rglob("*.py"))}
    assert len(files) > 100
    found = [
        f"{file.relative_to(SOURCE)}: {what}" for file, s in files.items() for what in too_long(s)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\n" * 401, ["401 lines"]),
        ("x = 1\n" * 400, []),
        ("def f():\n" + "    x = 1\n" * 59, []),
        ("def f():\n" + "    x = 1\n" * 60, ["f: 61, and no comment `# Longer than 60 lines: ..`"]),
        ("def f():\n    # Longer than 60 lines: a table.\n" + "    x = 1\n" * 60, []),
        ("def f(x):\n    if " + " or ".join(["x"] * 25) + ":\n        pass\n", []),
        (
            "def f(x):\n    if " + " or ".join(["x"] * 26) + ":\n        pass\n",
            ["f: 26, and no comment `# More than 25 branches: ..`"],
        ),
    ],
)
def test_what_is_above_a_limit_is_named(source: str, said: list[str]) -> None:
    assert list(too_long(source)) == said

"""Files written on the spot, and what reading them gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from headrace.errors import InvalidInput
from headrace.model.build import build
from headrace.model.problem import Problem
from headrace.model.read import read

Write = Callable[..., str]
Build = Callable[..., Problem]
Refusal = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file and give its name; `format` is put before YAML that has none."""

    def write(text: str, name: str = "app.yaml") -> str:
        path = tmp_path / name
        path.write_text(
            text if "format" in text else f"format: headrace/1\n{text}", encoding="utf-8"
        )
        return str(path)

    return write


@pytest.fixture
def built(write: Write) -> Build:
    """The problem that files with these texts describe."""

    def built(*texts: str, tasks: Mapping[str, int] | None = None) -> Problem:
        return build(
            read([write(text, f"{'abcd'[i]}.yaml") for i, text in enumerate(texts)]), tasks=tasks
        )

    return built


@pytest.fixture
def refusal(write: Write, tmp_path: Path) -> Refusal:
    """The message with which files with these texts are refused, without the folder they are in."""

    def refusal(*texts: str, name: str = "app.yaml") -> str:
        names = [write(text, name if i == 0 else f"{i}-{name}") for i, text in enumerate(texts)]
        with pytest.raises(InvalidInput) as caught:
            build(read(names))
        return str(caught.value).replace(f"{tmp_path}/", "")

    return refusal

"""Answers as text, and text as files: JSON, or YAML where the file's name asks for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.errors import InvalidInput
from headrace.model.files import write_whole


def to_json_text(content: Any) -> str:
    """JSON for programs, in one line."""
    return json.dumps(content, allow_nan=False)


def text_for(file: str | Path, content: Any) -> str:
    """JSON, or YAML where the file's name asks for it."""
    if Path(file).suffix in (".yaml", ".yml"):
        import yaml

        return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=130)
    return to_json_text(content) + "\n"


def save_result(file: str | Path, content: Callable[[], Any], page: Callable[[], str]) -> Path:
    """Write a result as .html to look at, else as .json or .yaml."""
    return save(file, page() if Path(file).suffix == ".html" else text_for(file, content()))


def save(file: str | Path, text: str) -> Path:
    """Write a file whole or not at all."""
    try:
        write_whole(Path(file), text)
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be written: {error.strerror}") from None
    return Path(file)

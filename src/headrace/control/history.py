"""Decisions, one line each, in the order in which they were made; a restart reads them again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headrace.control.loop import Entry
from headrace.errors import InvalidInput
from headrace.model.files import append_line

NAME = "decisions.jsonl"


def keep(folder: Path, entry: Entry) -> None:
    """Add a decision; it is on disk when this returns."""
    folder.mkdir(parents=True, exist_ok=True)
    append_line(folder / NAME, json.dumps(asdict(entry)))


def entries(folder: Path) -> list[Entry]:
    """All decisions of a store; a line that a crash cut off is left out."""
    file = folder / NAME
    if not file.exists():
        return []
    found: list[Entry] = []
    lines = file.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            content: dict[str, Any] = json.loads(line)
        except json.JSONDecodeError:
            continue
        try:
            found.append(Entry(**content))
        except TypeError as error:
            raise InvalidInput(f"{file}:{number}: not a decision: {error}") from None
    return found

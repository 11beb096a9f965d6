"""Decisions, one line each, in the order in which they were made; a restart reads them again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from headrace.control.choice import Adopted
from headrace.errors import InvalidInput
from headrace.model.files import append_line

NAME = "decisions.jsonl"
Cause = Literal["rule", "lost", "back"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A decision as it is kept; `move` says what was decided, `applied` whether it was done."""

    at_s: float
    move: bool
    applied: bool
    reason: str
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    plan: str = ""  # fingerprint of the plan in force after the decision
    before: Mapping[str, Any] = field(default_factory=dict[str, Any])  # predicted, if it stays
    after: Mapping[str, Any] = field(default_factory=dict[str, Any])  # predicted, if it moves
    moved_tasks: int = 0
    moved_mb: float = 0.0
    by: str = ""  # scheduler
    rule: str = ""
    cause: Cause = "rule"  # or tasks had lost their node, or a plan was taken back
    left: str = ""  # fingerprint of the plan that was in force before
    # What the plan in force did since the decision before; what came in; and on which nodes.
    measured: Mapping[str, float] = field(default_factory=dict[str, float])
    rate_per_s: float = 0.0
    nodes: str = ""  # fingerprint of their names
    tasks: Mapping[str, int] = field(default_factory=dict[str, int])  # counts, where they change
    machines: Mapping[str, int] | None = None  # rented
    # Fingerprint -> counts and places, of plans that no decision before has.
    plans: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])


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


def adopted_plans(history: Sequence[Entry]) -> tuple[Adopted, ...]:
    """The plans that were in force, from the decisions that were carried out."""
    return tuple(
        Adopted(entry.plan, entry.at_s, entry.cause == "rule") for entry in history if entry.applied
    )


def spare_core_seconds(history: Sequence[Entry], now_s: float) -> float:
    """Core-seconds since the last move that a smaller plan would have done without, up to now."""
    total, until_s = 0.0, now_s
    for entry in reversed(history):
        if entry.applied:
            break
        spare = entry.numbers.get("cores_now", 0.0) - entry.numbers.get("cores_then", 0.0)
        total += max(0.0, spare) * (until_s - entry.at_s)
        until_s = entry.at_s
    return total


def find_plan(history: Sequence[Entry], plan: str) -> Mapping[str, Any] | None:
    """Counts and places of a plan that was in force."""
    return next((entry.plans[plan] for entry in history if plan in entry.plans), None)

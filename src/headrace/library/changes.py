"""From one plan to another: what differs, and the steps or the safe order between them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headrace.judge.diff import Diff
from headrace.library.verbs import as_plan
from headrace.move.safe_order import SafeOrder
from headrace.move.steps import Moves
from headrace.planner import Plan, moving
from headrace.planner.moving import Change
from headrace.registry import By


def diff(before: Plan | str | Path, after: Plan | str | Path) -> Diff:
    """What moves from one plan to another, what it costs and what it gains."""
    return moving.difference(as_plan(before), as_plan(after))


def move(
    before: Plan | str | Path,
    after: Plan | str | Path,
    by: By = moving.MOVER,
    options: Mapping[str, object] | None = None,
) -> Change:
    """The steps from one plan to another: transfers, what they cost, what each gains."""
    return moving.move(as_plan(before), as_plan(after), by, options)


def move_safely(
    before: Plan | str | Path,
    after: Plan | str | Path,
    *,
    max_moves: int | None = None,
    max_mb: float | None = None,
    seed: int = 0,
) -> SafeOrder:
    """The moves from one plan to another in an order that overloads no node on the way."""
    order, _ = moving.move_safely(
        as_plan(before), as_plan(after), max_moves=max_moves, max_mb=max_mb, seed=seed
    )
    return order


def move_blocks(blocks: str, by: By = moving.MOVER) -> Moves:
    """A block redistribution, `nodes x tasks per node` before and after, put into steps.

    >>> import headrace as hr
    >>> hr.move_blocks("4x3:6x2", by="ro-mod").makespan >= 1
    True
    """
    return moving.move_blocks(blocks, by)

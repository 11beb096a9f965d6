"""From one plan to another: what differs, what is transferred, in which steps or order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.errors import InvalidInput
from headrace.judge.diff import Diff, diff
from headrace.model.problem import Assignment, Problem
from headrace.move.blocks import Blocks
from headrace.move.change import Arrival, arrivals, carry_plan, volumes_between
from headrace.move.relabel import relabel
from headrace.move.safe_order import SafeOrder, safe_order
from headrace.move.steps import Moves
from headrace.planner.result import Plan
from headrace.registry import By, find

MOVER = "optimal"


@dataclass(frozen=True, slots=True)
class TwoPlans:
    """Two plans of the new one's problem, the new one in the roles that move least."""

    problem: Problem
    old: Assignment
    new: Assignment
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """The steps from one plan to another, and what each of them gains."""

    moves: Moves
    gains: tuple[Arrival, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As printed by `move --json`."""
        content = self.moves.to_json()
        content |= {"gains": [arrival.gain for arrival in self.gains], "notes": list(self.notes)}
        longest = max((arrival.pause_s for arrival in self.gains), default=None)
        content["report"]["longest_pause_s"] = longest
        return content


def pair_plans(old: Plan, new: Plan) -> TwoPlans:
    """Both plans in the terms of the new one's problem."""
    running = carry_plan(old.problem, old.assignment, new.problem)
    better = relabel(new.problem, running.plan, new.assignment)
    notes = running.notes
    if better.saved_mb or better.saved_moves:
        saved = f"{better.saved_mb:g} MB and {better.saved_moves} moves saved"
        notes = (*notes, f"alike nodes and tasks swapped roles: {saved}")
    return TwoPlans(new.problem, running.plan, better.plan, notes)


def move(old: Plan, new: Plan, by: By = MOVER) -> Change:
    """Transfers from the old plan to the new one, put into steps."""
    pair = pair_plans(old, new)
    moves: Moves = find("move", by)(volumes_between(pair.problem, pair.old, pair.new))
    gains = arrivals(pair.problem, pair.old, pair.new, moves)
    return Change(moves, tuple(gains), pair.notes)


def move_safely(
    old: Plan,
    new: Plan,
    *,
    max_moves: int | None = None,
    max_mb: float | None = None,
    seed: int = 0,
) -> tuple[SafeOrder, tuple[str, ...]]:
    """Task by task, so that no node is overloaded on the way; with a limit, the best moves."""
    pair = pair_plans(old, new)
    order = safe_order(
        pair.problem, pair.old, pair.new, max_moves=max_moves, max_mb=max_mb, seed=seed
    )
    return order, pair.notes


def move_blocks(blocks: Blocks | str, by: By = MOVER) -> Moves:
    """A block redistribution such as 16x7:16x11, put into steps."""
    return find("move", by)(Blocks.parse(blocks) if isinstance(blocks, str) else blocks)


def difference(old: Plan, new: Plan) -> Diff:
    """What moves between two plans, what it costs and what it gains, by the names in both."""
    before = (old.problem, old.assignment, old.report)
    return diff(before, (new.problem, new.assignment, new.report))


def least_transfer(old: Plan, new: Plan) -> dict[str, Any]:
    """What `move` would have to transfer at the least, without planning its steps."""
    try:
        pair = pair_plans(old, new)
        volumes = volumes_between(pair.problem, pair.old, pair.new)
    except (
        InvalidInput
    ) as error:  # other components, or no bandwidth: the figures hold all the same
        return {"mb": None, "seconds": None, "notes": [error.message]}
    notes = [*pair.notes, *volumes.notes]
    return {"mb": float(volumes.units.sum()), "seconds": volumes.bound, "notes": notes}

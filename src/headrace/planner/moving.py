"""From one plan to another: what differs, what is transferred, in which steps or order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headrace.errors import HeadraceError, InvalidInput
from headrace.figures import number
from headrace.judge.diff import Diff, diff
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.ranges import Holders, recounted
from headrace.move.blocks import Blocks
from headrace.move.change import Arrival, arrivals, carry_plan, volumes_between
from headrace.move.relabel import relabel
from headrace.move.safe_order import SafeOrder, safe_order
from headrace.move.steps import KeyRange, Moves, Volumes
from headrace.planner.result import Plan
from headrace.registry import By, find, names

MOVER = "optimal"


@dataclass(frozen=True, slots=True)
class TwoPlans:
    """Two plans of the new one's problem, the new one in the roles that move least."""

    problem: Problem
    old: Assignment
    new: Assignment
    notes: tuple[str, ...]
    holders: Holders  # of the state there is

    @property
    def recounted(self) -> bool:
        """Whether a component has another number of tasks than before."""
        return bool((self.holders.tasks != self.problem.tasks).any())

    def volumes(self) -> Volumes:
        """What goes from node to node."""
        return volumes_between(self.problem, self.old, self.new, holders=self.holders)


@dataclass(frozen=True, slots=True)
class Change:
    """The steps from one plan to another, and what each of them gains."""

    moves: Moves
    gains: tuple[Arrival, ...]  # empty if counts change, or tasks ran nowhere
    notes: tuple[str, ...]
    ranges: tuple[KeyRange, ...] = ()  # what is moved

    def to_json(self) -> dict[str, Any]:
        """As printed by `move --json`."""
        content = self.moves.to_json()
        content |= {"gains": [arrival.gain for arrival in self.gains], "notes": list(self.notes)}
        content["report"]["longest_pause_s"] = self.longest_pause_s
        content["ranges"] = [key_range.to_json() for key_range in self.ranges]
        return content

    @property
    def longest_pause_s(self) -> float | None:
        """The longest that a task stops, or a range of keys; None where steps do not say."""
        if self.gains:
            return max(arrival.pause_s for arrival in self.gains)
        return max((step.cost for step in self.moves.steps if step.ranges), default=None)


def pair_plans(old: Plan, new: Plan) -> TwoPlans:
    """Both plans in the terms of the new one's problem."""
    running = carry_plan(old.problem, old.assignment, new.problem)
    better = relabel(new.problem, running.plan, new.assignment, holders=running.holders)
    notes = running.notes
    if better.saved_mb or better.saved_moves:
        moves = number(max(better.saved_moves, 0))
        saved = f"{number(better.saved_mb)} MB and {moves} moves saved"
        notes = (*notes, f"alike nodes and tasks swapped roles: {saved}")
    return TwoPlans(new.problem, running.plan, better.plan, notes, running.holders)


def move(
    old: Plan, new: Plan, by: By = MOVER, options: Mapping[str, object] | None = None
) -> Change:
    """Transfers from the old plan to the new one, put into steps."""
    pair = pair_plans(old, new)
    volumes = pair.volumes()
    moves: Moves = find("move", by)(volumes, options=options or {})
    gains = () if pair.recounted else arrivals(pair.problem, pair.old, pair.new, moves)
    pieces = volumes.ranges
    ranges = () if pieces is None else tuple(pieces.show(i) for i in pieces.list_moving())
    return Change(moves, tuple(gains), pair.notes, ranges)


def move_safely(
    old: Plan,
    new: Plan,
    *,
    max_moves: int | None = None,
    max_mb: float | None = None,
    seed: int = 0,
) -> tuple[SafeOrder, tuple[str, ...]]:
    """Task by task, so that no node is overloaded on the way; with a limit, the best moves.

    Where counts change, keyed state is divided again first, among the tasks as they are placed
    then; that is part of what the order moves.
    """
    pair = pair_plans(old, new)
    problem = with_divided_state(pair.problem, pair.holders)
    order = safe_order(
        problem,
        pair.old,
        pair.new,
        max_moves=max_moves,
        max_mb=max_mb,
        seed=seed,
        holders=pair.holders,
    )
    if not pair.recounted:
        return order, pair.notes
    started = place_started_tasks(problem, pair.old, order)
    divided = volumes_between(problem, pair.old, started, holders=pair.holders)
    return (
        replace(order, divided_mb=float(divided.units.sum()), divided_s=divided.bound),
        pair.notes,
    )


def with_divided_state(problem: Problem, holders: Holders) -> Problem:
    """The problem with the state that each task has once keyed state is divided again."""
    again = recounted(problem, holders)
    state_mb = holders.state_mb.copy()
    state_mb[again] *= holders.tasks[again] / problem.tasks[again]
    return replace(problem, state_mb=state_mb)


def place_started_tasks(problem: Problem, old: Assignment, order: SafeOrder) -> Assignment:
    """The old plan with every new task where it starts."""
    number = {name: i for i, name in enumerate(problem.nodes)}
    started = {m.task: (number[m.target], m.worker) for m in order.moves if m.kind == "start"}
    node, worker = old.node.copy(), old.worker.copy()
    for t in np.flatnonzero(old.node == UNPLACED).tolist():
        node[t], worker[t] = started.get(problem.task_name(t), (UNPLACED, UNPLACED))
    return Assignment(node, worker)


def move_blocks(
    blocks: Blocks | str, by: By = MOVER, options: Mapping[str, object] | None = None
) -> Moves:
    """A block redistribution such as 16x7:16x11, put into steps."""
    work = Blocks.parse(blocks) if isinstance(blocks, str) else blocks
    return find("move", by)(work, options=options or {})


def difference(old: Plan, new: Plan) -> Diff:
    """What moves between two plans, what it costs and what it gains, by the names in both."""
    before = (old.problem, old.assignment, old.report)
    return diff(before, (new.problem, new.assignment, new.report))


def least_transfer(old: Plan, new: Plan) -> dict[str, Any]:
    """What `move` would have to transfer at the least, without planning its steps."""
    try:
        pair = pair_plans(old, new)
        volumes = pair.volumes()
    except (
        InvalidInput
    ) as error:  # other components, or no bandwidth: the figures hold all the same
        return {"mb": None, "seconds": None, "notes": [error.message]}
    notes = [*pair.notes, *volumes.notes]
    return {"mb": float(volumes.units.sum()), "seconds": volumes.bound, "notes": notes}


@dataclass(frozen=True, slots=True, eq=False)
class Transferred:
    """The steps of one mover, or why there are none."""

    mover: str
    moves: Moves | None
    error: HeadraceError | None = None

    def to_json(self) -> dict[str, Any]:
        """As `move --json` prints it, with the mover's name."""
        found = {"error": self.error.fields()} if self.error else {}
        return {"scheduler": self.mover, **found, **(self.moves.to_json() if self.moves else {})}


def compare_movers(work: Blocks | tuple[Plan, Plan], by: Sequence[By] = ()) -> list[Transferred]:
    """The same change through many movers: what each needs for it."""
    found: list[Transferred] = []
    for algorithm in [find("move", one) for one in by or names("move")]:
        call = algorithm.function
        try:
            moves = move_blocks(work, call) if isinstance(work, Blocks) else move(*work, call).moves
            found.append(Transferred(algorithm.name, moves))
        except HeadraceError as error:
            found.append(Transferred(algorithm.name, None, error))
    return found

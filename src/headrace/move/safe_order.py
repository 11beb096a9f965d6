"""An order of single-task moves in which nothing is overloaded on the way, the best first.

Tasks of nodes that are gone start first. Then the move with the largest gain per megabyte that fits
comes next, so that one may stop after any of them; where no task can go straight to its place, some
are parked on a third node. What cannot be ordered is refused with the tasks that are stuck and the
room that would do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from headrace.errors import Infeasible, InvalidInput, Unsupported
from headrace.judge.traffic import traffic
from headrace.model.arrays import Bools
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.move.change import ASSUMED_MBPS, refuse_wrong_plan, task_state_mb, transfer_seconds
from headrace.move.gains import Gains
from headrace.move.order_search import Hop, Search
from headrace.move.room import refuse_full
from headrace.move.stuck import More, proven_stuck, room_that_would_do, why_stuck

Kind = Literal["move", "park", "start", "worker"]

MOST_MOVES = 50_000


@dataclass(frozen=True, slots=True)
class Move:
    """One task to another place."""

    kind: Kind  # park: not yet its final node; start: it ran nowhere; worker: it stays on its node
    task: str
    source: str | None
    target: str
    worker: int
    mb: float
    seconds: float  # its state takes so long, and so long it stands still
    gain: float | None  # tuples/s less between nodes; None while tasks of a lost node are not back


@dataclass(frozen=True, eq=False)
class SafeOrder:
    """Moves one after another, none of which overloads anything."""

    moves: tuple[Move, ...]
    plan: Assignment  # after them
    complete: bool  # whether that is the new plan
    traffic_before: (
        float | None
    )  # tuples/s between nodes; None if tasks of a lost node were missing
    traffic_after: float | None
    waiting: tuple[str, ...] = ()  # tasks not yet at their place
    notes: tuple[str, ...] = field(default=())

    @property
    def mb(self) -> float:
        """All state that is moved."""
        return math.fsum(move.mb for move in self.moves)

    @property
    def seconds(self) -> float:
        """All transfers one after another."""
        return math.fsum(move.seconds for move in self.moves)

    @property
    def longest_pause_s(self) -> float:
        """The longest that a single task stands still."""
        return max((move.seconds for move in self.moves), default=0.0)

    def to_json(self) -> dict[str, Any]:
        """Moves and what they add up to."""
        moves = [
            {
                "kind": m.kind, "task": m.task, "from": m.source, "to": m.target, "worker": m.worker, "mb": m.mb, "seconds": m.seconds,
                "gain": m.gain,
            }
            for m in self.moves
        ]  # fmt: skip
        report = {
            "complete": self.complete, "moves": len(moves), "mb": self.mb, "seconds": self.seconds, "longest_pause_s": self.longest_pause_s,
            "traffic_before": self.traffic_before, "traffic_after": self.traffic_after, "waiting": list(self.waiting), "notes": list(self.notes),
        }  # fmt: skip
        return {"moves": moves, "report": report}


class NoSafeOrder(Infeasible):
    """There is no safe order, or none was found; says which, who is stuck and what room would do."""

    def __init__(
        self,
        message: str,
        *,
        stuck: tuple[str, ...],
        slack: tuple[More, ...],
        proven: bool,
        so_far: SafeOrder,
        **fields: Any,
    ) -> None:
        super().__init__(message, **fields)
        self.stuck = stuck
        self.slack = slack  # room that would do, all of it together; empty if none was found
        self.proven = proven
        self.so_far = so_far  # the order up to where it is stuck


def safe_order(
    problem: Problem,
    old: Assignment,
    new: Assignment,
    *,
    max_moves: int | None = None,
    max_mb: float | None = None,
    seed: int = 0,
    assumed_mbps: float = ASSUMED_MBPS,
) -> SafeOrder:
    """All moves from the old plan to the new one in a safe order, or with a limit the best part of them that was found."""
    for name, limit in (("max_moves", max_moves), ("max_mb", max_mb)):
        if limit is not None and not limit >= 0:
            raise InvalidInput(f"{name} is {limit:g}; it must be 0 or more")
    refuse_wrong_plan(problem, old, "old")
    refuse_wrong_plan(problem, new, "new")
    stops = (old.node != UNPLACED) & (new.node == UNPLACED)
    begin = Assignment(np.where(stops, UNPLACED, old.node), np.where(stops, UNPLACED, old.worker))
    limited = max_moves is not None or max_mb is not None
    if not limited:
        refuse_full(problem, begin, new)
    search = Search(problem, begin, new, max_moves, max_mb, seed)
    count = int(search.open().sum())
    if count > MOST_MOVES:
        raise Unsupported(
            f"{count:,} tasks move; a safe order goes task by task and takes at most {MOST_MOVES:,}",
            resource="moves", needed=count, available=MOST_MOVES, fix="use optimal, or say how many at most (max_moves)",
        )  # fmt: skip
    notes = tuple(f"topology {name} stops first" for name in _topologies(problem, stops))
    search.run()
    if (
        not limited
        and search.open().any()
        and (fresh := (begin.node == UNPLACED) & (new.node != UNPLACED)).any()
    ):
        late = starting_last(problem, begin, new, fresh, seed)
        if late is not None:
            search, notes = (
                late,
                (
                    *notes,
                    "tasks that run nowhere start last: with them there would be no room to move",
                ),
            )
    order = described(problem, begin, new, search.hops, assumed_mbps, notes, best_part=limited)
    if limited or not search.open().any():
        return order
    raise refusal(search, order)


def starting_last(
    problem: Problem, old: Assignment, new: Assignment, fresh: Bools, seed: int
) -> Search | None:
    """The order in which tasks that run nowhere wait until all others are home; None if there is none either."""
    others = Assignment(np.where(fresh, UNPLACED, new.node), np.where(fresh, UNPLACED, new.worker))
    first = Search(problem, old, others, None, None, seed)
    first.run()
    if first.open().any():
        return None
    then = Search(problem, old, new, None, None, seed)
    for hop in first.hops:
        then.do(hop)
    then.run()
    return None if then.open().any() else then


def refusal(search: Search, so_far: SafeOrder) -> NoSafeOrder:
    """Who is stuck, what room would do, and whether it is proven that there is no order without it."""
    why = why_stuck(search)
    proven = proven_stuck(search.problem, search.old, search.new)
    slack = room_that_would_do(search)
    sure = (
        "proven: every state that can be reached was tried"
        if proven
        else "not proven: there may be an order that was not found"
    )
    fix = (
        ", ".join(f"{m.amount:g} more {m.resource} on {m.node}" for m in slack)
        or "free some room, or stop the topology while it moves"
    )
    message = f"no safe order: {why.text} ({sure})"
    return NoSafeOrder(
        message, stuck=so_far.waiting, slack=slack, proven=proven, so_far=so_far,
        task=why.task, resource=why.resource, needed=why.needed, available=why.available, fix=fix,
    )  # fmt: skip


def described(
    problem: Problem,
    old: Assignment,
    new: Assignment,
    hops: list[Hop],
    assumed_mbps: float,
    notes: tuple[str, ...],
    *,
    best_part: bool,
) -> SafeOrder:
    """The hops with what each costs and gains; with `best_part` only as far as the traffic falls."""
    node, worker, mb = old.node.copy(), old.worker.copy(), task_state_mb(problem)
    runs = new.node != UNPLACED
    missing = int((runs & (node == UNPLACED)).sum())
    fresh_mb = float(mb[runs & (node == UNPLACED)].sum())
    start = None if missing else traffic(problem, old).inter_node
    if missing:
        notes = (*notes, f"{missing} tasks start without their state ({fresh_mb:g} MB)")
    gains, by_worker = (
        Gains(problem, old, new.node),
        any(s.grouping == "local-or-shuffle" for s in problem.streams),
    )
    now, values, moves = start, [start], list[Move]()
    for hop in hops:
        t, here, there = hop.task, int(node[hop.task]), hop.place.node
        node[t], worker[t] = there, hop.place.slot
        kind: Kind = (
            "start"
            if here == UNPLACED
            else "worker"
            if here == there
            else "move"
            if there == new.node[t]
            else "park"
        )
        missing -= kind == "start"
        amount = float(mb[t]) if kind in ("move", "park") else 0.0
        gain = gains.move(t, there) if here != there else 0.0
        before = now
        if not missing and (before is None or by_worker):
            now = traffic(problem, Assignment(node, worker)).inter_node
        elif before is not None:
            now = before - gain
        seconds, assumed = transfer_seconds(
            problem, np.array([here]), np.array([there]), np.array([amount]), assumed_mbps
        )
        notes = notes if assumed == notes[-1:] else notes + assumed
        source = None if here == UNPLACED else problem.nodes[here]
        gain = None if before is None or now is None else before - now
        moves.append(
            Move(
                kind,
                problem.task_name(t),
                source,
                problem.nodes[there],
                hop.place.slot,
                amount,
                float(seconds[0]),
                gain,
            )
        )
        values.append(now)
    end = _best_end(values, moves) if best_part else len(moves)
    plan = _after(old, hops[:end], new)
    waiting = np.flatnonzero(runs & ((plan.node != new.node) | (plan.worker != new.worker)))
    names = tuple(problem.task_name(t) for t in waiting.tolist())
    after = None if values[end] is None else traffic(problem, plan).inter_node
    return SafeOrder(tuple(moves[:end]), plan, not names, start, after, names, notes)


def _after(old: Assignment, hops: list[Hop], new: Assignment) -> Assignment:
    node, worker = old.node.copy(), old.worker.copy()
    for hop in hops:
        node[hop.task], worker[hop.task] = hop.place.node, hop.place.slot
    return Assignment(node, worker, new.refused)


def _best_end(values: list[float | None], moves: list[Move]) -> int:
    """After how many moves the traffic is least; tasks of lost nodes start in any case."""
    least = max((i + 1 for i, m in enumerate(moves) if m.kind == "start"), default=0)
    known = [(value, i) for i, value in enumerate(values) if value is not None and i >= least]
    if not known:
        return len(moves)
    best = min(value for value, _ in known)
    return next(i for value, i in known if value <= best + 1e-9 * max(1.0, abs(best)))


def _topologies(problem: Problem, tasks: Bools) -> list[str]:
    return [
        problem.topologies[g]
        for g in np.unique(problem.topology[problem.component_of[tasks]]).tolist()
    ]

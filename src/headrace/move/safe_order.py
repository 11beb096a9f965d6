"""An order of single-task moves in which nothing is overloaded on the way, the best first.

Tasks of nodes that are gone start first. Then follow the moves that fit, the largest gain per
megabyte first, so that one may stop after any of them. Where no task can go straight to its place,
some are parked on a third node. Where no order is found, the refusal names the tasks that are stuck
and the room that would help.
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
from headrace.model.ranges import Holders, divide_state, find_holders, task_state_mb
from headrace.move.change import (
    ASSUMED_MBPS,
    note_lost_state,
    refuse_wrong_plan,
    transfer_seconds,
)
from headrace.move.gains import Gains
from headrace.move.order_search import Hop, OrderSearch
from headrace.move.room import refuse_full
from headrace.move.stuck import RoomNeeded, explain_stuck, find_room_needed, prove_stuck

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
    seconds: float  # that its state takes, in which the task stops
    gain: float | None  # tuples/s less between nodes; None while tasks of a lost node are not back


@dataclass(frozen=True, eq=False)
class SafeOrder:
    """Moves one after another, none of which overloads anything."""

    moves: tuple[Move, ...]
    plan: Assignment  # after them
    complete: bool  # whether that is the new plan
    traffic_before: float | None  # tuples/s between nodes; None if tasks of a lost node are missing
    traffic_after: float | None
    waiting: tuple[str, ...] = ()  # tasks not yet at their place
    notes: tuple[str, ...] = field(default=())
    # Keyed state that goes to other nodes before the first move, since counts change.
    divided_mb: float = 0.0
    divided_s: float = 0.0

    @property
    def mb(self) -> float:
        """All state that is moved."""
        return math.fsum([self.divided_mb, *(move.mb for move in self.moves)])

    @property
    def seconds(self) -> float:
        """All transfers one after another."""
        return math.fsum([self.divided_s, *(move.seconds for move in self.moves)])

    @property
    def longest_pause_s(self) -> float:
        """The longest that a single task stops."""
        return max((move.seconds for move in self.moves), default=0.0)

    def to_json(self) -> dict[str, Any]:
        """Moves and what they add up to."""
        moves = [
            {
                "kind": m.kind,
                "task": m.task,
                "from": m.source,
                "to": m.target,
                "worker": m.worker,
                "mb": m.mb,
                "seconds": m.seconds,
                "gain": m.gain,
            }
            for m in self.moves
        ]
        report = {
            "complete": self.complete,
            "moves": len(moves),
            "mb": self.mb,
            "seconds": self.seconds,
            "divided_mb": self.divided_mb,
            "divided_s": self.divided_s,
            "longest_pause_s": self.longest_pause_s,
            "traffic_before": self.traffic_before,
            "traffic_after": self.traffic_after,
            "waiting": list(self.waiting),
            "notes": list(self.notes),
        }
        return {"moves": moves, "report": report}


class NoSafeOrder(Infeasible):
    """There is no safe order, or none was found; says which tasks are stuck and what would help."""

    def __init__(
        self,
        message: str,
        *,
        stuck: tuple[str, ...],
        slack: tuple[RoomNeeded, ...],
        proven: bool,
        so_far: SafeOrder,
        **fields: Any,
    ) -> None:
        super().__init__(message, **fields)
        self.stuck = stuck
        self.slack = slack  # room that would help, all of it together; empty if none was found
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
    holders: Holders | None = None,
) -> SafeOrder:
    """All moves from one plan to another in a safe order; with a limit, the best of them found.

    `holders` have the state; absent: the tasks of the old plan.
    """
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
    search = OrderSearch(problem, begin, new, max_moves, max_mb, seed)
    count = int(search.tasks_away().sum())
    if count > MOST_MOVES:
        raise Unsupported(
            f"{count:,} tasks move; "
            f"a safe order goes task by task and takes at most {MOST_MOVES:,}",
            resource="moves",
            needed=count,
            available=MOST_MOVES,
            fix="use optimal, or say how many at most (max_moves)",
        )
    notes = tuple(f"topology {name} stops first" for name in _topologies(problem, stops))
    search.run()
    if (
        not limited
        and search.tasks_away().any()
        and (fresh := (begin.node == UNPLACED) & (new.node != UNPLACED)).any()
    ):
        late = search_with_late_starts(problem, begin, new, fresh, seed)
        if late is not None:
            why = "tasks that run nowhere start last: with them there would be no room to move"
            search, notes = late, (*notes, why)
    order = describe_hops(
        problem,
        begin,
        new,
        search.hops,
        assumed_mbps,
        notes,
        best_part=limited,
        holders=holders,
    )
    if limited or not search.tasks_away().any():
        return order
    raise no_order_found(search, order)


def search_with_late_starts(
    problem: Problem, old: Assignment, new: Assignment, fresh: Bools, seed: int
) -> OrderSearch | None:
    """A search in which tasks that run nowhere start when all others are home; None if stuck."""
    others = Assignment(np.where(fresh, UNPLACED, new.node), np.where(fresh, UNPLACED, new.worker))
    first = OrderSearch(problem, old, others, None, None, seed)
    first.run()
    if first.tasks_away().any():
        return None
    then = OrderSearch(problem, old, new, None, None, seed)
    for hop in first.hops:
        then.do(hop)
    then.run()
    return None if then.tasks_away().any() else then


def no_order_found(search: OrderSearch, so_far: SafeOrder) -> NoSafeOrder:
    """The refusal: which tasks are stuck, what room would help, and whether that is proven."""
    why = explain_stuck(search)
    proven = prove_stuck(search.problem, search.old, search.new)
    slack = find_room_needed(search)
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
        message,
        stuck=so_far.waiting,
        slack=slack,
        proven=proven,
        so_far=so_far,
        task=why.task,
        resource=why.resource,
        needed=why.needed,
        available=why.available,
        fix=fix,
    )


def describe_hops(
    problem: Problem,
    old: Assignment,
    new: Assignment,
    hops: list[Hop],
    assumed_mbps: float,
    notes: tuple[str, ...],
    *,
    best_part: bool,
    holders: Holders | None = None,
) -> SafeOrder:
    """The order that hops make; with `best_part` only as far as the traffic falls."""
    runs = new.node != UNPLACED
    holders = holders or find_holders(problem, old, problem)
    notes = (*notes, *note_lost_state(divide_state(problem, holders, new)))
    values = _traffic_on_the_way(problem, old, new, hops)
    moves, assumed = _moves_of(problem, old, new, hops, values, assumed_mbps)
    end = _best_end(values, moves) if best_part else len(moves)
    plan = _after(old, hops[:end], new)
    waiting = np.flatnonzero(runs & ((plan.node != new.node) | (plan.worker != new.worker)))
    names = tuple(problem.task_name(t) for t in waiting.tolist())
    after = None if values[end] is None else traffic(problem, plan).inter_node
    return SafeOrder(
        tuple(moves[:end]), plan, not names, values[0], after, names, (*notes, *assumed)
    )


def _traffic_on_the_way(
    problem: Problem, old: Assignment, new: Assignment, hops: list[Hop]
) -> list[float | None]:
    """Tuples/s between nodes at first and after each hop; None while tasks run nowhere."""
    node, worker = old.node.copy(), old.worker.copy()
    missing = int(((new.node != UNPLACED) & (node == UNPLACED)).sum())
    gains = Gains(problem, old, new.node)
    by_worker = any(s.by_place for s in problem.streams)
    now = None if missing else traffic(problem, old).inter_node
    values = [now]
    for hop in hops:
        t, here, there = hop.task, int(node[hop.task]), hop.place.node
        node[t], worker[t] = there, hop.place.slot
        missing -= here == UNPLACED
        gain = gains.move(t, there) if here != there else 0.0
        if not missing and (now is None or by_worker):
            now = traffic(problem, Assignment(node, worker)).inter_node
        elif now is not None:
            now -= gain
        values.append(now)
    return values


def _moves_of(
    problem: Problem,
    old: Assignment,
    new: Assignment,
    hops: list[Hop],
    values: list[float | None],
    assumed_mbps: float,
) -> tuple[list[Move], tuple[str, ...]]:
    """Every hop with what it costs and gains, and what was assumed of the network."""
    node, state_mb = old.node.copy(), task_state_mb(problem)
    here = np.empty(len(hops), dtype=np.int64)
    there = np.array([hop.place.node for hop in hops], dtype=np.int64)
    mb, kinds = np.zeros(len(hops)), list[Kind]()
    for i, hop in enumerate(hops):
        here[i] = node[hop.task]
        node[hop.task] = there[i]
        kinds.append(_kind_of(int(here[i]), int(there[i]), int(new.node[hop.task])))
        mb[i] = state_mb[hop.task] if kinds[i] in ("move", "park") else 0.0
    seconds, assumed = transfer_seconds(problem, here, there, mb, assumed_mbps)
    moves: list[Move] = []
    for i, hop in enumerate(hops):
        source = None if here[i] == UNPLACED else problem.nodes[here[i]]
        before, after = values[i], values[i + 1]
        gain = None if before is None or after is None else before - after
        task, target = problem.task_name(hop.task), problem.nodes[there[i]]
        cost = float(mb[i]), float(seconds[i])
        moves.append(Move(kinds[i], task, source, target, hop.place.slot, *cost, gain))
    return moves, assumed


def _kind_of(here: int, there: int, home: int) -> Kind:
    if here == UNPLACED:
        return "start"
    if here == there:
        return "worker"
    return "move" if there == home else "park"


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

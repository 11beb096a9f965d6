"""Where no safe order was found: which tasks are stuck, and what room would help."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.move.order_search import OrderSearch
from headrace.move.room import Lack, Place, Room

MOST_STATES = 3_000  # looked at from either end before giving up on a proof
ROUNDS = 12  # of adding room where the least is missing
SMALL = 300  # tasks up to which all rounds are run
NAMED = 4  # tasks a message names


@dataclass(frozen=True, slots=True)
class RoomNeeded:
    """Room that a node would need in addition."""

    node: str
    resource: str
    amount: float


@dataclass(frozen=True, slots=True)
class StuckReason:
    """Which tasks are stuck, in words, and the one that lacks least."""

    text: str
    task: str
    resource: str
    needed: float
    available: float


def explain_stuck(search: OrderSearch) -> StuckReason:
    """The tasks that cannot go home, what each lacks there, and the one nearest to any move."""
    problem, room, new = search.problem, search.room, search.new
    waiting = np.flatnonzero(search.tasks_away()).tolist()
    parts: list[str] = []
    for t in waiting[:NAMED]:
        here = "nowhere" if room.node[t] == UNPLACED else problem.nodes[room.node[t]]
        lack = next(iter(room.lacks(t, int(new.node[t]))), None)
        short = (
            f"lacks {lack.missing:g} {lack.resource}"
            if lack
            else "cannot be taken without overloading the network or a slot"
        )
        parts.append(
            f"{problem.task_name(t)} ({here} -> {problem.nodes[new.node[t]]}, {short} there)"
        )
    more = f" and {len(waiting) - NAMED} more" if len(waiting) > NAMED else ""
    count = "1 task cannot move" if len(waiting) == 1 else f"{len(waiting)} tasks cannot swap"
    text = f"{count}: {', '.join(parts)}{more}"
    nearest = find_least_lack(room, waiting)
    if nearest is None:
        return StuckReason(text, problem.task_name(waiting[0]), "slots", 1, 0)
    t, lack = nearest
    node = problem.nodes[lack.node]
    text += (
        f"; nearest to moving at all: {problem.task_name(t)} to {node}, "
        f"which lacks {lack.missing:g} {lack.resource}"
    )
    return StuckReason(text, problem.task_name(t), lack.resource, lack.needed, lack.available)


def find_least_lack(room: Room, tasks: list[int]) -> tuple[int, Lack] | None:
    """The task and node nearest to fitting, and what is missing most; None if no room helps."""
    best: tuple[float, int, Lack] | None = None
    scale = {
        name: max(1e-9, float(np.mean(room.limit[:, k])))
        for k, name in enumerate(room.problem.resources)
    }
    for t in tasks:
        for n in range(len(room.problem.nodes)):
            lacks = room.lacks(t, n)
            if n == room.node[t] or not lacks or any(lack.resource not in scale for lack in lacks):
                continue
            worst = max(lacks, key=lambda lack: lack.missing / scale[lack.resource])
            size = worst.missing / scale[worst.resource]
            if best is None or size < best[0] * (1 - 1e-9):
                best = (size, t, worst)
    return None if best is None else (best[1], best[2])


def find_room_needed(search: OrderSearch) -> tuple[RoomNeeded, ...]:
    """Room with which an order is found; empty if none was found.

    A few rounds add room where the least is missing; what turns out not to be needed is dropped.
    """
    problem = search.problem
    extra = np.zeros_like(problem.capacity)
    state = search
    for _ in range(ROUNDS if problem.task_count <= SMALL else 2):
        nearest = find_least_lack(state.room, np.flatnonzero(state.tasks_away()).tolist())
        if nearest is None:
            return ()
        task, lack = nearest
        for every in state.room.lacks(task, lack.node):
            extra[every.node, problem.resources.index(every.resource)] += every.missing * (1 + 1e-6)
        state = _search_again(search, extra)
        if not state.tasks_away().any():
            return _name_room(problem, _trim(search, extra))
    return ()


def _search_again(search: OrderSearch, extra: Floats) -> OrderSearch:
    """The same search with more room."""
    again = OrderSearch(
        search.problem, search.old, search.new, None, None, search.seed, extra, thorough=False
    )
    again.run()
    return again


def _trim(search: OrderSearch, extra: Floats) -> Floats:
    """The additions that are needed."""
    for n, k in np.argwhere(extra > 0).tolist():
        less = extra.copy()
        less[n, k] = 0.0
        if less.any() and not _search_again(search, less).tasks_away().any():
            extra = less
    return extra


def _name_room(problem: Problem, extra: Floats) -> tuple[RoomNeeded, ...]:
    return tuple(
        RoomNeeded(problem.nodes[n], problem.resources[k], float(extra[n, k]))
        for n, k in np.argwhere(extra > 0).tolist()
    )


def prove_stuck(problem: Problem, old: Assignment, new: Assignment) -> bool:
    """Whether no order can lead from one plan to the other: all states were tried from one end.

    Slots, worker heap and bandwidth are left out, which only allows more: what cannot be reached
    here cannot be reached at all.
    """
    if _cannot_reach(problem, old, new.node):
        return True
    # A move can be taken back where the state before it was not overloaded.
    room = Room(problem, old)
    sound = (
        bool((room.free >= -room.slack).all())
        and not ((old.node == UNPLACED) & (new.node != UNPLACED)).any()
    )
    return sound and _cannot_reach(problem, new, old.node)


def _cannot_reach(problem: Problem, start: Assignment, end: Ints) -> bool:
    """Whether all states reachable from the start were tried and the end is not among them."""
    room = Room(problem, start)
    part = np.flatnonzero(end != UNPLACED).tolist()
    seen, queue = {start.node.tobytes()}, deque([start.node.copy()])
    while queue:
        _put_tasks(room, queue.popleft())
        for t in part:
            here = room.place_of(t)
            for n in np.flatnonzero(room.nodes_for(t)).tolist():
                if here is not None and n == here.node:
                    continue
                room.node[t] = n
                key = room.node.tobytes()
                if key not in seen:
                    seen.add(key)
                    queue.append(room.node.copy())
                room.node[t] = UNPLACED if here is None else here.node
                if len(seen) > MOST_STATES:
                    return False
    return end.tobytes() not in seen


def _put_tasks(room: Room, node: Ints) -> None:
    """Put every task on its node of a state; slots do not matter here."""
    for t in np.flatnonzero(room.node != node).tolist():
        room.put(t, None if node[t] == UNPLACED else Place(int(node[t]), 0))

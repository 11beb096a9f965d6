"""Where no safe order was found: who is stuck, what room would do, and whether there is none at all."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.move.order_search import Search
from headrace.move.room import Lack, Place, Room

MOST_STATES = 3_000  # looked at from either end before giving up on a proof
ROUNDS = 12  # of adding room where the least is missing
SMALL = 300  # tasks up to which all rounds are run
NAMED = 4  # tasks a message names


@dataclass(frozen=True, slots=True)
class More:
    """Room that a node would need in addition."""

    node: str
    resource: str
    amount: float


@dataclass(frozen=True, slots=True)
class Why:
    """Who is stuck, in words, and the one that lacks least."""

    text: str
    task: str
    resource: str
    needed: float
    available: float


def why_stuck(search: Search) -> Why:
    """The tasks that cannot go home, what each of them lacks there, and how near any other node comes to parking one."""
    problem, room, new = search.problem, search.room, search.new
    waiting = np.flatnonzero(search.open()).tolist()
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
    nearest = least_lack(room, waiting)
    if nearest is None:
        return Why(text, problem.task_name(waiting[0]), "slots", 1, 0)
    t, lack = nearest
    node = problem.nodes[lack.node]
    text += f"; nearest to moving at all: {problem.task_name(t)} to {node}, which lacks {lack.missing:g} {lack.resource}"
    return Why(text, problem.task_name(t), lack.resource, lack.needed, lack.available)


def least_lack(room: Room, tasks: list[int]) -> tuple[int, Lack] | None:
    """The task and the node that come nearest to each other, and what is missing most there; None if no room of any size would help."""
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


def room_that_would_do(search: Search) -> tuple[More, ...]:
    """Room with which an order is found, as little as a few rounds of adding where the least is missing come to; empty if they do not."""
    problem = search.problem
    extra = np.zeros_like(problem.capacity)
    state = search
    for _ in range(ROUNDS if problem.task_count <= SMALL else 2):
        nearest = least_lack(state.room, np.flatnonzero(state.open()).tolist())
        if nearest is None:
            return ()
        task, lack = nearest
        for every in state.room.lacks(task, lack.node):
            extra[every.node, problem.resources.index(every.resource)] += every.missing * (1 + 1e-6)
        state = _again(search, extra)
        if not state.open().any():
            return _named(problem, _trimmed(search, extra))
    return ()


def _again(search: Search, extra: Floats) -> Search:
    """The same search with more room."""
    again = Search(
        search.problem, search.old, search.new, None, None, search.seed, extra, thorough=False
    )
    again.run()
    return again


def _trimmed(search: Search, extra: Floats) -> Floats:
    """Without the additions that turn out not to be needed."""
    for n, k in np.argwhere(extra > 0).tolist():
        less = extra.copy()
        less[n, k] = 0.0
        if less.any() and not _again(search, less).open().any():
            extra = less
    return extra


def _named(problem: Problem, extra: Floats) -> tuple[More, ...]:
    return tuple(
        More(problem.nodes[n], problem.resources[k], float(extra[n, k]))
        for n, k in np.argwhere(extra > 0).tolist()
    )


def proven_stuck(problem: Problem, old: Assignment, new: Assignment) -> bool:
    """Whether all states that can be reached from one end were tried and the other end is not among them.

    Slots, worker heap and bandwidth are left out, which only allows more: what cannot be reached
    here cannot be reached at all.
    """
    if _all_reached(problem, old, new.node):
        return True
    # Every move can be taken back, as long as no state on the way is overloaded.
    room = Room(problem, old)
    sound = (
        bool((room.free >= -room.slack).all())
        and not ((old.node == UNPLACED) & (new.node != UNPLACED)).any()
    )
    return sound and _all_reached(problem, new, old.node)


def _all_reached(problem: Problem, start: Assignment, end: Ints) -> bool:
    """Whether the search from the start came to its own end without meeting the other."""
    room = Room(problem, start)
    part = np.flatnonzero(end != UNPLACED).tolist()
    seen, queue = {start.node.tobytes()}, deque([start.node.copy()])
    while queue:
        _stand(room, queue.popleft())
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


def _stand(room: Room, node: Ints) -> None:
    """Put every task where a state has it; slots do not matter here."""
    for t in np.flatnonzero(room.node != node).tolist():
        room.put(t, None if node[t] == UNPLACED else Place(int(node[t]), 0))

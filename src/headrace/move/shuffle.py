"""A random walk that gets all tasks home where none can go straight there.

Every step of the walk moves one task to a slot with room for it, so the walk itself is a safe
order. Tasks away from home drift; those at home are sent away now and then, which lets others in.
Detours that were not needed are taken out at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.model.problem import UNPLACED, Assignment
from headrace.move.room import SLACK, Room
from headrace.solve.compiled import compiled

LONGEST = 3_000  # hops up to which a walk is shortened: that takes their square


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """Hops in order, and how many tasks are not at home at the end."""

    task: Ints
    node: Ints
    slot: Ints
    away: int


class WalkTerms(NamedTuple):
    """What does not change on the walk."""

    need: Floats  # [Y, T, K]
    node_type: Ints  # [N]
    slack: Floats  # [N, K]
    allowed: Bools  # [C, N]
    apart: Bools  # [C]
    component: Ints  # [T]
    topology: Ints  # [T]
    memory: Floats  # [T]
    heap: Floats  # [G]
    usable: Bools  # [N, slots]


class WalkState(NamedTuple):
    """What changes with every hop of the walk."""

    node: Ints  # [T]
    slot: Ints  # [T]
    free: Floats  # [N, K]
    of_component: Ints  # [C, N] tasks
    in_slot: Ints  # [N, slots, G] tasks
    slot_memory: Floats  # [N, slots]


def walk_home(room: Room, home: Assignment, *, steps: int, heat: float, seed: int) -> Walk:
    """Walk from where all tasks are to `home`; tasks that are UNPLACED there do not move.

    `heat` is the chance to send a task away that is at home.
    """
    problem = room.problem
    everywhere = np.ones((len(problem.tasks), len(problem.nodes)), dtype=bool)
    allowed = everywhere if problem.allowed is None else problem.allowed.copy()
    terms = WalkTerms(
        room.need,
        problem.node_type.copy(),
        room.slack,
        allowed,
        problem.apart.copy(),
        room.component.copy(),
        room.topology.copy(),
        room.memory,
        problem.worker_heap_mb * (1 + SLACK),
        room.usable,
    )
    state = WalkState(
        room.node, room.slot, room.free, room.of_component, room.in_slot, room.slot_memory
    )
    task, node, slot, away = _wander(
        terms, _copy_state(state), home.node.copy(), home.worker.copy(), steps, heat, seed
    )
    if not away:
        kept = _cut_loops(_number_states(state, task, node, slot))
        task, node, slot = task[kept], node[kept], slot[kept]
    if not away and len(task) <= LONGEST:
        kept = _drop_detours(terms, state, task, node, slot)
        task, node, slot = task[kept], node[kept], slot[kept]
    return Walk(task, node, slot, int(away))


@compiled
def _copy_state(state: WalkState) -> WalkState:
    return WalkState(
        state.node.copy(),
        state.slot.copy(),
        state.free.copy(),
        state.of_component.copy(),
        state.in_slot.copy(),
        state.slot_memory.copy(),
    )


@compiled
def _node_takes(terms: WalkTerms, state: WalkState, t: int, n: int) -> bool:
    """Whether a node has the room for a task, whatever its slots."""
    if state.node[t] == n:
        return True
    c = terms.component[t]
    if not terms.allowed[c, n] or (terms.apart[c] and state.of_component[c, n] > 0):
        return False
    fits = True
    for k in range(state.free.shape[1]):
        need = terms.need[terms.node_type[n], t, k]
        fits = fits and (need == 0 or need <= state.free[n, k] + terms.slack[n, k])
    return fits


@compiled
def _slot_takes(terms: WalkTerms, state: WalkState, t: int, n: int, s: int) -> bool:
    """Whether a slot is free, or holds the task's topology, and has the memory."""
    if (
        s >= terms.usable.shape[1]
        or not terms.usable[n, s]
        or (state.node[t] == n and state.slot[t] == s)
    ):
        return False
    g = terms.topology[t]
    for other in range(state.in_slot.shape[2]):
        if other != g and state.in_slot[n, s, other] > 0:
            return False
    return state.slot_memory[n, s] + terms.memory[t] <= terms.heap[g]


@compiled
def _find_slot(terms: WalkTerms, state: WalkState, t: int, n: int) -> int:
    """A slot that takes a task: one with its topology, else an empty one, else -1."""
    empty = -1
    for s in range(terms.usable.shape[1]):
        if _slot_takes(terms, state, t, n, s):
            if state.in_slot[n, s, terms.topology[t]] > 0:
                return s
            if empty < 0:
                empty = s
    return empty


@compiled
def _put(terms: WalkTerms, state: WalkState, t: int, n: int, s: int) -> None:
    """Move a task to a slot that takes it."""
    c, g = terms.component[t], terms.topology[t]
    for node, slot, sign in ((state.node[t], state.slot[t], -1), (n, s, 1)):
        if node != UNPLACED:
            for k in range(state.free.shape[1]):
                state.free[node, k] -= sign * terms.need[terms.node_type[node], t, k]
            state.of_component[c, node] += sign
            state.in_slot[node, slot, g] += sign
            state.slot_memory[node, slot] += sign * terms.memory[t]
    state.node[t], state.slot[t] = n, s


@compiled
def _wander(
    terms: WalkTerms,
    state: WalkState,
    home: Ints,
    home_slot: Ints,
    steps: int,
    heat: float,
    seed: int,
) -> tuple[Ints, Ints, Ints, int]:
    """The hops of the walk, and how many tasks are away at its end."""
    np.random.seed(seed)
    part = np.flatnonzero(home != UNPLACED)
    # The tasks away from home come first in `part`: half of all tries are theirs.
    away = 0
    for i in range(len(part)):
        if state.node[part[i]] != home[part[i]] or state.slot[part[i]] != home_slot[part[i]]:
            _swap(part, i, away)
            away += 1
    task, node, slot = (
        np.empty(steps, np.int64),
        np.empty(steps, np.int64),
        np.empty(steps, np.int64),
    )
    hops = 0
    for _ in range(steps):
        if away == 0:
            break
        i = np.random.randint(away if np.random.random() < 0.5 else len(part))
        at_home = i >= away
        if at_home and np.random.random() >= heat:
            continue
        t = part[i]
        n = (
            int(home[t])
            if not at_home and np.random.random() < 0.5
            else np.random.randint(len(terms.node_type))
        )
        if not _node_takes(terms, state, t, n):
            continue
        s = int(home_slot[t])
        if n != home[t] or not _slot_takes(terms, state, t, n, s):
            s = _find_slot(terms, state, t, n)
        if s < 0:
            continue
        _put(terms, state, t, n, s)
        if at_home:
            _swap(part, i, away)
            away += 1
        elif n == home[t] and s == home_slot[t]:
            away -= 1
            _swap(part, i, away)
        task[hops], node[hops], slot[hops] = t, n, s
        hops += 1
    return task[:hops], node[:hops], slot[:hops], away


@compiled
def _number_states(start: WalkState, task: Ints, node: Ints, slot: Ints) -> Ints:
    """A number for the state before the first hop and after each; same state, same number."""
    where, which = start.node.copy(), start.slot.copy()
    found = np.zeros(len(task) + 1, np.int64)
    for i in range(len(task)):
        t = task[i]
        found[i + 1] = found[i] ^ _mix(t, int(where[t]), int(which[t])) ^ _mix(t, node[i], slot[i])
        where[t], which[t] = node[i], slot[i]
    return found


@compiled
def _mix(task: int, node: int, slot: int) -> int:
    """A number that looks random for every task and place."""
    x = task * 1_000_003 + node * 8_191 + slot + 1
    for _ in range(3):
        x = (x ^ (x >> 29)) * 0x2545F4914F6CDD1D
    return x


def _cut_loops(states: Ints) -> Ints:
    """The hops that are left when everything between two visits to the same state is cut out."""
    last = {state: i for i, state in enumerate(states.tolist())}
    kept: list[int] = []
    i = 0
    while True:
        i = last[int(states[i])]
        if i == len(states) - 1:
            return np.array(kept, dtype=np.int64)
        kept.append(i)
        i += 1


@compiled
def _swap(part: Ints, i: int, j: int) -> None:
    part[i], part[j] = part[j], part[i]


@compiled
def _drop_detours(terms: WalkTerms, start: WalkState, task: Ints, node: Ints, slot: Ints) -> Ints:
    """The hops that are left without the detours that are not needed.

    Each task's detours are dropped where the rest still fits: first all, then one by one.
    """
    keep = np.ones(len(task), np.bool_)
    changed = True
    while changed:
        changed = False
        for t in range(len(start.node)):
            mine = np.flatnonzero(keep & (task == t))[:-1]  # the last one takes it home
            if len(mine) == 0:
                continue
            keep[mine] = False
            if _fits(terms, _copy_state(start), task, node, slot, keep):
                changed = True
                continue
            keep[mine] = True
            for i in mine[::-1]:
                keep[i] = False
                if _fits(terms, _copy_state(start), task, node, slot, keep):
                    changed = True
                else:
                    keep[i] = True
    where, which = start.node.copy(), start.slot.copy()
    for i in range(len(task)):
        if keep[i]:
            keep[i] = where[task[i]] != node[i] or which[task[i]] != slot[i]
            where[task[i]], which[task[i]] = node[i], slot[i]
    return np.flatnonzero(keep)


@compiled
def _fits(
    terms: WalkTerms, state: WalkState, task: Ints, node: Ints, slot: Ints, keep: Bools
) -> bool:
    """Whether the kept hops fit one after another."""
    for i in range(len(task)):
        t, n, s = int(task[i]), int(node[i]), int(slot[i])
        if keep[i] and (state.node[t] != n or state.slot[t] != s):
            if not _node_takes(terms, state, t, n) or not _slot_takes(terms, state, t, n, s):
                return False
            _put(terms, state, t, n, s)
    return True

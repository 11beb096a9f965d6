"""Getting everybody home when nobody can go straight home: a random walk from state to state, each of which fits.

Every step of the walk moves one task to a node with room for it, so the walk itself is the order looked for. Tasks away from home drift, those at home
are sent away now and then, which lets others in; detours that prove unnecessary are taken out again at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.model.problem import UNPLACED
from headrace.move.room import Room
from headrace.solve.slots import compiled

LONGEST = 3_000  # hops up to which a walk is shortened: that takes their square


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """Hops in order, and how many tasks are not at home at the end."""

    task: Ints
    node: Ints
    away: int


class Terms(NamedTuple):
    """What does not change on the way."""

    need: Floats  # [Y, T, K]
    node_type: Ints  # [N]
    slack: Floats  # [N, K]
    allowed: Bools  # [C, N]
    apart: Bools  # [C]
    component: Ints  # [T]
    topology: Ints  # [T]
    slots: Ints  # [N]


class State(NamedTuple):
    """What does."""

    node: Ints  # [T]
    free: Floats  # [N, K]
    of_component: Ints  # [C, N] tasks
    of_topology: Ints  # [N, G] tasks


def walk_home(room: Room, home: Ints, *, steps: int, heat: float, seed: int) -> Walk:
    """Walk from where everything stands to `home` [T], UNPLACED for tasks that take no part.

    `heat` is the chance to send a task away that is at home. Of slots only their number is looked at: topologies on a node.
    """
    problem = room.problem
    everywhere = np.ones((len(problem.tasks), len(problem.nodes)), dtype=bool)
    allowed = everywhere if problem.allowed is None else problem.allowed.copy()
    terms = Terms(
        room.need, problem.node_type.copy(), room.slack, allowed, problem.apart.copy(), room.component.copy(), room.topology.copy(),
        room.usable.sum(axis=1),
    )  # fmt: skip
    state = State(room.node, room.free, room.of_component, room.in_slot.sum(axis=1))
    task, node, away = _wander(terms, _copy(state), home.copy(), steps, heat, seed)
    if not away and len(task) <= LONGEST:
        kept = _needed(terms, state, task, node)
        task, node = task[kept], node[kept]
    return Walk(task, node, int(away))


@compiled
def _copy(state: State) -> State:
    return State(state.node.copy(), state.free.copy(), state.of_component.copy(), state.of_topology.copy())


@compiled
def _hop(terms: Terms, state: State, t: int, n: int) -> bool:
    """Move a task to a node, if it fits there."""
    c, g, here = terms.component[t], terms.topology[t], state.node[t]
    if not terms.allowed[c, n] or (terms.apart[c] and state.of_component[c, n] > 0):
        return False
    if state.of_topology[n, g] == 0 and np.sum(state.of_topology[n] > 0) >= terms.slots[n]:
        return False
    for k in range(state.free.shape[1]):
        if terms.need[terms.node_type[n], t, k] > state.free[n, k] + terms.slack[n, k]:
            return False
    for k in range(state.free.shape[1]):
        state.free[n, k] -= terms.need[terms.node_type[n], t, k]
        if here != UNPLACED:
            state.free[here, k] += terms.need[terms.node_type[here], t, k]
    state.of_component[c, n] += 1
    state.of_topology[n, g] += 1
    if here != UNPLACED:
        state.of_component[c, here] -= 1
        state.of_topology[here, g] -= 1
    state.node[t] = n
    return True


@compiled
def _wander(terms: Terms, state: State, home: Ints, steps: int, heat: float, seed: int) -> tuple[Ints, Ints, int]:
    """The hops of the walk, and how many tasks are away at its end."""
    np.random.seed(seed)
    part = np.flatnonzero(home != UNPLACED)
    away = np.sum(state.node[part] != home[part])
    task, node = np.empty(steps, np.int64), np.empty(steps, np.int64)
    hops = 0
    for _ in range(steps):
        if away == 0:
            break
        t = part[np.random.randint(len(part))]
        here = state.node[t]
        if here == home[t]:
            if np.random.random() >= heat:
                continue
            n = np.random.randint(len(terms.node_type))
        else:
            n = int(home[t]) if np.random.random() < 0.5 else np.random.randint(len(terms.node_type))
        if n != here and _hop(terms, state, t, n):
            away += int(here == home[t]) - int(n == home[t])
            task[hops], node[hops] = t, n
            hops += 1
    return task[:hops], node[:hops], away


@compiled
def _needed(terms: Terms, start: State, task: Ints, node: Ints) -> Ints:
    """The hops the walk cannot do without: each task's detours are dropped, first all, then one by one, where the rest still fits."""
    keep = np.ones(len(task), np.bool_)
    changed = True
    while changed:
        changed = False
        for t in range(len(start.node)):
            mine = np.flatnonzero(keep & (task == t))[:-1]  # the last one takes it home
            if len(mine) == 0:
                continue
            keep[mine] = False
            if _fits(terms, _copy(start), task, node, keep):
                changed = True
                continue
            keep[mine] = True
            for i in mine[::-1]:
                keep[i] = False
                if _fits(terms, _copy(start), task, node, keep):
                    changed = True
                else:
                    keep[i] = True
    where = start.node.copy()
    for i in range(len(task)):
        if keep[i]:
            keep[i] = where[task[i]] != node[i]
            where[task[i]] = node[i]
    return np.flatnonzero(keep)


@compiled
def _fits(terms: Terms, state: State, task: Ints, node: Ints, keep: Bools) -> bool:
    """Whether the kept hops fit one after another."""
    for i in range(len(task)):
        if keep[i] and state.node[task[i]] != node[i] and not _hop(terms, state, task[i], node[i]):
            return False
    return True

"""What a change of plans carries: state, piece by piece, from who holds it to who will.

Keyed state is divided as the engine divides it (model/keys.py): a piece is a range of key groups
that one task held before and one task holds after. State that is not keyed stays with its task.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.model.keys import GROUPS, owner_of
from headrace.model.problem import UNPLACED, Assignment, Problem


@dataclass(frozen=True, slots=True, eq=False)
class Holders:
    """The tasks that hold state now, in the terms of the problem to come."""

    tasks: Ints  # [C] how many there are
    first: Ints  # [C + 1] where those of each component begin in `node`
    node: Ints  # [tasks before] UNPLACED: it ran nowhere, or its node is gone
    state_mb: Floats  # [C] of one of them


def find_holders(old: Problem, plan: Assignment, new: Problem) -> Holders:
    """Who holds state under the old plan; components and nodes are matched by name."""
    if old is new:
        return Holders(new.tasks, new.first, plan.node, new.state_mb)
    number = {name: i for i, name in enumerate(new.nodes)}
    node_in_new = np.array([*(number.get(name, UNPLACED) for name in old.nodes), UNPLACED])
    column = {name: i for i, name in enumerate(old.components)}
    found = [column.get(name) for name in new.components]
    tasks = np.array([0 if o is None else old.tasks[o] for o in found], dtype=np.int64)
    state_mb = np.array([0.0 if o is None else old.state_mb[o] for o in found])
    nodes = [plan.node[old.tasks_of(o)] for o in found if o is not None]
    where = node_in_new[np.concatenate(nodes)]  # UNPLACED is -1, the last entry
    return Holders(tasks, np.concatenate([[0], np.cumsum(tasks)]), where, state_mb)


def recounted(problem: Problem, holders: Holders) -> Ints:
    """Components with keyed state whose number of tasks changes: it is divided again."""
    return np.array(
        [
            c
            for c in np.flatnonzero((holders.tasks != problem.tasks) & (holders.tasks > 0)).tolist()
            if problem.holding[c] == "keys" and holders.state_mb[c] > 0
        ],
        dtype=np.int64,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Pieces of state, by component and then by key, R of them; those that stay too."""

    component: Ints  # [R]
    first: Ints  # [R] key groups [first, end); none (0, 0) of state that is not keyed
    end: Ints  # [R]
    start: Ints  # [R] where it starts among the component's keys, exactly: in `units` of them
    units: Ints  # [R]
    holder: Ints  # [R] number of the task that has it, from 0
    taker: Ints  # [R] number of the task that gets it
    source: Ints  # [R] node; UNPLACED where the state is lost
    target: Ints  # [R]
    mb: Floats  # [R]

    @property
    def moving(self) -> Bools:
        """Which go from one node to another."""
        return (self.source != self.target) & (self.source != UNPLACED) & (self.target != UNPLACED)

    @property
    def lost(self) -> Bools:
        """Which are on no node now, though a task needs them."""
        return (self.source == UNPLACED) & (self.target != UNPLACED) & (self.mb > 0)


def divide_state(problem: Problem, holders: Holders, new: Assignment) -> Ranges:
    """All pieces of state, with the node that each is on and the node that it belongs to."""
    again = recounted(problem, holders)
    rows = [_whole_rows(problem, holders, again)]
    rows += [_divided_rows(problem, holders, c) for c in again.tolist()]
    component, first, end, start, units, holder, taker = np.concatenate(rows, axis=1)
    order = np.lexsort([start, component])
    component, first, end, start, units, holder, taker = (
        row[order] for row in (component, first, end, start, units, holder, taker)
    )
    mb, divided = holders.state_mb[component], np.isin(component, again)
    mb[divided] *= (holders.tasks[component] * ((end - first) / GROUPS))[divided]
    source = holders.node[holders.first[component] + holder]
    target = new.node[problem.first[component] + taker]
    return Ranges(component, first, end, start, units, holder, taker, source, target, mb)


def _whole_rows(problem: Problem, holders: Holders, again: Ints) -> Ints:
    """State that stays with its task: component, first, end, start, units, holder, taker."""
    holding = np.array(problem.holding)
    common = np.minimum(holders.tasks, problem.tasks)
    common[again] = 0
    common = np.where(holding == "first", np.minimum(common, 1), common)
    component = np.repeat(np.arange(len(common)), common)
    number = np.arange(len(component)) - np.repeat(np.cumsum(common) - common, common)
    tasks = np.where(holding == "first", 1, problem.tasks)[component]
    keyed = holding[component] != "task"
    first, end = (np.where(keyed, -(-n * GROUPS // tasks), 0) for n in (number, number + 1))
    return np.stack([component, first, end, number, tasks, number, number])


def _divided_rows(problem: Problem, holders: Holders, c: int) -> Ints:
    """The ranges of a component whose task count changes, as `_whole_rows`."""
    before, after = int(holders.tasks[c]), int(problem.tasks[c])
    units = math.lcm(before, after)
    start = np.union1d(*(np.arange(n) * (units // n) for n in (before, after)))
    first = -(-start * GROUPS // units)
    end = np.append(first[1:], GROUPS)
    start, first, end = (row[first < end] for row in (start, first, end))  # none without a group
    of = np.full(len(start), c), np.full(len(start), units)
    tasks = owner_of(first, before), owner_of(first, after)
    return np.stack([of[0], first, end, start, of[1], *tasks])


def task_state_mb(problem: Problem) -> Floats:
    """Megabytes that move with each task, [T]."""
    mb = problem.state_mb[problem.component_of]
    alone = np.array(problem.holding) == "first"
    number = np.arange(problem.task_count) - problem.first[problem.component_of]
    mb[alone[problem.component_of] & (number > 0)] = 0.0
    return mb

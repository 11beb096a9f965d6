"""From one plan to another: which tasks move, how many megabytes that is, and what is lost.

Both plans are plans of one problem, the one to come. Keyed state is divided over tasks as the
engine divides it, so that with other task counts ranges of keys go from task to task. State that is
not keyed goes with its task, and is lost where that has no node any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headrace import figures
from headrace.errors import InvalidInput
from headrace.judge.traffic import traffic
from headrace.model.arrays import Floats, Ints, distinct
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.ranges import (
    Holders,
    Ranges,
    divide_state,
    find_holders,
    recounted,
    task_state_mb,
)
from headrace.move.steps import Moves, NamedRanges, Volumes

ASSUMED_MBPS = 1000.0  # between two nodes neither of which has a bandwidth
MEGABIT = 8.0  # in a megabyte


@dataclass(frozen=True, slots=True, eq=False)
class CarriedPlan:
    """The running plan as a plan of the problem to come."""

    plan: Assignment
    lost: dict[str, tuple[str, ...]]  # node that is gone -> tasks that ran on it
    added: dict[str, int]  # component -> tasks that are new
    removed: dict[str, int]  # component -> tasks that stop
    notes: tuple[str, ...]
    holders: Holders  # of the state there is


def carry_plan(old: Problem, plan: Assignment, new: Problem) -> CarriedPlan:
    """The old problem's plan as a plan of the new problem, by the names of tasks and nodes.

    Counts and nodes may differ, components may not.
    """
    refuse_wrong_plan(old, plan, "old")
    only_old = sorted(set(old.components) - set(new.components))
    only_new = sorted(set(new.components) - set(old.components))
    if only_old or only_new:
        sides = [
            f"only the {side} one has {_some(names)}"
            for side, names in (("old", only_old), ("new", only_new))
            if names
        ]
        raise InvalidInput(f"the plans are for different topologies: {'; '.join(sides)}")
    number = {name: i for i, name in enumerate(new.nodes)}
    node_in_new = np.array([number.get(name, UNPLACED) for name in old.nodes], dtype=np.int64)
    column = {name: i for i, name in enumerate(old.components)}
    node, worker = np.full((2, new.task_count), UNPLACED, dtype=np.int64)
    lost: dict[str, list[str]] = {}
    added: dict[str, int] = {}
    removed: dict[str, int] = {}
    holders = find_holders(old, plan, new)
    again = set(recounted(new, holders).tolist())
    for c, name in enumerate(new.components):
        o = column[name]
        before, after = int(old.tasks[o]), int(new.tasks[c])
        if before != after:
            (added if after > before else removed)[name] = abs(after - before)
        heirs, parents = pair_tasks(before, after, by_keys=c in again)
        here, there = int(new.first[c]) + heirs, int(old.first[o]) + parents
        was = plan.node[there]
        node[here] = np.where(was == UNPLACED, UNPLACED, node_in_new[was])
        worker[here] = np.where(node[here] == UNPLACED, UNPLACED, plan.worker[there])
        for i in np.flatnonzero((was != UNPLACED) & (node[here] == UNPLACED)).tolist():
            lost.setdefault(old.nodes[was[i]], []).append(new.task_name(int(here[i])))
    notes = [
        f"node {gone} no longer exists: {len(tasks)} tasks start elsewhere, their state is lost"
        for gone, tasks in lost.items()
    ]
    notes += _notes_on_counts(new, holders)
    return CarriedPlan(
        Assignment(node, worker),
        {gone: tuple(tasks) for gone, tasks in lost.items()},
        added,
        removed,
        tuple(notes),
        holders,
    )


def pair_tasks(before: int, after: int, *, by_keys: bool) -> tuple[Ints, Ints]:
    """New tasks that take an old one's place, and those old ones, both from 0.

    By their number; or, where keys are divided again, by the keys that they have in common.
    """
    number = np.arange(min(before, after))
    if not by_keys:
        return number, number
    most, least = max(before, after), min(before, after)
    spread = -(-number * most // least)  # ranges that start inside those of the fewer tasks
    return (spread, number) if after > before else (number, spread)


def _notes_on_counts(new: Problem, holders: Holders) -> Iterator[str]:
    """What becomes of the state of components whose number of tasks changes."""
    again = set(recounted(new, holders).tolist())
    for c in np.flatnonzero(holders.tasks != new.tasks).tolist():
        name, before, after = new.components[c], int(holders.tasks[c]), int(new.tasks[c])
        count, mb = abs(after - before), float(holders.state_mb[c])
        if c in again:
            total = f"{figures.number(mb * before)} MB of keyed state"
            yield f"{name}: {before} tasks become {after}, and its {total} are divided again"
        elif after > before:
            without = " without state" if mb and new.holding[c] == "task" else ""
            yield f"{count} new tasks of {name} start{without}"
        else:
            lost = mb and new.holding[c] == "task"
            state = (
                f"; their {figures.number(mb * count)} MB of state are not keyed, and lost"
                if lost
                else ""
            )
            yield f"{count} tasks of {name} stop first{state}"


def refuse_wrong_plan(problem: Problem, plan: Assignment, which: str) -> None:
    """Raise if a plan cannot be of this problem, or a component has an impossible state."""
    if plan.node.shape != (problem.task_count,) or plan.worker.shape != (problem.task_count,):
        raise InvalidInput(
            f"the {which} plan is for another topology: "
            f"it places {len(plan.node)} tasks, there are {problem.task_count}"
        )
    wrong = np.flatnonzero((plan.node < UNPLACED) | (plan.node >= len(problem.nodes)))
    if len(wrong):
        t = int(wrong[0])
        raise InvalidInput(
            f"the {which} plan puts {problem.task_name(t)} on node number {plan.node[t]}; "
            f"there are {len(problem.nodes)} nodes"
        )
    if ((plan.node != UNPLACED) & (plan.worker < 0)).any():
        raise InvalidInput(f"the {which} plan gives a task a worker below 0")
    state = np.flatnonzero(~(problem.state_mb >= 0))
    if len(state):
        c = int(state[0])
        raise InvalidInput(
            f"component {problem.components[c]}: state_mb is {problem.state_mb[c]:g}; "
            "it must be 0 or more"
        )


def find_moving_tasks(old: Assignment, new: Assignment) -> Ints:
    """Tasks that run in both plans, but on another node."""
    return np.flatnonzero((old.node != UNPLACED) & (new.node != UNPLACED) & (old.node != new.node))


def volumes_between(
    problem: Problem,
    old: Assignment,
    new: Assignment,
    *,
    holders: Holders | None = None,
    assumed_mbps: float = ASSUMED_MBPS,
) -> Volumes:
    """Megabytes from node to node, and the seconds they take at the smaller bandwidth.

    `holders` have the state; absent: the tasks of the old plan.
    """
    refuse_wrong_plan(problem, old, "old")
    refuse_wrong_plan(problem, new, "new")
    pieces = divide_state(problem, holders or find_holders(problem, old, problem), new)
    moving = pieces.moving
    units = np.zeros((len(problem.nodes), len(problem.nodes)))
    np.add.at(units, (pieces.source[moving], pieces.target[moving]), pieces.mb[moving])
    source, target = np.nonzero(units)
    seconds = np.zeros_like(units)
    seconds[source, target], notes = transfer_seconds(
        problem, source, target, units[source, target], assumed_mbps
    )
    return Volumes(
        problem.nodes,
        problem.nodes,
        units,
        seconds,
        notes=(*notes, *note_lost_state(pieces)),
        ranges=NamedRanges(pieces, problem),
    )


def transfer_seconds(
    problem: Problem, source: Ints, target: Ints, mb: Floats, assumed_mbps: float = ASSUMED_MBPS
) -> tuple[Floats, tuple[str, ...]]:
    """Seconds that each transfer takes alone, [transfers], and what was assumed."""
    speed = np.minimum(problem.bandwidth_mbps[source], problem.bandwidth_mbps[target])
    for k in np.flatnonzero((mb > 0) & ~(speed > 0))[:1].tolist():
        a, b = int(source[k]), int(target[k])
        slow, names = (a if not problem.bandwidth_mbps[a] > 0 else b), problem.nodes
        raise InvalidInput(
            f"node {names[slow]} has no bandwidth, "
            f"and {figures.number(float(mb[k]))} MB must go from {names[a]} to {names[b]}",
            resource="bandwidth_mbps",
            needed=float(mb[k]),
            available=0.0,
            fix=f"give node {names[slow]} a bandwidth_mbps above 0",
        )
    unknown = np.isinf(speed)
    notes = ()
    if (unknown & (mb > 0)).any():
        if not assumed_mbps > 0:
            raise InvalidInput(
                f"the assumed bandwidth is {assumed_mbps:g} Mbit/s; it must be above 0"
            )
        notes = (
            f"{assumed_mbps:g} Mbit/s assumed between nodes neither of which has a bandwidth_mbps",
        )
    speed = np.where(unknown, assumed_mbps, np.where(speed > 0, speed, np.inf))
    return mb * MEGABIT / speed, notes


def note_lost_state(pieces: Ranges) -> tuple[str, ...]:
    """What is said of state that is on no node any more."""
    lost = np.flatnonzero(pieces.lost)
    if not len(lost):
        return ()
    tasks = len(distinct(np.stack([pieces.component[lost], pieces.taker[lost]]), axis=1).T)
    mb = float(pieces.mb[lost].sum())
    return (f"{tasks} tasks start without their state ({figures.number(mb)} MB)",)


@dataclass(frozen=True, slots=True)
class Arrival:
    """What is in place after a step: its tasks have all their state at their new node."""

    tasks: tuple[str, ...]
    mb: float  # transferred in the step
    gain: float  # tuples/s less between nodes than before the step
    inter_node_traffic: float  # after it
    pause_s: float  # the longest that a task stops: from its first byte's step to this one's end


def arrivals(
    problem: Problem, old: Assignment, new: Assignment, moves: Moves
) -> tuple[Arrival, ...]:
    """What every step of a move between plans gains.

    Between two nodes, tasks are sent in their order; tasks without state arrive with the first
    step. Empty if the old plan leaves a task without a node: traffic of half a topology is no
    figure.
    """
    if ((old.node == UNPLACED) != (new.node == UNPLACED)).any():
        return ()
    if any(step.ranges for step in moves.steps):
        return _arrivals_of_ranges(problem, old, new, moves)
    number = {name: i for i, name in enumerate(problem.nodes)}
    n, mb = len(problem.nodes), task_state_mb(problem)
    # Pair of nodes -> (megabytes after which the task has arrived, task).
    waiting: dict[int, list[tuple[float, int]]] = {}
    so_far = np.zeros(n * n)
    for t in find_moving_tasks(old, new).tolist():
        pair = int(old.node[t] * n + new.node[t])
        so_far[pair] += mb[t]
        waiting.setdefault(pair, []).append((float(so_far[pair]), t))
    node, worker = old.node.copy(), old.worker.copy()
    here = node == new.node
    worker[here] = new.worker[here]
    before = traffic(problem, old).inter_node
    sent = np.zeros(n * n)
    stopped: dict[int, float] = {}  # pair -> when the task stopped that is on its way
    clock = 0.0
    found: list[Arrival] = []
    for step in moves.steps:
        begin, clock = clock, clock + step.cost
        for transfer in step.transfers:
            sent[number[str(transfer.source)] * n + number[str(transfer.target)]] += transfer.units
        touched = (
            list(waiting)
            if not found
            else {number[str(t.source)] * n + number[str(t.target)] for t in step.transfers}
        )
        there: list[int] = []
        pause = 0.0
        for pair in touched:
            queue, since = waiting.get(pair, []), stopped.pop(pair, begin)
            while queue and queue[0][0] <= sent[pair] * (1 + 1e-9):
                t = queue.pop(0)[1]
                there.append(t)
                pause, since = max(pause, clock - since if mb[t] > 0 else 0.0), begin
            if queue and sent[pair] > queue[0][0] - mb[queue[0][1]]:
                stopped[pair] = since
        node[there], worker[there] = new.node[there], new.worker[there]
        after = traffic(problem, Assignment(node, worker)).inter_node if there else before
        names = tuple(problem.task_name(t) for t in sorted(there))
        found.append(
            Arrival(names, sum(t.units for t in step.transfers), before - after, after, pause)
        )
        before = after
    return tuple(found)


def _arrivals_of_ranges(
    problem: Problem, old: Assignment, new: Assignment, moves: Moves
) -> tuple[Arrival, ...]:
    """The same, where steps say which ranges they carry: a task stops from its first to its last.

    Counts are the same in both plans.
    """
    moving = {problem.task_name(t): t for t in find_moving_tasks(old, new).tolist()}
    last = {r.taker: i for i, step in enumerate(moves.steps) for r in step.ranges}
    begins: dict[str, float] = {}
    node, worker = old.node.copy(), old.worker.copy()
    here = node == new.node
    worker[here] = new.worker[here]
    before, clock = traffic(problem, old).inter_node, 0.0
    found: list[Arrival] = []
    for i, step in enumerate(moves.steps):
        for r in step.ranges:
            begins.setdefault(r.taker, clock)
        clock += step.cost
        names = [name for name in moving if last.get(name, 0) == i]
        tasks = [moving[name] for name in names]
        node[tasks], worker[tasks] = new.node[tasks], new.worker[tasks]
        after = traffic(problem, Assignment(node, worker)).inter_node if tasks else before
        pause = max((clock - begins[name] for name in names if name in begins), default=0.0)
        mb = sum(t.units for t in step.transfers)
        found.append(Arrival(tuple(names), mb, before - after, after, pause))
        before = after
    return tuple(found)


def _some(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:3]) + (
        f" and {len(names) - 3} more" if len(names) > 3 else ""
    )

"""What happens while a plan runs: other rates, another plan, nodes lost and back, a hot key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from headrace.errors import InvalidInput
from headrace.model.arrays import Floats
from headrace.model.keys import KEYED_BY
from headrace.model.nearest import nearest
from headrace.model.plan import read_assignment
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.read import read
from headrace.model.simulation_sections import Event
from headrace.move.change import arrivals, find_moving_tasks, volumes_between
from headrace.move.optimal import optimal
from headrace.simulate.arrivals import Curve
from headrace.simulate.layout import heap_places, placed_on
from headrace.simulate.routes import Routes, routes_of
from headrace.simulate.tuple_by_tuple import Action
from headrace.solve.simulation.changes import (
    cut_link,
    kill_task,
    pause_task,
    resume_task,
    seat_tasks,
)
from headrace.solve.simulation.state import DEAD, Run

WHAT = ("rate", "plan", "lose", "join", "hot")


@dataclass(slots=True)
class Stage:
    """The plan and the problem as the events so far have left them."""

    problem: Problem
    assignment: Assignment
    down: set[int]  # nodes that are lost


def actions_of(
    problem: Problem,
    assignment: Assignment,
    events: Sequence[Event],
    plans: Mapping[str, Assignment] | None = None,
) -> tuple[list[tuple[float, Action]], Curve, list[str]]:
    """What to do when, the rates that events set, and what was assumed."""
    stage = Stage(problem, assignment, set())
    actions: list[tuple[float, Action]] = []
    factors: Curve = [(0.0, 1.0)]
    notes: list[str] = []
    for event in sorted(events, key=lambda e: e.at):
        what = check_event(problem, event)
        if what == "rate":
            factors.append((event.at, float(event.rate or 0.0)))
        elif what == "plan":
            target = _assignment(problem, str(event.plan), plans or {})
            actions += change_plan(stage, event.at, target, notes)
        elif what == "lose":
            actions.append((event.at, lose_node(stage, problem.nodes.index(str(event.lose)))))
        elif what == "join":
            actions.append((event.at, join_node(stage, problem.nodes.index(str(event.join)))))
        else:
            actions.append((event.at, make_hot(stage, str(event.hot), event.share)))
    return actions, factors, notes


def check_event(problem: Problem, event: Event) -> str:
    """What an event does; refused if it is not one thing, or names what there is not."""
    given = [name for name in WHAT if getattr(event, name) is not None]
    if len(given) != 1:
        had = " and ".join(f"`{name}`" for name in given) or "nothing"
        raise InvalidInput(
            f"events: at {event.at:g} s happens {had}; give one of {', '.join(WHAT)}"
        )
    (what,) = given
    name = getattr(event, what)
    if what in ("lose", "join") and name not in problem.nodes:
        near = nearest(name, problem.nodes) or f"; there are: {', '.join(problem.nodes[:5])}"
        raise InvalidInput(f"events: at {event.at:g} s, there is no node `{name}`{near}")
    if what == "hot":
        _hot_task(problem, name)
    return what


def _assignment(problem: Problem, name: str, plans: Mapping[str, Assignment]) -> Assignment:
    if name in plans:
        return plans[name]
    section = read([Path(name)]).document.plan
    if section is None:
        raise InvalidInput(f"{name}: holds no plan; write one with headrace place .. --out")
    return read_assignment(problem, section)


def _hot_task(problem: Problem, name: str) -> int:
    """The task of a name; refused where its tuples do not come by key."""
    component, _, number = name.rpartition(".")
    if component not in problem.components:
        known = [problem.task_name(t) for t in range(min(problem.task_count, 10_000))]
        raise InvalidInput(f"events: there is no task `{name}`{nearest(name, known)}")
    c = problem.components.index(component)
    count = int(problem.tasks[c])
    if not number.isdecimal() or not 1 <= int(number) <= count:
        raise InvalidInput(f"events: there is no task `{name}`; `{component}` has 1 to {count}")
    keyed = [s for s in problem.streams if s.target == c and s.grouping in KEYED_BY[:1]]
    if not keyed:
        raise InvalidInput(
            f"events: no key can be hot at `{name}`: no input of `{component}` is grouped by fields"
        )
    return int(problem.first[c]) + int(number) - 1


def lose_node(stage: Stage, node: int) -> Action:
    """A node fails: what its tasks and links hold is lost, and what is sent to them."""

    def act(run: Run) -> Run:
        for task in np.flatnonzero(run.node == node).tolist():
            kill_task(run, task)
        for link in (node, len(run.cores) + node):
            cut_link(run, link)
        seat_tasks(run)
        stage.down.add(node)
        return run

    return act


def join_node(stage: Stage, node: int) -> Action:
    """A node comes back: its tasks start again, with nothing to do."""

    def act(run: Run) -> Run:
        stage.down.discard(node)
        placed = stage.assignment.node
        for task in np.flatnonzero((run.node == node) & (placed != UNPLACED)).tolist():
            resume_task(run, task)
        return run

    return act


def make_hot(stage: Stage, name: str, share: float) -> Action:
    """A key becomes hot: its task gets this share of the keyed tuples of its component."""
    task = _hot_task(stage.problem, name)

    def act(run: Run) -> Run:
        problem = stage.problem
        c = int(problem.component_of[task])
        place = task - int(problem.first[c])
        streams = tuple(
            replace(s, shares=_heated(s.received(int(problem.tasks[c])), place, share))
            if s.target == c and s.grouping == "fields"
            else s
            for s in problem.streams
        )
        stage.problem = replace(problem, streams=streams)
        return with_routes(run, routes_of(stage.problem, stage.assignment, run.worker))

    return act


def _heated(shares: Floats, place: int, share: float) -> Floats:
    rest = np.delete(shares, place).sum()
    heated = shares * ((1 - share) / rest if rest > 0 else 0.0)
    heated[place] = share if rest > 0 else 1.0
    return heated


def change_plan(
    stage: Stage, at: float, target: Assignment, notes: list[str]
) -> list[tuple[float, Action]]:
    """Go to another plan in the order that `move` gives: tasks pause while their state travels."""
    problem, old = stage.problem, stage.assignment
    moves = optimal(volumes_between(problem, old, target))
    moving = set(find_moving_tasks(old, target).tolist())
    number = {problem.task_name(t): t for t in moving}
    found: list[tuple[float, Action]] = []
    clock = 0.0
    left = set(moving)
    for step, arrival in zip(moves.steps, arrivals(problem, old, target, moves), strict=True):
        clock += step.cost
        tasks = [number[name] for name in arrival.tasks]
        left -= set(tasks)
        with_state = [t for t in tasks if problem.state_mb[problem.component_of[t]] > 0]
        begin = max(at, at + clock - arrival.pause_s)
        found.append((begin, _pause(with_state)))
        found.append((at + clock, _arrive(stage, target, tasks)))
    found.insert(0, (at, _arrive(stage, target, sorted(left))))
    # Tasks that stay on their node may change workers, and come back if theirs was lost.
    found.append((at + clock, _arrive(stage, target, None)))
    mb = moves.units
    notes.append(f"at {at:g} s {len(moving)} tasks move with {mb:g} MB, in {clock:.3g} s")
    stage.assignment = target
    return found


def _pause(tasks: Sequence[int]) -> Action:
    def act(run: Run) -> Run:
        for task in tasks:
            pause_task(run, task)
        seat_tasks(run)
        return run

    return act


def _arrive(stage: Stage, target: Assignment, tasks: Sequence[int] | None) -> Action:
    """Tasks go on at their new places; None: all that are not there yet."""

    def act(run: Run) -> Run:
        problem = stage.problem
        node, worker = run.node.copy(), run.worker.copy()
        placed = placed_on(problem, target)
        there = np.arange(len(node)) if tasks is None else np.array(tasks, dtype=np.int64)
        there = there[target.node[there] != UNPLACED]
        if not len(there):
            return run
        for task in there.tolist():
            if run.node[task] != placed.node[task]:
                pause_task(run, task)
        node[there], worker[there] = placed.node[there], placed.worker[there]
        mixed = placed_on(problem, Assignment(node, worker))
        for name in ("node", "worker", "cap", "work_s", "cores"):
            getattr(run, name)[:] = worker if name == "worker" else getattr(mixed, name)
        run.heap_first[:] = heap_places(run.node, len(run.cores))
        for task in there.tolist():
            if run.status[task] != DEAD or int(run.node[task]) not in stage.down:
                resume_task(run, task)
        run = with_routes(run, routes_of(problem, target, run.worker))
        seat_tasks(run)
        return run

    return act


def with_routes(run: Run, routes: Routes) -> Run:
    """The run with other routes; the old ones stay for the tuples that are on their way."""
    shift, rows = len(run.gain), len(run.accept)

    def joined(old: Any, new: Any) -> Any:
        return np.concatenate([old, new])

    return run._replace(
        route_first=routes.first,
        route=routes.route + shift,
        gain=joined(run.gain, routes.gain),
        way=joined(run.way, routes.way),
        target=joined(run.target, routes.target),
        targets=joined(run.targets, routes.targets),
        table=joined(run.table, routes.table + rows),
        megabits=joined(run.megabits, routes.megabits),
        joins=joined(run.joins, routes.joins),
        accept=joined(run.accept, routes.accept),
        choice=joined(run.choice, routes.choice),
        other=joined(run.other, routes.other),
    )

"""Plans as files: self-contained, compact at scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from headrace.errors import InvalidInput
from headrace.model.arrays import Ints, distinct
from headrace.model.document import SECTIONS, Document, PlanSection
from headrace.model.problem import UNPLACED, Assignment, Problem

COMPACT_ABOVE = 10_000  # tasks


def assignment_section(
    problem: Problem, assignment: Assignment, *, compact: bool = False
) -> dict[str, Any]:
    """The plan's `assignment`, or above 10,000 tasks (or when asked) its compact `placement`."""
    if compact or problem.task_count > COMPACT_ABOVE:
        return {"placement": _runs(problem, assignment)}
    placed = np.flatnonzero(assignment.node != UNPLACED)
    named = [problem.task_name(int(t)) for t in placed]
    nodes, workers = assignment.node[placed].tolist(), assignment.worker[placed].tolist()
    return {
        "assignment": {
            task: {"node": problem.nodes[n], "worker": w}
            for task, n, w in zip(named, nodes, workers, strict=True)
        }
    }


def _runs(problem: Problem, assignment: Assignment) -> dict[str, list[list[Any]]]:
    """Consecutive tasks of a component in one worker, as [node, worker, first, last]."""
    c, n, w = problem.component_of, assignment.node, assignment.worker
    change = np.ones(len(c), dtype=bool)
    change[1:] = (c[1:] != c[:-1]) | (n[1:] != n[:-1]) | (w[1:] != w[:-1])
    start = np.flatnonzero(change)
    end = np.append(start[1:], len(c))
    placed = n[start] != UNPLACED
    start, end = start[placed], end[placed]
    offset = problem.first[c[start]]
    placement: dict[str, list[list[Any]]] = {}
    columns = (c[start], n[start], w[start], start - offset + 1, end - offset)
    for component, node, worker, first, last in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        placement.setdefault(problem.components[component], []).append(
            [problem.nodes[node], worker, first, last]
        )
    return placement


def made_from(document: Document) -> dict[str, Any]:
    """The sections a plan was made from, so that its file needs no other."""
    return document.model_dump(
        mode="json", by_alias=True, exclude_unset=True, include=set(SECTIONS)
    )


def read_assignment(problem: Problem, plan: PlanSection) -> Assignment:
    """The assignment a plan file holds: exactly this problem's tasks, on this problem's nodes."""
    node = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    worker = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    nodes = {name: i for i, name in enumerate(problem.nodes)}
    components = {name: i for i, name in enumerate(problem.components)}
    if plan.placement is not None:
        for name, runs in plan.placement.items():
            tasks = problem.tasks_of(_find(components, name, "component", problem))
            count = tasks.stop - tasks.start
            for where, slot, first, last in runs:
                if not 1 <= first <= last <= count:
                    run = f"{name}.{first} to {name}.{last}"
                    raise _other_plan(f"it places {run}; `{name}` has tasks 1 to {count}")
                span = slice(tasks.start + first - 1, tasks.start + last)
                if (node[span] != UNPLACED).any():
                    raise InvalidInput(
                        f"the plan places tasks between {name}.{first} and {name}.{last} twice"
                    )
                node[span], worker[span] = _find(nodes, where, "node", problem), slot
    for name, place in (plan.assignment or {}).items():
        task = _task(problem, components, name)
        if node[task] != UNPLACED:
            raise InvalidInput(f"the plan places {name} twice")
        node[task], worker[task] = _find(nodes, place.node, "node", problem), place.worker
    _require_whole_topologies(problem, node)
    return Assignment(node, worker)


def assignment_from(problem: Problem, answer: object, by: str) -> Assignment:
    """A scheduler's answer as an assignment: it is one, or {task: node}.

    From {task: node}, each topology gets one worker per node. A plug-in's answer is checked, so
    that a mistake in it is named and not judged.
    """
    if isinstance(answer, Assignment):
        for name, array in (("node", answer.node), ("worker", answer.worker)):
            if array.shape != (problem.task_count,):
                raise InvalidInput(
                    f"{by} gave {array.shape[0] if array.ndim else 0} entries of `{name}`; "
                    f"the problem has {problem.task_count} tasks"
                )
        low, high = int(answer.node.min(initial=0)), int(answer.node.max(initial=0))
        if low < UNPLACED or high >= len(problem.nodes):
            wrong = low if low < UNPLACED else high
            raise InvalidInput(
                f"{by} gave node {wrong}; nodes are numbered 0 to {len(problem.nodes) - 1}"
            )
        return answer
    if not isinstance(answer, Mapping):
        raise InvalidInput(
            f"{by} gave {type(answer).__name__}; an Assignment or {{task: node}} is needed"
        )
    return _assignment_by_name(problem, cast("Mapping[object, object]", answer), by)


def _assignment_by_name(problem: Problem, node_of: Mapping[object, object], by: str) -> Assignment:
    components = {name: i for i, name in enumerate(problem.components)}
    nodes = {name: i for i, name in enumerate(problem.nodes)}
    node = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    try:
        for task, where in node_of.items():
            node[_task(problem, components, str(task))] = _find(nodes, str(where), "node", problem)
        _require_whole_topologies(problem, node)
    except InvalidInput as error:
        raise InvalidInput(f"{by}: {error.message}") from None
    return Assignment(node, first_free_slots(problem, node))


def first_free_slots(problem: Problem, node: Ints) -> Ints:
    """One worker per topology on each node, in the node's free slots by turn, [T]."""
    worker = np.where(node == UNPLACED, UNPLACED, 0)
    topology = problem.topology[problem.component_of]
    for n in distinct(node[node != UNPLACED]).tolist():
        free = np.flatnonzero(~problem.slot_taken[n])
        here = distinct(topology[node == n])
        for i, g in enumerate(here.tolist()):
            # Where slots run out the last one is shared, and the judge says so.
            slot = int(free[min(i, len(free) - 1)]) if len(free) else 0
            worker[(node == n) & (topology == g)] = slot
    return worker


def _task(problem: Problem, components: dict[str, int], name: str) -> int:
    if problem.bare:
        return _find(components, name, "task", problem)
    component, dot, number = name.rpartition(".")
    if not dot:
        raise _other_plan(f"it places `{name}`; tasks are called component.N")
    tasks = problem.tasks_of(_find(components, component, "component", problem))
    if not number.isdecimal() or not 1 <= int(number) <= tasks.stop - tasks.start:
        raise _other_plan(
            f"it places {name}; `{component}` has tasks 1 to {tasks.stop - tasks.start}"
        )
    return tasks.start + int(number) - 1


def _find(index: dict[str, int], name: str, kind: str, problem: Problem) -> int:
    if name in index:
        return index[name]
    place = (
        "cluster"
        if kind == "node"
        else "topology"
        if len(problem.topologies) == 1
        else "topologies"
    )
    raise _other_plan(f"it names the {kind} `{name}`, which the {place} does not have")


def _require_whole_topologies(problem: Problem, node: Ints) -> None:
    """A topology may be absent from a plan as a whole (it was refused), a single task may not."""
    owner = problem.topology[problem.component_of]
    missing = node == UNPLACED
    for g, name in enumerate(problem.topologies):
        here = owner == g
        lost = np.flatnonzero(missing & here)
        if len(lost) and (len(lost) < here.sum() or len(problem.topologies) == 1):
            first = problem.task_name(int(lost[0]))
            raise _other_plan(
                f"it leaves out {len(lost)} of {int(here.sum())} tasks of `{name}`, first {first}"
            )


def _other_plan(what: str) -> InvalidInput:
    return InvalidInput(f"the plan is for another topology or cluster: {what}")


def counts_section(problem: Problem, components: Sequence[int] | None = None) -> dict[str, int]:
    """The plan's `tasks`: how many of each component."""
    return {
        problem.components[c]: int(problem.tasks[c])
        for c in (components or range(len(problem.tasks)))
    }

"""Two plans side by side: what moves, what it costs, what it gains."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from headrace.judge.report import Report
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.ranges import divide_state, find_holders, recounted

COMPARED = (
    "feasible", "inter_node_traffic", "inter_worker_traffic", "network_distance", "nodes_used",
    "workers_used", "max_rate", "batch_seconds", "balance", "cost",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Moved:
    """A task that is on another node in the second plan."""

    task: str
    source: str
    target: str
    state_mb: float


@dataclass(frozen=True, slots=True)
class Diff:
    """What changes from one plan to the other."""

    moved: tuple[Moved, ...]  # to another node
    worker_only: int  # tasks that stay on their node but change the worker process
    stayed: int
    restarted_workers: int  # of the second plan: those that hold other tasks than before
    added: dict[str, int]  # component -> tasks only the second plan has
    removed: dict[str, int]
    divided: dict[
        str, float
    ]  # component whose count changes -> MB of keyed state that go elsewhere
    moved_mb: float  # with the moved tasks, and as keyed state is divided again
    figures: dict[str, tuple[Any, Any]]

    def to_json(self) -> dict[str, Any]:
        """As printed by `diff --json`."""
        rows = asdict(self)
        rows["moved"] = [
            {"task": m.task, "from": m.source, "to": m.target, "state_mb": m.state_mb}
            for m in self.moved
        ]
        rows["figures"] = {name: {"before": a, "after": b} for name, (a, b) in self.figures.items()}
        return rows


def diff(
    before: tuple[Problem, Assignment, Report], after: tuple[Problem, Assignment, Report]
) -> Diff:
    """What changes from one plan to the other, by name: counts and nodes may differ, too."""
    (old, old_plan, old_report), (new, new_plan, new_report) = before, after
    columns = {name: i for i, name in enumerate(old.components)}
    number = {name: i for i, name in enumerate(old.nodes)}
    node_in_old = np.array([number.get(name, -2) for name in new.nodes], dtype=np.int64)
    divided = divided_mb(old, old_plan, new, new_plan)
    moved: list[Moved] = []
    worker_only = stayed = 0
    added: dict[str, int] = {}
    removed = {
        name: int(old.tasks[c])
        for c, name in enumerate(old.components)
        if name not in new.components
    }
    for c, name in enumerate(new.components):
        if name not in columns:
            added[name] = int(new.tasks[c])
            continue
        o = columns[name]
        common = int(min(new.tasks[c], old.tasks[o]))
        if new.tasks[c] != old.tasks[o]:
            (added if new.tasks[c] > old.tasks[o] else removed)[name] = abs(
                int(new.tasks[c] - old.tasks[o])
            )
        a = slice(int(old.first[o]), int(old.first[o]) + common)
        b = slice(int(new.first[c]), int(new.first[c]) + common)
        there = np.where(new_plan.node[b] == UNPLACED, UNPLACED, node_in_old[new_plan.node[b]])
        differs = there != old_plan.node[a]
        worker_only += int((~differs & (old_plan.worker[a] != new_plan.worker[b])).sum())
        stayed += int((~differs).sum())
        for i in np.flatnonzero(differs).tolist():
            source, target = int(old_plan.node[a.start + i]), int(new_plan.node[b.start + i])
            place = [
                "nowhere" if source == UNPLACED else old.nodes[source],
                "nowhere" if target == UNPLACED else new.nodes[target],
            ]
            mb = 0.0 if name in divided else float(new.state_mb[c])
            moved.append(Moved(new.task_name(b.start + i), place[0], place[1], mb))
    figures = {name: (getattr(old_report, name), getattr(new_report, name)) for name in COMPARED}
    moved_mb = sum(m.state_mb for m in moved) + sum(divided.values())
    return Diff(
        tuple(moved),
        worker_only,
        stayed,
        restarted_workers(old, old_plan, new, new_plan),
        added,
        removed,
        divided,
        moved_mb,
        figures,
    )


def restarted_workers(
    old: Problem, old_plan: Assignment, new: Problem, new_plan: Assignment
) -> int:
    """Workers of the new plan whose set of tasks is not that of the same slot before.

    Storm starts those again, and no others: what a move costs there.
    """
    number = {name: i for i, name in enumerate(new.nodes)}
    node_in_new = np.array([number.get(name, UNPLACED) for name in old.nodes], dtype=np.int64)
    place = np.where(old_plan.node == UNPLACED, UNPLACED, node_in_new[old_plan.node])
    columns = {name: i for i, name in enumerate(old.components)}
    widest = int(max(old_plan.worker.max(initial=0), new_plan.worker.max(initial=0))) + 1
    was = np.where(place == UNPLACED, UNPLACED, place * widest + old_plan.worker)
    now = np.where(new_plan.node == UNPLACED, UNPLACED, new_plan.node * widest + new_plan.worker)
    left = np.ones(len(was), dtype=bool)  # tasks that are not where they were
    came = np.ones(len(now), dtype=bool)
    for c, name in enumerate(new.components):
        if (o := columns.get(name)) is not None:
            common = int(min(new.tasks[c], old.tasks[o]))
            a = slice(int(old.first[o]), int(old.first[o]) + common)
            b = slice(int(new.first[c]), int(new.first[c]) + common)
            left[a] = came[b] = was[a] != now[b]
    touched = np.union1d(was[left], now[came])
    return len(np.intersect1d(touched, now[now != UNPLACED]))


def divided_mb(
    old: Problem, old_plan: Assignment, new: Problem, new_plan: Assignment
) -> dict[str, float]:
    """Keyed state that goes to another node because a component has another number of tasks."""
    holders = find_holders(old, old_plan, new)
    pieces = divide_state(new, holders, new_plan)
    mb = np.bincount(pieces.component, np.where(pieces.moving, pieces.mb, 0.0), len(new.components))
    return {new.components[c]: float(mb[c]) for c in recounted(new, holders).tolist()}

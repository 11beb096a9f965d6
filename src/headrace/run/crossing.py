"""Where the tasks of a batch really ran, and what crossed between their workers and nodes.

A worker of the plan is a process: an executor. Which one a task ran in is known by a number that
the executor's tasks share; which worker of the plan that is follows from who was to run there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.model.topology import task_name
from headrace.run.placement import Place, Placement, Task
from headrace.run.seats import TaskReport

Process = tuple[str, int]  # node, and the number of a process there


@dataclass(frozen=True, slots=True)
class Crossed:
    """Tuples and bytes that were sent: in all, between workers, and of these between nodes."""

    tuples: int = 0
    bytes: int = 0
    worker_tuples: int = 0
    worker_bytes: int = 0
    node_tuples: int = 0
    node_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Node and process of every task that ran."""

    process: Mapping[Task, Process]
    home: Mapping[Place, Process]  # of the workers of the plan

    def worker(self, task: Task) -> int | None:
        """The worker of the plan in whose process a task ran; None if it is not known."""
        ran = self.process.get(task)
        return min((w for (_, w), home in self.home.items() if home == ran), default=None)

    def misplaced(self, placement: Placement) -> tuple[str, ...]:
        """Tasks that ran on another node than the plan's, or outside their worker's process."""
        away = [
            task
            for task, ran in self.process.items()
            if ran[0] != placement.node(task)
            or (ran[1] and ran != self.home.get(placement.places[task], ran))
        ]
        return tuple(task_name(component, number + 1) for component, number in away)

    def shared(self) -> tuple[str, ...]:
        """Workers that had no process of their own, as node:worker."""
        count = Counter(self.home.values())
        return tuple(f"{n}:{w}" for (n, w), home in sorted(self.home.items()) if count[home] > 1)


def find_tasks(
    reports: Sequence[TaskReport],
    hosts: Mapping[str, str] | None,
    placement: Placement | None,
) -> Whereabouts:
    """Where tasks ran, by their reports.

    The process of a worker is the one that most of its tasks ran in.
    """
    process = {(r.component, r.number): (node_of(r, hosts), r.process) for r in reports}
    if hosts is None or placement is None:
        return Whereabouts(process, {})
    ran: dict[Place, Counter[Process]] = {}
    for task, where in process.items():
        place = placement.places[task]
        if where[1] and where[0] == place[0]:
            ran.setdefault(place, Counter())[where] += 1
    return Whereabouts(process, {place: some.most_common(1)[0][0] for place, some in ran.items()})


def measure_crossing(reports: Sequence[TaskReport], where: Whereabouts) -> Crossed:
    """What was sent, by where sender and receiver ran."""
    total = Counter[str]()
    for r in reports:
        source = where.process[r.component, r.number]
        for component, number, tuples, size in r.edges:
            target = where.process.get((component, number))
            if target is None:  # the batch was cut short
                continue
            total.update(tuples=tuples, bytes=size)
            if source != target:
                total.update(worker_tuples=tuples, worker_bytes=size)
            if source[0] != target[0]:
                total.update(node_tuples=tuples, node_bytes=size)
    return Crossed(**total)


def node_of(report: TaskReport, hosts: Mapping[str, str] | None) -> str:
    """The node that a task ran on; a machine that is no node goes by its own name."""
    for node, host in (hosts or {}).items():
        if node in report.where or host in report.where:
            return node
    return report.where[0]

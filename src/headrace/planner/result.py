"""A plan with its judgement, or the refusal in its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headrace
from headrace.errors import HeadraceError, Unsupported
from headrace.judge.diff import Diff
from headrace.judge.report import Report
from headrace.model.document import FORMAT, Document
from headrace.model.output import save_result
from headrace.model.plan import assignment_section, counts_section, made_from
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.sized import ComponentMachines
from headrace.model.workload import Workload

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Where every task runs, and what the judge says of it."""

    scheduler: str
    objective: str
    seed: int
    seconds: float
    problem: Problem
    assignment: Assignment
    report: Report
    machines: Mapping[str, int] | None = None  # rented, by type
    components: Mapping[str, ComponentMachines] | None = None  # where each component has one type
    workload: Workload | None = None  # what counts or machines were chosen for
    stages: Mapping[str, str] | None = None  # where all stages ran: stage -> algorithm
    change: Diff | None = None  # what moves, where there is a current plan
    document: Document | None = None  # the sections it was made from

    @property
    def absolute(self) -> bool:
        """Whether `max_rate` is tuples/s over all spouts, not a factor of the given rates."""
        return self.workload is not None

    @property
    def tasks(self) -> dict[str, int]:
        """Tasks of each component."""
        return counts_section(self.problem)

    @cached_property
    def node_of(self) -> dict[str, str]:
        """The node of each task; tasks of a refused topology are left out."""
        problem, node = self.problem, self.assignment.node
        placed = (node != UNPLACED).nonzero()[0].tolist()
        return {problem.task_name(t): problem.nodes[int(node[t])] for t in placed}

    @cached_property
    def worker_of(self) -> dict[str, int]:
        """The worker (slot of its node, from 0) of each task that is placed."""
        problem, worker = self.problem, self.assignment.worker
        placed = (self.assignment.node != UNPLACED).nonzero()[0].tolist()
        return {problem.task_name(t): int(worker[t]) for t in placed}

    def to_frame(self) -> pd.DataFrame:
        """One row per task: task, component, node, worker."""
        frame = pandas_for("Plan.to_frame").DataFrame
        owner, names = self.problem.component_of, self.problem.components
        placed = (self.assignment.node != UNPLACED).nonzero()[0].tolist()
        return frame(
            {
                "task": list(self.node_of),
                "component": [names[int(owner[t])] for t in placed],
                "node": list(self.node_of.values()),
                "worker": list(self.worker_of.values()),
            }
        )

    def to_json(self, *, compact: bool = False, alone: bool = False) -> dict[str, Any]:
        """The contract's plan object; `alone` adds what it was made from: one file is enough."""
        head: dict[str, Any] = {"format": FORMAT}
        plan = {
            **assignment_section(self.problem, self.assignment, compact=compact),
            "tasks": counts_section(self.problem),
        }
        if self.machines is not None:
            plan["machines"] = dict(self.machines)
        if self.components:
            plan["components"] = {
                name: {"type": rented.type, "tasks": rented.tasks}
                for name, rented in self.components.items()
            }
        body: dict[str, Any] = {
            "scheduler": self.scheduler,
            "seed": self.seed,
            "seconds": self.seconds,
            "plan": plan,
            "report": self.report.to_json(),
        }
        if alone:
            head |= {"version": headrace.__version__, "objective": self.objective}
            return {**head, **body, **self._origin()}
        if self.stages is not None:
            body["stages"] = dict(self.stages)
        if self.change is not None:
            body["moves"] = self.change.to_json()
        return {**head, **body}

    def _origin(self) -> dict[str, Any]:
        """The sections that the plan was made from, with the counts and machines it decided."""
        document = self.document
        if self.workload is not None:
            document = self.workload.document_of_plan(self.problem, self.machines)
        return {} if document is None else {"made_from": made_from(document)}

    def save(self, file: str | Path, *, compact: bool = False) -> Path:
        """Write a file that stands alone: .json or .yaml, or .html for a report to look at."""
        return save_result(file, lambda: self.to_json(compact=compact, alone=True), self.html)

    def html(self, *, title: str | None = None, command: str | None = None) -> str:
        """The report as one HTML page, which needs no network."""
        from headrace.page import page

        return page([self], title=title, command=command)

    def __repr__(self) -> str:
        from headrace.words import plan_in_two_lines

        return plan_in_two_lines(self)

    def _repr_html_(self) -> str:
        from headrace.page import plan_fragment

        return plan_fragment(self)


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """An algorithm that made no plan, and why."""

    scheduler: str
    objective: str
    seed: int
    seconds: float
    problem: Problem | None  # None: its tasks were still to be counted
    error: HeadraceError

    def to_json(self, *, compact: bool = False) -> dict[str, Any]:
        """The contract's error object, with the scheduler's name."""
        return {"format": FORMAT, "scheduler": self.scheduler, "error": self.error.fields()}


Outcome = Plan | Refusal


def pandas_for(what: str) -> Any:
    """The library behind frames, or a refusal that says how to get it."""
    try:
        import pandas
    except ImportError:
        raise Unsupported(
            f"{what} needs pandas, which is not installed", fix="pip install pandas"
        ) from None
    return pandas

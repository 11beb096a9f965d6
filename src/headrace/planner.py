"""The one front door: choose an algorithm, run it, time it, judge the result.

No algorithm times, scores or logs itself; the command line, the loop, the lab and the fan-out all come through here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import headrace
from headrace.errors import HeadraceError, InvalidInput
from headrace.judge.report import FIGURES, Report, judge
from headrace.model.document import FORMAT, Document
from headrace.model.plan import assignment_section, counts_section, made_from
from headrace.model.problem import Assignment, Problem
from headrace.registry import algorithm, arguments, entries

DEFAULT = "headrace"
OBJECTIVES = tuple(FIGURES)


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A plan with its judgement, or the refusal in its place."""

    scheduler: str
    objective: str
    seed: int
    seconds: float
    problem: Problem
    assignment: Assignment | None = None
    report: Report | None = None
    refusal: HeadraceError | None = None

    def to_json(self, *, compact: bool = False, document: Document | None = None) -> dict[str, Any]:
        """The contract's plan object; with a document it stands alone."""
        head: dict[str, Any] = {"format": FORMAT}
        if self.refusal is not None or self.assignment is None or self.report is None:
            return {**head, "scheduler": self.scheduler, "error": self.refusal.fields() if self.refusal else None}
        plan = {**assignment_section(self.problem, self.assignment, compact=compact), "tasks": counts_section(self.problem)}
        if document is not None:
            head |= {"version": headrace.__version__, "objective": self.objective}
        body = {
            "scheduler": self.scheduler,
            "seed": self.seed,
            "seconds": self.seconds,
            "plan": plan,
            "report": self.report.to_json(),
        }
        return {**head, **body, **({"made_from": made_from(document)} if document is not None else {})}


def place(
    problem: Problem,
    by: str = DEFAULT,
    *,
    objective: str = "traffic",
    options: Mapping[str, object] | None = None,
    seed: int = 0,
    steps: int | None = None,
    seconds: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Planned:
    """Place a problem's tasks and judge the plan; options given here come before the file's."""
    if objective not in FIGURES:
        raise InvalidInput(f"no objective `{objective}`; there are: {', '.join(FIGURES)}")
    function = algorithm("place", by)
    start = clock()
    budget = Deadline(start, seconds, clock)
    given = {"seed": seed, "steps": steps, "deadline": budget, "objective": objective}
    chosen = arguments(by, function, {**problem.options.get(by, {}), **(options or {})}, given)
    assignment: Assignment = function(problem, **chosen)
    took = clock() - start
    stopped = "seconds" if budget.passed else "done"
    return Planned(
        by, objective, seed, took, problem, assignment, judge(problem, assignment, objective=objective, stopped=stopped)
    )


@dataclass(slots=True)
class Deadline:
    """Asked by searches whether to stop; remembers that it said yes, so that the report can say so."""

    start: float
    seconds: float | None
    clock: Callable[[], float]
    passed: bool = False

    def __call__(self) -> bool:
        self.passed = self.seconds is not None and self.clock() - self.start >= self.seconds
        return self.passed


def compare(
    problem: Problem, by: Sequence[str] = (), *, objective: str = "traffic", seed: int = 0, seconds: float | None = None
) -> Iterator[Planned]:
    """The same problem through many schedulers, one after another; a refusal is a result too."""
    for name in by or [entry.name for entry in entries("place")]:
        try:
            yield place(problem, name, objective=objective, seed=seed, seconds=seconds)
        except HeadraceError as error:
            yield Planned(name, objective, seed, 0.0, problem, refusal=error)


def judged(problem: Problem, *, objective: str = "traffic", scheduler: str = "given") -> Planned:
    """The plan a file holds, judged."""
    if problem.current is None:
        raise InvalidInput("no plan to judge: give a file with `plan`")
    start = time.perf_counter()
    report = judge(problem, problem.current, objective=objective)
    return Planned(scheduler, objective, 0, time.perf_counter() - start, problem, problem.current, report)


def best(results: Sequence[Planned]) -> Planned | None:
    """The feasible plan with the best figure for its objective, then the fewest nodes, then the highest rate; None if there is none."""
    feasible = [r for r in results if r.report is not None and r.report.feasible]

    def key(result: Planned) -> tuple[float, int, float]:
        assert result.report is not None
        rate = np.inf if result.report.max_rate is None else result.report.max_rate
        value = rate if result.objective == "rate" else getattr(result.report, FIGURES[result.objective])
        score = np.inf if value is None else round(float(value), 9)
        return (-score if result.objective == "rate" else score, result.report.nodes_used, -rate)

    return min(feasible, key=key, default=None)

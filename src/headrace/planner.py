"""The one front door: choose an algorithm, run it, time it, judge the result.

No algorithm times, scores or logs itself; the command line, the loop, the lab and the fan-out all come through here.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import headrace
from headrace.errors import HeadraceError, InvalidInput
from headrace.judge.bounds import Bound
from headrace.judge.report import FIGURES, Report, gap, judge
from headrace.model.document import FORMAT, Document
from headrace.model.plan import assignment_section, counts_section, made_from
from headrace.model.problem import Assignment, Problem
from headrace.model.sized import Provisioned, Sized
from headrace.model.workload import Workload
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
    absolute: bool = False  # `max_rate` is in tuples/s over all spouts, not a factor of the given rates
    machines: Mapping[str, int] | None = None  # rented, by type
    components: Mapping[str, Any] | None = None  # rented for each component, where all its machines are of one type

    def to_json(self, *, compact: bool = False, document: Document | None = None) -> dict[str, Any]:
        """The contract's plan object; with a document it stands alone."""
        head: dict[str, Any] = {"format": FORMAT}
        if self.refusal is not None or self.assignment is None or self.report is None:
            return {**head, "scheduler": self.scheduler, "error": self.refusal.fields() if self.refusal else None}
        plan = {**assignment_section(self.problem, self.assignment, compact=compact), "tasks": counts_section(self.problem)}
        if self.machines is not None:
            plan["machines"] = dict(self.machines)
        if self.components:
            plan["components"] = {name: {"type": rented.type, "tasks": rented.tasks} for name, rented in self.components.items()}
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
    move_cost: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Planned:
    """Place a problem's tasks and judge the plan; options given here come before the file's."""
    if objective not in FIGURES:
        raise InvalidInput(f"no objective `{objective}`; there are: {', '.join(FIGURES)}")
    function = algorithm("place", by)
    start = clock()
    budget = Deadline(start, seconds, clock)
    given: dict[str, object] = {"seed": seed, "steps": steps, "deadline": budget, "objective": objective}
    if move_cost is not None:
        if "move_cost" not in inspect.signature(function).parameters:
            raise InvalidInput(f"{by} does not weigh moves; --move-cost is for headrace")
        if problem.current is None:
            raise InvalidInput("a move cost needs a current plan: give a plan file too")
        given["move_cost"] = move_cost
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


def size(
    workload: Workload,
    by: str = "headrace",
    *,
    options: Mapping[str, object] | None = None,
    seed: int = 0,
    seconds: float | None = None,
) -> Planned:
    """Choose task counts for the cluster of the file; counts without places are placed for the largest rate."""
    start = time.perf_counter()
    sized: Sized = _chosen("size", by, workload, options, {"seed": seed, "deadline": Deadline(start, seconds, time.perf_counter)})
    assignment = sized.assignment
    if assignment is None:
        assignment = algorithm("place", DEFAULT)(sized.problem, objective="rate", seed=seed)
    took = time.perf_counter() - start
    problem, report = at_rate(
        sized.problem, assignment, sized.rate, Bound("max_rate", sized.bound, False, sized.bound_kind or "trivial")
    )
    return Planned(by, "rate", seed, took, problem, assignment, report, absolute=True)


def provision(
    workload: Workload,
    by: str = "headrace",
    *,
    budget: float | None = None,
    rate: float | None = None,
    options: Mapping[str, object] | None = None,
    seed: int = 0,
    seconds: float | None = None,
) -> Planned:
    """Choose machines and counts: most throughput within a budget, or least cost for a rate."""
    start = time.perf_counter()
    given = {"seed": seed, "budget": budget, "rate": rate, "deadline": Deadline(start, seconds, time.perf_counter)}
    found: Provisioned = _chosen("provision", by, workload, options, given)
    took = time.perf_counter() - start
    limit = Bound(
        "cost" if found.bound_of == "cost" else "max_rate",
        found.bound,
        found.bound_kind == "exact",
        found.bound_kind or "trivial",
    )
    problem, report = at_rate(found.problem, found.assignment, rate or found.rate, limit)
    report = replace(report, cost=found.cost, gap=found.gap if report.feasible else None)
    return Planned(
        by,
        "rate",
        seed,
        took,
        problem,
        found.assignment,
        report,
        absolute=True,
        machines=found.machines,
        components=found.components,
    )


def _chosen(folder: str, by: str, workload: Workload, options: Mapping[str, object] | None, given: Mapping[str, object]) -> Any:
    function = algorithm(folder, by)
    stated = (workload.inputs.document.options or {}).get(by, {})
    return function(workload, **arguments(by, function, {**stated, **(options or {})}, given))


def at_rate(problem: Problem, assignment: Assignment, rate: float, limit: Bound) -> tuple[Problem, Report]:
    """The problem at a rate (tuples/s over all spouts) and the report of the plan there, its `max_rate` in the same unit."""
    given = float(problem.rate[problem.spout].sum())
    scaled = problem.scaled(rate / given * (1 - 1e-9)) if given > 0 and rate > 0 else problem
    report = judge(scaled, assignment, objective="rate", bounded=False)
    most = None if report.max_rate is None else report.max_rate * float(scaled.rate[scaled.spout].sum())
    value = most if limit.of == "max_rate" else report.cost
    return scaled, replace(report, max_rate=most, bound=limit, gap=gap(value, limit.value) if report.feasible else None)


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

"""What every section is given: the results in reading order, the best of them, and the components with their letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headrace import planner
from headrace.judge.report import FIGURES
from headrace.judge.traffic import Workers, stream_crossing
from headrace.model.problem import UNPLACED, Assignment, Ints, Problem
from headrace.planner import Planned, TradeOff

COLOURS = 9  # classes c0 .. c8 of the style sheet
STATES = ("feasible", "incomplete", "infeasible", "refused")  # of a result, best first


@dataclass(frozen=True, slots=True)
class Operator:
    """A component as it is drawn; in a bare task graph, all tasks of one operator."""

    name: str
    letter: str
    colour: str  # class of the style sheet
    components: Ints


@dataclass(frozen=True, slots=True)
class Flow:
    """Tuples from one operator to another: a stream, or the measured pairs between two operators."""

    source: int
    target: int
    label: str
    tuples_per_s: float  # over all target tasks
    inter_node: float  # the part that crosses between nodes


@dataclass(frozen=True, eq=False)
class View:
    """Results, best first."""

    results: tuple[Planned, ...]
    title: str
    command: str | None
    curve: TradeOff | None = None  # of rate against cost, around the plan

    @staticmethod
    def of(
        results: Sequence[Planned], title: str, command: str | None, curve: TradeOff | None = None
    ) -> View:
        """Order the results; among equals the order given stays."""
        return View(tuple(sorted(results, key=_rank)), title, command, curve)

    @property
    def best(self) -> Planned | None:
        """The best feasible plan."""
        return planner.best(self.results)

    @property
    def shown(self) -> Planned | None:
        """The plan to look at: the best, or where none is feasible the first that is complete enough to draw."""
        return self.best or next((r for r in self.results if r.assignment is not None), None)

    @property
    def problem(self) -> Problem:
        """The problem of the plan to look at."""
        return (self.shown or self.results[0]).problem

    @cached_property
    def operators(self) -> tuple[Operator, ...]:
        """What is drawn as one box and has one letter."""
        return operators(self.problem)


def _rank(result: Planned) -> tuple[int, int, float, int]:
    """The order of `planner.best`, with the plans that it leaves out behind: incomplete, infeasible, refused."""
    report, kind = result.report, STATES.index(state(result))
    if report is None:
        return (kind, 0, 0.0, 0)
    value = getattr(report, FIGURES[result.objective])
    score = np.inf if value is None else float(value)
    return (
        kind,
        len(report.unplaced),
        -score if result.objective == "rate" else score,
        report.nodes_used,
    )


def state(result: Planned) -> str:
    """A result in a word. An incomplete plan breaks no rule, but leaves topologies out."""
    if result.report is None:
        return "refused"
    return (
        "feasible"
        if result.report.feasible
        else "infeasible"
        if result.report.violations
        else "incomplete"
    )


def why(result: Planned) -> str | None:
    """The first reason a result is no feasible plan; None if it is one."""
    if result.report is None:
        return result.refusal.message if result.refusal is not None else "no plan"
    if result.report.feasible:
        return None
    unplaced = [
        f"topology {name} is not placed: {fields['message']}"
        for name, fields in result.report.unplaced.items()
    ]
    return [*(v.message for v in result.report.violations), *unplaced, "infeasible"][0]


def operators(problem: Problem) -> tuple[Operator, ...]:
    """The operators of a problem in the order of their numbers, which is the order of the file."""
    order = np.argsort(problem.operator, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(problem.operator[order])) + 1)
    return tuple(
        Operator(_name(problem, group), letter(i), f"c{i % COLOURS}", group)
        for i, group in enumerate(groups)
    )


def _name(problem: Problem, group: Ints) -> str:
    names = [problem.components[c] for c in group]
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"


def letter(number: int) -> str:
    """A to Z, then AA, AB and so on."""
    return (letter(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)


def flows(problem: Problem, assignment: Assignment | None) -> list[Flow]:
    """Everything that flows between operators, in the order of the file; what is not placed crosses nothing."""
    found: list[Flow] = []
    workers = None if assignment is None else Workers.of(assignment)
    for stream in problem.streams:
        total = stream.tuples_per_s * float(
            stream.received(int(problem.tasks[stream.target])).sum()
        )
        crossing = 0.0
        if (
            assignment is not None
            and workers is not None
            and assignment.node[problem.first[stream.source]] != UNPLACED
        ):
            crossing = _dustless(stream_crossing(problem, workers, stream).inter_node, total)
        grouping = (
            f"{stream.grouping} ({', '.join(stream.fields)})" if stream.fields else stream.grouping
        )
        label = grouping if stream.name == "default" else f"{stream.name}: {grouping}"
        source, target = int(problem.operator[stream.source]), int(problem.operator[stream.target])
        found.append(Flow(source, target, label, total, crossing))
    return found + _measured(problem, assignment)


def _measured(problem: Problem, assignment: Assignment | None) -> list[Flow]:
    pairs = problem.pairs
    if not len(pairs):
        return []
    operator = problem.operator[problem.component_of]
    size = int(operator.max()) + 1
    joined, flow = np.unique(
        operator[pairs.source] * size + operator[pairs.target], return_inverse=True
    )
    total = np.bincount(flow, pairs.tuples_per_s)
    crossing = np.zeros(len(joined))
    if assignment is not None:
        a, b = assignment.node[pairs.source], assignment.node[pairs.target]
        crossing = np.bincount(
            flow, pairs.tuples_per_s * ((a != b) & (a != UNPLACED) & (b != UNPLACED))
        )
    label = "" if problem.bare else "measured"
    rows = zip(joined.tolist(), total.tolist(), crossing.tolist(), strict=True)
    return [
        Flow(key // size, key % size, label, sent, _dustless(crosses, sent))
        for key, sent, crosses in rows
    ]


def _dustless(part: float, whole: float) -> float:
    """Differences of equal sums leave dust; what is below a billionth of the whole is none."""
    return 0.0 if part < 1e-9 * whole else part

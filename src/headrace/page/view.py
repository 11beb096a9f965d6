"""What every section is given: the results in reading order, the best, the lettered components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from headrace import planner
from headrace.errors import HeadraceError, InvalidInput
from headrace.figures import DUST
from headrace.judge.traffic import Workers, stream_crossing
from headrace.model.load_aware import with_shares
from headrace.model.problem import UNPLACED, Assignment, Ints, Problem
from headrace.planner import CostCurve, TradeOff, Yardstick, yardstick
from headrace.planner.result import Outcome, Plan
from headrace.words import STATES, plan_of, plans_of, state

COLOURS = 9  # classes c0 .. c8 of the style sheet


@dataclass(frozen=True, slots=True)
class Operator:
    """A component as it is drawn; in a bare task graph, all tasks of one operator."""

    name: str
    letter: str
    colour: str  # class of the style sheet
    components: Ints


@dataclass(frozen=True, slots=True)
class Flow:
    """Tuples between two operators: a stream, or all measured pairs of them."""

    source: int
    target: int
    label: str
    tuples_per_s: float  # over all target tasks
    inter_node: float  # the share of it that crosses between nodes, in tuples/s


@dataclass(frozen=True, eq=False)
class View:
    """Results, best first."""

    results: tuple[Outcome, ...]
    title: str
    command: str | None
    curve: CostCurve | None = None  # of rate against cost, around the plan
    yardstick: Yardstick | None = None  # None: the objective of the plans
    trade_off: TradeOff | None = None  # of rate against traffic
    before: Sequence[Plan] | HeadraceError | None = None  # without the change that was tried

    @staticmethod
    def of(
        results: Sequence[Outcome],
        title: str,
        command: str | None,
        curve: CostCurve | None = None,
        yardstick: Yardstick | None = None,
        trade_off: TradeOff | None = None,
        before: Sequence[Outcome] | HeadraceError | None = None,
    ) -> View:
        """Order the results; among equals the order given stays."""
        ordered = sorted(results, key=partial(_rank, by=yardstick))
        if before is not None and not isinstance(before, HeadraceError):
            before = plans_of(before)
        return View(tuple(ordered), title, command, curve, yardstick, trade_off, before)

    @cached_property
    def plans(self) -> list[Plan]:
        """The results that are no refusals."""
        return plans_of(self.results)

    @cached_property
    def best(self) -> Plan | None:
        """The best feasible plan."""
        return planner.best(self.results, self.yardstick)

    @property
    def shown(self) -> Plan | None:
        """The plan to look at: the best, or where none is feasible the first there is."""
        return self.best or next(iter(self.plans), None)

    @property
    def problem(self) -> Problem:
        """The problem of the plan to look at."""
        found = (self.shown or self.results[0]).problem
        if found is None:
            raise InvalidInput("nothing to draw: every algorithm refused")
        return found

    @cached_property
    def operators(self) -> tuple[Operator, ...]:
        """What is drawn as one box and has one letter."""
        return operators(self.problem)


def _rank(result: Outcome, by: Yardstick | None) -> tuple[int, int, bool, float, int]:
    """The order of `planner.best`; behind it what that leaves out: incomplete, broken, refused."""
    plan, kind = plan_of(result), STATES.index(state(result))
    if plan is None:
        return (kind, 0, False, 0.0, 0)
    score = (by or yardstick("place", plan.objective)).score(plan)
    too_full = planner.breaks_headroom(plan)
    return (kind, len(plan.report.unplaced), too_full, score, plan.report.nodes_used)


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
    """All that flows between operators, in the file's order; what is not placed crosses nothing."""
    found: list[Flow] = []
    problem = problem if assignment is None else with_shares(problem, assignment)
    workers = None if assignment is None else Workers.of(assignment)
    for stream in problem.streams:
        received = stream.received(int(problem.tasks[stream.target]))
        total = stream.tuples_per_s * float(received.sum())
        crossing = 0.0
        if (
            assignment is not None
            and workers is not None
            and assignment.node[problem.first[stream.source]] != UNPLACED
        ):
            crossing = _drop_dust(stream_crossing(problem, workers, stream).inter_node, total)
        fields = f" ({', '.join(stream.fields)})" if stream.fields else ""
        name = "" if stream.name == "default" else f"{stream.name}: "
        source, target = int(problem.operator[stream.source]), int(problem.operator[stream.target])
        found.append(Flow(source, target, f"{name}{stream.grouping}{fields}", total, crossing))
    return found + _pair_flows(problem, assignment)


def _pair_flows(problem: Problem, assignment: Assignment | None) -> list[Flow]:
    """Measured pairs of tasks, added up by their operators."""
    pairs = problem.pairs
    if not len(pairs):
        return []
    operator = problem.operator[problem.component_of]
    size = int(operator.max()) + 1
    ends, flow = np.unique(
        operator[pairs.source] * size + operator[pairs.target], return_inverse=True
    )
    total = np.bincount(flow, pairs.tuples_per_s)
    crossing = np.zeros(len(ends))
    if assignment is not None:
        a, b = assignment.node[pairs.source], assignment.node[pairs.target]
        crosses = (a != b) & (a != UNPLACED) & (b != UNPLACED)
        crossing = np.bincount(flow, pairs.tuples_per_s * crosses)
    label = "" if problem.bare else "measured"
    rows = zip(ends.tolist(), total.tolist(), crossing.tolist(), strict=True)
    return [
        Flow(key // size, key % size, label, sent, _drop_dust(crosses, sent))
        for key, sent, crosses in rows
    ]


def _drop_dust(share: float, whole: float) -> float:
    """The share, or none where it is no more than rounding leaves."""
    return 0.0 if share < DUST * whole else share

"""What a rule decides on, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.errors import InvalidInput
from headrace.judge.report import Report
from headrace.model.problem import Assignment, Problem


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to move, why in words, and the numbers behind it."""

    move: bool
    reason: str
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class Adopted:
    """A plan that was put into force, when, and whether a rule wanted it."""

    plan: str
    at_s: float
    by_rule: bool = True  # False: tasks had lost their node, or a plan was taken back


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The running plan, and one that could take its place; both judged on what was measured."""

    problem: Problem  # with the running plan's counts
    running: Assignment
    now: Report
    planned_for: Problem  # with the new plan's counts; the same problem if they stay
    planned: Assignment
    then: Report
    plan: str  # fingerprint of the new plan
    objective: str
    at_s: float
    started_s: float  # when the first decision was taken
    interval_s: float  # between two decisions
    transfer_s: float = 0.0  # that moving the state takes
    lag: float = 0.0  # tuples that wait
    error_percent: float = 0.0  # by which predictions were wrong lately
    adopted: tuple[Adopted, ...] = ()  # in the order of time; the last is in force
    # Where counts change: core-seconds since the last move that a smaller plan would have spared.
    spare_core_s: float | None = None

    @property
    def runs_well(self) -> bool:
        """Whether the running plan carries its load."""
        return carries_load(self.now, self.objective)

    @property
    def would_run_well(self) -> bool:
        """Whether the new plan would."""
        return carries_load(self.then, self.objective)

    @property
    def input_per_s(self) -> float:
        """Tuples/s that come in at all spouts."""
        return float(self.problem.rate[self.problem.spout].sum())


def all_of(*decisions: Decision) -> Decision:
    """Move only if every rule says so; the reason is the first objection, or all reasons."""
    for decision in decisions:
        if not decision.move:
            return decision
    numbers = {name: value for decision in decisions for name, value in decision.numbers.items()}
    return Decision(True, "; ".join(decision.reason for decision in decisions), numbers)


def carries_load(report: Report, objective: str) -> bool:
    """Whether a plan breaks no rule and does what comes in, threads included.

    In micro-batches a thread that is full makes a batch longer, which is weighed as such.
    """
    return report.feasible and (objective == "batch" or sustained(report) >= 1 - 1e-9)


def sustained(report: Report) -> float:
    """The factor of the input that a plan sustains; infinite if nothing limits it."""
    return float("inf") if report.max_rate is None else report.max_rate


def why_overloaded(report: Report) -> str:
    """What a plan that does not carry its load breaks first."""
    if report.violations:
        return report.violations[0].message
    return f"{report.bottleneck} is full at {sustained(report):.3g} of the input"


def check_not_negative(**values: float) -> None:
    """Refuse a measurement that cannot be."""
    for name, value in values.items():
        if not value >= 0:
            raise InvalidInput(f"{name} is {value:g}; it must be 0 or more")

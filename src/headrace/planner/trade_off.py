"""The few plans between the least traffic and the highest rate, and which of them to take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from headrace.errors import HeadraceError, Unsupported
from headrace.figures import factor, number, percent
from headrace.judge.report import judge
from headrace.judge.thread_rate import thread_factors_by_type
from headrace.model.document import FORMAT
from headrace.model.output import save_result
from headrace.model.problem import Problem
from headrace.planner.placing import DEFAULT, place
from headrace.planner.result import Plan
from headrace.registry import By, introduction

BETWEEN = 5  # rates looked at between the ends
NOTICEABLE = 1e-6  # as a share: by how much figures of two plans differ that are not alike


@dataclass(frozen=True, eq=False, repr=False)
class TradeOff:
    """Plans from the least traffic between nodes to the highest rate; none is beaten in both."""

    plans: tuple[Plan, ...]
    chosen: Plan
    advice: str  # which one to take, and why, in a sentence

    def to_json(self, *, compact: bool = False) -> dict[str, Any]:
        """The plans as `compare` prints them, the number of the chosen one (from 1), and why."""
        rows = [plan.to_json(compact=compact) for plan in self.plans]
        advice = {"take": self.plans.index(self.chosen) + 1, "why": self.advice}
        return {"format": FORMAT, "results": rows, "trade_off": advice}

    def save(self, file: str | Path) -> Path:
        """Write the plans as .json or .yaml, or as .html to look at."""
        return save_result(file, self.to_json, self.html)

    def html(self, *, title: str | None = None, command: str | None = None) -> str:
        """The curve, and the plan to take, as one HTML page, which needs no network."""
        from headrace.page import page

        return page([self.chosen], title=title, command=command, trade_off=self)

    def __iter__(self) -> Iterator[Plan]:
        return iter(self.plans)

    def __len__(self) -> int:
        return len(self.plans)

    def __repr__(self) -> str:
        return "\n".join([*(figures_in_a_line(plan) for plan in self.plans), self.advice])


def figures_in_a_line(plan: Plan) -> str:
    """What a plan trades."""
    report = plan.report
    crossing = f"{number(report.inter_node_traffic)} tuples/s between nodes"
    return f"{crossing}, sustains {factor(report.max_rate)} the given rates"


def trade_off(
    problem: Problem,
    by: By = DEFAULT,
    *,
    seed: int = 0,
    steps: int | None = None,
    seconds: float | None = None,
) -> TradeOff:
    """The ends are the plans for traffic and for rate; between them, least traffic for some rates.

    The seconds are for all of them together.
    """
    known = introduction("place", by).objectives
    if not {"traffic", "rate"} <= set(known):
        raise Unsupported(
            f"{by} does not plan for both traffic and rate, so it has nothing to trade",
            fix=f"use {DEFAULT}",
        )
    each = None if seconds is None else seconds / (BETWEEN + 2)
    limits: dict[str, Any] = {"seed": seed, "steps": steps, "seconds": each}
    least = place(problem, by, objective="traffic", **limits)
    fastest = place(problem, by, objective="rate", **limits)
    between: list[Plan] = []
    for rate in rates_between(_rate(least), _rate(fastest)):
        try:
            found = place(at_rate(problem, rate), by, bounded=False, **limits)
        except HeadraceError:  # no plan for that rate was found
            continue
        report = judge(
            problem,
            found.assignment,
            limit=least.report.bound,
            stopped=found.report.stopped,
            notes=found.assignment.notes,
        )
        if report.feasible:
            between.append(replace(found, problem=problem, report=report))
    kept = undominated(between, least, fastest)
    chosen, advice = choose(kept)
    return TradeOff(kept, chosen, advice)


def rates_between(low: float, high: float) -> list[float]:
    """Rates between two, the ends left out; none where they are alike or without a limit."""
    if not low * (1 + NOTICEABLE) < high < math.inf:
        return []
    return np.linspace(low, high, BETWEEN + 2)[1:-1].tolist()


def at_rate(problem: Problem, rate: float) -> Problem:
    """The problem at a factor of its rates, on nodes whose threads carry it.

    A plan keeps its headroom at the given rates, not at higher ones.
    """
    factor_of_load = max(1.0, rate * (1 - problem.headroom.get("cpu", 0.0)))
    fast = thread_factors_by_type(problem)[:, problem.node_type] >= rate
    allowed = fast if problem.allowed is None else problem.allowed & fast
    free = None if fast.all() else allowed
    return replace(
        problem.scaled(factor_of_load), allowed=problem.allowed if free is None else free
    )


def undominated(between: Sequence[Plan], least: Plan, fastest: Plan) -> tuple[Plan, ...]:
    """Plans by traffic, each faster than all with less of it; the ends are among them.

    One plan where one end is as good as the other in both figures.
    """
    if _rate(least) >= _rate(fastest):
        return (least,)
    if _traffic(fastest) <= _traffic(least):
        return (fastest,)
    kept = [least]
    for plan in sorted(between, key=lambda plan: (_traffic(plan), -_rate(plan))):
        more = _traffic(plan) > _traffic(least) * (1 + NOTICEABLE)
        faster = _rate(plan) > _rate(kept[-1]) * (1 + NOTICEABLE)
        if more and faster and _is_before(plan, fastest):
            kept.append(plan)
    return (*kept, fastest)


def _is_before(plan: Plan, fastest: Plan) -> bool:
    less = _traffic(plan) < _traffic(fastest) * (1 - NOTICEABLE)
    return less and _rate(plan) < _rate(fastest) * (1 - NOTICEABLE)


def choose(plans: Sequence[Plan]) -> tuple[Plan, str]:
    """The plan that gains most of the rate for least of the traffic, and why, in a sentence."""
    least, fastest = plans[0], plans[-1]
    if least is fastest:
        return least, f"One plan is best at both: {figures_in_a_line(least)}."
    rate, traffic = _rate(fastest) - _rate(least), _traffic(fastest) - _traffic(least)

    def shares(plan: Plan) -> tuple[float, float]:
        """How far a plan is from the one end to the other: in rate, and in traffic."""
        gained = 1.0 if math.isinf(rate) else (_rate(plan) - _rate(least)) / rate
        return gained, (_traffic(plan) - _traffic(least)) / traffic

    enough = [plan for plan in plans if _rate(plan) >= 1] or [fastest]
    chosen = max(enough, key=lambda plan: shares(plan)[0] - shares(plan)[1])
    take = f"Take plan {plans.index(chosen) + 1} of {len(plans)}"
    if chosen is least:
        why = "it carries the given rates, and more rate costs more traffic than it is worth"
    elif chosen is fastest:
        why = "nothing with less traffic carries the given rates or comes near its rate"
    else:
        gained, paid = shares(chosen)
        why = f"{percent(gained)} of the rate to be gained for {percent(paid)} of the traffic"
    return chosen, f"{take} ({figures_in_a_line(chosen)}): {why}."


def _traffic(plan: Plan) -> float:
    return plan.report.inter_node_traffic


def _rate(plan: Plan) -> float:
    return math.inf if plan.report.max_rate is None else plan.report.max_rate

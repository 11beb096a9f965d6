"""The loop on one page: measure, plan, decide, move; and keep every decision with its reason.

The world is passed in: a running topology on Spark, or a test. "Not ready" is no error; it is a
decision to do nothing, and is kept like any other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from headrace.control.policy import (
    Adopted,
    Decision,
    all_of,
    aniello_threshold,
    faster_batches,
    fingerprint,
    no_flapping,
)
from headrace.errors import HeadraceError, InvalidInput
from headrace.judge.report import FIGURES, Report, judge
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.ranges import task_state_mb
from headrace.move.change import find_moving_tasks, volumes_between
from headrace.move.relabel import relabel
from headrace.planner import Plan, place

# Figures that are kept with a decision.
KEPT = ("inter_node_traffic", "max_rate", "batch_seconds", "nodes_used", "feasible")


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """How eager the loop is."""

    objective: str = "batch"
    by: str = "headrace"
    interval_s: float = 60.0  # between two decisions
    horizon_s: float = 600.0  # over which a move must pay
    improve_percent: float = 10.0  # less is not worth a move
    dwell_s: float = 60.0  # a plan stays at least so long, unless it breaks a rule
    move_cost: float | None = None  # of the planner: tuples/s that moving one megabyte must gain
    advise: bool = False  # recommend only
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """A decision as it is kept; `move` says what was decided, `applied` whether it was done."""

    at_s: float
    move: bool
    applied: bool
    reason: str
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    plan: str = ""  # fingerprint of the plan in force after the decision
    before: Mapping[str, Any] = field(default_factory=dict[str, Any])
    after: Mapping[str, Any] = field(default_factory=dict[str, Any])
    moved_tasks: int = 0
    moved_mb: float = 0.0


class World(Protocol):
    """What the loop needs of the outside."""

    def now(self) -> float: ...
    def problem(self) -> Problem:
        """The problem as measured, with the running plan as `current`.

        Raises HeadraceError while there is nothing to plan on.
        """
        ...

    def history(self) -> Sequence[Entry]: ...
    def keep(self, entry: Entry) -> None: ...
    def apply(self, planned: Plan) -> None:
        """Put a plan into force; it takes effect at the next batch."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait for the next interval; False ends the loop."""
        ...


def run(world: World, settings: LoopSettings) -> None:
    """Decide, again and again, until the world says it is over."""
    while True:
        step(world, settings)
        if not world.wait(settings.interval_s):
            return


def step(world: World, settings: LoopSettings) -> Entry:
    """One decision, kept and carried out."""
    now_s = world.now()
    history = world.history()
    try:
        entry, planned = decide(world.problem(), history, now_s, settings)
        if planned is not None and not settings.advise:
            world.apply(planned)
            entry = replace(entry, applied=True)
    except HeadraceError as error:
        entry = Entry(
            now_s,
            False,
            False,
            f"nothing is moved: {error.message}",
            plan=history[-1].plan if history else "",
        )
    world.keep(entry)
    return entry


def decide(
    problem: Problem, history: Sequence[Entry], now_s: float, settings: LoopSettings
) -> tuple[Entry, Plan | None]:
    """What to do about a running plan, and the plan to put in its place; pure."""
    running = problem.current
    if running is None:
        raise InvalidInput("the loop needs a running plan")
    force = fingerprint(running)
    homeless = int((running.node == UNPLACED).sum())
    weight = settings.move_cost
    planned = place(
        problem,
        settings.by,
        objective=settings.objective,
        seed=settings.seed,
        options={} if homeless or weight is None else {"move_cost": weight},
    )
    better = relabel(problem, running, planned.assignment).plan
    then = judge(problem, better, objective=settings.objective, bounded=False)
    now = None if homeless else judge(problem, running, objective=settings.objective, bounded=False)
    moved = find_moving_tasks(running, better)
    entry = Entry(
        now_s, False, False, "", plan=force, before=figures(now), after=figures(then),
        moved_tasks=len(moved), moved_mb=float(task_state_mb(problem)[moved].sum()),
    )  # fmt: skip
    decision = apply_rules(
        problem, running, better, now, then, homeless, adopted_plans(history), now_s, settings
    )
    entry = replace(
        entry,
        move=decision.move,
        reason=decision.reason,
        numbers={name: x for name, x in decision.numbers.items() if math.isfinite(x)},
    )
    if not decision.move:
        return entry, None
    return replace(entry, plan=fingerprint(better)), replace(
        planned, assignment=better, report=then
    )


def apply_rules(
    problem: Problem,
    running: Assignment,
    better: Assignment,
    now: Report | None,
    then: Report,
    homeless: int,
    past: Sequence[Adopted],
    now_s: float,
    settings: LoopSettings,
) -> Decision:
    """The rules in their order: leave a broken plan, else move for a gain that is worth it."""
    if now is None:
        return Decision(
            True,
            f"{homeless} tasks were on nodes that are gone: they start elsewhere",
            {"homeless": homeless},
        )
    if not now.feasible and then.feasible:
        return Decision(
            True,
            f"the running plan breaks a rule ({now.violations[0].message}); "
            "the new one breaks none",
        )
    if not then.feasible:
        return Decision(False, "no plan was found that keeps all rules")
    if np.array_equal(running.node, better.node) and np.array_equal(running.worker, better.worker):
        return Decision(False, "the running plan is the best that was found")
    transfer_s = volumes_between(problem, running, better).bound
    return all_of(
        gain(now, then, transfer_s, settings),
        no_flapping(
            fingerprint(better),
            past,
            now_s,
            interval_s=settings.interval_s,
            dwell_s=settings.dwell_s,
        ),
    )


def gain(now: Report, then: Report, transfer_s: float, settings: LoopSettings) -> Decision:
    """Whether the figure asked for gets better by enough."""
    if (
        settings.objective == "batch"
        and now.batch_seconds is not None
        and then.batch_seconds is not None
    ):
        return faster_batches(
            now.batch_seconds,
            then.batch_seconds,
            transfer_s=transfer_s,
            horizon_s=settings.horizon_s,
            improve_percent=settings.improve_percent,
        )
    if settings.objective == "rate":
        a, b = (np.inf if r.max_rate is None else r.max_rate for r in (now, then))
        rises = 100 * (b / a - 1) if np.isfinite(a) and a > 0 else 0.0
        words = (
            f"the sustained rate rises from {a:.4g} to {b:.4g} times the input, "
            f"by {rises:.3g} %; {settings.improve_percent:g} % are asked"
        )
        return Decision(
            bool(rises > 0 and rises >= settings.improve_percent),
            words,
            {"rises_percent": float(rises), "transfer_s": transfer_s},
        )
    figure = FIGURES[settings.objective if settings.objective != "batch" else "traffic"]
    return aniello_threshold(
        float(getattr(now, figure)),
        float(getattr(then, figure)),
        improve_percent=settings.improve_percent,
    )


def adopted_plans(history: Sequence[Entry]) -> list[Adopted]:
    """The plans that were in force, from the decisions that were carried out."""
    return [Adopted(entry.plan, entry.at_s) for entry in history if entry.applied]


def figures(report: Report | None) -> dict[str, Any]:
    """The figures that a decision keeps."""
    return {} if report is None else {name: getattr(report, name) for name in KEPT}

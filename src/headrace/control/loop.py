"""The loop on one page: measure, plan, decide, move; and keep every decision with its reason.

The world is passed in: a running topology on Spark, or a simulated one. "Not ready" is no error; it
is a decision to do nothing, and is kept like any other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from headrace.control.choice import Choice, Decision, carries_load, sustained, why_overloaded
from headrace.control.history import Entry, adopted_plans, find_plan, spare_core_seconds
from headrace.control.learning import is_barred, plan_to_take_back, prediction_error_percent
from headrace.control.need import AHEAD, LASTS, LASTS_KNOWN, needed_factor
from headrace.control.planning import (
    Candidate,
    LoopSettings,
    View,
    fingerprint,
    judge_plan,
    name_nodes,
    plan_again,
    plan_section,
    read_plan,
)
from headrace.errors import HeadraceError, InvalidInput
from headrace.judge.report import Report
from headrace.model.plan import counts_section
from headrace.model.problem import UNPLACED
from headrace.move.change import carry_plan
from headrace.planner import Plan
from headrace.registry import find

# Figures that are kept with a decision.
KEPT = (
    "inter_node_traffic",
    "inter_worker_traffic",
    "max_rate",
    "batch_seconds",
    "nodes_used",
    "feasible",
)
TRIGGER = 1 / 3  # of the reserve: a running plan with less than that left is too small


class World(Protocol):
    """What the loop needs of the outside."""

    def now(self) -> float: ...
    def look(self) -> View:
        """What was measured. Raises HeadraceError while there is nothing to plan on."""
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
    by, rule = find("place", settings.by).name, find("rule", settings.rule).name
    entry = Entry(now_s, False, False, "", plan=history[-1].plan if history else "")
    try:
        view = world.look()
        entry = describe(view, history, now_s)
        entry, planned = decide(view, entry, history, settings)
        if planned is not None and not settings.advise:
            world.apply(planned)
            entry = replace(entry, applied=True)
        elif planned is not None:
            entry = replace(entry, plan=entry.left, proposed=entry.plan)
    except HeadraceError as error:
        entry = replace(
            entry,
            move=False,
            plan=entry.left or entry.plan,
            reason=f"nothing is moved: {error.message}",
        )
    entry = replace(entry, by=by, rule=rule)
    world.keep(entry)
    return entry


def describe(view: View, history: Sequence[Entry], now_s: float) -> Entry:
    """The beginning of every decision: what runs, on what, and what was measured of it."""
    problem, running = view.problem, view.problem.current
    if running is None:
        raise InvalidInput("the loop needs a running plan")
    name = fingerprint(problem, running)
    known = find_plan(history, name) is not None
    return Entry(
        now_s, False, False, "", plan=name, left=name, measured=dict(view.measured),
        rate_per_s=view.rate_per_s, nodes=name_nodes(problem),
        plans={} if known else {name: plan_section(problem, running)},
    )  # fmt: skip


def decide(
    view: View, entry: Entry, history: Sequence[Entry], settings: LoopSettings
) -> tuple[Entry, Plan | None]:
    """What to do about a running plan, and the plan to put in its place; pure."""
    running = view.problem.current
    assert running is not None
    homeless = int((running.node == UNPLACED).sum())
    forecast = None
    if settings.forecast:
        from headrace.control.forecast import expect as forecast  # here: it needs an extra
    need, lasting = 1.0, 1.0
    if settings.resize or settings.forecast:
        need, lasting = (
            needed_factor(
                history, entry.at_s, entry.rate_per_s, view.lag, settings.interval_s, forecast,
                ahead=ahead, ahead_known=known,
            )
            for ahead, known in ((AHEAD, AHEAD), (LASTS, LASTS_KNOWN))
        )  # fmt: skip
    if not homeless:
        back = take_back(view, entry, history, settings, need)
        if back is not None:
            return back
    found = plan_again(view, settings, max(need, lasting))
    # With resizing, a plan is too small before it overflows.
    load = need * (1 + settings.reserve * TRIGGER) if settings.resize else need
    then = judge_plan(found.problem, found.plan.assignment, settings.objective, load)
    now = None if homeless else judge_plan(view.problem, running, settings.objective, load)
    entry = with_figures(entry, view, found, homeless, settings, load, (now, then))
    if now is None:
        decision = Decision(
            True,
            f"{homeless} tasks were on nodes that are gone: they start elsewhere",
            {"homeless": homeless},
        )
        entry = replace(entry, cause="lost")
    else:
        choice = Choice(
            view.problem, running, now, found.problem, found.plan.assignment, then,
            plan=fingerprint(found.problem, found.plan.assignment),
            objective=settings.objective,
            at_s=entry.at_s,
            started_s=history[0].at_s if history else entry.at_s,
            interval_s=settings.interval_s,
            transfer_s=found.pause_s(settings.restart_s),
            lag=view.lag,
            error_percent=prediction_error_percent(history),
            adopted=adopted_plans(history),
            spare_core_s=spare_core_seconds(history, entry.at_s) if settings.resize else None,
        )  # fmt: skip
        decision = ask_rule(choice, entry, view, history, settings)
    return conclude(entry, decision, found, history, then)


def ask_rule(
    choice: Choice, entry: Entry, view: View, history: Sequence[Entry], settings: LoopSettings
) -> Decision:
    """What the rule says, unless the loop itself has an objection or must act."""
    if choice.plan == entry.left:
        state = "" if choice.runs_well else f", though {why_overloaded(choice.now)}"
        return Decision(False, f"the running plan is the best that was found{state}")
    held = sorted(view.drained & {choice.problem.nodes[n] for n in set(choice.running.node)})
    if held:
        return drain(choice, held)
    worse = sustained(choice.then) <= sustained(choice.now)
    if not choice.would_run_well and (choice.runs_well or worse):
        words = "no plan was found that carries the load"
        return Decision(False, f"{words}: {why_overloaded(choice.then)}")
    if is_barred(history, choice.plan, entry.rate_per_s, entry.nodes):
        words = "this plan did worse than predicted and was taken back"
        return Decision(False, f"{words}; neither the nodes nor the input have changed since")
    return find("rule", settings.rule)(choice, options=settings.rule_options)


def drain(choice: Choice, held: Sequence[str]) -> Decision:
    """Empty nodes, if that overloads none that is not overloaded now."""
    names = ", ".join(held)
    if choice.then.feasible or not choice.runs_well:
        return Decision(True, f"node {names} is emptied")
    words = f"node {names} cannot be emptied without overload"
    return Decision(False, f"{words}: {why_overloaded(choice.then)}")


def take_back(
    view: View, entry: Entry, history: Sequence[Entry], settings: LoopSettings, need: float
) -> tuple[Entry, Plan | None] | None:
    """The plan before, if the newest one did worse than predicted; None if all is well."""
    outcome = plan_to_take_back([*history, entry])
    section = outcome and find_plan(history, outcome.entry.left)
    if outcome is None or section is None:
        return None
    old = view.problem
    try:
        if dict(section["tasks"]) != counts_section(old):
            if view.workload is None:
                return None
            old = view.workload.problem(section["tasks"])
        before = read_plan(old, section)
    except HeadraceError:
        return None  # its nodes are no longer there
    running = view.problem.current
    assert running is not None
    report = judge_plan(old, before, settings.objective, need)
    if not carries_load(report, settings.objective) and sustained(report) <= sustained(
        judge_plan(view.problem, running, settings.objective, need)
    ):
        return None
    carried = carry_plan(view.problem, running, old)
    plan = Plan("rolled back", settings.objective, settings.seed, 0.0, old, before, report)
    found = Candidate(plan, carried.plan, carried.holders)
    words = (
        f"the plan in force did worse than predicted: {outcome.figure} {outcome.measured:.4g}, "
        f"not {outcome.predicted:.4g}; it was {outcome.before:.4g} under the plan before, "
        "which comes back"
    )
    entry = with_figures(entry, view, found, 0, settings, need, (None, report))
    entry = replace(entry, cause="back")
    numbers = {"predicted": outcome.predicted, "measured": outcome.measured}
    return conclude(entry, Decision(True, words, numbers), found, history, report)


def with_figures(
    entry: Entry,
    view: View,
    found: Candidate,
    homeless: int,
    settings: LoopSettings,
    load: float,
    judged: tuple[Report | None, Report],
) -> Entry:
    """The entry with what both plans are predicted to do at the measured rate, and what moves."""
    now, then = judged
    if load != 1.0 or now is None:
        then = judge_plan(found.problem, found.plan.assignment, settings.objective)
        running = view.problem.current
        assert running is not None
        now = None if homeless else judge_plan(view.problem, running, settings.objective)
    moved_tasks, moved_mb = found.moved
    counts = found.plan.tasks
    same = np.array_equal(found.problem.tasks, view.problem.tasks)
    return replace(
        entry,
        before=figures(now),
        after=figures(then),
        moved_tasks=moved_tasks,
        moved_mb=moved_mb,
        tasks={} if same else counts,
        machines=None if found.plan.machines is None else dict(found.plan.machines),
        numbers={} if load == 1.0 else {"planned_for": load},
    )


def conclude(
    entry: Entry, decision: Decision, found: Candidate, history: Sequence[Entry], then: Report
) -> tuple[Entry, Plan | None]:
    """The entry with the decision, and the plan if it is to be put in force."""
    numbers = {name: float(x) for name, x in decision.numbers.items() if math.isfinite(x)}
    entry = replace(
        entry,
        move=decision.move,
        reason=decision.reason,
        numbers={**entry.numbers, **numbers},
    )
    if not decision.move:
        return entry, None
    name = fingerprint(found.problem, found.plan.assignment)
    plans = dict(entry.plans)
    if find_plan(history, name) is None:
        plans[name] = plan_section(found.problem, found.plan.assignment)
    return replace(entry, plan=name, plans=plans), replace(found.plan, report=then)


def figures(report: Report | None) -> dict[str, Any]:
    """The figures that a decision keeps."""
    return {} if report is None else {name: getattr(report, name) for name in KEPT}

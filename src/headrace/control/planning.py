"""What the loop plans: places, or counts and places, or machines too; for what is about to come."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headrace.errors import HeadraceError, Infeasible
from headrace.judge.diff import restarted_workers
from headrace.judge.report import Report, judge
from headrace.model.document import PlanSection
from headrace.model.plan import assignment_section, counts_section, read_assignment
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.ranges import Holders
from headrace.model.workload import Workload
from headrace.move.change import carry_plan, volumes_between
from headrace.move.relabel import measure_move, relabel
from headrace.planner import Plan, place, provision, size
from headrace.registry import By

SHARES = (0.5, 0.25, 0.1)  # of a rate that no plan carries: one that carries so much is improved


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """What the loop plans with, when it decides, and how eager it is."""

    objective: str = "batch"
    by: By = "headrace"
    options: Mapping[str, object] = field(default_factory=dict[str, object])  # of the scheduler
    rule: By = "gain"
    rule_options: Mapping[str, object] = field(default_factory=dict[str, object])
    interval_s: float = 60.0  # between two decisions
    advise: bool = False  # recommend only
    resize: bool = False  # counts may change, and machines where the files have a catalog
    reserve: float = 0.15  # share of the rate that resized plans can do beyond what is needed
    budget: float | None = None  # for machines
    forecast: bool = False  # plan for what is about to come, by the history of rates
    seed: int = 0
    restart_s: float = 0.0  # that a worker takes to start again where other tasks come to it


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What the loop sees of the outside."""

    problem: Problem  # as measured, with the running plan as `current`
    workload: Workload | None = None  # the same for other counts; None: counts stay
    measured: Mapping[str, float] = field(default_factory=dict[str, float])  # of the running plan
    lag: float = 0.0  # tuples that wait
    drained: frozenset[str] = frozenset()  # nodes that are to be emptied

    @property
    def rate_per_s(self) -> float:
        """Tuples/s that come in at all spouts."""
        return float(self.problem.rate[self.problem.spout].sum())


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A new plan, and the running one in its terms."""

    plan: Plan
    carried: Assignment
    holders: Holders | None

    @property
    def problem(self) -> Problem:
        """As measured, with the new plan's counts and machines."""
        return self.plan.problem

    @property
    def moved(self) -> tuple[int, float]:
        """Tasks that go to another node or start, and megabytes that travel."""
        mb, gone, _ = measure_move(self.problem, self.carried, self.plan.assignment, self.holders)
        starts = int((self.carried.node == UNPLACED).sum())
        return gone + starts, mb

    @property
    def transfer_s(self) -> float:
        """Seconds that the state travels."""
        plan, new = self.carried, self.plan.assignment
        return volumes_between(self.problem, plan, new, holders=self.holders).bound

    def pause_s(self, restart_s: float) -> float:
        """Seconds of all work that the move costs: state travels, and workers start again.

        Workers that keep their tasks go on meanwhile.
        """
        if restart_s <= 0:
            return self.transfer_s
        new = self.plan.assignment
        again = restarted_workers(self.problem, self.carried, self.problem, new)
        placed = new.node != UNPLACED
        slots = np.column_stack([new.node[placed], new.worker[placed]])
        return self.transfer_s + restart_s * again / max(1, len(np.unique(slots, axis=0)))


def plan_again(view: View, settings: LoopSettings, need: float = 1.0) -> Candidate:
    """The plan that the settings' scheduler makes now, for `need` times the measured rate."""
    problem = without_nodes(view.problem, view.drained)
    if settings.resize and view.workload is not None:
        rate = view.rate_per_s * need
        found = resize(view.workload, settings, rate, running=problem)
    else:
        found = place_within_reach(problem, settings, need)
    running = view.problem.current
    assert running is not None
    if found.problem.nodes == problem.nodes and np.array_equal(found.problem.tasks, problem.tasks):
        carried, holders = running, None
    else:
        over = carry_plan(view.problem, running, found.problem)
        carried, holders = over.plan, over.holders
    nearer = relabel(found.problem, carried, found.assignment, holders=holders).plan
    return Candidate(replace(found, assignment=nearer), carried, holders)


def place_within_reach(problem: Problem, settings: LoopSettings, need: float) -> Plan:
    """The scheduler's plan for a rate; if none carries it, the one that carries most of it.

    A plan that falls behind is better than none, for tasks that have lost their node.
    """
    options = dict(settings.options)
    if problem.current is None or (problem.current.node == UNPLACED).any():
        options.pop("move_cost", None)  # what does not run has no place to leave
    refusal: Infeasible | None = None
    for factor, objective in ((1.0, settings.objective), *((share, "rate") for share in SHARES)):
        try:
            found = place(
                problem.scaled(need * factor),
                settings.by,
                objective=objective,
                seed=settings.seed,
                options=options,
                bounded=False,
            )
            return replace(found, problem=problem)
        except Infeasible as error:
            refusal = refusal or error
            if error.resource not in (None, "cpu", "bandwidth_mbps", "rate"):
                break
    assert refusal is not None
    raise refusal


def resize(
    workload: Workload, settings: LoopSettings, rate: float, running: Problem | None = None
) -> Plan:
    """Counts, and machines where they are rented, for a rate with its reserve; then places.

    The rate is in tuples/s over all spouts; `running` has the counts and rules of now.
    """
    target = rate * (1 + settings.reserve)
    sized = _counts_for(workload, target, settings)
    tasks = sized.tasks if running is None else keep_counts_with_state(running, sized.tasks)
    again = workload.problem(tasks, sized.machines)
    if running is not None:
        again = without_nodes(again, _closed(running))
    try:
        placed = place_within_reach(again, settings, target / workload.spout_rate)
    except HeadraceError:
        if tasks != sized.tasks:
            raise
        placed = replace(sized, problem=again)
    return replace(placed, machines=sized.machines, workload=workload)


def _counts_for(workload: Workload, rate: float, settings: LoopSettings) -> Plan:
    """Counts for a rate in tuples/s over all spouts, or for the largest there is."""
    document = workload.inputs.document
    rents = document.catalog and document.cluster is None
    seed = settings.seed
    if not rents:
        try:
            return size(workload, rate=rate, seed=seed)
        except Infeasible:
            return size(workload, seed=seed)
    budget = settings.budget
    try:
        found = provision(workload, rate=rate, seed=seed)
        if budget is None or found.report.cost is None or found.report.cost <= budget:
            return found
    except Infeasible:
        if budget is None:
            raise
    return provision(workload, budget=budget, seed=seed)


def keep_counts_with_state(problem: Problem, tasks: Mapping[str, int]) -> dict[str, int]:
    """Counts, but those that run where state is a task's own: no other task could take it over."""
    kept = dict(tasks)
    for c, name in enumerate(problem.components):
        if problem.holding[c] == "task" and problem.state_mb[c] > 0:
            kept[name] = int(problem.tasks[c])
    return kept


def without_nodes(problem: Problem, drained: Sequence[str] | frozenset[str]) -> Problem:
    """The problem whose tasks may not use some nodes."""
    if not drained:
        return problem
    closed = np.isin(np.array(problem.nodes), sorted(drained))
    shape = (len(problem.components), len(problem.nodes))
    allowed = np.ones(shape, dtype=bool) if problem.allowed is None else problem.allowed.copy()
    allowed[:, closed] = False
    return replace(problem, allowed=allowed)


def _closed(problem: Problem) -> list[str]:
    """Nodes that no task may use."""
    if problem.allowed is None:
        return []
    return [problem.nodes[n] for n in np.flatnonzero(~problem.allowed.any(axis=0)).tolist()]


def judge_plan(problem: Problem, plan: Assignment, objective: str, factor: float = 1.0) -> Report:
    """What a plan does at a factor of the measured rate."""
    scaled = problem if factor == 1.0 else problem.scaled(factor)
    return judge(scaled, plan, objective=objective, bounded=False)


def fingerprint(problem: Problem, plan: Assignment) -> str:
    """A short name for a plan: the same for the same counts and places of all tasks."""
    return fingerprint_of(plan_section(problem, plan))


def fingerprint_of(section: Mapping[str, Any]) -> str:
    """The same, of a plan's counts and places."""
    text = json.dumps(section, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def plan_section(problem: Problem, plan: Assignment) -> dict[str, Any]:
    """A plan's counts and places, as a file has them."""
    return {
        "tasks": counts_section(problem),
        **assignment_section(problem, plan, compact=True),
    }


def read_plan(problem: Problem, section: Mapping[str, Any]) -> Assignment:
    """A plan that was kept, for a problem with its counts and nodes."""
    return read_assignment(problem, PlanSection.model_validate(section))


def name_nodes(problem: Problem) -> str:
    """A short name for the set of nodes."""
    return hashlib.sha256("\n".join(sorted(problem.nodes)).encode()).hexdigest()[:8]

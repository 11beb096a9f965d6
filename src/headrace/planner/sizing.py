"""Choose counts, and machines, for rates in tuples/s over all spouts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from headrace.errors import Infeasible, InvalidInput
from headrace.judge.bounds import Bound, bound
from headrace.judge.report import FIGURES, Report, judge, plannable
from headrace.judge.thread_rate import thread_rate
from headrace.model.headroom import headroom_in, name_headroom
from headrace.model.problem import Assignment, Problem
from headrace.model.progress import begin
from headrace.model.request import Deadline, Request
from headrace.model.sized import Provisioned, Sized, round_down
from headrace.model.smaller_machines import restore_machines, restore_nodes, shrink_machines
from headrace.model.what_if import multiply_rates
from headrace.model.workload import Workload
from headrace.planner.placing import BOUND_SHARE, DEFAULT
from headrace.planner.result import Plan
from headrace.registry import Algorithm, By, find

JUST_BELOW = 1 - 1e-9  # of a rate: where plans are judged, so that rounding breaks no limit


def size(
    workload: Workload,
    by: By = DEFAULT,
    *,
    rate: float | None = None,
    options: Mapping[str, object] | None = None,
    seed: int = 0,
    steps: int | None = None,
    seconds: float | None = None,
) -> Plan:
    """Task counts for the cluster of the file: for the largest rate, or enough for a rate."""
    algorithm, deadline = find("size", by), Deadline(seconds)
    request = Request("rate", seed, steps, deadline, rate)
    if rate is not None:
        workload = at_spout_rate(workload, rate)
    begin(f"{algorithm.name} chooses task counts")
    sized: Sized = _ask(algorithm, workload, request, options)  # on machines without the headroom
    assignment = sized.assignment
    if assignment is None:  # the algorithm counts tasks and does not place them
        assignment = find("place", DEFAULT)(sized.problem, replace(request, steps=None))
    stopped = deadline.stopped
    limit = Bound("max_rate", sized.bound, False, sized.bound_kind or "trivial")
    notes = sized.notes
    if rate is not None:
        carried = thread_rate(sized.problem, assignment)
        if carried < rate * (1 - 1e-6):
            headroom = headroom_in(workload.inputs) or {}
            raise name_headroom(too_fast_for_the_cluster(rate, carried, sized.bound), headroom)
        if sized.bound is not None:
            most = f"no counts on this cluster sustain more than {sized.bound:g} tuples/s"
            notes = (f"{most} ({limit.kind})", *notes)
    planned_for = restore_machines(sized.workload, workload)
    problem, report = judge_at_rate(
        restore_nodes(sized.problem, planned_for),
        assignment,
        sized.rate if rate is None else rate,
        limit if rate is None else None,
        stopped=stopped,
        notes=notes,
        deadline=time_for_bound(deadline),
    )
    objective = "rate" if rate is None else "traffic"
    took = deadline.elapsed
    return Plan(
        algorithm.name, objective, seed, took, problem, assignment, report, workload=planned_for
    )


def time_for_bound(used: Deadline) -> Deadline | None:
    """What is left of the seconds, or a share of them if that is more; None without a limit."""
    if used.seconds is None:
        return None
    return Deadline(max(used.left or 0.0, BOUND_SHARE * used.seconds), used.clock)


def provision(
    workload: Workload,
    by: By = DEFAULT,
    *,
    budget: float | None = None,
    rate: float | None = None,
    options: Mapping[str, object] | None = None,
    seed: int = 0,
    steps: int | None = None,
    seconds: float | None = None,
) -> Plan:
    """Machines and counts: most throughput within a budget, or least cost for a rate."""
    algorithm, deadline = find("provision", by), Deadline(seconds)
    request = Request("rate", seed, steps, deadline, rate, budget)
    begin(f"{algorithm.name} chooses machines")
    found: Provisioned = _ask(algorithm, workload, request, options)
    took = deadline.elapsed
    kind = found.bound_kind or "trivial"
    of = "cost" if found.bound_of == "cost" else "max_rate"
    planned_for = restore_machines(found.workload, workload)
    problem, report = judge_at_rate(
        restore_nodes(found.problem, planned_for, found.machines),
        found.assignment,
        rate or found.rate,
        Bound(of, found.bound, kind == "exact", kind),
        rented=True,
        stopped=deadline.stopped,
        notes=found.notes,
    )
    return Plan(
        algorithm.name,
        "rate",
        seed,
        took,
        problem,
        found.assignment,
        report,
        machines=found.machines,
        components=found.components,
        workload=planned_for,
    )


def judge_at_rate(
    problem: Problem,
    assignment: Assignment,
    rate: float,
    limit: Bound | None,
    *,
    rented: bool = False,
    stopped: str = "done",
    notes: tuple[str, ...] = (),
    deadline: Deadline | None = None,
) -> tuple[Problem, Report]:
    """The problem at a rate (tuples/s over all spouts), and the report of the plan there.

    Without a limit the report says how far the traffic between nodes is from the least that these
    counts allow, as far as that is known by the deadline.
    """
    given = float(problem.rate[problem.spout].sum())
    scaled = problem.scaled(rate / given * JUST_BELOW) if given > 0 and rate > 0 else problem
    objective = "traffic" if limit is None else "rate"
    if limit is None and deadline is not None:
        limit = bound(plannable(scaled, objective), FIGURES[objective], deadline=deadline)
    report = judge(
        scaled,
        assignment,
        objective=objective,
        limit=limit,
        absolute=True,
        rented=rented,
        stopped=stopped,
        notes=notes,
    )
    return scaled, report


def planned_rate(problem: Problem) -> float:
    """Tuples/s over all spouts that a plan was made for."""
    return float(problem.rate[problem.spout].sum()) / JUST_BELOW


def at_spout_rate(workload: Workload, rate: float) -> Workload:
    """The workload with spouts that emit so much together, in the ratio of their rates."""
    if not (np.isfinite(rate) and rate > 0):
        raise InvalidInput(f"the rate is {rate:g}; it must be above 0")
    if not workload.spout_rate > 0:
        raise InvalidInput("no spout emits anything: give at least one spout a `rate` above 0")
    document = multiply_rates(workload.inputs.document, rate / workload.spout_rate)
    return Workload(replace(workload.inputs, document=document))


def too_fast_for_the_cluster(rate: float, largest: float, bound: float | None) -> Infeasible:
    """The refusal of a rate that no counts found on the cluster carry."""
    works = round_down(largest)
    limit = "" if bound is None else f", and none can be above {bound:g}"
    return Infeasible(
        f"the cluster does not carry {rate:g} tuples/s; "
        f"the largest rate found that works is {works:g}{limit}",
        resource="rate",
        needed=rate,
        available=works,
        fix=f"lower the rate to {works:g}, or add machines",
    )


def _ask(
    algorithm: Algorithm,
    workload: Workload,
    request: Request,
    options: Mapping[str, object] | None,
) -> Any:
    """What an algorithm answers on machines without the headroom.

    A plan in the files is for counts that are about to change.
    """
    document = workload.inputs.document.model_copy(update={"plan": None})
    stated = (document.options or {}).get(algorithm.name, {})
    without_plan = Workload(replace(workload.inputs, document=document))
    try:
        return algorithm(shrink_machines(without_plan), request, {**stated, **(options or {})})
    except Infeasible as error:
        raise name_headroom(error, headroom_in(workload.inputs) or {}) from None

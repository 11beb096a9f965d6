"""All stages: machines, counts, places, and what moves from the current plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from headrace.errors import HeadraceError, InvalidInput, Unsupported
from headrace.judge.diff import diff
from headrace.judge.thread_rate import thread_rate
from headrace.model.document import PlanSection
from headrace.model.headroom import within_headroom
from headrace.model.nearest import nearest
from headrace.model.plan import counts_section, read_assignment
from headrace.model.problem import Assignment
from headrace.model.read import Inputs
from headrace.model.sizable import sizable
from headrace.model.workload import Workload
from headrace.planner.placing import DEFAULT, place
from headrace.planner.result import Plan
from headrace.planner.sizing import judge_at_rate, planned_rate, provision, size
from headrace.registry import By, find

STAGES = ("provision", "size", "place")


def plan(
    inputs: Inputs,
    *,
    rate: float | None = None,
    budget: float | None = None,
    rent: bool = False,
    by: Mapping[str, By] | None = None,
    options: Mapping[str, object] | None = None,
    seed: int = 0,
    seconds: float | None = None,
    running: Inputs | None = None,
) -> Plan:
    """Machines (where they are rented), counts, places; then what moves.

    Machines of a catalog are rented where the files give no cluster, or with `rent` or a budget.
    `by` names an algorithm per stage. Without a rate and a budget, a cluster is filled for the
    largest rate, and machines are rented for the rates of the files. A plan in the files is the
    current one; `running` is where it runs, if the files were changed since.
    """
    by, workload, document = by or {}, Workload(inputs), inputs.document
    if (rent or budget is not None) and not document.catalog:
        raise InvalidInput(
            "no machines to rent: give a file with `catalog`, or ask for a rate on the cluster"
        )
    given = document.cluster is not None or document.inventory is not None
    rents = document.catalog and (rent or budget is not None or not given)
    first = "provision" if rents else "size"
    check_stages(by, first)
    chosen = by.get(first, DEFAULT)
    if rents:
        rate = workload.spout_rate if rate is None and budget is None else rate
        found = provision(
            workload, chosen, budget=budget, rate=rate, options=options, seed=seed, seconds=seconds
        )
    else:
        found = size(workload, chosen, rate=rate, options=options, seed=seed, seconds=seconds)
    found, placer = place_again(found, workload, by.get("place"), seed, seconds)
    found = replace(found, stages={first: found.scheduler, "place": placer})
    if document.plan is None:
        return found
    return move_from(found, document.plan, Workload(running or inputs))


def check_stages(by: Mapping[str, By], first: str) -> None:
    """Refuse a stage that there is not, or that the files leave nothing to do."""
    for stage in by:
        if stage not in STAGES:
            known = ", ".join(STAGES)
            raise InvalidInput(f"no stage `{stage}`{nearest(stage, STAGES)}; there are: {known}")
    if first == "size" and "provision" in by:
        raise InvalidInput(
            "no machines are rented where the files give a cluster: "
            "say --rent, or choose `size=` instead"
        )
    if first == "provision" and "size" in by:
        raise InvalidInput(
            "machines are rented and tasks counted together: choose `provision=` instead of `size=`"
        )


def place_again(
    found: Plan, workload: Workload, by: By | None, seed: int, seconds: float | None
) -> tuple[Plan, str]:
    """The same counts placed by a scheduler, and its name.

    Unless one was asked for, only where that sends less between nodes and is no slower.
    """
    if workload.machine_per_task:
        if by is not None:
            raise Unsupported(
                "every task has a machine of its own, so there is nothing to place",
                fix="leave `--by place=` out",
            )
        return found, "one machine per task"
    try:
        other = place(found.problem, by or DEFAULT, seed=seed, seconds=seconds)
    except HeadraceError:
        if by is not None:
            raise
        return found, "kept"
    fast = thread_rate(within_headroom(other.problem), other.assignment)
    fast_enough = fast >= planned_rate(found.problem) * (1 - 1e-6)
    better = other.report.inter_node_traffic < found.report.inter_node_traffic * (1 - 1e-9)
    if by is None and not (fast_enough and better and other.report.feasible):
        return found, "kept"
    moved = with_places(found, workload, other.assignment, seconds=other.seconds)
    return moved, find("place", by or DEFAULT).name


def with_places(
    found: Plan, workload: Workload, assignment: Assignment, *, seconds: float = 0.0
) -> Plan:
    """A plan with other places; rented machines that stay empty are given back."""
    problem, machines = found.problem, found.machines
    rate = planned_rate(problem)
    placed = assignment.node[assignment.node >= 0]
    used = np.bincount(placed, minlength=len(problem.nodes)) > 0
    if machines is not None and not used.all():
        kind = problem.node_type[used]
        machines = {
            name: int((kind == t).sum())
            for t, name in enumerate(problem.types)
            if (kind == t).any()
        }
        problem = (found.workload or workload).problem(counts_section(problem), machines)
        assignment = Assignment((np.cumsum(used) - 1)[assignment.node], assignment.worker)
    problem, report = judge_at_rate(
        problem,
        assignment,
        rate,
        None if found.objective == "traffic" else found.report.bound,
        rented=machines is not None,
        stopped=found.report.stopped,
        notes=found.report.notes,
    )
    return replace(
        found,
        problem=problem,
        assignment=assignment,
        report=report,
        machines=machines,
        seconds=found.seconds + seconds,
    )


def move_from(found: Plan, current: PlanSection, running: Workload) -> Plan:
    """The plan with alike nodes and tasks in the roles that move least, and what does move."""
    from headrace.move.change import carry_plan  # here: it needs compiled code
    from headrace.move.relabel import relabel

    if current.assignment is None and current.placement is None:
        raise running.inputs.invalid(
            ("plan",), "the current plan places no tasks, so what moves is not known"
        )
    rented = found.machines is not None
    old = sizable(running, catalog=rented).problem(
        current.tasks, current.machines if rented else None
    )
    try:
        old_plan = read_assignment(old, current)
    except InvalidInput as error:
        raise running.inputs.invalid(("plan",), error.message) from None
    carried = carry_plan(old, old_plan, found.problem)
    near = relabel(found.problem, carried.plan, found.assignment, holders=carried.holders)
    found = with_places(found, running, near.plan)
    rate = planned_rate(found.problem)
    old, before = judge_at_rate(old, old_plan, rate, found.report.bound, rented=rented)
    after = (found.problem, found.assignment, found.report)
    return replace(found, change=diff((old, old_plan, before), after))

"""The one front door: choose an algorithm, run it, time it, judge the result.

No algorithm times, scores or logs itself; the command line, the loop, the lab and the fan-out all
come through here.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import headrace
from headrace.errors import HeadraceError, Infeasible, InvalidInput, Unsupported
from headrace.judge.bounds import Bound
from headrace.judge.diff import Diff, diff
from headrace.judge.report import FIGURES, Report, gap, judge
from headrace.judge.thread_rate import thread_rate
from headrace.model.document import FORMAT, Document, PlanSection
from headrace.model.plan import assignment_of, assignment_section, counts_section, made_from
from headrace.model.problem import CPU, Assignment, Problem
from headrace.model.read import Inputs, nearest
from headrace.model.sizable import THREAD, sizable
from headrace.model.sized import Provisioned, Sized, rounded_down
from headrace.model.what_if import faster
from headrace.model.workload import Workload
from headrace.move.change import carried
from headrace.move.relabel import relabel
from headrace.registry import algorithm, arguments, entries

DEFAULT = "headrace"
OBJECTIVES = tuple(FIGURES)
CURVE = (
    0.1,
    0.2,
    0.35,
    0.5,
    0.65,
    0.8,
    0.9,
    1.1,
    1.25,
    1.5,
    1.75,
    2.0,
)  # of the rate or the cost chosen: what else is looked at
CURVE_STEPS = 30_000  # of search for each of them
JUST_BELOW = 1 - 1e-9  # of a rate: where plans are judged, so that rounding breaks no limit


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
    machines: Mapping[str, int] | None = None  # rented, by type
    components: Mapping[str, Any] | None = (
        None  # rented for each component, where all its machines are of one type
    )
    workload: Workload | None = None  # what counts or machines were chosen for
    stages: Mapping[str, str] | None = None  # where all stages ran: stage -> algorithm
    change: Diff | None = None  # what moves, where there is a current plan

    @property
    def absolute(self) -> bool:
        """Whether `max_rate` is in tuples/s over all spouts, as where counts are chosen, not a factor of the given rates."""
        return self.workload is not None

    def to_json(self, *, compact: bool = False, document: Document | None = None) -> dict[str, Any]:
        """The contract's plan object; with a document it stands alone."""
        head: dict[str, Any] = {"format": FORMAT}
        if self.refusal is not None or self.assignment is None or self.report is None:
            return {
                **head,
                "scheduler": self.scheduler,
                "error": self.refusal.fields() if self.refusal else None,
            }
        plan = {
            **assignment_section(self.problem, self.assignment, compact=compact),
            "tasks": counts_section(self.problem),
        }
        if self.machines is not None:
            plan["machines"] = dict(self.machines)
        if self.components:
            plan["components"] = {
                name: {"type": rented.type, "tasks": rented.tasks}
                for name, rented in self.components.items()
            }
        if document is not None:
            head |= {"version": headrace.__version__, "objective": self.objective}
            document = (
                document
                if self.workload is None
                else self.workload.decided(self.problem, self.machines)
            )
        body: dict[str, Any] = {
            "scheduler": self.scheduler,
            "seed": self.seed,
            "seconds": self.seconds,
            "plan": plan,
            "report": self.report.to_json(),
        }
        if document is None and self.stages is not None:
            body["stages"] = dict(self.stages)
        if document is None and self.change is not None:
            body["moves"] = self.change.to_json()
        return {
            **head,
            **body,
            **({"made_from": made_from(document)} if document is not None else {}),
        }


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
    bounded: bool = True,
    clock: Callable[[], float] = time.perf_counter,
) -> Planned:
    """Place a problem's tasks and judge the plan, with how good any plan could be if `bounded`; options given here come before the file's."""
    if objective not in FIGURES:
        raise InvalidInput(f"no objective `{objective}`; there are: {', '.join(FIGURES)}")
    function = algorithm("place", by)
    start = clock()
    budget = Deadline(start, seconds, clock)
    given: dict[str, object] = {
        "seed": seed,
        "steps": steps,
        "deadline": budget,
        "objective": objective,
    }
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
    report = judge(problem, assignment, objective=objective, stopped=stopped, bounded=bounded)
    return Planned(by, objective, seed, took, problem, assignment, report)


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
    by: str = DEFAULT,
    *,
    rate: float | None = None,
    options: Mapping[str, object] | None = None,
    seed: int = 0,
    seconds: float | None = None,
) -> Planned:
    """Choose task counts for the cluster of the file: for the largest rate, or enough for a rate. Counts without places are placed."""
    start = time.perf_counter()
    deadline = Deadline(start, seconds, time.perf_counter)
    if rate is not None:
        workload = at_spout_rate(workload, rate)
    sized: Sized = _chosen(
        "size", by, workload, options, {"seed": seed, "rate": rate, "deadline": deadline}
    )
    assignment = sized.assignment
    if assignment is None:
        assignment = algorithm("place", DEFAULT)(
            sized.problem, objective="rate", seed=seed, deadline=deadline
        )
    limit = Bound("max_rate", sized.bound, False, sized.bound_kind or "trivial")
    stopped = "seconds" if deadline.passed else "done"
    if rate is None:
        problem, report = at_rate(sized.problem, assignment, sized.rate, limit, stopped)
    else:
        carried = thread_rate(sized.problem, assignment)
        if carried < rate * (1 - 1e-6):
            raise too_fast_for_the_cluster(rate, carried, sized.bound)
        problem, report = at_rate(sized.problem, assignment, rate, None, stopped)
        most = (
            ()
            if sized.bound is None
            else (
                f"no counts on this cluster sustain more than {sized.bound:g} tuples/s ({limit.kind})",
            )
        )
        report = replace(report, notes=(*report.notes, *most))
    took = time.perf_counter() - start
    report = with_notes(report, sized.notes)
    return Planned(
        by,
        "rate" if rate is None else "traffic",
        seed,
        took,
        problem,
        assignment,
        report,
        workload=sized.workload,
    )


def provision(
    workload: Workload,
    by: str = DEFAULT,
    *,
    budget: float | None = None,
    rate: float | None = None,
    options: Mapping[str, object] | None = None,
    seed: int = 0,
    steps: int | None = None,
    seconds: float | None = None,
) -> Planned:
    """Choose machines and counts: most throughput within a budget, or least cost for a rate."""
    start = time.perf_counter()
    deadline = Deadline(start, seconds, time.perf_counter)
    given = {"seed": seed, "steps": steps, "budget": budget, "rate": rate, "deadline": deadline}
    found: Provisioned = _chosen("provision", by, workload, options, given)
    took = time.perf_counter() - start
    kind = found.bound_kind or "trivial"
    limit = Bound(
        "cost" if found.bound_of == "cost" else "max_rate", found.bound, kind == "exact", kind
    )
    stopped = "seconds" if deadline.passed else "done"
    problem, report = at_rate(found.problem, found.assignment, rate or found.rate, limit, stopped)
    report = with_notes(
        replace(report, cost=found.cost, gap=found.gap if report.feasible else None), found.notes
    )
    return Planned(
        by, "rate", seed, took, problem, found.assignment, report,
        machines=found.machines, components=found.components, workload=found.workload,
    )  # fmt: skip


def plan(
    inputs: Inputs,
    *,
    rate: float | None = None,
    budget: float | None = None,
    by: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
    seed: int = 0,
    seconds: float | None = None,
    running: Inputs | None = None,
) -> Planned:
    """All stages: machines (where the files have a catalog and no cluster), counts, places; then what moves from the current plan.

    `by` names an algorithm per stage. Without a rate and a budget, a cluster is filled for the
    largest rate, and machines are rented for the rates of the files. A plan in the files is the
    current one; `running` is where it runs, if the files were changed since.
    """
    by, workload = by or {}, Workload(inputs)
    document = inputs.document
    first = (
        "provision"
        if document.catalog and document.cluster is None and document.inventory is None
        else "size"
    )
    _check_stages(by, first)
    name = by.get(first, DEFAULT)
    if first == "provision":
        rate = workload.spout_rate if rate is None and budget is None else rate
        found = provision(
            workload, name, budget=budget, rate=rate, options=options, seed=seed, seconds=seconds
        )
    elif budget is None:
        found = size(workload, name, rate=rate, options=options, seed=seed, seconds=seconds)
    else:
        raise InvalidInput(
            "a budget buys machines, but the files give a cluster: leave the cluster out, or ask for a rate"
        )
    found, placed_by = placed_anew(found, by.get("place"), seed, seconds)
    found = replace(found, stages={first: name, "place": placed_by})
    return (
        found
        if document.plan is None
        else moved_from(found, document.plan, Workload(running or inputs))
    )


def _check_stages(by: Mapping[str, str], first: str) -> None:
    for stage in by:
        if stage not in ("provision", "size", "place"):
            raise InvalidInput(
                f"no stage `{stage}`{nearest(stage, ('provision', 'size', 'place'))}; there are: provision, size, place"
            )
    if first == "size" and "provision" in by:
        raise InvalidInput(
            "no machines are rented where the files give a cluster: leave the cluster out, or choose `size=` instead"
        )
    if first == "provision" and "size" in by:
        raise InvalidInput(
            "machines are rented and tasks counted together: choose `provision=` instead of `size=`"
        )


def placed_anew(
    found: Planned, by: str | None, seed: int, seconds: float | None
) -> tuple[Planned, str]:
    """The same counts placed by a scheduler; unless one was asked for, only where that sends less between nodes and is no slower."""
    assert found.assignment is not None
    assert found.report is not None
    assert found.workload is not None
    if found.workload.machine_per_task:
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
    assert other.assignment is not None
    assert other.report is not None
    fast = thread_rate(other.problem, other.assignment) >= planned_rate(found.problem) * (1 - 1e-6)
    better = other.report.inter_node_traffic < found.report.inter_node_traffic * (1 - 1e-9)
    if by is None and not (fast and better and other.report.feasible):
        return found, "kept"
    return rejudged(found, other.assignment, seconds=other.seconds), by or DEFAULT


def rejudged(found: Planned, assignment: Assignment, *, seconds: float = 0.0) -> Planned:
    """A plan with other places; rented machines that stay empty are given back."""
    assert found.report is not None
    assert found.workload is not None
    problem, machines = found.problem, found.machines
    rate = planned_rate(problem)
    used = np.bincount(assignment.node[assignment.node >= 0], minlength=len(problem.nodes)) > 0
    if machines is not None and not used.all():
        kind = problem.node_type[used]
        machines = {
            name: int((kind == t).sum())
            for t, name in enumerate(problem.types)
            if (kind == t).any()
        }
        tasks = counts_section(problem)
        problem = found.workload.problem(tasks, machines)
        assignment = Assignment((np.cumsum(used) - 1)[assignment.node], assignment.worker)
    limit = None if found.objective == "traffic" else found.report.bound
    problem, report = at_rate(problem, assignment, rate, limit, found.report.stopped)
    report = with_notes(report, found.report.notes)
    return replace(
        found,
        problem=problem,
        assignment=assignment,
        report=report,
        machines=machines,
        seconds=found.seconds + seconds,
    )


def moved_from(found: Planned, current: PlanSection, running: Workload) -> Planned:
    """The plan told so that least moves from the current one (what is alike swaps roles), with what does move."""
    assert found.assignment is not None
    if current.assignment is None and current.placement is None:
        raise running.inputs.invalid(
            ("plan",), "the current plan places no tasks, so what moves cannot be told"
        )
    rented = found.machines is not None
    old = sizable(running, catalog=rented).problem(
        current.tasks, current.machines if rented else None
    )
    try:
        old_plan = assignment_of(old, current)
    except InvalidInput as error:
        raise running.inputs.invalid(("plan",), error.message) from None
    near = relabel(found.problem, carried(old, old_plan, found.problem).plan, found.assignment)
    found = rejudged(found, near.plan)
    assert found.assignment is not None
    assert found.report is not None
    rate = planned_rate(found.problem)
    old, before = at_rate(old, old_plan, rate, found.report.bound)
    return replace(
        found, change=diff((old, old_plan, before), (found.problem, found.assignment, found.report))
    )


@dataclass(frozen=True, slots=True)
class Point:
    """A plan among those that trade rate against cost."""

    cost: float
    rate: float  # tuples/s over all spouts that it sustains
    machines: Mapping[str, int]
    limit: tuple[float, float] | None  # cost and rate: nothing that costs less is faster


@dataclass(frozen=True, slots=True)
class TradeOff:
    """What other rates would cost, or other budgets buy, around a plan."""

    points: tuple[Point, ...]  # by cost, each faster than all that cost less
    chosen: Point
    limits: tuple[tuple[float, float], ...]  # of all that was looked at, by cost


def trade_off(
    inputs: Inputs, chosen: Planned, by: str = DEFAULT, *, budgets: bool = False, seed: int = 0
) -> TradeOff | None:
    """The curve of rate against cost around a plan, from a dozen runs of the provisioner; None where there is nothing to rent.

    It asks for the cheapest machines of some rates, or with `budgets` for what some budgets buy.
    """
    if (
        not inputs.document.catalog
        or chosen.report is None
        or chosen.report.cost is None
        or not chosen.absolute
    ):
        return None
    asked = planned_rate(chosen.problem)
    here = _point(chosen, None if budgets else asked)
    found = [here]
    for factor in CURVE:
        rate, budget = (None, here.cost * factor) if budgets else (asked * factor, None)
        try:
            other = provision(
                Workload(inputs), by, rate=rate, budget=budget, seed=seed, steps=CURVE_STEPS
            )
        except HeadraceError:
            continue
        found.append(_point(other, rate))
    points: list[Point] = []
    for point in sorted(found, key=lambda p: (p.cost, -p.rate, p is not here)):
        if not points or point.rate > points[-1].rate * (1 + 1e-6):
            points.append(point)
    return TradeOff(
        tuple(points), here, tuple(sorted(p.limit for p in found if p.limit is not None))
    )


def _point(plan: Planned, asked: float | None) -> Point:
    """A plan as a point; `asked` is the rate whose cost its bound is about."""
    report, kinds = plan.report, [plan.problem.types[t] for t in plan.problem.node_type.tolist()]
    assert report is not None
    cost, rate = report.cost or 0.0, report.max_rate or planned_rate(plan.problem)
    bound, of = report.bound.value, report.bound.of
    limit = (
        None
        if bound is None
        else (bound, asked)
        if of == "cost" and asked
        else (cost, bound)
        if of == "max_rate"
        else None
    )
    return Point(
        cost,
        rate,
        plan.machines or {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
        limit,
    )


def planned_rate(problem: Problem) -> float:
    """Tuples/s over all spouts that a plan was made for."""
    return float(problem.rate[problem.spout].sum()) / JUST_BELOW


def at_spout_rate(workload: Workload, rate: float) -> Workload:
    """The workload with spouts that emit so much together, in the ratio of their rates."""
    if not (np.isfinite(rate) and rate > 0):
        raise InvalidInput(f"the rate is {rate:g}; it must be above 0")
    if not workload.spout_rate > 0:
        raise InvalidInput("no spout emits anything: give at least one spout a `rate` above 0")
    document = faster(workload.inputs.document, rate / workload.spout_rate)
    return Workload(replace(workload.inputs, document=document))


def too_fast_for_the_cluster(rate: float, largest: float, bound: float | None) -> Infeasible:
    """The refusal of a rate that no counts found on the cluster carry."""
    works = rounded_down(largest)
    limit = "" if bound is None else f", and none can be above {bound:g}"
    return Infeasible(
        f"the cluster does not carry {rate:g} tuples/s; the largest rate found that works is {works:g}{limit}",
        resource="rate",
        needed=rate,
        available=works,
        fix=f"lower the rate to {works:g}, or add machines",
    )


def _chosen(
    folder: str,
    by: str,
    workload: Workload,
    options: Mapping[str, object] | None,
    given: Mapping[str, object],
) -> Any:
    function = algorithm(folder, by)
    workload = without_plan(workload)
    stated = (workload.inputs.document.options or {}).get(by, {})
    return function(workload, **arguments(by, function, {**stated, **(options or {})}, given))


def without_plan(workload: Workload) -> Workload:
    """The files without a plan in them: it is for counts that are about to change."""
    document = workload.inputs.document.model_copy(update={"plan": None})
    return Workload(replace(workload.inputs, document=document))


def with_notes(report: Report, notes: Sequence[str]) -> Report:
    """The report with what an algorithm has to say besides."""
    return replace(report, notes=tuple(dict.fromkeys((*report.notes, *notes))))


def at_rate(
    problem: Problem,
    assignment: Assignment,
    rate: float,
    limit: Bound | None,
    stopped: str = "done",
) -> tuple[Problem, Report]:
    """The problem at a rate (tuples/s over all spouts) and the report of the plan there, its `max_rate` in the same unit.

    Without a limit the report says how far the traffic between nodes is from the least that these
    counts allow.
    """
    given = float(problem.rate[problem.spout].sum())
    scaled = problem.scaled(rate / given * JUST_BELOW) if given > 0 and rate > 0 else problem
    report = judge(
        scaled,
        assignment,
        objective="traffic" if limit is None else "rate",
        bounded=limit is None,
        stopped=stopped,
    )
    by_nodes = (
        np.inf
        if report.max_rate is None
        else report.max_rate * float(scaled.rate[scaled.spout].sum())
    )
    most = thread_rate(scaled, assignment)
    limited = (
        f"task {slowest_task(scaled, assignment)}: one thread"
        if most < by_nodes * (1 - 1e-9)
        else report.bottleneck
    )
    report = replace(report, max_rate=most if np.isfinite(most) else None, bottleneck=limited)
    if limit is None:
        return scaled, report
    value = report.max_rate if limit.of == "max_rate" else report.cost
    return scaled, replace(
        report, bound=limit, gap=gap(value, limit.value) if report.feasible else None
    )


def slowest_task(problem: Problem, assignment: Assignment) -> str:
    """The task that fills most of its thread."""
    c, machine = problem.component_of, problem.node_type[assignment.node]
    grows = problem.demand[c, CPU] + problem.cpu_rate[c, machine] * problem.share
    room = np.maximum(THREAD - problem.cpu_fixed[c, machine], 1e-9)
    return problem.task_name(int((grows / room).argmax()))


def compare(
    problem: Problem,
    by: Sequence[str] = (),
    *,
    objective: str = "traffic",
    seed: int = 0,
    seconds: float | None = None,
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
    return Planned(
        scheduler, objective, 0, time.perf_counter() - start, problem, problem.current, report
    )


def best(results: Sequence[Planned]) -> Planned | None:
    """The feasible plan with the best figure for its objective, then the fewest nodes, then the highest rate; None if there is none."""
    feasible = [r for r in results if r.report is not None and r.report.feasible]

    def key(result: Planned) -> tuple[float, int, float]:
        assert result.report is not None
        rate = np.inf if result.report.max_rate is None else result.report.max_rate
        value = (
            rate
            if result.objective == "rate"
            else getattr(result.report, FIGURES[result.objective])
        )
        score = np.inf if value is None else round(float(value), 9)
        return (-score if result.objective == "rate" else score, result.report.nodes_used, -rate)

    return min(feasible, key=key, default=None)

"""What we say about plans: the same sentences in the terminal, on pages and in JSON.

Needs no library to print with, so that `--json` loads none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.figures import (
    DUST,
    amounts,
    duration,
    factor,
    number,
    percent,
    plural,
    sustained_rate,
)
from headrace.judge.survival import broken_headroom
from headrace.planner.result import Outcome, Plan, Refusal

if TYPE_CHECKING:
    from headrace.errors import HeadraceError
    from headrace.judge.report import Report
    from headrace.model.problem import Problem
    from headrace.model.read import Inputs
    from headrace.simulate.result import Simulation


STATES = ("feasible", "incomplete", "infeasible", "refused")  # of a result, best first

FIGURE_NAMES = {
    "inter_node_traffic": "traffic between nodes",
    "network_cost": "network cost",
    "max_rate": "sustained rate",
    "batch_seconds": "batch time",
    "nodes_used": "nodes used",
    "balance": "CPU balance",
    "latency_p99_ms": "predicted latency of 99 %",
    "cost": "cost",
}  # figure of a report -> what it is called in a sentence


def plan_of(result: Outcome) -> Plan | None:
    """The plan, unless the result is a refusal."""
    return result if isinstance(result, Plan) else None


def plans_of(results: Iterable[Outcome]) -> list[Plan]:
    """The results that are plans."""
    return [plan for plan in map(plan_of, results) if plan is not None]


def error_of(result: Outcome) -> HeadraceError | None:
    """Why there is no plan; None if there is one."""
    return result.error if isinstance(result, Refusal) else None


def plan_in_two_lines(plan: Plan) -> str:
    """A plan as Python prints it."""
    report, problem = plan.report, plan.problem
    nodes = f"{number(report.nodes_used)} of {plural(len(problem.nodes), 'node')}"
    state = "feasible" if report.feasible else "NOT feasible"
    first = f"<Plan by {plan.scheduler}: {plural(problem.task_count, 'task')} on {nodes}, {state};"
    crossing = f"{number(report.inter_node_traffic)} of {number(report.total_traffic)}"
    rate = "no limit to its rate" if report.max_rate is None else f"sustains {speed(plan)}"
    far = "" if report.gap is None else f" ({distance(report)[0]} from the best)"
    return f"{first}\n {crossing} tuples/s between nodes, {rate}{far}>"


def comparison_in_lines(results: Iterable[Outcome]) -> str:
    """A comparison as Python prints it: a line per scheduler."""
    rows = [(result.scheduler, result_in_a_line(result)) for result in results]
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name:<{width}}  {words}" for name, words in rows)


def result_in_a_line(result: Outcome) -> str:
    """What was found, in the figure asked for, or why nothing was."""
    if isinstance(result, Refusal):
        return f"refused: {result.error.message}"
    report = result.report
    if not report.feasible:
        return f"NOT feasible: {first_reason(result)}"
    figure = report.bound.of
    value = number(getattr(report, figure))
    far = "" if report.gap is None else f", {distance(report)[0]} from the best"
    return f"{FIGURE_NAMES[figure]} {value}{far}"


def case_in_a_line(inputs: Inputs) -> str:
    """A case as Python prints it, also where it is not complete."""
    from headrace.model.cluster import nodes_of
    from headrace.model.components import components_of

    document, said = inputs.document, list[str]()
    name = ""
    if any(part is not None for part in (document.topology, document.topologies, document.tasks)):
        topologies, components = components_of(inputs, {})
        many = plural(len(topologies), "topology", "topologies")
        name = f" {topologies[0].name}" if len(topologies) == 1 else f" {many}"
        made_of = "" if document.tasks else f"{plural(len(components), 'component')}, "
        said.append(f"{made_of}{plural(sum(c.spec.tasks for c in components), 'task')}")
    if document.cluster is not None or document.inventory is not None:
        said.append(f"on {plural(len(nodes_of(inputs)), 'node')}")
    if document.catalog is not None:
        said.append(f"{plural(len(document.catalog), 'machine type')} to rent")
    return f"<Case{name}: {' '.join(said)}>"


def headline(plan: Plan) -> str:
    """The plan in a few sentences: the verdict, then its other figures."""
    return f"{verdict(plan)} {' '.join(other_figures(plan))}"


def verdict(plan: Plan) -> str:
    """What a reader wants to know first: how good it is, at what, and what limits it."""
    report, found = plan.report, _answer(plan)
    if report.feasible:
        return " ".join([f"{_how_good(report)}: {found}.", *_limit(plan)])
    broken = reasons(plan)
    more = f" (and {plural(len(broken) - 1, 'more reason')})" if len(broken) > 1 else ""
    judged = f"Not feasible: {broken[0]}{more}."
    if not report.violations:
        all_ = plural(len(plan.problem.topologies), "topology", "topologies")
        judged = f"Partial: {number(len(report.unplaced))} of {all_} not placed."
    return " ".join([judged, f"{found[0].upper()}{found[1:]}.", *_limit(plan)])


def _how_good(report: Report) -> str:
    """How far from the best possible, in front of the figure."""
    gap, bound = report.gap, report.bound
    if gap is not None and gap <= DUST:
        return "Proven optimal"
    if gap is None or (bound.value == 0 and not bound.proven):
        return "Feasible, how far from the best is not known"
    if bound.value == 0:
        return "Feasible, although the best possible is 0"
    at_most = percent(gap).capitalize() if gap < 0.001 else f"At most {percent(gap)}"
    return f"{at_most} from the best possible ({bound.kind} bound)"


def _answer(plan: Plan) -> str:
    """The figure that was asked for, in words."""
    report = plan.report
    figure = report.bound.of
    if figure == "max_rate":
        free = report.max_rate is None
        return "nothing limits its rate" if free else f"sustains {speed(plan)}"
    if figure == "nodes_used":
        return f"{number(report.nodes_used)} of {plural(len(plan.problem.nodes), 'node')} are used"
    if figure == "batch_seconds" and report.batch_seconds is not None:
        return f"a batch takes {duration(report.batch_seconds)} of work"
    if figure == "inter_node_traffic":
        crossing, total = number(report.inter_node_traffic), number(report.total_traffic)
        return f"{crossing} of {total} tuples/s cross between nodes"
    value = getattr(report, figure)
    unit = " ms" if figure.endswith("_ms") and value is not None else ""
    return f"{FIGURE_NAMES[figure]} {number(value)}{unit}"


def _limit(plan: Plan) -> list[str]:
    """What limits the plan, and how much it has left."""
    limit, rate = plan.report.bottleneck, plan.report.max_rate
    if limit is None:
        return []
    if limit.components:
        return [f"The stage {' + '.join(limit.components)} on {limit.node} takes longest."]
    who = f"{limit.task}, one thread," if limit.task is not None else f"{limit.node}"
    if plan.absolute or rate is None:
        return [f"{who} is the bottleneck ({limit.resource})."]
    if rate < 1 - DUST:
        return [f"{who} is the bottleneck ({limit.resource}): it carries {factor(rate)} the rates."]
    of = "" if limit.task is not None else f" of its {limit.resource}"
    left, row = 1 - 1 / rate, plan.report.nodes.get(limit.node or "", {})
    if limit.resource == "cpu" and (capacity := row.get("cpu_capacity")):
        left = 1 - ((row["cpu"] or 0.0) + (row["cpu_taken"] or 0.0)) / capacity  # not all grows
    return [f"{who} is the bottleneck with {percent(max(left, 0.0))}{of} left."]


def other_figures(plan: Plan) -> list[str]:
    """What the verdict does not say, a sentence each."""
    report, asked = plan.report, plan.report.bound.of
    inside = inside_share(report)
    said = [f"By {plan.scheduler}."]
    if asked != "inter_node_traffic":
        crossing, total = number(report.inter_node_traffic), number(report.total_traffic)
        said.append(f"{crossing} of {total} tuples/s cross between nodes.")
    said += [
        f"{percent(1.0 if inside is None else inside)} of the traffic stays inside nodes,",
        f"{number(report.inter_worker_traffic)} tuples/s cross between workers.",
        f"{number(report.nodes_used)} of {plural(len(plan.problem.nodes), 'node')},",
        f"{plural(report.workers_used, 'worker')}.",
    ]
    if report.max_rate is not None and asked != "max_rate":
        said.append(f"Sustains {speed(plan)}.")
    said += room_in_sentences(report)
    if report.batch_seconds is not None and asked != "batch_seconds":
        said.append(f"A batch takes {duration(report.batch_seconds)} of work.")
    said += [f"{name}: {chosen}." for name, chosen in choices(plan)]
    if report.cost is not None:
        said.append(f"Costs {number(report.cost)} per time unit.")
    return said


def room_in_sentences(report: Report) -> list[str]:
    """What is left on the fullest node, and whether the plan survives the loss of a node."""
    said: list[str] = []
    if report.headroom:
        left = [f"{percent(max(s, 0.0))} of its {name}" for name, s in report.headroom.items()]
        said.append(f"Left free on the fullest node: {', '.join(left)}.")
    if not report.feasible:
        return said
    if report.survives.any_node:
        said.append("Any one node may be lost.")
    elif report.survives.any_node is not None:
        said.append(f"Without {report.survives.node}, its tasks find no room.")
    return said


def subject(problem: Problem) -> str:
    """What is planned, and on what."""
    topologies = problem.topologies
    one = len(topologies) == 1
    what = topologies[0] if one else plural(len(topologies), "topology", "topologies")
    made_of = "" if problem.bare else f"{plural(len(problem.components), 'component')}, "
    racks = f" in {plural(len(problem.racks), 'rack')}" if len(problem.racks) > 1 else ""
    types = f" of {plural(len(problem.types), 'type')}" if len(problem.types) > 1 else ""
    tasks = plural(problem.task_count, "task")
    return f"{what} ({made_of}{tasks}) on {plural(len(problem.nodes), 'node')}{types}{racks}"


def inside_share(report: Report) -> float | None:
    """The share of the traffic that stays inside nodes; None where there is no traffic."""
    if not report.total_traffic:
        return None
    return max(0.0, 1 - report.inter_node_traffic / report.total_traffic)


def speed(plan: Plan) -> str:
    """The rate that a plan sustains, and what it is measured in."""
    unit = " over all spouts" if plan.absolute else " the given rates"
    return sustained_rate(plan.report.max_rate, plan.absolute) + unit


def choices(plan: Plan) -> list[tuple[str, str]]:
    """The counts and machines that were chosen, each with its name; none where both were given."""
    tasks = ", ".join(f"{name} {number(n)}" for name, n in task_counts(plan.problem).items())
    chosen = [("Tasks", tasks)] if plan.absolute else []
    return [*chosen, ("Machines", amounts(plan.machines))] if plan.machines else chosen


def task_counts(problem: Problem) -> dict[str, int]:
    """Tasks by component."""
    return dict(zip(problem.components, problem.tasks.tolist(), strict=True))


def distance(report: Report) -> tuple[str, str]:
    """How far a plan is from the best possible: in a word, and in a sentence."""
    figure, kind, gap = FIGURE_NAMES[report.bound.of], report.bound.kind, report.gap
    if gap is None:
        return "unknown", f"No bound on the best possible {figure} is known."
    if gap <= DUST:
        return "0 %", f"No plan can do better in {figure} ({kind} bound)."
    if report.bound.value == 0 and report.bound.proven:
        return percent(gap), f"The best possible {figure} is 0 ({kind} bound)."
    if report.bound.value == 0:
        unknown = f"How far the best possible {figure} is from this is not known"
        return "unknown", f"{unknown} ({kind} bound: {number(report.bound.value)})."
    far = percent(gap)
    in_a_word, at_most = (far, far.capitalize()) if gap < 0.001 else (f"≤ {far}", f"At most {far}")
    return in_a_word, f"{at_most} from the best possible {figure} ({kind} bound)."


def state(result: Outcome) -> str:
    """A result in a word. An incomplete plan breaks no rule, but leaves topologies out."""
    plan = plan_of(result)
    if plan is None:
        return "refused"
    broken = "infeasible" if plan.report.violations else "incomplete"
    return "feasible" if plan.report.feasible else broken


def reasons(result: Outcome, *, fixes: bool = False) -> list[str]:
    """Why a result is not what was asked for, empty if it is; `fixes`: also what would help."""
    plan, error = plan_of(result), error_of(result)
    if plan is None:
        return [] if error is None else [with_fix(error.message, error.fix if fixes else None)]
    broken = [violation.message for violation in plan.report.violations]
    for name, fields in plan.report.unplaced.items():
        sentence = f"topology {name} is not placed: {fields['message']}"
        broken.append(with_fix(sentence, fields["fix"] if fixes else None))
    return [*broken, *broken_headroom(plan.problem, plan.report.headroom)]


def first_reason(result: Outcome) -> str | None:
    """The first reason a result is not what was asked for; None if it is."""
    return next(iter(reasons(result)), None)


def with_fix(message: object, fix: object) -> str:
    """A refusal and what would help."""
    return f"{message}; {fix}" if fix else f"{message}"


def simulation_in_a_line(found: Simulation) -> str:
    """A simulation as Python prints it."""
    return f"<Simulation of {found.scheduler}: {simulated(found)}>"


def simulated(found: Simulation) -> str:
    """What a plan did, in a sentence."""
    latency = found.latency_ms
    mean, worst = latency["mean"], latency["p99"]
    took = "no tuple was completed" if mean is None else f"latency {number(mean)} ms in the mean"
    tail = "" if worst is None else f", {number(worst)} ms for 99 %"
    rate = found.throughput_per_s.mean
    growing = "" if found.stable else "; UNSTABLE: what is pending grows"
    return f"{number(rate)} tuples/s, {took}{tail}{growing}"

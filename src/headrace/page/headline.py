"""The first thing to read: what was planned where, how good the best plan is, and what that means."""

from __future__ import annotations

from headrace.judge.report import Report
from headrace.page.markup import Html, element, joined
from headrace.page.view import View, why
from headrace.page.words import FIGURE_NAMES, counted, factor, number, percent, short, sustained
from headrace.planner import Planned

MOST_REASONS = 5


def headline(view: View) -> Html:
    """Title, subject and verdict."""
    best = view.best
    verdict = (
        _verdict(best, best.report)
        if best is not None and best.report is not None
        else _no_plan(view)
    )
    return element(
        "header", element("h1", view.title), element("p", subject(view), class_="subject"), verdict
    )


def subject(view: View) -> str:
    """What is planned, and on what."""
    problem = view.problem
    what = (
        problem.topologies[0]
        if len(problem.topologies) == 1
        else counted(len(problem.topologies), "topology", "topologies")
    )
    made_of = "" if problem.bare else f"{counted(len(problem.components), 'component')}, "
    racks = f" in {counted(len(problem.racks), 'rack')}" if len(problem.racks) > 1 else ""
    types = f" of {counted(len(problem.types), 'type')}" if len(problem.types) > 1 else ""
    tasks = counted(problem.task_count, "task")
    return f"{what} ({made_of}{tasks}) on {counted(len(problem.nodes), 'node')}{types}{racks}"


def _verdict(best: Planned, report: Report) -> Html:
    nodes = len(best.problem.nodes)
    inside = 1 - report.inter_node_traffic / report.total_traffic if report.total_traffic else None
    traffic = (
        "has no traffic to carry"
        if inside is None
        else f"keeps {percent(inside)} of the traffic inside nodes"
    )
    rate = "nothing limits its rate" if report.max_rate is None else _rate(best, report.max_rate)
    limit = f"; bottleneck {report.bottleneck}" if report.bottleneck else ""
    value, meaning = distance(report)
    return joined(
        [
            element(
                "p",
                element("strong", best.scheduler),
                f" {traffic} and uses {number(report.nodes_used)} of {counted(nodes, 'node')}; {rate}{limit}. {meaning}",
                class_="verdict",
            ),
            element(
                "dl",
                _tile(
                    "–" if inside is None else percent(inside), "of the traffic stays inside nodes"
                ),
                _tile(
                    f"{number(report.nodes_used)} of {number(nodes)}",
                    f"nodes used, {counted(report.workers_used, 'worker')}",
                ),
                _tile(
                    "no limit"
                    if report.max_rate is None
                    else short(report.max_rate)
                    if best.absolute
                    else factor(report.max_rate),
                    "tuples/s over all spouts, sustained"
                    if best.absolute
                    else "the given rates, sustained",
                ),
                *(
                    []
                    if report.cost is None
                    else [_tile(number(report.cost), "cost per time unit")]
                ),
                _tile(value, f"distance to the best possible {FIGURE_NAMES[report.bound.of]}"),
                class_="tiles",
            ),
            _chosen(best),
        ]
    )


def _rate(best: Planned, rate: float) -> str:
    return f"it sustains {sustained(rate, best.absolute)}" + (
        "" if best.absolute else " the given rates"
    )


def _chosen(best: Planned) -> Html:
    """The counts and machines, where they were to be chosen."""
    if not best.absolute:
        return Html()
    problem = best.problem
    tasks = ", ".join(
        f"{name} {number(int(n))}"
        for name, n in zip(problem.components, problem.tasks, strict=True)
    )
    machines = ", ".join(f"{number(n)} {kind}" for kind, n in (best.machines or {}).items())
    rows = [("Tasks", tasks), *([("Machines", machines)] if machines else [])]
    return element(
        "p",
        *(joined([element("b", f"{name}: "), f"{words}. "]) for name, words in rows),
        class_="aside",
    )


def distance(report: Report) -> tuple[str, str]:
    """How far a plan is from the best possible: in a word, and in a sentence."""
    figure, kind = FIGURE_NAMES[report.bound.of], report.bound.kind
    if report.gap is None:
        return "unknown", f"No bound on the best possible {figure} is known."
    if report.gap == 0:
        return "0 %", f"No plan can do better in {figure} ({kind} bound)."
    if report.bound.value == 0:
        return (
            "unknown",
            f"How far the best possible {figure} is from this is not known ({kind} bound: {number(report.bound.value)}).",
        )
    return (
        f"≤ {percent(report.gap)}",
        f"At most {percent(report.gap)} from the best possible {figure} ({kind} bound).",
    )


def _tile(value: str, caption: str) -> Html:
    return element("div", element("dt", caption), element("dd", value))


def _no_plan(view: View) -> Html:
    reasons = [(result.scheduler, why(result) or "") for result in view.results]
    rest = len(reasons) - MOST_REASONS
    return element(
        "div",
        element(
            "p", element("strong", "No feasible plan."), " The first reason of each scheduler:"
        ),
        element(
            "ul",
            *(
                element("li", element("b", name), f": {reason}")
                for name, reason in reasons[:MOST_REASONS]
            ),
        ),
        element("p", f"And {counted(rest, 'more scheduler')}; all reasons stand below.")
        if rest > 0
        else "",
        class_="alarm",
    )

"""The section that shows where everything runs: nodes by rack, their workers, their tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.figures import number, percent, plural
from headrace.judge.report import Report
from headrace.model.problem import UNPLACED, Floats, Ints, Problem
from headrace.page.markup import Html, element, join
from headrace.page.node import HOT, WARM, Contents, draw_idle_node, draw_node, square
from headrace.page.view import Operator, View
from headrace.planner.result import Plan
from headrace.words import first_reason, state

NODES_IN_ALL = 360  # over all plans of the page, so that it stays small enough to send
MOST_NODES, FEWEST_NODES = 60, 8  # of one plan
MOST_IDLE = 60  # idle nodes that are named
MOST_LETTERS = 60  # in the legend
LOADS = (0.25, 0.5, WARM, HOT, 1.0 + 1e-9)  # classes of the overview
LOAD_NAMES = ("idle", "to 25 %", "to 50 %", "to 80 %", "to 95 %", "to 100 %", "overloaded")


def placement(view: View) -> Html:
    """One plan at a time; a script lets the reader choose which."""
    plans, shown = view.plans, view.shown
    if not plans:
        return Html()
    most = max(FEWEST_NODES, min(MOST_NODES, NODES_IN_ALL // len(plans)))
    drawn = (
        element("div", draw_placement(plan, most), data_plan=str(i), hidden=plan is not shown)
        for i, plan in enumerate(plans)
    )
    chooser = _chooser(plans, shown) if len(plans) > 1 else ""
    return element(
        "section",
        element("div", element("h2", "Placement"), chooser, class_="heading"),
        legend(view.operators),
        *drawn,
    )


def _chooser(plans: Sequence[Plan], shown: Plan | None) -> Html:
    options = (
        element("option", _option(plan), value=str(i), selected=plan is shown)
        for i, plan in enumerate(plans)
    )
    select = element("select", *options, id="plan")
    return element("label", "Plan by ", select, class_="chooser", hidden=True)


def _option(plan: Plan) -> str:
    return plan.scheduler if plan.report.feasible else f"{plan.scheduler} ({state(plan)})"


def legend(drawn: Sequence[Operator]) -> Html:
    """The letters and colours of the components, and those of bars that are nearly full."""
    rest = len(drawn) - MOST_LETTERS
    return element(
        "ul",
        *(element("li", square(o, o.name), " ", o.name) for o in drawn[:MOST_LETTERS]),
        element("li", f"and {number(rest)} more") if rest > 0 else "",
        element("li", element("i", class_="swatch warm"), f" above {percent(WARM)}"),
        element("li", element("i", class_="swatch hot"), f" above {percent(HOT)}"),
        class_="legend",
    )


def draw_placement(plan: Plan, most: int) -> Html:
    """The nodes of a plan with what runs on them; the fullest where there are more than `most`."""
    problem, report = plan.problem, plan.report
    contents = Contents(problem, plan.assignment)
    used = np.unique(contents.workers.node)
    load = _load(problem, report)
    chosen = np.sort(used[np.argsort(-load[used], kind="stable")[:most]])
    idle = np.setdiff1d(np.arange(len(problem.nodes)), used)
    named = idle if len(idle) <= MOST_IDLE else idle[:0]
    racks = [
        (rack, *(nodes[problem.rack[nodes] == rack].tolist() for nodes in (chosen, named)))
        for rack in np.unique(problem.rack[np.concatenate([chosen, named])]).tolist()
    ]
    rest = _rest(plan, len(used), len(chosen), len(idle) - len(named))
    return join(
        [
            _lead(plan, len(used)),
            _overview(problem, load, used) if len(chosen) < len(used) else "",
            *(_rack(problem, report, contents, *rack) for rack in racks),
            element("p", rest, class_="aside") if rest else "",
        ]
    )


def _lead(plan: Plan, used: int) -> Html:
    report, reason = plan.report, first_reason(plan)
    verdict = (
        element("span", "feasible", class_="good")
        if reason is None
        else element("span", f"{state(plan)}: {reason}", class_="bad")
    )
    crossing = f"{number(report.inter_node_traffic)} of {number(report.total_traffic)} tuples/s"
    return element(
        "p",
        element("b", plan.scheduler),
        f": {plural(used, 'node')}, {plural(report.workers_used, 'worker')}, ",
        f"{crossing} between nodes; ",
        verdict,
        class_="lead",
    )


def _rest(plan: Plan, used: int, shown: int, idle: int) -> str:
    """What the drawing leaves out."""
    unplaced = int((plan.assignment.node == UNPLACED).sum())
    sentences: list[str] = []
    if shown < used:
        hidden = plural(used - shown, "less loaded node is", "less loaded nodes are")
        sentences.append(f"{hidden} used but not shown.")
    if idle:
        sentences.append(f"{'And ' if shown == used else ''}{plural(idle, 'idle node')}.")
    if unplaced:
        sentences.append(f"{plural(unplaced, 'task is', 'tasks are')} not placed.")
    return " ".join(sentences)


def _load(problem: Problem, report: Report) -> Floats:
    """CPU in use as a share of the capacity, [N]; where that is unlimited, an order by tasks."""
    load = np.zeros(len(problem.nodes))
    index = {name: n for n, name in enumerate(problem.nodes)}
    for name, row in report.nodes.items():
        capacity = row["cpu_capacity"]
        used = (row["cpu"] or 0.0) + (row["cpu_taken"] or 0.0)
        load[index[name]] = used / capacity if capacity else 1e-9 * (row["tasks"] or 0.0)
    return load


def _overview(problem: Problem, load: Floats, used: Ints) -> Html:
    """Every node as a small square, darker the fuller its CPU: for clusters too large to draw."""
    busy = np.zeros(len(problem.nodes), dtype=bool)
    busy[used] = True
    shade = np.where(busy, np.searchsorted(LOADS, load) + 1, 0)
    columns, step = 100, 10
    order = np.argsort(problem.rack, kind="stable")
    paths: list[Html] = []
    for level in np.unique(shade).tolist():
        spots = np.flatnonzero(shade[order] == level).tolist()
        d = "".join(f"M{step * (i % columns)} {step * (i // columns)}h8v8h-8z" for i in spots)
        paths.append(element("path", d=d, class_=f"load{level}"))
    area = f"0 0 {step * columns} {step * -(-len(order) // columns)}"
    key = (
        element("span", element("i", class_=f"swatch load{level}"), f" {name} ")
        for level, name in enumerate(LOAD_NAMES)
    )
    caption = f"All {plural(len(problem.nodes), 'node')}, rack by rack, by CPU: "
    return element(
        "figure",
        element("svg", *paths, class_="overview", role="img", viewBox=area),
        element("figcaption", caption, *key),
    )


def _rack(
    problem: Problem,
    report: Report,
    contents: Contents,
    rack: int,
    nodes: list[int],
    idle: list[int],
) -> Html:
    cards = [draw_node(problem, report.nodes[problem.nodes[n]], contents, n) for n in nodes]
    spare = [draw_idle_node(problem, n) for n in idle]
    title = element("h3", f"Rack {problem.racks[rack]}") if len(problem.racks) > 1 else ""
    return join(
        [
            title,
            element("div", *cards, class_="nodes") if cards else "",
            element("p", element("small", "idle "), *spare, class_="spare") if spare else "",
        ]
    )

"""The section that shows where everything runs: nodes by rack, the workers inside, the tasks inside those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from headrace.judge.report import Report
from headrace.judge.traffic import Workers
from headrace.model.problem import CPU, UNPLACED, Assignment, Floats, Ints, Problem
from headrace.page.markup import Html, element, joined
from headrace.page.view import Operator, View, operators, state, why
from headrace.page.words import counted, number, truncated
from headrace.planner import Planned

NODES_IN_ALL = 360  # over all plans of the page, so that it stays small enough to send
MOST_NODES, FEWEST_NODES = 60, 8  # of one plan
MOST_SQUARES = 48  # tasks of a node shown one by one
MOST_COUNTS = 12  # components of a node shown with their count
MOST_LETTERS = 60  # in the legend
LOADS = (0.25, 0.5, 0.75, 1.0 + 1e-9)  # classes of the overview

Row = Mapping[str, float | None]


def placement(view: View) -> Html:
    """One plan at a time; a script lets the reader choose which."""
    plans = [r for r in view.results if r.assignment is not None and r.report is not None]
    if not plans:
        return Html()
    shown = view.shown
    most = max(FEWEST_NODES, min(MOST_NODES, NODES_IN_ALL // len(plans)))
    options = (
        element(
            "option",
            f"{r.scheduler}{'' if why(r) is None else f' ({state(r)})'}",
            value=str(i),
            selected=r is shown,
        )
        for i, r in enumerate(plans)
    )
    chooser = element(
        "label", "Plan by ", element("select", *options, id="plan"), class_="chooser", hidden=True
    )
    return element(
        "section",
        element(
            "div", element("h2", "Placement"), chooser if len(plans) > 1 else "", class_="heading"
        ),
        _legend(view.operators),
        *(
            element("div", _plan(r, most), data_plan=str(i), hidden=r is not shown)
            for i, r in enumerate(plans)
        ),
    )


def _legend(drawn: tuple[Operator, ...]) -> Html:
    rest = len(drawn) - MOST_LETTERS
    return element(
        "ul",
        *(element("li", _square(o, o.name), " ", o.name) for o in drawn[:MOST_LETTERS]),
        element("li", f"and {number(rest)} more") if rest > 0 else "",
        class_="legend",
    )


def _square(operator: Operator, tooltip: str) -> Html:
    return element("span", operator.letter, class_=f"task {operator.colour}", title=tooltip)


def _plan(result: Planned, most: int) -> Html:
    problem, assignment, report = result.problem, result.assignment, result.report
    assert assignment is not None
    assert report is not None
    contents = _Contents(problem, assignment)
    used = np.unique(contents.workers.node)
    load = _load(problem, report)
    chosen = np.sort(used[np.argsort(-load[used], kind="stable")[:most]])
    racks = [
        (rack, chosen[problem.rack[chosen] == rack].tolist())
        for rack in np.unique(problem.rack[chosen]).tolist()
    ]
    idle, reason = len(problem.nodes) - len(used), why(result)
    verdict = (
        element("span", "feasible", class_="good")
        if reason is None
        else element("span", f"{state(result)}: {reason}", class_="bad")
    )
    crossing = f"{number(report.inter_node_traffic)} of {number(report.total_traffic)} tuples/s between nodes"
    unplaced = int((assignment.node == UNPLACED).sum())
    rest = [
        f"{counted(len(used) - len(chosen), 'less loaded node is', 'less loaded nodes are')} used but not shown."
        if len(chosen) < len(used)
        else "",
        f"{'And ' if len(chosen) == len(used) else ''}{counted(idle, 'idle node')}."
        if idle
        else "",
        f"{counted(unplaced, 'task is', 'tasks are')} not placed." if unplaced else "",
    ]
    return joined(
        [
            element("p", element("b", result.scheduler), f": {counted(len(used), 'node')}, ",
                    f"{counted(report.workers_used, 'worker')}, {crossing}; ", verdict, class_="lead"),
            _overview(problem, load, used) if len(chosen) < len(used) else "",
            *(_rack(problem, report, contents, rack, nodes) for rack, nodes in racks),
            element("p", " ".join(filter(None, rest)), class_="aside") if any(rest) else "",
        ]
    )  # fmt: skip


class _Contents:
    """Which tasks stand in which worker, sorted once for all nodes of a plan."""

    def __init__(self, problem: Problem, assignment: Assignment) -> None:
        self.problem, self.operators = problem, operators(problem)
        self.workers = Workers.of(assignment)
        self.operator = problem.operator[problem.component_of]
        self.tasks = np.argsort(self.workers.of_task, kind="stable")
        self.first = np.searchsorted(
            self.workers.of_task[self.tasks], np.arange(len(self.workers.node) + 1)
        )
        self.first_worker = np.searchsorted(self.workers.node, np.arange(len(problem.nodes) + 1))

    def of_node(self, node: int) -> Iterator[tuple[int, Ints]]:
        """Slot and tasks of each worker of a node."""
        for w in range(int(self.first_worker[node]), int(self.first_worker[node + 1])):
            yield int(self.workers.slot[w]), self.tasks[self.first[w] : self.first[w + 1]]


def _load(problem: Problem, report: Report) -> Floats:
    """CPU in use by us and others as a part of the capacity, [N]; where that is unlimited, no more than an order by tasks."""
    load = np.zeros(len(problem.nodes))
    index = {name: n for n, name in enumerate(problem.nodes)}
    for name, row in report.nodes.items():
        capacity = row["cpu_capacity"]
        used = (row["cpu"] or 0.0) + (row["cpu_taken"] or 0.0)
        load[index[name]] = used / capacity if capacity else 1e-9 * (row["tasks"] or 0.0)
    return load


def _overview(problem: Problem, load: Floats, used: Ints) -> Html:
    """Every node as a small square, darker the fuller its CPU: for clusters too large to draw in full."""
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
    height = step * -(-len(order) // columns)
    words = ("idle", "to 25 %", "to 50 %", "to 75 %", "to 100 %", "overloaded")
    key = (
        element("span", element("i", class_=f"swatch load{level}"), f" {word} ")
        for level, word in enumerate(words)
    )
    svg = element(
        "svg", *paths, class_="overview", role="img", viewBox=f"0 0 {step * columns} {height}"
    )
    return element(
        "figure",
        svg,
        element(
            "figcaption", f"All {counted(len(problem.nodes), 'node')}, rack by rack, by CPU: ", *key
        ),
    )


def _rack(
    problem: Problem, report: Report, contents: _Contents, rack: int, nodes: list[int]
) -> Html:
    cards = element(
        "div",
        *(_node(problem, report.nodes[problem.nodes[n]], contents, n) for n in nodes),
        class_="nodes",
    )
    return joined(
        [element("h3", f"Rack {problem.racks[rack]}") if len(problem.racks) > 1 else "", cards]
    )


def _node(problem: Problem, row: Row, contents: _Contents, node: int) -> Html:
    workers = list(contents.of_node(node))
    few = sum(len(tasks) for _, tasks in workers) <= MOST_SQUARES
    inside = (
        [_worker(contents, slot, tasks) for slot, tasks in workers]
        if few
        else [_counts(contents, workers)]
    )
    meters = [
        _meter(resource, row)
        for k, resource in enumerate(problem.resources)
        if k == CPU or _matters(resource, row)
    ]
    kind = problem.types[problem.node_type[node]] if len(problem.types) > 1 else ""
    slots = f"{number(row['workers'])} of {counted(int(row['slots'] or 0), 'slot')}"
    return element(
        "article",
        element(
            "h4", problem.nodes[node], element("small", " · ".join(filter(None, (kind, slots))))
        ),
        *meters,
        _network(row),
        element("div", *inside, class_="workers"),
    )


def _matters(resource: str, row: Row) -> bool:
    return bool(row[resource]) or row[f"{resource}_capacity"] is not None


def _meter(resource: str, row: Row) -> Html:
    """Used by this plan, taken by others, of the capacity."""
    used, taken, capacity = (
        row[resource] or 0.0,
        row[f"{resource}_taken"] or 0.0,
        row[f"{resource}_capacity"],
    )
    name, unit = {"cpu": ("CPU", ""), "memory_mb": ("Memory", " MB")}.get(resource, (resource, ""))
    if capacity is None:
        figures = f"{number(used + taken)}{unit}, no limit"
        return element(
            "div",
            element("span", name),
            element("span", class_="bar none"),
            element("span", figures),
            class_="meter",
        )
    full = used + taken > capacity * (1 + 1e-9)
    scale = 100 / (max(used + taken, capacity) or 1.0)
    parts = [
        element("i", class_="others", style=f"width:{taken * scale:.1f}%") if taken else "",
        element("i", class_="over" if full else "ours", style=f"width:{used * scale:.1f}%")
        if used
        else "",
        element("b", style=f"left:{capacity * scale:.1f}%") if full else "",
    ]
    others = f", {number(taken)} taken by others" if taken else ""
    tooltip = f"{name}: {number(used)} used by this plan{others}, capacity {number(capacity)}{unit}"
    return element(
        "div",
        element("span", name),
        element("span", *parts, class_="bar"),
        element("span", f"{number(used + taken)} / {number(capacity)}{unit}"),
        class_="meter bad" if full else "meter",
        title=tooltip,
    )


def _network(row: Row) -> Html:
    out, arrives, bandwidth = row["out_mbps"] or 0.0, row["in_mbps"] or 0.0, row["bandwidth_mbps"]
    if not out and not arrives:
        return Html()
    of = "" if bandwidth is None else f" of {number(bandwidth)}"
    over = bandwidth is not None and max(out, arrives) > bandwidth * (1 + 1e-9)
    text = f"{number(float(f'{out:.3g}'))} out, {number(float(f'{arrives:.3g}'))} in{of} Mbit/s"
    return element(
        "div",
        element("span", "Network"),
        element("span", text),
        class_="meter network bad" if over else "meter network",
    )


def _worker(contents: _Contents, slot: int, tasks: Ints) -> Html:
    squares = (
        _square(contents.operators[contents.operator[t]], contents.problem.task_name(t))
        for t in tasks.tolist()
    )
    return element(
        "div",
        element("small", f"worker {slot}"),
        element("div", *squares, class_="tasks"),
        class_="worker",
    )


def _counts(contents: _Contents, workers: Sequence[tuple[int, Ints]]) -> Html:
    """All tasks of a node by component, the most numerous first: for nodes with too many to show one by one."""
    operator = contents.operator[np.concatenate([tasks for _, tasks in workers])]
    kinds, count = np.unique(operator, return_counts=True)
    order = np.lexsort((kinds, -count))
    shown, hidden = order[:MOST_COUNTS].tolist(), order[MOST_COUNTS:]
    chips = [_chip(contents.operators[kinds[i]], int(count[i])) for i in shown]
    more = f"and {counted(int(count[hidden].sum()), 'task')} of {counted(len(hidden), 'more component')}"
    header = f"{counted(len(operator), 'task')} in {counted(len(workers), 'worker')}"
    tasks = element("div", *chips, element("span", more) if len(hidden) else "", class_="tasks")
    return element("div", element("small", header), tasks, class_="worker")


def _chip(operator: Operator, count: int) -> Html:
    square = element("span", operator.letter, class_=f"task {operator.colour}")
    return element(
        "span",
        square,
        f"{truncated(operator.name, 24)} × {number(count)}",
        class_="chip",
        title=f"{operator.name}: {number(count)}",
    )

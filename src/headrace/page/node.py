"""One node as a card: how full it is, its workers, and the tasks in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from headrace.figures import NONE, number, plural, shorten
from headrace.judge.traffic import Workers
from headrace.model.problem import CPU, MEMORY, Assignment, Ints, Problem
from headrace.page.markup import Html, element
from headrace.page.view import Operator, operators

MOST_SQUARES = 48  # tasks of a node shown one by one
MOST_COUNTS = 12  # components of a node shown with their count
WARM, HOT = 0.8, 0.95  # shares of a capacity above which a bar is amber, and red
RESOURCES = {"cpu": ("CPU", ""), "memory_mb": ("Memory", " MB")}  # name and unit

Row = Mapping[str, float | None]


class Contents:
    """Which tasks are in which worker, sorted once for all nodes of a plan."""

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


def draw_node(problem: Problem, row: Row, contents: Contents, node: int) -> Html:
    """The card of one node; `row` is what the report says of it."""
    meters = [
        _meter(resource, row)
        for k, resource in enumerate(problem.resources)
        if k == CPU or row[resource] or row[f"{resource}_capacity"] is not None
    ]
    slots = f"{number(row['workers'])} of {plural(int(row['slots'] or 0), 'slot')}"
    return _card(problem, contents, node, slots, [*meters, _network(row)], MOST_SQUARES)


def draw_live_node(problem: Problem, contents: Contents, node: int, most: int) -> Html:
    """The card of one node that runs: its meters are empty until something is measured."""
    limits = {
        "cpu": float(problem.capacity[node, CPU]),
        "memory_mb": float(problem.capacity[node, MEMORY]),
        "mbps": float(problem.bandwidth_mbps[node]),
    }
    meters = [_live_meter(measure, limit) for measure, limit in limits.items()]
    tasks = sum(len(inside) for _, inside in contents.of_node(node))
    return _card(problem, contents, node, plural(tasks, "task"), meters, most)


def _card(
    problem: Problem,
    contents: Contents,
    node: int,
    about: str,
    meters: Sequence[Html],
    most_squares: int,
) -> Html:
    workers = list(contents.of_node(node))
    few = sum(len(tasks) for _, tasks in workers) <= most_squares
    inside = (
        [_worker(contents, slot, tasks) for slot, tasks in workers]
        if few or not workers
        else [_counts(contents, workers)]
    )
    kind = problem.types[problem.node_type[node]] if len(problem.types) > 1 else ""
    words = element("small", " · ".join(filter(None, (kind, about))))
    return element(
        "article",
        element("h4", problem.nodes[node], words),
        *meters,
        element("div", *inside, class_="workers"),
        data_node=problem.nodes[node],
    )


def _live_meter(measure: str, limit: float) -> Html:
    """A meter that a script fills in; it knows its limit."""
    name, unit = {**RESOURCES, "mbps": ("Mbit/s", "")}[measure]
    limited = bool(np.isfinite(limit)) and limit > 0
    return element(
        "div",
        element("span", name),
        element("span", class_="bar" if limited else "bar none"),
        element("span", NONE),
        class_="meter",
        data_meter=measure,
        data_limit=limit if limited else None,
        data_unit=unit,
    )


def square(operator: Operator, tooltip: str | None) -> Html:
    """The letter of a component on its colour."""
    return element(
        "span",
        operator.letter,
        class_=f"task {operator.colour}",
        title=tooltip,
        data_c=operator.letter,
    )


def draw_idle_node(problem: Problem, node: int) -> Html:
    """The name of a node that a plan does not use; the tooltip says what it has."""
    free = problem.capacity[node] - problem.taken[node]
    limits = zip(problem.resources, free.tolist(), strict=True)
    has = [f"{number(room)} {name}" for name, room in limits if np.isfinite(room)]
    kind = problem.types[problem.node_type[node]] if len(problem.types) > 1 else ""
    tooltip = ", ".join(filter(None, ("idle", kind, *has)))
    return element("span", problem.nodes[node], class_="idle", title=tooltip)


def bar(used: float, taken: float, capacity: float) -> Html:
    """Taken by others, then used, of a capacity: amber where little is left, red where none is."""
    whole = used + taken
    over = whole > capacity * (1 + 1e-9)
    scale = 100 / (max(whole, capacity) or 1.0)
    share = whole / capacity if capacity else 0.0
    kind = "over" if over else "hot" if share > HOT else "warm" if share > WARM else "ours"
    return element(
        "span",
        element("i", class_="others", style=f"width:{taken * scale:.1f}%") if taken else "",
        element("i", class_=kind, style=f"width:{used * scale:.1f}%") if used else "",
        element("b", style=f"left:{capacity * scale:.1f}%") if over else "",
        class_="bar",
    )


def _meter(resource: str, row: Row) -> Html:
    """Used by this plan, taken by others, of the capacity."""
    used, taken = row[resource] or 0.0, row[f"{resource}_taken"] or 0.0
    capacity = row[f"{resource}_capacity"]
    name, unit = RESOURCES.get(resource, (resource, ""))
    if capacity is None:
        return _unlimited(name, f"{number(used + taken)}{unit}, no limit")
    others = f", {number(taken)} taken by others" if taken else ""
    tooltip = f"{name}: {number(used)} used by this plan{others}, capacity {number(capacity)}{unit}"
    return _limited(name, bar(used, taken, capacity), used + taken, capacity, unit, tooltip)


def _limited(name: str, drawn: Html, used: float, capacity: float, unit: str, tooltip: str) -> Html:
    return element(
        "div",
        element("span", name),
        drawn,
        element("span", f"{number(float(f'{used:.4g}'))} / {number(capacity)}{unit}"),
        class_="meter bad" if used > capacity * (1 + 1e-9) else "meter",
        title=tooltip,
    )


def _unlimited(name: str, said: str) -> Html:
    nothing = element("span", class_="bar none")
    return element("div", element("span", name), nothing, element("span", said), class_="meter")


def _network(row: Row) -> Html:
    """The busier direction of the node's link; the tooltip has both."""
    out, arrives, bandwidth = row["out_mbps"] or 0.0, row["in_mbps"] or 0.0, row["bandwidth_mbps"]
    if not out and not arrives:
        return Html()
    both = f"{number(float(f'{out:.3g}'))} out, {number(float(f'{arrives:.3g}'))} in"
    if bandwidth is None:
        return _unlimited("Mbit/s", f"{both}, no limit")
    most, tooltip = max(out, arrives), f"Network: {both} of {number(bandwidth)} Mbit/s"
    return _limited("Mbit/s", bar(most, 0.0, bandwidth), most, bandwidth, "", tooltip)


def _worker(contents: Contents, slot: int, tasks: Ints) -> Html:
    squares = (
        square(contents.operators[contents.operator[t]], contents.problem.task_name(t))
        for t in tasks.tolist()
    )
    return element(
        "div",
        element("small", f"worker {slot}"),
        element("div", *squares, class_="tasks"),
        class_="worker",
    )


def _counts(contents: Contents, workers: Sequence[tuple[int, Ints]]) -> Html:
    """All tasks of a node by component, for nodes with too many to show one by one."""
    operator = contents.operator[np.concatenate([tasks for _, tasks in workers])]
    kinds, count = np.unique(operator, return_counts=True)
    order = np.lexsort((kinds, -count))
    shown, hidden = order[:MOST_COUNTS].tolist(), order[MOST_COUNTS:]
    chips = [_chip(contents.operators[kinds[i]], int(count[i])) for i in shown]
    header = f"{plural(len(operator), 'task')} in {plural(len(workers), 'worker')}"
    more = plural(int(count[hidden].sum()), "task")
    more = f"and {more} of {plural(len(hidden), 'more component')}"
    tasks = element("div", *chips, element("span", more) if len(hidden) else "", class_="tasks")
    return element("div", element("small", header), tasks, class_="worker")


def _chip(operator: Operator, count: int) -> Html:
    return element(
        "span",
        square(operator, None),
        f"{shorten(operator.name, 24)} × {number(count)}",
        class_="chip",
        title=f"{operator.name}: {number(count)}",
    )

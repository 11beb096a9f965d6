"""One plan: the verdict, where tasks go, its figures, what is wrong and what was assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from headrace.figures import number, plural
from headrace.judge.report import Report
from headrace.planner.result import Plan
from headrace.terminal.console import MOST_ROWS, Grid, Listing, bullets, count_rest, table
from headrace.words import other_figures, verdict, with_fix

BAR_WIDTH = 10
MOST_ITEMS = 24  # components that are named on one node
MOST_RANGES = 6  # of tasks of one component on one node; where there are more, they are counted

Row = Mapping[str, float | None]


def plan(shown: Plan) -> RenderableType:
    """A plan: the verdict, where tasks go, its figures, what is wrong and what was assumed."""
    report = shown.report
    nodes = sorted(report.nodes, key=lambda name: -_load(report.nodes[name]))
    lines = placement(shown, nodes[:MOST_ROWS])
    if len(nodes) > MOST_ROWS:
        lines.append(("..", [f"and {len(nodes) - MOST_ROWS:,} more nodes; --out FILE has all"]))
    unplaced = [
        f"{name}: {with_fix(error['message'], error['fix'])}"
        for name, error in report.unplaced.items()
    ]
    return Group(
        Text(verdict(shown), style="bold" if report.feasible else "bold red"),
        Text(""),
        Listing(lines),
        Text(""),
        Text(" ".join(other_figures(shown))),
        _node_table(report, nodes),
        *bullets("Broken rules:", [v.message for v in report.violations], "red"),
        *bullets("Not placed:", unplaced, "red"),
        *bullets("Notes:", report.notes, "dim"),
    )


def placement(plan: Plan, nodes: Sequence[str]) -> list[tuple[str, list[str]]]:
    """What runs on some nodes, components with ranges of tasks: `split 1-4`."""
    problem, node = plan.problem, plan.assignment.node
    number_of = {name: n for n, name in enumerate(problem.nodes)}
    lines: list[tuple[str, list[str]]] = []
    for name in nodes:
        tasks = (node == number_of[name]).nonzero()[0]
        owners = problem.component_of[tasks].tolist()
        numbers = (tasks - problem.first[problem.component_of[tasks]] + 1).tolist()
        by_component: dict[int, list[int]] = {}
        for owner, task in zip(owners, numbers, strict=True):
            by_component.setdefault(owner, []).append(task)
        items = [
            name_tasks(problem.components[c], found, alone=problem.tasks[c] == 1)
            for c, found in by_component.items()
        ]
        rest = len(items) - MOST_ITEMS
        more = [f"and {plural(rest, 'more component')}"] if rest > 0 else []
        lines.append((name, items[:MOST_ITEMS] + more))
    return lines


def name_tasks(component: str, numbers: Sequence[int], alone: bool = False) -> str:
    """Tasks of a component in ranges: `split 1-4,7`; its name where there is but one."""
    if alone:
        return component
    ranges: list[list[int]] = []
    for n in numbers:
        if ranges and n == ranges[-1][1] + 1:
            ranges[-1][1] = n
        else:
            ranges.append([n, n])
    if len(ranges) > MOST_RANGES:
        return f"{component} {plural(len(numbers), 'task')}"
    return f"{component} " + ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in ranges)


def _node_table(report: Report, nodes: Sequence[str]) -> Grid:
    """The nodes in use, the fullest first."""
    columns = ("node", "tasks", "workers", "cpu", "", "memory MB", "out Mbit/s", "in Mbit/s")
    drop = ("", "in Mbit/s", "out Mbit/s", "workers", "memory MB")
    grid = table(*columns, words=(4,), drop=drop)
    for name in nodes[:MOST_ROWS]:
        row = report.nodes[name]
        grid.add_row(
            name,
            number(row["tasks"]),
            f"{row['workers']}/{row['slots']}",
            _use(row, "cpu"),
            bar(_load(row)),
            _use(row, "memory_mb"),
            number(row["out_mbps"]),
            number(row["in_mbps"]),
        )
    count_rest(grid, len(nodes), " nodes")
    return grid


def _use(row: Row, resource: str) -> str:
    used, capacity = _used(row, resource), row[f"{resource}_capacity"]
    return f"{number(used)} / {'any' if capacity is None else number(capacity)}"


def _load(row: Row) -> float:
    """CPU in use as a share of the capacity; 0 where that is unlimited."""
    capacity = row["cpu_capacity"]
    return _used(row, "cpu") / capacity if capacity else 0.0


def _used(row: Row, resource: str) -> float:
    return (row[resource] or 0.0) + (row[f"{resource}_taken"] or 0.0)


def bar(share: float) -> Text:
    """A bar that is red where the share is above 1."""
    full = min(BAR_WIDTH, round(share * BAR_WIDTH))
    style = "red" if share > 1 + 1e-9 else "green"
    return Text("█" * full + "·" * (BAR_WIDTH - full), style=style)

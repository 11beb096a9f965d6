"""Two plans side by side: with and without a change, or the running one and the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from headrace.errors import HeadraceError
from headrace.figures import DUST, amounts, change, figure, number
from headrace.judge.diff import Diff, Moved, diff
from headrace.judge.report import FIGURES
from headrace.planner.result import Outcome, Plan
from headrace.terminal.console import MOST_ROWS, Grid, bullets, count_rest, remarks, table
from headrace.terminal.plans import name_tasks
from headrace.words import FIGURE_NAMES, plan_of, plans_of, task_counts

Pair = tuple[object, object]  # a figure before and after
WORSE_IF_MORE = {
    "inter_node_traffic": True, "inter_worker_traffic": True, "network_distance": True,
    "nodes_used": True, "max_rate": False, "batch_seconds": True, "balance": True, "cost": True,
}  # fmt: skip


def what_if(
    before: Sequence[Outcome] | HeadraceError, after: Sequence[Outcome], words: Sequence[str]
) -> RenderableType:
    """What a change does: every figure without it and with it."""
    title = f"What if {' '.join(words)}"
    if isinstance(before, HeadraceError):
        return Text(f"{title}\nWithout it there is no plan: {before.message}")
    plans = plans_of([*before, *after])
    if len(after) == 1 and len(plans) == 2:
        return _one_plan(plans[0], plans[1], title)
    name = FIGURES[after[0].objective]
    grid = table("scheduler", f"{name} without it", "with it", "change", title=title)
    for a, b in zip(before, after, strict=True):
        _add_figure(grid, a.scheduler, (_figure_of(a, name), _figure_of(b, name)))
    return grid


def _figure_of(result: Outcome, name: str) -> object:
    plan = plan_of(result)
    return "refused" if plan is None else getattr(plan.report, name)


def _one_plan(before: Plan, after: Plan, title: str) -> RenderableType:
    found = diff(
        (before.problem, before.assignment, before.report),
        (after.problem, after.assignment, after.report),
    )
    grid = table("figure", "without it", "with it", "change", title=title)
    for name, pair in found.figures.items():
        if pair != (None, None):
            _add_figure(grid, name.replace("_", " "), pair)
    for name, pair in _counts(task_counts(before.problem), task_counts(after.problem)):
        _add_figure(grid, f"tasks of {name}", pair)
    for kind, pair in _counts(before.machines or {}, after.machines or {}):
        _add_figure(grid, f"machines {kind}", pair)
    moved = f"{len(found.moved):,} tasks are elsewhere, {found.stayed:,} where they were."
    return Group(grid, Text(moved))


def _counts(old: Mapping[str, int], new: Mapping[str, int]) -> Iterator[tuple[str, Pair]]:
    """What there is more or less of."""
    for name in {**old, **new}:
        pair = old.get(name, 0), new.get(name, 0)
        if pair[0] != pair[1]:
            yield name, pair


def _add_figure(grid: Grid, name: str, pair: Pair) -> None:
    grid.add_row(name, *map(figure, pair), change(*pair))


def difference(found: Diff, transfer: Mapping[str, Any] | None = None) -> RenderableType:
    """What moves, what it costs, what it gains."""
    figures = table("figure", "before", "after", "change")
    for name, pair in found.figures.items():
        _add_figure(figures, name.replace("_", " "), pair)
    moves = table("tasks", "from", "to", "state MB", left=3, drop=("state MB",))
    rows = group_moves(found)
    for tasks, source, target, state_mb in rows[:MOST_ROWS]:
        moves.add_row(tasks, source, target, number(state_mb))
    count_rest(moves, len(rows))
    notes = () if transfer is None else transfer["notes"]
    shown = [figures, moves] if found.moved else [figures]
    worse = bullets("Worse:", what_gets_worse(found.figures), "yellow")
    return Group(Text(_moves_in_words(found, transfer)), *shown, *remarks(notes), *worse)


def what_gets_worse(figures: Mapping[str, tuple[Any, Any]]) -> list[str]:
    """The figures of two plans in which the second is worse, a line each."""
    said: list[str] = []
    for name, (before, after) in figures.items():
        if name == "feasible":
            if before and not after:
                said.append("the new plan is not feasible")
            continue
        if name not in WORSE_IF_MORE or not isinstance(before, int | float):
            continue
        if not isinstance(after, int | float):
            continue
        grows = after - before if WORSE_IF_MORE[name] else before - after
        if grows > DUST * max(abs(before), abs(after), 1.0):
            what = FIGURE_NAMES.get(name, name.replace("_", " "))
            said.append(f"{what} {number(before)} -> {number(after)}, {change(before, after)}")
    return said


def who_moves(found: Diff) -> RenderableType:
    """Which tasks go where, and what gets worse; below the steps that say when."""
    lines = [f"{tasks}: {source} -> {target}" for tasks, source, target, _ in group_moves(found)]
    worse = bullets("Worse:", what_gets_worse(found.figures), "yellow")
    return Group(*bullets("Moves:", lines, ""), *worse)


def group_moves(found: Diff) -> list[tuple[str, str, str, float]]:
    """Tasks that go the same way, with that way and their state: `count 5-6`."""
    ways: dict[tuple[str, str, str], list[Moved]] = {}
    for m in found.moved:
        component, dot, nth = m.task.rpartition(".")
        numbered = bool(dot) and nth.isdigit()
        ways.setdefault((component if numbered else m.task, m.source, m.target), []).append(m)
    rows: list[tuple[str, str, str, float]] = []
    for (component, source, target), tasks in ways.items():
        numbers = [int(m.task.rpartition(".")[2]) for m in tasks if m.task != component]
        name = name_tasks(component, sorted(numbers)) if numbers else component
        rows.append((name, source, target, sum(m.state_mb for m in tasks)))
    return rows


def _moves_in_words(found: Diff, transfer: Mapping[str, Any] | None) -> str:
    moved = f"{len(found.moved):,} tasks move to another node"
    words = [f"{moved} ({number(found.moved_mb)} MB of state), {found.stayed:,} stay"]
    if found.worker_only:
        words.append(f"{found.worker_only:,} of them in another worker")
    for name, counts in (("new", found.added), ("gone", found.removed)):
        if counts:
            words.append(f"{name}: {amounts(counts)}")
    if found.divided:
        divided = ", ".join(f"{number(mb)} MB of {name}" for name, mb in found.divided.items())
        words.append(f"as keyed state is divided again, {divided} go to another node")
    if transfer is not None and transfer["mb"]:
        mb, seconds = number(transfer["mb"]), number(transfer["seconds"])
        words.append(f"headrace move transfers {mb} MB in {seconds} s")
    return "; ".join(words) + "."

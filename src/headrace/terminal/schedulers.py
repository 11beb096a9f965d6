"""Many schedulers: what each of them found, and which there are."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.markup import escape

from headrace.figures import NONE, duration, number, percent, sustained_rate
from headrace.judge.report import FIGURES
from headrace.planner import best
from headrace.planner.result import Outcome, Plan
from headrace.registry import Entry
from headrace.terminal.console import bullets, table
from headrace.words import plan_of, reasons

COLUMNS = ("ratio", "inter-worker", "nodes", "workers", "max rate", "gap", "time")


def comparison(results: Sequence[Outcome]) -> RenderableType:
    """One row per scheduler with its ratio to the best feasible plan, and why some are out."""
    figure = FIGURES[results[0].objective]
    winner = best(results)
    top = getattr(winner.report, figure) if winner else None
    grid = table("scheduler", "feasible", figure.replace("_", " "), *COLUMNS, left=2)
    out: list[str] = []
    for result in results:
        plan = plan_of(result)
        cells = ["refused", *[NONE] * 8] if plan is None else _cells(plan, figure, top)
        grid.add_row(result.scheduler, *cells, style="bold" if result is winner else None)
        broken = reasons(result)
        if broken:
            more = f" (+{len(broken) - 1})" if len(broken) > 1 else ""
            out.append(f"{result.scheduler}: {broken[0].splitlines()[0]}{more}")
    return Group(grid, *bullets("Refused or breaking a rule:", out, "dim"))


def _cells(plan: Plan, figure: str, top: float | None) -> list[str]:
    report, value = plan.report, getattr(plan.report, figure)
    known = report.gap is not None and report.bound.kind != "trivial"
    return [
        "yes" if report.feasible else "no",
        number(value),
        _ratio(value, top, plan.objective) if report.feasible else NONE,
        number(report.inter_worker_traffic),
        number(report.nodes_used),
        number(report.workers_used),
        sustained_rate(report.max_rate, plan.absolute),
        percent(report.gap) if report.gap is not None and known else NONE,
        duration(plan.seconds),
    ]


def _ratio(value: float | None, top: float | None, objective: str) -> str:
    if value is None or top is None:
        return NONE
    if value == top:
        return "1.00"
    a, b = (top, value) if objective == "rate" else (value, top)
    return f"{a / b:.2f}" if b else "inf"


def scheduler_list(found: Sequence[Entry]) -> RenderableType:
    """What schedulers there are."""
    grid = table("scheduler", "folder", "maturity", "what it does", "source", left=5)
    for e in found:
        grid.add_row(e.name, e.folder, e.maturity, escape(e.summary), escape(e.source))
    return grid

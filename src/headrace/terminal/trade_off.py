"""The plans between the least traffic and the highest rate, drawn as bars."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from headrace.figures import factor, number
from headrace.planner.trade_off import TradeOff
from headrace.terminal.console import table
from headrace.terminal.plans import bar


def trade_off(found: TradeOff) -> RenderableType:
    """One row per plan with a bar for either figure, and which one to take."""
    grid = table(
        "plan", "between nodes", "", "sustained", "", "nodes", words=(2, 4), drop=("", "nodes")
    )
    most = max(plan.report.inter_node_traffic for plan in found.plans)
    highest = max(plan.report.max_rate or 0.0 for plan in found.plans)
    for i, plan in enumerate(found.plans, 1):
        report = plan.report
        grid.add_row(
            str(i),
            f"{number(report.inter_node_traffic)} tuples/s",
            bar(report.inter_node_traffic / most if most else 0.0),
            factor(report.max_rate),
            bar((report.max_rate or 0.0) / highest if highest else 0.0),
            number(report.nodes_used),
            style="bold" if plan is found.chosen else None,
        )
    return Group(grid, Text(found.advice))

"""The section that shows what more rate costs in traffic between nodes."""

from __future__ import annotations

from headrace.figures import factor, number
from headrace.page.curve import Dot, draw_curve
from headrace.page.markup import Html, element
from headrace.page.parts import scroll_table
from headrace.page.view import View
from headrace.planner import TradeOff


def trade_off(view: View) -> Html:
    """Rate against traffic between nodes."""
    found = view.trade_off
    if found is None:
        return Html()
    return element(
        "section",
        element("h2", "Rate against traffic"),
        element("p", f"{found.advice} The large point is that plan.", class_="lead"),
        _drawing(found) if len(found.plans) > 1 else "",
        _table(found),
    )


def _drawing(found: TradeOff) -> Html:
    dots = [
        Dot(
            plan.report.inter_node_traffic,
            plan.report.max_rate or 0.0,
            f"plan {i}: {factor(plan.report.max_rate)} the given rates, "
            f"{number(plan.report.inter_node_traffic)} tuples/s between nodes",
            plan is found.chosen,
        )
        for i, plan in enumerate(found.plans, 1)
    ]
    words = ("rate against traffic", "tuples/s between nodes", "times the given rates")
    return draw_curve(dots, *words)


def _table(found: TradeOff) -> Html:
    names = ("plan", "tuples/s between nodes", "sustained", "nodes")
    rows = (
        element(
            "tr",
            element("th", str(i), scope="row"),
            element("td", number(plan.report.inter_node_traffic)),
            element("td", factor(plan.report.max_rate)),
            element("td", number(plan.report.nodes_used)),
            class_="best" if plan is found.chosen else None,
        )
        for i, plan in enumerate(found.plans, 1)
    )
    return scroll_table([element("th", name) for name in names], rows)

"""The section that shows what other machines would carry, and what they would cost."""

from __future__ import annotations

from headrace.figures import NONE, amounts, number
from headrace.page.curve import Dot, draw_curve
from headrace.page.markup import Html, element
from headrace.page.parts import scroll_table
from headrace.page.view import View
from headrace.planner import CostCurve, Point


def cost_curve(view: View) -> Html:
    """Rate against cost."""
    curve = view.curve
    if curve is None or len(curve.points) < 2:
        return Html()
    return element(
        "section",
        element("h2", "Rate against cost"),
        element(
            "p",
            "What other machines would carry, and for how much. "
            "The large point is this plan; no plan is above the dashed line.",
            class_="lead",
        ),
        _drawing(curve),
        _table(curve),
    )


def _points(curve: CostCurve) -> tuple[Point, ...]:
    """All points; a plan that another one beats is not on the curve, but it is the one chosen."""
    points = curve.points if curve.chosen in curve.points else (*curve.points, curve.chosen)
    return tuple(sorted(points, key=lambda p: (p.cost, p.rate)))


def _drawing(curve: CostCurve) -> Html:
    dots = [
        Dot(
            p.cost,
            p.rate,
            f"{number(p.rate)} tuples/s for {number(p.cost)}: {amounts(p.machines)}",
            p is curve.chosen,
            p not in curve.points,
        )
        for p in _points(curve)
    ]
    words = ("rate against cost", "cost per time unit", "tuples/s over all spouts")
    return draw_curve(dots, *words, curve.limits)


def _table(curve: CostCurve) -> Html:
    head = [element("th", name) for name in ("cost", "tuples/s", "tuples/s per cost")]
    head.append(element("th", "machines", class_="words"))
    rows = (
        element(
            "tr",
            element("th", number(p.cost), scope="row"),
            element("td", number(p.rate)),
            element("td", number(p.rate / p.cost) if p.cost else NONE),
            element("td", amounts(p.machines), class_="words"),
            class_="best" if p is curve.chosen else None,
        )
        for p in _points(curve)
    )
    return scroll_table(head, rows)

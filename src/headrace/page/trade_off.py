"""The section that shows what other machines would carry, and what they would cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from headrace.figures import NONE, amounts, number, short
from headrace.page.markup import Html, element
from headrace.page.parts import scroll_table
from headrace.page.view import View
from headrace.planner import Point, TradeOff

WIDTH, HEIGHT = 760.0, 320.0
LEFT, RIGHT, TOP, BOTTOM = 76.0, 24.0, 26.0, 46.0  # room for the figures beside the axes
TICKS = 5  # about so many on an axis
Scale = Callable[[float], float]


def trade_off(view: View) -> Html:
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


def _points(curve: TradeOff) -> tuple[Point, ...]:
    """All points; a plan that another one beats is not on the curve, but it is the one chosen."""
    points = curve.points if curve.chosen in curve.points else (*curve.points, curve.chosen)
    return tuple(sorted(points, key=lambda p: (p.cost, p.rate)))


def _drawing(curve: TradeOff) -> Html:
    points = _points(curve)
    across, up = _ticks(max(p.cost for p in points)), _ticks(max(p.rate for p in points))
    limits = [(cost, rate) for cost, rate in curve.limits if cost <= across[-1] and rate <= up[-1]]

    def x(cost: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * cost / across[-1]

    def y(rate: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * rate / up[-1]

    return element(
        "svg",
        element("title", "rate against cost"),
        *_axes(across, up, x, y),
        element("path", d=_ceiling(limits, x, y), class_="limit") if len(limits) > 1 else "",
        element("path", d=_stairs([(p.cost, p.rate) for p in curve.points], x, y)),
        *(_dot(p, x(p.cost), y(p.rate), p is curve.chosen) for p in points),
        class_="trade-off",
        role="img",
        viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
    )


def _axes(across: Sequence[float], up: Sequence[float], x: Scale, y: Scale) -> Iterator[Html]:
    for tick in up:
        yield element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y(tick), y2=y(tick))
        yield element("text", short(tick), x=LEFT - 8, y=y(tick) + 4, class_="up")
    for tick in across:
        yield element("text", number(tick), x=x(tick), y=HEIGHT - BOTTOM + 17, class_="across")
    yield element("text", "cost per time unit", x=WIDTH - RIGHT, y=HEIGHT - 8, class_="up")
    yield element("text", "tuples/s over all spouts", x=8.0, y=TOP - 14)


def _stairs(points: Sequence[tuple[float, float]], x: Scale, y: Scale) -> str:
    """Between two costs nothing is bought, so the rate stays what the smaller one carries."""
    (cost, rate), *rest = points
    return f"M{x(cost):.1f} {y(rate):.1f}" + "".join(f"H{x(c):.1f}V{y(r):.1f}" for c, r in rest)


def _ceiling(points: Sequence[tuple[float, float]], x: Scale, y: Scale) -> str:
    """Up to the cost of a point its rate is the ceiling: nothing cheaper is faster."""
    (cost, rate), *rest = points
    return f"M{x(0.0):.1f} {y(rate):.1f}H{x(cost):.1f}" + "".join(
        f"V{y(r):.1f}H{x(c):.1f}" for c, r in rest
    )


def _dot(point: Point, x: float, y: float, chosen: bool) -> Html:
    words = f"{number(point.rate)} tuples/s for {number(point.cost)}: {amounts(point.machines)}"
    return element(
        "circle",
        element("title", words),
        cx=x,
        cy=y,
        r=6.5 if chosen else 3.5,
        class_="chosen" if chosen else "point",
    )


def _table(curve: TradeOff) -> Html:
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


def _ticks(largest: float) -> list[float]:
    """Round figures from 0 to just above the largest."""
    rough = largest / TICKS
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = next(power * n for n in (1, 2, 2.5, 5, 10) if power * n >= rough * (1 - 1e-9))
    return [step * i for i in range(math.ceil(largest / step - 1e-9) + 1)]

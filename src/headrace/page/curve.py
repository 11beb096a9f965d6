"""A curve of plans: one figure against another, one point chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from headrace.figures import number, short
from headrace.page.markup import Html, element

WIDTH, HEIGHT = 760.0, 320.0
LEFT, RIGHT, TOP, BOTTOM = 76.0, 24.0, 26.0, 46.0  # room for the figures beside the axes
TICKS = 5  # about so many on an axis
Scale = Callable[[float], float]
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Dot:
    """A plan as a point; on the curve unless another one beats it."""

    across: float
    up: float
    words: str  # shown where a pointer rests on it
    chosen: bool = False
    beaten: bool = False


def draw_curve(
    dots: Sequence[Dot], name: str, across_words: str, up_words: str, limits: Points = ()
) -> Html:
    """The curve through the dots in steps, with a dashed line for limits."""
    across, up = round_ticks(max(d.across for d in dots)), round_ticks(max(d.up for d in dots))
    within = [(a, b) for a, b in limits if a <= across[-1] and b <= up[-1]]

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / across[-1]

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / up[-1]

    line = [(d.across, d.up) for d in dots if not d.beaten]
    return element(
        "svg",
        element("title", name),
        *_axes(across, up, x, y),
        element("text", across_words, x=WIDTH - RIGHT, y=HEIGHT - 8, class_="up"),
        element("text", up_words, x=8.0, y=TOP - 14),
        element("path", d=_ceiling(within, x, y), class_="limit") if len(within) > 1 else "",
        element("path", d=_stairs(line, x, y)),
        *(_circle(dot, x(dot.across), y(dot.up)) for dot in dots),
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


def _stairs(points: Points, x: Scale, y: Scale) -> str:
    """Between two points there is no plan, so the figure stays what the one before reaches."""
    (first, value), *rest = points
    return f"M{x(first):.1f} {y(value):.1f}" + "".join(f"H{x(c):.1f}V{y(r):.1f}" for c, r in rest)


def _ceiling(points: Points, x: Scale, y: Scale) -> str:
    """Up to a point its figure is the ceiling: nothing before it is above."""
    (first, value), *rest = points
    return f"M{x(0.0):.1f} {y(value):.1f}H{x(first):.1f}" + "".join(
        f"V{y(r):.1f}H{x(c):.1f}" for c, r in rest
    )


def _circle(dot: Dot, x: float, y: float) -> Html:
    return element(
        "circle",
        element("title", dot.words),
        cx=x,
        cy=y,
        r=6.5 if dot.chosen else 3.5,
        class_="chosen" if dot.chosen else "point",
    )


def round_ticks(largest: float) -> list[float]:
    """Round figures from 0 to just above the largest."""
    rough = largest / TICKS
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = next(power * n for n in (1, 2, 2.5, 5, 10) if power * n >= rough * (1 - 1e-9))
    return [step * i for i in range(max(1, math.ceil(largest / step - 1e-9)) + 1)]

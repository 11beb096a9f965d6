"""Plots as SVG text: lines over a number, and bars by group. The same data gives the same bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 760.0, 380.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 170.0, 40.0, 56.0
COLOURS = (
    "#1b6a86",
    "#ee8866",
    "#44bb99",
    "#aa4499",
    "#999933",
    "#77aadd",
    "#dd6677",
    "#555555",
    "#bbaa33",
    "#6677cc",
)
DASHES = ("", "7 3", "2 3")
Points = Sequence[tuple[float, float]]


def lines(title: str, series: Mapping[str, Points], *, x: str, y: str, log_y: bool = False) -> str:
    """Curves by name; points that are not finite are left out."""
    kept = {
        name: [(a, b) for a, b in points if math.isfinite(b) and (b > 0 or not log_y)]
        for name, points in series.items()
    }
    xs = [a for points in kept.values() for a, _ in points] or [0.0, 1.0]
    frame = Frame(min(xs), max(xs), [b for points in kept.values() for _, b in points], log_y)
    body: list[str] = frame.axes(x, y)
    for tick in ticks(frame.x0, frame.x1):
        body.append(text(frame.x(tick), HEIGHT - BOTTOM + 18, number(tick), "middle"))
    for i, (name, points) in enumerate(kept.items()):
        colour, dash = COLOURS[i % len(COLOURS)], DASHES[i // len(COLOURS) % len(DASHES)]
        where = " ".join(f"{frame.x(a):.1f},{frame.y(b):.1f}" for a, b in sorted(points))
        body.append(
            f'<polyline points="{where}" fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{dash}"><title>{escape(name)}</title></polyline>'
        )
        body += [
            f'<circle cx="{frame.x(a):.1f}" cy="{frame.y(b):.1f}" r="2.6" fill="{colour}">'
            f"<title>{escape(name)}: {number(a)}, {number(b)}</title></circle>"
            for a, b in points
        ]
        body.append(key(i, name, colour, dash))
    return svg(title, body)


def bars(
    title: str, groups: Mapping[str, Mapping[str, float]], *, y: str, log_y: bool = False
) -> str:
    """One group of bars per entry; the same name has the same colour in every group."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    values = [
        v
        for group in groups.values()
        for v in group.values()
        if math.isfinite(v) and (v > 0 or not log_y)
    ]
    frame = Frame(0.0, float(max(len(groups), 1)), values, log_y)
    body = frame.axes("", y)
    floor = frame.y(frame.y0)
    for g, (group, by_name) in enumerate(groups.items()):
        body.append(text(frame.x(g + 0.5), HEIGHT - BOTTOM + 18, group, "middle"))
        width = (frame.x(1) - frame.x(0)) * 0.84 / len(names)
        for i, name in enumerate(names):
            value = by_name.get(name, math.nan)
            if not math.isfinite(value) or (log_y and value <= 0):
                continue
            left, top = frame.x(g + 0.08) + i * width, frame.y(value)
            body.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{max(width - 1, 0.5):.1f}" '
                f'height="{max(floor - top, 0.5):.1f}" fill="{COLOURS[i % len(COLOURS)]}">'
                f"<title>{escape(group)}, {escape(name)}: {number(value)}</title></rect>"
            )
    body += [key(i, name, COLOURS[i % len(COLOURS)], "") for i, name in enumerate(names)]
    return svg(title, body)


class Frame:
    """From data to the picture."""

    def __init__(self, x0: float, x1: float, ys: Sequence[float], log_y: bool) -> None:
        self.x0, self.x1, self.log_y = x0, x1 if x1 > x0 else x0 + 1.0, log_y
        low, high = min(ys, default=0.0), max(ys, default=1.0)
        if log_y:
            self.y0, self.y1 = (
                10.0 ** math.floor(math.log10(low or 1.0)),
                10.0 ** math.ceil(math.log10(high or 1.0)),
            )
        else:
            self.y0, self.y1 = min(0.0, low), high * 1.05 if high > 0 else 1.0
        if self.y1 <= self.y0:
            self.y1 = self.y0 * 10 if log_y else self.y0 + 1.0

    def x(self, value: float) -> float:
        return LEFT + (value - self.x0) / (self.x1 - self.x0) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        if self.log_y:
            share = (math.log10(value) - math.log10(self.y0)) / (
                math.log10(self.y1) - math.log10(self.y0)
            )
        else:
            share = (value - self.y0) / (self.y1 - self.y0)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def axes(self, x: str, y: str) -> list[str]:
        """Grid, numbers and what the axes measure."""
        if self.log_y:
            first, last = round(math.log10(self.y0)), round(math.log10(self.y1))
            marks = [10.0**k for k in range(first, last + 1)]
        else:
            marks = ticks(self.y0, self.y1)
        parts = [
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{self.y(m):.1f}" y2="{self.y(m):.1f}" '
            'stroke="#dce0e5"/>'
            for m in marks
        ]
        parts += [text(LEFT - 8, self.y(m) + 4, number(m), "end") for m in marks]
        parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x, "middle"))
        middle = (TOP + HEIGHT - BOTTOM) / 2
        parts.append(
            f'<text x="16" y="{middle:.0f}" transform="rotate(-90 16 {middle:.0f})" '
            f'text-anchor="middle">{escape(y)}</text>'
        )
        return parts


def ticks(low: float, high: float) -> list[float]:
    """About six round numbers between two."""
    raw = (high - low) / 6 or 1.0
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= raw)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def number(value: float) -> str:
    """A figure beside an axis."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def text(x: float, y: float, words: str, anchor: str) -> str:
    """A label."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def key(i: int, name: str, colour: str, dash: str) -> str:
    """One entry of the legend."""
    y, x = TOP + 8 + 17 * i, WIDTH - RIGHT + 12
    return (
        f'<line x1="{x}" x2="{x + 20}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="4" '
        f'stroke-dasharray="{dash}"/>' + text(x + 26, y + 4, name, "start")
    )


def svg(title: str, body: Sequence[str]) -> str:
    """The picture."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" '
        'font-family="sans-serif" font-size="12" role="img">\n'
        f'<rect width="{WIDTH:.0f}" height="{HEIGHT:.0f}" fill="#ffffff"/>\n'
        f'<text x="{LEFT}" y="22" font-size="15" font-weight="bold">{escape(title)}</text>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )

"""A topology as SVG: components as boxes, streams as curves as wide as what flows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headrace.figures import short, shorten
from headrace.page.layers import Layout, lay_out
from headrace.page.markup import Html, element

BOX_HEIGHT = 54.0
TAB_WIDTH = 30.0  # holds the letter
ROW_GAP = 26.0
MARGIN = 20.0  # room for labels at the rim
THINNEST, WIDEST = 1.25, 9.0  # of a stream
SMALLEST_SCALE = 0.72  # a drawing that does not fit shrinks so far, then scrolls
LONGEST_NAME, LONGEST_DETAIL, LONGEST_LABEL = 15, 21, 16  # letters
NAME_LETTER, DETAIL_LETTER = 8.3, 6.1  # widths on average, on the safe side
# In a drawing that has cycles. No name can hold it, because quotes are escaped.
DASHED = 'class="back"'

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A component to draw."""

    name: str
    letter: str
    colour: str
    detail: str
    tooltip: str
    spout: bool


@dataclass(frozen=True, slots=True)
class Curve:
    """A stream to draw, by the numbers of its boxes."""

    source: int
    target: int
    label: str
    tuples_per_s: float
    crossing: float  # the share that goes between nodes
    tooltip: str

    def lines(self) -> tuple[str, str]:
        """What is written above and below it."""
        return shorten(self.label, LONGEST_LABEL), f"{short(self.tuples_per_s)}/s"


@dataclass(frozen=True, slots=True)
class Columns:
    """One column per layer, as narrow as the words allow, so that long chains fit."""

    box: float
    gap: float

    @staticmethod
    def of(boxes: Sequence[Box], curves: Sequence[Curve]) -> Columns:
        """Columns for what is to be written in and between them."""
        name = min(LONGEST_NAME, max(len(box.name) for box in boxes)) * NAME_LETTER
        detail = min(LONGEST_DETAIL, max(len(box.detail) for box in boxes)) * DETAIL_LETTER
        label = (
            max((len(line) for curve in curves for line in curve.lines()), default=0)
            * DETAIL_LETTER
        )
        return Columns(TAB_WIDTH + max(name, detail) + 22.0, max(56.0, label + 28.0))

    def left(self, layer: int) -> float:
        """Where the boxes of a layer begin."""
        return MARGIN + layer * (self.box + self.gap)

    def right(self, layer: int) -> float:
        """Where they end."""
        return self.left(layer) + self.box


@dataclass(frozen=True, slots=True)
class Route:
    """The way of a stream from layer to layer: straight past boxes, curved between them.

    A stream that closes a cycle goes around below.
    """

    points: list[Point]
    around: bool

    def path(self, short_by: float) -> str:
        """As the `d` of an SVG path that ends a bit before the last point."""
        points = [*self.points[:-1], (self.points[-1][0] - short_by, self.points[-1][1])]
        d = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
        for i, ((x, y), (u, v)) in enumerate(pairwise(points)):
            if self.around:
                d.append(
                    _corner((x, y), (u, v), points[i + 2]) if i + 2 < len(points) else f"H{u:.1f}"
                )
            elif i % 2:
                d.append(f"H{u:.1f}")
            else:
                d.append(f"C{(x + u) / 2:.1f} {y:.1f} {(x + u) / 2:.1f} {v:.1f} {u:.1f} {v:.1f}")
        return "".join(d)

    def label_places(self) -> Iterator[Point]:
        """Where a label may be, best first."""
        if self.around:
            (x, y), (u, _) = self.points[2], self.points[3]
            yield ((x + u) / 2, y)
            return
        for at in (0.5, 0.35, 0.65, 0.22, 0.78):
            for (x, y), (u, v) in zip(self.points[::2], self.points[1::2], strict=True):
                yield (x + (u - x) * at, y + (v - y) * (3 * at**2 - 2 * at**3))


def draw(boxes: Sequence[Box], curves: Sequence[Curve], name: str) -> Html:
    """The whole graph."""
    columns = Columns.of(boxes, curves)
    layout = lay_out([BOX_HEIGHT] * len(boxes), [(c.source, c.target) for c in curves], gap=ROW_GAP)
    routes = _routes(layout, curves, columns)
    largest = max((c.tuples_per_s for c in curves), default=0.0) or 1.0
    widths = [max(THINNEST, WIDEST * c.tuples_per_s / largest) for c in curves]
    points = [point for route in routes for point in route.points]
    points += [
        (columns.right(layer), y + side * BOX_HEIGHT / 2)
        for layer, y in zip(layout.layer, layout.y, strict=True)
        for side in (-1, 1)
    ]
    top, bottom = min(y for _, y in points) - MARGIN, max(y for _, y in points) + MARGIN
    width = max(x for x, _ in points) + MARGIN
    return element(
        "svg",
        element("title", name),
        *(
            _stream(curve, route, wide)
            for curve, route, wide in zip(curves, routes, widths, strict=True)
        ),
        *(
            _box(box, columns, layer, y)
            for box, layer, y in zip(boxes, layout.layer, layout.y, strict=True)
        ),
        *_labels(curves, routes, widths, layout, columns),
        class_="topology",
        role="img",
        viewBox=f"0 {top:.1f} {width:.1f} {bottom - top:.1f}",
        style=f"max-width:{width:.0f}px;min-width:{SMALLEST_SCALE * width:.0f}px",
    )


def _routes(layout: Layout, curves: Sequence[Curve], columns: Columns) -> list[Route]:
    after = [
        bends[0] if bends else layout.y[c.target]
        for bends, c in zip(layout.bends, curves, strict=True)
    ]
    before = [
        bends[-1] if bends else layout.y[c.source]
        for bends, c in zip(layout.bends, curves, strict=True)
    ]
    out_y = _ports(layout, [c.source for c in curves], after)
    in_y = _ports(layout, [c.target for c in curves], before)
    routes: list[Route] = []
    lanes = 0
    for e, curve in enumerate(curves):
        a, b = layout.layer[curve.source], layout.layer[curve.target]
        points = [(columns.right(a), out_y[e])]
        if layout.back[e]:
            itself = curve.source == curve.target
            lanes += not itself
            lane = _floor(layout, curve) + 14.0 + (0.0 if itself else 16.0 * (lanes - 1))
            far, near = (
                columns.right(a) + 14.0 + 5.0 * (lanes % 4),
                columns.left(b) - 20.0 - 5.0 * (lanes % 4),
            )
            points += [(far, out_y[e]), (far, lane), (near, lane), (near, in_y[e])]
        for layer, y in zip(range(a + 1, b), layout.bends[e], strict=False):
            points += [(columns.left(layer), y), (columns.right(layer), y)]
        routes.append(Route([*points, (columns.left(b), in_y[e])], layout.back[e]))
    return routes


def _ports(layout: Layout, box: Sequence[int], other_end: Sequence[float]) -> list[float]:
    """Where each stream meets its box: in the order of the other ends, so that none cross."""
    y = [0.0] * len(box)
    for b in set(box):
        here = sorted(
            (e for e in range(len(box)) if box[e] == b),
            key=lambda e: (layout.back[e], other_end[e], e),
        )
        step = min(14.0, (BOX_HEIGHT - 14.0) / len(here))
        for i, e in enumerate(here):
            y[e] = layout.y[b] + (i - (len(here) - 1) / 2) * step
    return y


def _floor(layout: Layout, curve: Curve) -> float:
    """The lowest edge of what a stream around has to pass below."""
    low, high = sorted((layout.layer[curve.source], layout.layer[curve.target]))
    passed = (y for layer, y in zip(layout.layer, layout.y, strict=True) if low <= layer <= high)
    return (
        layout.y[curve.source] if curve.source == curve.target else max(passed)
    ) + BOX_HEIGHT / 2


def _corner(here: Point, corner: Point, then: Point) -> str:
    """A straight piece with a rounded corner at its end."""

    def towards(point: Point) -> Point:
        dx, dy = point[0] - corner[0], point[1] - corner[1]
        length = abs(dx) + abs(dy) or 1.0  # pieces run along the axes
        cut = min(8.0, length / 2) / length
        return corner[0] + dx * cut, corner[1] + dy * cut

    (x, y), (u, v) = towards(here), towards(then)
    return f"L{x:.1f} {y:.1f}Q{corner[0]:.1f} {corner[1]:.1f} {u:.1f} {v:.1f}"


def _stream(curve: Curve, route: Route, wide: float) -> Html:
    x, y = route.points[-1]
    size = 4.5 + 0.55 * wide
    shaft = route.path(short_by=size)  # ends inside the head, so that its flat end never shows
    core = wide * curve.crossing
    head = f"M{x:.1f} {y:.1f}l{-1.5 * size:.1f} {-size:.1f}v{2 * size:.1f}z"
    return element(
        "g",
        element("title", curve.tooltip),
        element("path", d=shaft, class_="back" if route.around else None, stroke_width=wide),
        element(
            "path",
            d=shaft,
            class_="crossing back" if route.around else "crossing",
            stroke_width=max(core, 1.0),
        )
        if core > 0
        else "",
        element("path", d=head, class_="head far" if curve.crossing >= 0.5 else "head"),
        class_="stream",
    )


def _box(box: Box, columns: Columns, layer: int, y: float) -> Html:
    x, top, corner = columns.left(layer), y - BOX_HEIGHT / 2, BOX_HEIGHT / 2 if box.spout else 6.0
    tab = TAB_WIDTH + (4.0 if box.spout else -2.0)
    arc = f"a{corner:.1f} {corner:.1f} 0 0 1"
    edge = f"M{x + tab:.1f} {top:.1f}v{BOX_HEIGHT:.1f}h{corner - tab:.1f}"
    edge += f"{arc} {-corner:.1f} {-corner:.1f}v{2 * corner - BOX_HEIGHT:.1f}"
    edge += f"{arc} {corner:.1f} {-corner:.1f}z"
    return element(
        "g",
        element("title", box.tooltip),
        element("rect", x=x, y=top, width=columns.box, height=BOX_HEIGHT, rx=corner, class_="box"),
        element("path", d=edge, class_=f"tab {box.colour}"),
        element(
            "text",
            box.letter,
            x=x + tab / 2 + (2.0 if box.spout else 0.0),
            y=y + 4.5,
            class_="letter",
        ),
        element("text", shorten(box.name, LONGEST_NAME), x=x + tab + 9, y=y - 4, class_="name"),
        element(
            "text", shorten(box.detail, LONGEST_DETAIL), x=x + tab + 9, y=y + 14, class_="detail"
        ),
    )


def _labels(
    curves: Sequence[Curve],
    routes: Sequence[Route],
    widths: Sequence[float],
    layout: Layout,
    columns: Columns,
) -> Iterator[Html]:
    """The grouping above each stream, its rate below; without room, the tooltip has to do."""
    corners = [
        (columns.left(layer), y - BOX_HEIGHT / 2)
        for layer, y in zip(layout.layer, layout.y, strict=True)
    ]
    taken = [(x, y, x + columns.box, y + BOX_HEIGHT) for x, y in corners]
    for e in sorted(range(len(curves)), key=lambda e: (-curves[e].tuples_per_s, e)):
        lines = curves[e].lines()
        half = max(map(len, lines)) * DETAIL_LETTER / 2
        above, below = -widths[e] / 2 - 4.0, widths[e] / 2 + 11.0
        for x, y in routes[e].label_places():
            area = (x - half, y + above - 9.0, x + half, y + below + 2.0)
            if not any(
                area[0] < t[2] and t[0] < area[2] and area[1] < t[3] and t[1] < area[3]
                for t in taken
            ):
                taken.append(area)
                spans = [
                    element("tspan", line, x=x, y=y + dy)
                    for line, dy in zip(lines, (above, below), strict=True)
                    if line
                ]
                yield element("text", *spans, class_="label")
                break

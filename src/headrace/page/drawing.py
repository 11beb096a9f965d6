"""A topology as SVG: components as boxes, streams as curves as wide as what flows.

The more layers there are, the closer they stand: first the gaps shrink, then the names, then the
letter goes above the name. Twelve layers fit into the frame of a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headrace.figures import short, shorten
from headrace.page.layers import Layout, assign_layers, lay_out
from headrace.page.markup import Html, element

FRAME = 1072.0  # the width that a page has for it
FITTING_SCALE = 0.85  # a drawing shrinks so far to fit the frame of a wide page
SMALLEST_SCALE = 0.6  # and so far on a narrow one; then it scrolls
TAB_WIDTH = 30.0  # holds the letter
ROW_GAP = 26.0
MARGIN = 20.0  # room for labels at the rim
THINNEST, WIDEST = 1.25, 9.0  # of a stream
LONGEST_NAME, LONGEST_DETAIL, LONGEST_LABEL = 15, 21, 16  # letters
SHORTEST_NAME = 9  # that a box beside its letter is made narrower for
NAME_LETTER, STACKED_LETTER, DETAIL_LETTER = 8.3, 7.2, 6.1  # widths on average, on the safe side
BESIDE, ABOVE = 52.0, 8.0  # of a box's width, what is not for words: letter beside, letter above
NARROWEST_GAP, NARROWEST_GAP_ABOVE, NARROWEST_BOX = 56.0, 24.0, 60.0
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
    """One column per layer, as narrow as the frame asks for."""

    box: float
    gap: float
    stacked: bool  # the letter above the name, and the name in two lines

    @staticmethod
    def of(boxes: Sequence[Box], curves: Sequence[Curve], layers: int) -> Columns:
        """Columns for what is to be written in and between them."""
        room = FRAME / FITTING_SCALE - 2 * MARGIN
        name = min(LONGEST_NAME, max(len(box.name) for box in boxes))
        detail = min(LONGEST_DETAIL, max(len(box.detail) for box in boxes)) * DETAIL_LETTER
        label = max((len(line) for c in curves for line in c.lines()), default=0) * DETAIL_LETTER
        roomy = max(NARROWEST_GAP, label + 28.0)
        wide = BESIDE + max(name * NAME_LETTER, detail)
        short = BESIDE + max(min(name, SHORTEST_NAME) * NAME_LETTER, detail)
        for box in (wide, (room + NARROWEST_GAP) / layers - NARROWEST_GAP):
            gap = _between(box, layers, room)
            if box >= short and gap >= NARROWEST_GAP - 1e-6:
                return Columns(min(box, wide), min(gap, roomy), stacked=False)
        half = max(len(line) for box in boxes for line in box.detail.split(" · "))
        box = ABOVE + max(half * DETAIL_LETTER, min(name, SHORTEST_NAME + 2) * STACKED_LETTER)
        widest = (room + NARROWEST_GAP_ABOVE) / layers - NARROWEST_GAP_ABOVE
        box = max(NARROWEST_BOX, min(box, widest))
        gap = max(NARROWEST_GAP_ABOVE, min(_between(box, layers, room), roomy))
        return Columns(box, gap, stacked=True)

    @property
    def height(self) -> float:
        """Of a box."""
        return 88.0 if self.stacked else 54.0

    def letters(self, width: float) -> int:
        """How many letters of this width a box has room for."""
        return max(4, int((self.box - (ABOVE if self.stacked else BESIDE)) / width))

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
    edges = [(c.source, c.target) for c in curves]
    columns = Columns.of(boxes, curves, max(assign_layers(len(boxes), edges)) + 1)
    layout = lay_out([columns.height] * len(boxes), edges, gap=ROW_GAP)
    routes = _routes(layout, curves, columns)
    largest = max((c.tuples_per_s for c in curves), default=0.0) or 1.0
    widths = [max(THINNEST, WIDEST * c.tuples_per_s / largest) for c in curves]
    points = [point for route in routes for point in route.points]
    points += [
        (columns.right(layer), y + side * columns.height / 2)
        for layer, y in zip(layout.layer, layout.y, strict=True)
        for side in (-1, 1)
    ]
    top, bottom = min(y for _, y in points) - MARGIN, max(y for _, y in points) + MARGIN
    width = max(x for x, _ in points) + MARGIN
    return element(
        "svg",
        element("title", name),
        *(
            _stream(curve, route, wide, _ends(curve, boxes))
            for curve, route, wide in zip(curves, routes, widths, strict=True)
        ),
        *(
            _box(box, columns, layer, y)
            for box, layer, y in zip(boxes, layout.layer, layout.y, strict=True)
        ),
        *_labels(boxes, curves, routes, widths, layout, columns),
        class_="topology",
        role="img",
        viewBox=f"0 {top:.1f} {width:.1f} {bottom - top:.1f}",
        style=f"max-width:{width:.0f}px;min-width:{SMALLEST_SCALE * width:.0f}px",
    )


def _between(box: float, layers: int, room: float) -> float:
    """The gap that boxes of this width leave between so many layers."""
    return (room - layers * box) / (layers - 1) if layers > 1 else room


def _routes(layout: Layout, curves: Sequence[Curve], columns: Columns) -> list[Route]:
    after = [
        bends[0] if bends else layout.y[c.target]
        for bends, c in zip(layout.bends, curves, strict=True)
    ]
    before = [
        bends[-1] if bends else layout.y[c.source]
        for bends, c in zip(layout.bends, curves, strict=True)
    ]
    out_y = _ports(layout, [c.source for c in curves], after, columns.height)
    in_y = _ports(layout, [c.target for c in curves], before, columns.height)
    routes: list[Route] = []
    lanes = 0
    for e, curve in enumerate(curves):
        a, b = layout.layer[curve.source], layout.layer[curve.target]
        points = [(columns.right(a), out_y[e])]
        if layout.back[e]:
            itself = curve.source == curve.target
            lanes += not itself
            lane = (
                _floor(layout, curve)
                + columns.height / 2
                + 14.0
                + (0.0 if itself else 16.0 * (lanes - 1))
            )
            far, near = (
                columns.right(a) + 14.0 + 5.0 * (lanes % 4),
                columns.left(b) - 20.0 - 5.0 * (lanes % 4),
            )
            points += [(far, out_y[e]), (far, lane), (near, lane), (near, in_y[e])]
        for layer, y in zip(range(a + 1, b), layout.bends[e], strict=False):
            points += [(columns.left(layer), y), (columns.right(layer), y)]
        routes.append(Route([*points, (columns.left(b), in_y[e])], layout.back[e]))
    return routes


def _ports(
    layout: Layout, box: Sequence[int], other_end: Sequence[float], height: float
) -> list[float]:
    """Where each stream meets its box: in the order of the other ends, so that none cross."""
    y = [0.0] * len(box)
    for b in set(box):
        here = sorted(
            (e for e in range(len(box)) if box[e] == b),
            key=lambda e: (layout.back[e], other_end[e], e),
        )
        step = min(14.0, (height - 14.0) / len(here))
        for i, e in enumerate(here):
            y[e] = layout.y[b] + (i - (len(here) - 1) / 2) * step
    return y


def _floor(layout: Layout, curve: Curve) -> float:
    """The middle of the lowest box that a stream around has to pass below."""
    if curve.source == curve.target:
        return layout.y[curve.source]
    low, high = sorted((layout.layer[curve.source], layout.layer[curve.target]))
    return max(y for layer, y in zip(layout.layer, layout.y, strict=True) if low <= layer <= high)


def _corner(here: Point, corner: Point, then: Point) -> str:
    """A straight piece with a rounded corner at its end."""

    def towards(point: Point) -> Point:
        dx, dy = point[0] - corner[0], point[1] - corner[1]
        length = abs(dx) + abs(dy) or 1.0  # pieces run along the axes
        cut = min(8.0, length / 2) / length
        return corner[0] + dx * cut, corner[1] + dy * cut

    (x, y), (u, v) = towards(here), towards(then)
    return f"L{x:.1f} {y:.1f}Q{corner[0]:.1f} {corner[1]:.1f} {u:.1f} {v:.1f}"


def _ends(curve: Curve, boxes: Sequence[Box]) -> str:
    """The letters of a stream's ends."""
    return " ".join(dict.fromkeys(boxes[b].letter for b in (curve.source, curve.target)))


def _stream(curve: Curve, route: Route, wide: float, ends: str) -> Html:
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
        data_c=ends,
    )


def _box(box: Box, columns: Columns, layer: int, y: float) -> Html:
    x, top = columns.left(layer), y - columns.height / 2
    corner = (16.0 if columns.stacked else columns.height / 2) if box.spout else 6.0
    words = _words_below if columns.stacked else _words_beside
    rim = element(
        "rect", x=x, y=top, width=columns.box, height=columns.height, rx=corner, class_="box"
    )
    inside = words(box, columns, x, y, corner)
    return element("g", element("title", box.tooltip), rim, *inside, data_c=box.letter)


def _words_beside(box: Box, columns: Columns, x: float, y: float, corner: float) -> Iterator[Html]:
    """The letter on the left, name and detail beside it."""
    height, tab = columns.height, TAB_WIDTH + (4.0 if box.spout else -2.0)
    arc = f"a{corner:.1f} {corner:.1f} 0 0 1"
    edge = f"M{x + tab:.1f} {y - height / 2:.1f}v{height:.1f}h{corner - tab:.1f}"
    edge += f"{arc} {-corner:.1f} {-corner:.1f}v{2 * corner - height:.1f}"
    edge += f"{arc} {corner:.1f} {-corner:.1f}z"
    yield element("path", d=edge, class_=f"tab {box.colour}")
    middle = x + tab / 2 + (2.0 if box.spout else 0.0)
    yield element("text", box.letter, x=middle, y=y + 4.5, class_="letter")
    name = shorten(box.name, min(LONGEST_NAME, columns.letters(NAME_LETTER)))
    yield element("text", name, x=x + tab + 9, y=y - 4, class_="name")
    detail = shorten(box.detail, columns.letters(DETAIL_LETTER))
    yield element("text", detail, x=x + tab + 9, y=y + 14, class_="detail")


def _words_below(box: Box, columns: Columns, x: float, y: float, corner: float) -> Iterator[Html]:
    """The letter above, then the name in two lines, then the detail in two lines."""
    top, tab = y - columns.height / 2, 21.0
    arc = f"a{corner:.1f} {corner:.1f} 0 0 1"
    edge = f"M{x:.1f} {top + tab:.1f}v{corner - tab:.1f}{arc} {corner:.1f} {-corner:.1f}"
    edge += f"h{columns.box - 2 * corner:.1f}{arc} {corner:.1f} {corner:.1f}v{tab - corner:.1f}z"
    yield element("path", d=edge, class_=f"tab {box.colour}")
    middle = x + columns.box / 2
    yield element("text", box.letter, x=middle, y=top + 15, class_="letter")
    names = _two_lines(box.name, columns.letters(STACKED_LETTER))
    details = [shorten(d, columns.letters(DETAIL_LETTER)) for d in box.detail.split(" · ")]
    for i, line in enumerate(names):
        yield element("text", line, x=middle, y=top + 37 + 14 * i, class_="name mid")
    for i, line in enumerate(details):
        yield element("text", line, x=middle, y=top + 67 + 13 * i, class_="detail mid")


def _two_lines(name: str, most: int) -> list[str]:
    """A name in two lines of at most so many letters, cut at a mark if there is one."""
    if len(name) <= most:
        return [name]
    marks = [i + 1 for i, letter in enumerate(name[:most]) if letter in "-_./ "]
    if marks:
        return [name[: marks[-1]], shorten(name[marks[-1] :], most)]
    cut = min(most - 1, len(name) - 3)  # no single letter is left over
    return [f"{name[:cut]}-", shorten(name[cut:], most)]


def _labels(
    boxes: Sequence[Box],
    curves: Sequence[Curve],
    routes: Sequence[Route],
    widths: Sequence[float],
    layout: Layout,
    columns: Columns,
) -> Iterator[Html]:
    """The grouping above each stream, its rate below; without room for both, the rate alone.

    Without room for that, the tooltip has to do.
    """
    corners = [
        (columns.left(layer), y - columns.height / 2)
        for layer, y in zip(layout.layer, layout.y, strict=True)
    ]
    taken = [(x, y, x + columns.box, y + columns.height) for x, y in corners]
    for e in sorted(range(len(curves)), key=lambda e: (-curves[e].tuples_per_s, e)):
        grouping, rate = curves[e].lines()
        above, below = -widths[e] / 2 - 4.0, widths[e] / 2 + 11.0
        places = [
            (place, lines)
            for lines in ((grouping, rate), ("", rate))
            for place in routes[e].label_places()
        ]
        for (x, y), lines in places:
            half = max(map(len, lines)) * DETAIL_LETTER / 2
            high = above - 9.0 if lines[0] else below - 9.0
            area = (x - half, y + high, x + half, y + below + 2.0)
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
                yield element("text", *spans, class_="label", data_label=_ends(curves[e], boxes))
                break

"""A move as one page: who sends to whom and when, and what every step gains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import headrace
from headrace.move.change import Arrival
from headrace.move.steps import Moves, Name
from headrace.page.markup import Html, element
from headrace.page.sheet import sheet
from headrace.page.words import number, short, truncated

MOST_NODES, MOST_STEPS = 40, 200  # drawn; the words say what is left out
LANE, GAP, TOP = 15.0, 9.0, 26.0
LEFT, WIDTH = 150.0, 1000.0
LETTER = 6.4  # of a label, on average
COLOURS = 9


def steps_page(
    moves: Moves,
    gains: Sequence[Arrival] = (),
    *,
    title: str,
    notes: Sequence[str] = (),
    command: str | None = None,
) -> str:
    """One HTML document about one move; the same move gives the same bytes."""
    return sheet(
        title,
        _headline(moves, gains, title, notes),
        _picture(moves),
        _table(moves, gains),
        _footer(command),
    )


def _headline(moves: Moves, gains: Sequence[Arrival], title: str, notes: Sequence[str]) -> Html:
    clock = moves.clock
    verdict = (
        "Nothing has to be transferred."
        if not moves.steps
        else "No schedule of these transfers is quicker."
        if moves.makespan <= moves.bound * (1 + 1e-9)
        else f"No schedule of these transfers is quicker than {number(moves.bound)} {clock}."
    )
    tiles = [
        ("steps", number(len(moves.steps))),
        (f"{moves.unit} transferred", number(moves.units)),
        (
            "s for all of it" if clock == "s" else f"{clock}, cost of all steps",
            number(moves.makespan),
        ),
    ]
    if gains:
        tiles.append(("s, longest pause of a task", number(max(g.pause_s for g in gains))))
        tiles.append(("tuples/s less between nodes", number(sum(g.gain for g in gains))))
    return element(
        "header",
        element("h1", title),
        element("p", verdict, class_="verdict"),
        element(
            "dl",
            *(element("div", element("dt", name), element("dd", value)) for name, value in tiles),
            class_="tiles",
        ),
        element("ul", *(element("li", note) for note in (*notes, *moves.notes)), class_="aside")
        if notes or moves.notes
        else "",
    )


def _picture(moves: Moves) -> Html:
    if not moves.steps:
        return Html("")
    names = _busiest(moves)
    shown, row = names[:MOST_NODES], {name: i for i, name in enumerate(names[:MOST_NODES])}
    colour = {name: f"c{i % COLOURS}" for i, name in enumerate(names)}
    steps = moves.steps[:MOST_STEPS]
    total = sum(step.cost for step in steps) or 1.0
    height = TOP + len(shown) * (2 * LANE + GAP)
    edges = [0.0]
    for step in steps:
        edges.append(edges[-1] + step.cost)
    x = [LEFT + (WIDTH - LEFT - 10.0) * edge / total for edge in edges]
    left_out = (
        [f"the {MOST_NODES} busiest of {len(names):,} nodes"] if len(names) > MOST_NODES else []
    )
    left_out += (
        [f"the first {MOST_STEPS} of {len(moves.steps):,} steps"]
        if len(moves.steps) > MOST_STEPS
        else []
    )
    return element(
        "section",
        element("h2", "Who sends to whom, and when"),
        element(
            "p",
            "Each node has two lanes: above what it sends, below what it receives; a block names the other node. Lines part the steps."
            + (f" Shown: {', '.join(left_out)}." if left_out else ""),
            class_="lead",
        ),
        element(
            "div",
            element(
                "svg",
                element("title", "Transfers by node and time"),
                *_axis(x, edges, moves.clock, height),
                *(_name(name, i) for i, name in enumerate(shown)),
                *_blocks(moves, x, row, colour),
                class_="steps",
                role="img",
                viewBox=f"0 0 {WIDTH:.0f} {height + 4:.0f}",
            ),
            class_="scroll",
        ),
    )


def _busiest(moves: Moves) -> list[Name]:
    """Nodes by what they send and receive, then in the order in which they come."""
    busy: dict[Name, float] = {}
    for step in moves.steps:
        for t in step.transfers:
            busy[t.source] = busy.get(t.source, 0.0) + t.units
            busy[t.target] = busy.get(t.target, 0.0) + t.units
    kept = set(sorted(busy, key=lambda name: -busy[name])[:MOST_NODES])
    return sorted(kept, key=_natural) + [name for name in busy if name not in kept]


def _natural(name: Name) -> tuple[str, int, str]:
    """n2 before n10."""
    text = str(name)
    stem = text.rstrip("0123456789")
    return stem, int(text[len(stem) :] or 0), text


def _axis(x: Sequence[float], edges: Sequence[float], clock: str, height: float) -> Iterator[Html]:
    last = -1e9
    for at, edge in zip(x, edges, strict=True):
        yield element("line", x1=at, x2=at, y1=TOP - 6, y2=height)
        if at - last > 64.0:
            anchor = "start" if not edge else "end" if at > WIDTH - 60 else "middle"
            yield element(
                "text",
                f"{short(edge)} {clock}",
                x=at,
                y=TOP - 11,
                class_="detail",
                text_anchor=anchor,
            )
            last = at


def _name(name: Name, row: int) -> Html:
    y = TOP + row * (2 * LANE + GAP) + LANE + 4
    return element(
        "text", truncated(str(name), 20), x=LEFT - 10, y=y, class_="name", text_anchor="end"
    )


def _blocks(
    moves: Moves, x: Sequence[float], row: dict[Name, int], colour: dict[Name, str]
) -> Iterator[Html]:
    for k, step in enumerate(moves.steps[:MOST_STEPS]):
        for lane in (0, 1):
            grouped: dict[Name, list[tuple[Name, float]]] = {}
            for t in step.transfers:
                here, there = (t.source, t.target) if lane == 0 else (t.target, t.source)
                if here in row:
                    grouped.setdefault(here, []).append((there, t.units))
            for here, others in grouped.items():
                y = TOP + row[here] * (2 * LANE + GAP) + lane * LANE
                each = (x[k + 1] - x[k]) / len(
                    others
                )  # where several go at once: who, not how their time is divided
                for i, (there, units) in enumerate(others):
                    says = (
                        f"{here} sends {number(units)} {moves.unit} to {there}"
                        if lane == 0
                        else f"{here} receives {number(units)} {moves.unit} from {there}"
                    )
                    label = truncated(str(there), max(1, int(each / LETTER)))
                    yield element(
                        "g",
                        element("title", f"step {k + 1}: {says}"),
                        element(
                            "rect",
                            x=x[k] + i * each,
                            y=y,
                            width=max(each - 0.6, 0.6),
                            height=LANE - 1.5,
                            class_=colour[there],
                            rx=2,
                        ),
                        element(
                            "text", label, x=x[k] + (i + 0.5) * each, y=y + LANE - 5, class_="label"
                        )
                        if each > 3 * LETTER
                        else "",
                    )


def _table(moves: Moves, gains: Sequence[Arrival]) -> Html:
    if not moves.steps:
        return Html("")
    titles = ["step", f"from, {moves.clock}", f"takes, {moves.clock}", moves.unit, "transfers"]
    titles += (
        ["tasks in place", "pause, s", "gain, tuples/s", "between nodes after it"] if gains else []
    )
    rows: list[Html] = []
    clock = 0.0
    for i, step in enumerate(moves.steps[:MOST_STEPS]):
        cells = [
            number(clock),
            number(step.cost),
            number(sum(t.units for t in step.transfers)),
            number(len(step.transfers)),
        ]
        if gains:
            g = gains[i]
            cells += [
                number(len(g.tasks)),
                number(g.pause_s),
                number(g.gain),
                number(g.inter_node_traffic),
            ]
        rows.append(
            element("tr", element("th", str(i + 1)), *(element("td", cell) for cell in cells))
        )
        clock += step.cost
    head = element("tr", *(element("th", name) for name in titles))
    return element(
        "section",
        element("h2", "Steps"),
        element(
            "div",
            element("table", element("thead", head), element("tbody", *rows)),
            class_="scroll",
        ),
    )


def _footer(command: str | None) -> Html:
    return element(
        "footer",
        element("p", f"headrace {headrace.__version__}."),
        element("pre", command) if command else "",
    )

"""A move as one page: who sends to whom and when, and what every step gains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import headrace
from headrace.figures import number, short, shorten
from headrace.move.change import Arrival
from headrace.move.steps import Moves, Name
from headrace.page.change import before_and_after
from headrace.page.markup import Html, element
from headrace.page.parts import footer, scroll_table, tiles
from headrace.page.sheet import sheet
from headrace.page.view import COLOURS
from headrace.planner.result import Plan

MOST_NODES, MOST_STEPS = 40, 200  # drawn; the words say what is left out
LANE, GAP, TOP = 15.0, 9.0, 26.0
LEFT, WIDTH = 150.0, 1000.0
LETTER = 6.4  # of a label, on average


def steps_page(
    moves: Moves,
    gains: Sequence[Arrival] = (),
    *,
    title: str,
    notes: Sequence[str] = (),
    command: str | None = None,
    plans: tuple[Plan, Plan] | None = None,
) -> str:
    """One HTML document about one move; the same move gives the same bytes."""
    return sheet(
        title,
        _headline(moves, gains, title, notes),
        Html() if plans is None else before_and_after(*plans),
        _picture(moves),
        _table(moves, gains),
        footer(f"headrace {headrace.__version__}.", command),
    )


def _headline(moves: Moves, gains: Sequence[Arrival], title: str, notes: Sequence[str]) -> Html:
    clock = moves.clock
    verdict = "Nothing has to be transferred."
    if moves.steps:
        at_best = moves.makespan <= moves.bound * (1 + 1e-9)
        limit = "" if at_best else f" than {number(moves.bound)} {clock}"
        verdict = f"No schedule of these transfers is quicker{limit}."
    all_of_it = "s for all of it" if clock == "s" else f"{clock}, cost of all steps"
    cells = [
        (number(len(moves.steps)), "steps"),
        (number(moves.units), f"{moves.unit} transferred"),
        (number(moves.makespan), all_of_it),
    ]
    if gains:
        cells.append((number(max(g.pause_s for g in gains)), "s, longest pause of a task"))
        cells.append((number(sum(g.gain for g in gains)), "tuples/s less between nodes"))
    said = [element("li", note) for note in (*notes, *moves.notes)]
    return element(
        "header",
        element("h1", title),
        element("p", verdict, class_="verdict"),
        tiles(cells),
        element("ul", *said, class_="aside") if said else "",
    )


def _picture(moves: Moves) -> Html:
    if not moves.steps:
        return Html()
    names = _busiest(moves)
    shown = names[:MOST_NODES]
    colour = {name: f"c{i % COLOURS}" for i, name in enumerate(names)}
    edges = [0.0]
    for step in moves.steps[:MOST_STEPS]:
        edges.append(edges[-1] + step.cost)
    x = [LEFT + (WIDTH - LEFT - 10.0) * edge / (edges[-1] or 1.0) for edge in edges]
    height = TOP + len(shown) * (2 * LANE + GAP)
    drawing = element(
        "svg",
        element("title", "Transfers by node and time"),
        *_axis(x, edges, moves.clock, height),
        *(_name(name, i) for i, name in enumerate(shown)),
        *_blocks(moves, x, {name: i for i, name in enumerate(shown)}, colour),
        class_="steps",
        role="img",
        viewBox=f"0 0 {WIDTH:.0f} {height + 4:.0f}",
    )
    legend = (
        "Each node has two lanes: above what it sends, below what it receives; "
        "a block names the other node. Lines part the steps."
    )
    return element(
        "section",
        element("h2", "Who sends to whom, and when"),
        element("p", legend + _left_out(moves, len(names)), class_="lead"),
        element("div", drawing, class_="scroll"),
    )


def _left_out(moves: Moves, nodes: int) -> str:
    """What of the move is drawn, where that is not all of it."""
    shown = [f"the {MOST_NODES} busiest of {nodes:,} nodes"] if nodes > MOST_NODES else []
    if len(moves.steps) > MOST_STEPS:
        shown.append(f"the first {MOST_STEPS} of {len(moves.steps):,} steps")
    return f" Shown: {', '.join(shown)}." if shown else ""


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
        "text", shorten(str(name), 20), x=LEFT - 10, y=y, class_="name", text_anchor="end"
    )


def _blocks(
    moves: Moves, x: Sequence[float], row: dict[Name, int], colour: dict[Name, str]
) -> Iterator[Html]:
    for k, step in enumerate(moves.steps[:MOST_STEPS]):
        for lane in (0, 1):
            others: dict[Name, list[tuple[Name, float]]] = {}
            for t in step.transfers:
                here, there = (t.source, t.target) if lane == 0 else (t.target, t.source)
                if here in row:
                    others.setdefault(here, []).append((there, t.units))
            for here, transfers in others.items():
                y = TOP + row[here] * (2 * LANE + GAP) + lane * LANE
                # Where several go at once: who, not how their time is divided.
                width = (x[k + 1] - x[k]) / len(transfers)
                does = f"step {k + 1}: {here} {'sends' if lane == 0 else 'receives'}"
                for i, (there, units) in enumerate(transfers):
                    amount = f"{number(units)} {moves.unit} {'to' if lane == 0 else 'from'}"
                    at = (x[k] + i * width, y, width)
                    yield _block(there, f"{does} {amount} {there}", at, colour[there])


def _block(other: Name, tooltip: str, at: tuple[float, float, float], colour: str) -> Html:
    x, y, width = at
    label = ""
    if width > 3 * LETTER:
        text = shorten(str(other), max(1, int(width / LETTER)))
        label = element("text", text, x=x + 0.5 * width, y=y + LANE - 5, class_="label")
    wide, high = max(width - 0.6, 0.6), LANE - 1.5
    return element(
        "g",
        element("title", tooltip),
        element("rect", x=x, y=y, width=wide, height=high, class_=colour, rx=2),
        label,
    )


def _table(moves: Moves, gains: Sequence[Arrival]) -> Html:
    if not moves.steps:
        return Html()
    names = ["step", f"from, {moves.clock}", f"takes, {moves.clock}", moves.unit, "transfers"]
    if gains:
        names += ["tasks in place", "pause, s", "gain, tuples/s", "between nodes after it"]
    rows: list[Html] = []
    clock = 0.0
    for i, step in enumerate(moves.steps[:MOST_STEPS]):
        units = sum(t.units for t in step.transfers)
        cells = [clock, step.cost, units, len(step.transfers)]
        if gains:
            g = gains[i]
            cells += [len(g.tasks), g.pause_s, g.gain, g.inter_node_traffic]
        figures = (element("td", number(cell)) for cell in cells)
        rows.append(element("tr", element("th", str(i + 1)), *figures))
        clock += step.cost
    table = scroll_table((element("th", name) for name in names), rows)
    return element("section", element("h2", "Steps"), table)

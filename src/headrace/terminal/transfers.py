"""How to get from one plan to the other: steps of transfers, or single moves in a safe order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from headrace.figures import NONE, number
from headrace.terminal.console import MOST_ROWS, bullets, count_rest, remarks, table

if TYPE_CHECKING:
    from headrace.move.blocks import Class, Superclass
    from headrace.move.change import Arrival
    from headrace.move.safe_order import SafeOrder
    from headrace.move.steps import Moves, Step
    from headrace.planner.moving import Transferred

MOST_TRANSFERS = 6  # of a step
MOST_PAIRS = 16  # of a class


def moves(found: Moves, gains: Sequence[Arrival] = ()) -> RenderableType:
    """Steps of transfers: who sends to whom, how long it takes, and what is better after each."""
    clock = found.clock
    words = f"{len(found.steps):,} steps, {number(found.units)} {found.unit} "
    words += f"in {number(found.makespan)} {clock}; "
    words += f"nothing is quicker than {number(found.bound)} {clock}."
    if gains:
        words += f" A task pauses for at most {number(max(g.pause_s for g in gains))} s; "
        gained = sum(g.gain for g in gains)
        way = "falls" if gained >= 0 else "GROWS"
        words += f"traffic between nodes {way} by {number(abs(gained))} tuples/s."
    gain = ["gain"] if gains else []
    ranges = ["key groups"] if any(step.ranges for step in found.steps) else []
    columns = ("step", f"cost {clock}", "transfers", *ranges, *gain)
    grid = table(*columns, left=0, prose=[2, 3] if ranges else [2], drop=["key groups"])
    for i, step in enumerate(found.steps[:MOST_ROWS]):
        better = [number(gains[i].gain)] if gains else []
        which = [_ranges(step)] if ranges else []
        grid.add_row(str(i + 1), number(step.cost), _transfers(step), *which, *better)
    count_rest(grid, len(found.steps), " steps")
    return Group(Text(words), grid, *remarks(found.notes))


def movers(found: Sequence[Transferred]) -> RenderableType:
    """One row per mover: what it needs for the same change, and how far that is from the bound."""
    first = next((row.moves for row in found if row.moves is not None), None)
    clock, unit = ("", "") if first is None else (first.clock, first.unit)
    grid = table("mover", "steps", f"all {clock}", f"one send at a time {clock}", "ratio", unit)
    refused: list[str] = []
    for row in found:
        if row.moves is None:
            grid.add_row(row.mover, "refused", *[NONE] * 4)
            refused.append(f"{row.mover}: {row.error.message if row.error else NONE}")
            continue
        m = row.moves
        ratio = f"{m.makespan / m.bound:.2f}" if m.bound else NONE
        alone = m.makespan if m.one_port is None else m.one_port
        figures = (number(m.makespan), number(alone), ratio, number(m.units))
        grid.add_row(row.mover, number(len(m.steps)), *figures)
    least = "" if first is None else f"Nothing is quicker than {number(first.bound)} {clock}."
    return Group(Text(least), grid, *bullets("Refused:", refused, "dim"))


def _transfers(step: Step) -> str:
    first = (
        f"{t.source} -> {t.target}: {number(t.units)}" for t in step.transfers[:MOST_TRANSFERS]
    )
    rest = len(step.transfers) - MOST_TRANSFERS
    return ", ".join(first) + (f" and {rest} more" if rest > 0 else "")


def _ranges(step: Step) -> str:
    first = (
        f"{r.holder} -> {r.taker}" + (f" {r.first}-{r.end - 1}" if r.end else "")
        for r in step.ranges[:MOST_TRANSFERS]
    )
    rest = len(step.ranges) - MOST_TRANSFERS
    return ", ".join(first) + (f" and {rest} more" if rest > 0 else "")


def class_tables(classes: Sequence[Class], superclasses: Sequence[Superclass]) -> RenderableType:
    """Node pairs that exchange the same, and the chains that targets receive as whole blocks."""
    pairs = table("class", "units of a pair", "pairs", title="Classes", left=0, prose=[2])
    for c in classes:
        rest = len(c.pairs) - MOST_PAIRS
        shown = " ".join(f"({p},{q})" for p, q in c.pairs[:MOST_PAIRS])
        more = f" and {rest:,} more" if rest > 0 else ""
        pairs.add_row(str(c.number), str(c.units), shown + more)
    columns = ("superclass", "offset", "class: units", "units")
    chains = table(*columns, title="Superclasses", left=0, prose=[2])
    for s in superclasses:
        chain = ", ".join(f"{k}: {u}" for k, u in s.chain)
        chains.add_row(str(s.number), str(s.offset), chain, str(sum(u for _, u in s.chain)))
    return Group(pairs, chains)


def safe_order(order: SafeOrder) -> RenderableType:
    """Single moves, none of which overloads a node."""
    words = f"{len(order.moves):,} moves, {number(order.mb)} MB, "
    words += f"{number(order.seconds)} s of transfers, "
    words += f"longest pause {number(order.longest_pause_s)} s; traffic between nodes "
    words += f"{number(order.traffic_before)} -> {number(order.traffic_after)} tuples/s."
    grid = table("move", "task", "from", "to", "worker", "MB", "s", "gain", left=4)
    for i, m in enumerate(order.moves[:MOST_ROWS]):
        grid.add_row(
            f"{i + 1} {m.kind}",
            m.task,
            m.source or NONE,
            m.target,
            str(m.worker),
            number(m.mb),
            number(m.seconds),
            number(m.gain),
        )
    count_rest(grid, len(order.moves))
    return Group(Text(words), grid, *remarks(order.notes))

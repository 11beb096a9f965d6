"""Commands about two plans: what differs, and how to get from one to the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.options import DATA, JSON, OPTION, by_option, out_option
from headrace.cli.shared import deliver, load_case, main, print_json, read_options
from headrace.errors import InvalidInput

if TYPE_CHECKING:
    from headrace.move.change import Arrival
    from headrace.move.steps import Moves
    from headrace.planner import Plan


@main.command()
@click.argument("files", nargs=-1, type=click.Path())
@click.option(
    "--blocks",
    metavar="NxT:QxS",
    help="A block redistribution instead of two plans: nodes x tasks per node, before and after.",
)
@click.option("--tables", is_flag=True, help="With --blocks: also the classes of node pairs.")
@by_option("move", default="optimal", show_default=True, help="How transfers are put into steps.")
@OPTION
@click.option("--safe", is_flag=True, help="Task by task, so that no node is overloaded.")
@click.option(
    "--max-moves", type=click.IntRange(min=0), help="The best so many moves, in a safe order."
)
@click.option(
    "--max-mb",
    type=click.FloatRange(min=0),
    help="The best moves within so many megabytes, in a safe order.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Of the search for a safe order."
)
@JSON
@out_option(*DATA, ".html", help="Write here: .json, .yaml, or .html for a picture of the steps.")
def move(
    files: tuple[str, ...],
    blocks: str | None,
    tables: bool,
    by: str,
    options: tuple[str, ...],
    safe: bool,
    max_moves: int | None,
    max_mb: float | None,
    seed: int,
    as_json: bool,
    out: str | None,
) -> None:
    """The steps from plan OLD to plan NEW (two plan files), or of a block redistribution."""
    in_order = safe or max_moves is not None or max_mb is not None
    chosen = read_options(options)
    if blocks is not None:
        if files or in_order:
            raise click.UsageError("--blocks is alone: it takes no plan files and no safe order")
        show_blocks(blocks, by, chosen, tables, as_json, out)
        return
    if len(files) != 2:
        raise click.UsageError("give two plan files, OLD and NEW, or --blocks")
    if tables:
        raise click.UsageError("--tables is for --blocks: plans have no classes of node pairs")
    from headrace.planner import moving

    old, new = (plan_in(file) for file in files)
    if in_order:
        limits = {"max_moves": max_moves, "max_mb": max_mb, "seed": seed}
        show_order(*moving.move_safely(old, new, **limits), as_json, out)  # pyright: ignore[reportArgumentType]
        return
    change = moving.move(old, new, by, chosen)
    command = f"headrace move {' '.join(files)} --by {by}"
    title, notes = "From one plan to the other", change.notes
    content = change.to_json()
    plans = (old, new)
    show_steps(title, change.moves, change.gains, content, notes, command, as_json, out, plans)
    if not as_json:
        from headrace import terminal

        terminal.show(terminal.who_moves(moving.difference(old, new)))


def plan_in(file: str, others: Sequence[str] = ()) -> Plan:
    """The plan that a file holds."""
    from headrace.library.verbs import judge

    case = load_case((file, *others))
    if case.inputs.document.plan is None:
        raise InvalidInput(f"{file}: holds no plan; write one with headrace place .. --out")
    return judge(case)


def show_blocks(
    text: str,
    by: str,
    options: Mapping[str, object],
    tables: bool,
    as_json: bool,
    out: str | None,
) -> None:
    """A block redistribution, and its classes of node pairs if asked."""
    from headrace.move.blocks import Blocks, classes, superclasses
    from headrace.planner.moving import move_blocks

    blocks = Blocks.parse(text)
    moves = move_blocks(blocks, by, options)
    content = moves.to_json()
    if tables:
        content["classes"] = [
            {"class": c.number, "units": c.units, "pairs": [list(p) for p in c.pairs]}
            for c in classes(blocks)
        ]
        content["superclasses"] = [
            {
                "superclass": s.number,
                "offset": s.offset,
                "chain": [{"class": k, "units": u} for k, u in s.chain],
            }
            for s in superclasses(blocks)
        ]
    command = f"headrace move --blocks {blocks} --by {by}"
    show_steps(f"Redistribution {blocks}", moves, (), content, (), command, as_json, out)
    if tables and not as_json:
        from headrace import terminal

        terminal.show(terminal.class_tables(classes(blocks), superclasses(blocks)))


def show_steps(
    title: str,
    moves: Moves,
    gains: Sequence[Arrival],
    content: dict[str, Any],
    notes: Sequence[str],
    command: str,
    as_json: bool,
    out: str | None,
    plans: tuple[Plan, Plan] | None = None,
) -> None:
    """Print steps, and write them where asked; the page shows both plans."""

    def page() -> str:
        from headrace.page.steps import steps_page

        return steps_page(moves, gains, title=title, notes=notes, command=command, plans=plans)

    def show() -> None:
        from headrace import terminal

        terminal.show(terminal.moves(moves, gains), *terminal.remarks(notes))

    deliver(content, show, as_json, out, page)


def show_order(order: Any, notes: Sequence[str], as_json: bool, out: str | None) -> None:
    """Print a safe order, and write it where asked."""
    if out is not None and Path(out).suffix == ".html":
        raise click.UsageError(
            "a safe order is written as .json or .yaml; the picture is of transfers, without --safe"
        )
    content = order.to_json() | {"notes": list(notes)}

    def show() -> None:
        from headrace import terminal

        terminal.show(terminal.safe_order(order), *terminal.remarks(notes))

    deliver(content, show, as_json, out)


@main.command()
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@click.argument("files", nargs=-1, type=click.Path())
@JSON
def diff(before: str, after: str, files: tuple[str, ...], as_json: bool) -> None:
    """What moves from one plan to another, what it costs and what it gains."""
    from headrace.planner.moving import difference, least_transfer

    old, new = plan_in(before, files), plan_in(after, files)
    change, transfer = difference(old, new), least_transfer(old, new)
    if as_json:
        print_json({"format": "headrace/1", "diff": change.to_json() | {"transfer": transfer}})
        return
    from headrace import terminal

    terminal.show(terminal.difference(change, transfer))

"""Commands about two plans: what differs, and how to get from one to the other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from headrace.cli.shared import JSON, dumps, main, read, save, text_for
from headrace.errors import InvalidInput
from headrace.move import SCHEDULERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.model.problem import Assignment, Problem
    from headrace.move.change import Arrival
    from headrace.move.steps import Moves


@main.command()
@click.argument("files", nargs=-1, type=click.Path())
@click.option(
    "--blocks",
    metavar="NxT:QxS",
    help="A block redistribution instead of two plans: nodes x tasks per node, before and after.",
)
@click.option(
    "--tables", is_flag=True, help="With --blocks: also the classes and superclasses of node pairs."
)
@click.option(
    "--by",
    type=click.Choice(list(SCHEDULERS)),
    default="optimal",
    show_default=True,
    help="How transfers are put into steps.",
)
@click.option(
    "--safe", is_flag=True, help="Task by task, so that no node is overloaded on the way."
)
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
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    help="Write here: .json, .yaml, or .html for a picture of the steps.",
)
def move(
    files: tuple[str, ...], blocks: str | None, tables: bool, by: str, safe: bool, max_moves: int | None, max_mb: float | None, seed: int,
    as_json: bool, out: str | None,
) -> None:  # fmt: skip
    """The steps from plan OLD to plan NEW (two plan files), or of a block redistribution."""
    in_order = safe or max_moves is not None or max_mb is not None
    if blocks is not None:
        if files or in_order:
            raise click.UsageError(
                "--blocks stands alone: it takes no plan files and no safe order"
            )
        redistribution(blocks, by, tables, as_json, out)
        return
    if len(files) != 2:
        raise click.UsageError("give two plan files, OLD and NEW, or --blocks")
    if tables:
        raise click.UsageError("--tables is for --blocks: plans have no classes of node pairs")
    pair = two_plans(*files)
    if in_order:
        safely(pair, max_moves, max_mb, seed, as_json, out)
        return
    from headrace.move.change import arrivals, volumes_between
    from headrace.registry import algorithm

    moves = algorithm("move", by)(volumes_between(pair.problem, pair.old, pair.new))
    gains = arrivals(pair.problem, pair.old, pair.new, moves)
    content = moves.to_json() | {"gains": [g.gain for g in gains], "notes": list(pair.notes)}
    content["report"]["longest_pause_s"] = max((g.pause_s for g in gains), default=None)
    show(
        "From one plan to the other",
        moves,
        gains,
        content,
        pair.notes,
        f"headrace move {' '.join(files)} --by {by}",
        as_json,
        out,
    )


def redistribution(text: str, by: str, tables: bool, as_json: bool, out: str | None) -> None:
    """A block redistribution, told."""
    from headrace import terminal
    from headrace.move.blocks import Blocks, classes, superclasses
    from headrace.registry import algorithm

    blocks = Blocks.parse(text)
    moves: Moves = algorithm("move", by)(blocks)
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
    show(
        f"Redistribution {blocks}",
        moves,
        (),
        content,
        (),
        f"headrace move --blocks {blocks} --by {by}",
        as_json,
        out,
    )
    if tables and not as_json:
        terminal.show(terminal.class_tables(classes(blocks), superclasses(blocks)))


def show(
    title: str, moves: Moves, gains: Sequence[Arrival], content: dict[str, Any], notes: Sequence[str], command: str, as_json: bool,
    out: str | None,
) -> None:  # fmt: skip
    """Print steps, and write them where asked."""
    from headrace import terminal

    if out is not None and Path(out).suffix == ".html":
        from headrace.page.steps import steps_page

        save(out, steps_page(moves, gains, title=title, notes=notes, command=command))
    elif out is not None:
        save(out, text_for(out, content))
    if as_json:
        click.echo(dumps(content))
    else:
        terminal.show(terminal.moves(moves, gains), *(f"  [dim]{note}[/dim]" for note in notes))
        if out is not None:
            click.echo(f"wrote {out}")


def safely(
    pair: TwoPlans,
    max_moves: int | None,
    max_mb: float | None,
    seed: int,
    as_json: bool,
    out: str | None,
) -> None:
    """A safe order, told."""
    from headrace import terminal
    from headrace.move.safe_order import safe_order

    if out is not None and Path(out).suffix == ".html":
        raise click.UsageError(
            "a safe order is written as .json or .yaml; the picture is of transfers, without --safe"
        )
    order = safe_order(
        pair.problem, pair.old, pair.new, max_moves=max_moves, max_mb=max_mb, seed=seed
    )
    content = order.to_json() | {"notes": list(pair.notes)}
    if out is not None:
        save(out, text_for(out, content))
    if as_json:
        click.echo(dumps(content))
    else:
        terminal.show(terminal.safe_order(order), *(f"  [dim]{note}[/dim]" for note in pair.notes))
        if out is not None:
            click.echo(f"wrote {out}")


class TwoPlans(NamedTuple):
    """Two plans in the terms of the new one's problem, the new one relabelled to move least, and what to know."""

    problem: Problem
    old: Assignment
    new: Assignment
    notes: tuple[str, ...]


def two_plans(before: str, after: str, files: tuple[str, ...] = ()) -> TwoPlans:
    """Read two plan files."""
    from headrace.model.build import build
    from headrace.move.change import carry_plan
    from headrace.move.relabel import relabel

    old, new = build(read((before, *files))), build(read((after, *files)))
    for file, problem in ((before, old), (after, new)):
        if problem.current is None:
            raise InvalidInput(f"{file}: holds no plan; write one with headrace place .. --out")
    assert old.current is not None
    assert new.current is not None
    running = carry_plan(old, old.current, new)
    better = relabel(new, running.plan, new.current)
    notes = running.notes
    if better.saved_mb or better.saved_moves:
        notes = (
            *notes,
            f"alike nodes and tasks swapped roles: {better.saved_mb:g} MB and {better.saved_moves} moves saved",
        )
    return TwoPlans(new, running.plan, better.plan, notes)


@main.command()
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@click.argument("files", nargs=-1, type=click.Path())
@JSON
def diff(before: str, after: str, files: tuple[str, ...], as_json: bool) -> None:
    """What moves from one plan to another, what it costs and what it gains."""
    from headrace import terminal
    from headrace.judge.diff import diff as difference
    from headrace.model.build import build
    from headrace.planner import judged

    sides: list[Any] = []
    for plan in (before, after):
        result = judged(build(read((plan, *files))))
        sides.append((result.problem, result.assignment, result.report))
    change = difference(sides[0], sides[1])
    transfer = transfer_of(before, after, files)
    if as_json:
        click.echo(
            dumps({"format": "headrace/1", "diff": change.to_json() | {"transfer": transfer}})
        )
    else:
        terminal.show(terminal.difference(change, transfer))


def transfer_of(before: str, after: str, files: tuple[str, ...]) -> dict[str, Any]:
    """What `move` would have to transfer at the least, without planning its steps."""
    from headrace.move.change import volumes_between

    try:
        pair = two_plans(before, after, files)
        volumes = volumes_between(pair.problem, pair.old, pair.new)
    except (
        InvalidInput
    ) as error:  # other components, or no bandwidth: the figures stand all the same
        return {"mb": None, "seconds": None, "notes": [error.message]}
    return {
        "mb": float(volumes.units.sum()),
        "seconds": volumes.bound,
        "notes": [*pair.notes, *volumes.notes],
    }

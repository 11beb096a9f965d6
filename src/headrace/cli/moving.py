"""The command that says how to get from one plan to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headrace.cli.shared import JSON, dumps, main, read
from headrace.errors import InvalidInput
from headrace.move import SCHEDULERS

if TYPE_CHECKING:
    from headrace.model.problem import Assignment, Problem


@main.command()
@click.argument("files", nargs=-1, type=click.Path())
@click.option(
    "--blocks", metavar="NxT:QxS", help="A block redistribution instead of two plans: nodes x tasks per node, before and after."
)
@click.option(
    "--by", type=click.Choice(list(SCHEDULERS)), default="optimal", show_default=True, help="How transfers are put into steps."
)
@click.option("--safe", is_flag=True, help="Task by task, so that no node is overloaded on the way.")
@click.option("--max-moves", type=click.IntRange(min=0), help="With --safe: the best so many moves.")
@click.option("--max-mb", type=click.FloatRange(min=0), help="With --safe: the best moves within so many megabytes.")
@JSON
def move(
    files: tuple[str, ...], blocks: str | None, by: str, safe: bool, max_moves: int | None, max_mb: float | None, as_json: bool
) -> None:
    """The steps from plan OLD to plan NEW (two plan files), or of a block redistribution."""
    from headrace import terminal
    from headrace.move.blocks import Blocks
    from headrace.registry import algorithm

    if blocks is not None:
        moves = algorithm("move", by)(Blocks.parse(blocks))
        click.echo(dumps(moves.to_json())) if as_json else terminal.show(terminal.moves(moves))
        return
    if len(files) != 2:
        raise click.UsageError("give two plan files, OLD and NEW, or --blocks")
    problem, old, new, notes = two_plans(*files)
    if safe or max_moves is not None or max_mb is not None:
        from headrace.move.safe_order import safe_order

        order = safe_order(problem, old, new, max_moves=max_moves, max_mb=max_mb)
        click.echo(dumps(order.to_json())) if as_json else terminal.show(terminal.safe_order(order))
        return
    from headrace.move.change import arrivals, volumes_between

    moves = algorithm("move", by)(volumes_between(problem, old, new))
    gains = arrivals(problem, old, new, moves)
    if as_json:
        click.echo(dumps(moves.to_json() | {"gains": [g.gain for g in gains], "notes": list(notes)}))
    else:
        terminal.show(terminal.moves(moves, gains), *([f"[dim]{note}[/dim]" for note in notes]))


def two_plans(before: str, after: str) -> tuple[Problem, Assignment, Assignment, tuple[str, ...]]:
    """The new plan's problem, the old plan in its terms, the new one relabelled to move least, and what to know."""
    from headrace.model.build import build
    from headrace.move.change import carried
    from headrace.move.relabel import relabel

    old, new = build(read((before,))), build(read((after,)))
    for file, problem in ((before, old), (after, new)):
        if problem.current is None:
            raise InvalidInput(f"{file}: holds no plan; write one with headrace place .. --out")
    assert old.current is not None
    assert new.current is not None
    running = carried(old, old.current, new)
    better = relabel(new, running.plan, new.current)
    notes = running.notes
    if better.saved_mb or better.saved_moves:
        notes = (*notes, f"alike nodes and tasks swapped roles: {better.saved_mb:g} MB and {better.saved_moves} moves saved")
    return new, running.plan, better.plan, notes

"""The command that asks many algorithms the same question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from headrace.cli.answers import answer, collect, end, finish
from headrace.cli.choices import BUDGET, times
from headrace.cli.moving import plan_in
from headrace.cli.options import HEADROOM, JSON, OBJECTIVE, OUT, SECONDS, SEED, STRICTLY, what_if
from headrace.cli.shared import deliver, echo, main
from headrace.errors import InvalidInput

if TYPE_CHECKING:
    from headrace.library.case import Case
    from headrace.model.section import Headroom
    from headrace.model.what_if import WhatIf
    from headrace.planner import Outcome
    from headrace.simulate.result import Simulation


@main.command()
@click.argument("files", nargs=-1, type=click.Path())
@click.option(
    "--stage",
    type=click.Choice(["place", "size", "provision", "move"]),
    default="place",
    show_default=True,
    help="What to compare: where tasks run, how many there are, what to rent, or how to move.",
)
@click.option("--by", multiple=True, metavar="NAME", help="Algorithms to compare; absent: all.")
@click.option("--rate", type=float, help="With size or provision: enough for so many tuples/s.")
@BUDGET
@click.option("--blocks", metavar="NxT:QxS", help="With move: a block redistribution, no files.")
@click.option(
    "--simulate", "simulated", is_flag=True, help="With place: also simulate every plan, shortly."
)
@OBJECTIVE
@SEED
@SECONDS
@HEADROOM
@what_if
@STRICTLY
@JSON
@OUT
def compare(
    files: tuple[str, ...],
    stage: str,
    by: tuple[str, ...],
    rate: float | None,
    budget: float | None,
    blocks: str | None,
    simulated: bool,
    objective: str,
    seed: int,
    seconds: float | None,
    headroom: Headroom | None,
    what_if: WhatIf,
    as_json: bool,
    out: str | None,
) -> None:
    """The same question to many algorithms, in one table; a refusal is a row like any other.

    FILES are what the stage reads: for `move` two plans, OLD and NEW.
    Options of an algorithm are those of the file. The seconds are for each algorithm; one that does
    not keep to them is stopped. Ctrl-C keeps the rows that are there.
    """
    from headrace import planner
    from headrace.registry import names

    if stage not in ("size", "provision") and (rate, budget) != (None, None):
        raise click.UsageError("--rate and --budget are for --stage size and provision")
    if simulated and stage != "place":
        raise click.UsageError("--simulate is for --stage place")
    if stage == "move":
        if what_if or headroom is not None:
            raise click.UsageError("--stage move compares two plans that are there: nothing to try")
        show_movers(files, blocks, by, as_json, out)
        return
    if not files or blocks is not None:
        raise click.UsageError("give the files to plan; --blocks is for --stage move")

    def make(case: Case, factor: float) -> Sequence[Outcome]:
        limits, case = {"seed": seed, "seconds": seconds}, case.with_headroom(headroom)
        if stage == "place":
            found = planner.compare(case.problem, by, objective=objective, **limits)  # pyright: ignore[reportArgumentType]
        else:
            wanted = {"budget": budget, "rate": times(rate, factor)}
            found = planner.compare_counts(stage, case.workload, by, **wanted, **limits)  # pyright: ignore[reportArgumentType]
        return collect(found, len(by) or len(names(stage)), None if as_json else show_row)

    command = f"headrace compare {' '.join(files)} --stage {stage}"
    chosen = planner.yardstick(stage, objective, rate)
    found = answer(files, what_if, make, keeps_best=False)
    refuse_what_none_can_read(found.results)
    figures = simulate_rows(found.results, seed) if simulated else None
    finish(found, as_json, out, command, yardstick=chosen, simulated=figures)
    end(found.results)


def refuse_what_none_can_read(results: Sequence[Outcome]) -> None:
    """Raise the error of all rows where it is the same one, in the files."""
    from headrace.planner import Refusal

    errors = [result.error for result in results if isinstance(result, Refusal)]
    messages = {error.message for error in errors if isinstance(error, InvalidInput)}
    if len(errors) == len(results) > 1 == len(messages):
        raise errors[0]


def show_row(result: Outcome) -> None:
    """A result as it comes, in a line; the table of all of them follows at the end."""
    from headrace.figures import duration
    from headrace.words import result_in_a_line

    took = duration(result.seconds)
    echo(f"{result.scheduler:<18} {took:>8}  {result_in_a_line(result)}", err=True)


def simulate_rows(results: Sequence[Outcome], seed: int) -> dict[str, Simulation]:
    """What every plan does, by the name of its scheduler."""
    from headrace.library.simulation import simulate_shortly
    from headrace.planner import Plan

    return {r.scheduler: simulate_shortly(r, seed=seed) for r in results if isinstance(r, Plan)}


def show_movers(
    files: tuple[str, ...],
    blocks: str | None,
    by: tuple[str, ...],
    as_json: bool,
    out: str | None,
) -> None:
    """What each mover needs for the same change."""
    from headrace.move.blocks import Blocks
    from headrace.planner.moving import compare_movers

    if (len(files) == 2) == (blocks is not None) or len(files) not in (0, 2):
        raise click.UsageError("give two plan files, OLD and NEW, or --blocks")
    work = (plan_in(files[0]), plan_in(files[1])) if blocks is None else Blocks.parse(blocks)
    found = compare_movers(work, by)
    content = {"format": "headrace/1", "results": [row.to_json() for row in found]}

    def show() -> None:
        from headrace import terminal

        terminal.show(terminal.movers(found))

    deliver(content, show, as_json, out)

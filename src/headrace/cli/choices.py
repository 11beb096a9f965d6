"""Commands that choose counts and machines: size, provision, and plan, which runs all stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from headrace.cli.answers import answer, costly, end, explanation_json, finish
from headrace.cli.options import (
    FILES,
    HEADROOM,
    JSON,
    OPTION,
    OUT,
    SECONDS,
    SEED,
    STRICTLY,
    by_option,
    what_if,
)
from headrace.cli.shared import load_case, main, read_options, split

if TYPE_CHECKING:
    from headrace.library.case import Case
    from headrace.model.section import Headroom
    from headrace.model.what_if import WhatIf
    from headrace.planner import Outcome

BUDGET = click.option(
    "--budget", type=float, help="Most throughput within this cost per time unit."
)


@main.command()
@FILES
@by_option("size", default="headrace", show_default=True, help="Algorithm.")
@click.option(
    "--rate",
    type=float,
    help="Enough tasks for this rate, tuples/s over all spouts; absent: the largest there is.",
)
@OPTION
@SEED
@SECONDS
@HEADROOM
@what_if
@STRICTLY
@JSON
@OUT
def size(
    files: tuple[str, ...],
    by: str,
    rate: float | None,
    options: tuple[str, ...],
    seed: int,
    seconds: float | None,
    headroom: Headroom | None,
    what_if: WhatIf,
    as_json: bool,
    out: str | None,
) -> None:
    """Decide how many tasks each component gets on the given cluster.

    Rates are tuples/s over all spouts.
    """
    from headrace.library.verbs import size as size_case

    chosen = read_options(options)

    def make(case: Case, factor: float) -> Sequence[Outcome]:
        limits = {"rate": times(rate, factor), "seconds": seconds, "headroom": headroom}
        return [size_case(case, by, seed=seed, **limits, **chosen)]  # pyright: ignore[reportArgumentType]

    command = f"headrace size {' '.join(files)} --by {by}"
    found = answer(files, what_if, make)
    finish(found, as_json, out, command)
    end(found.results)


@main.command()
@FILES
@by_option("provision", default="headrace", show_default=True, help="Algorithm.")
@BUDGET
@click.option("--rate", type=float, help="Least cost for this rate, tuples/s over all spouts.")
@OPTION
@SEED
@SECONDS
@HEADROOM
@what_if
@STRICTLY
@JSON
@OUT
def provision(
    files: tuple[str, ...],
    by: str,
    budget: float | None,
    rate: float | None,
    options: tuple[str, ...],
    seed: int,
    seconds: float | None,
    headroom: Headroom | None,
    what_if: WhatIf,
    as_json: bool,
    out: str | None,
) -> None:
    """Decide which machines of the catalog to rent, and how many tasks run on them."""
    from headrace.library.verbs import provision as provision_case

    chosen = read_options(options)

    def make(case: Case, factor: float) -> Sequence[Outcome]:
        wanted = {"budget": budget, "rate": times(rate, factor)}
        limits = {**wanted, "seconds": seconds, "headroom": headroom}
        return [provision_case(case, by, seed=seed, **limits, **chosen)]  # pyright: ignore[reportArgumentType]

    command = f"headrace provision {' '.join(files)} --by {by}"
    found = answer(files, what_if, make)
    finish(found, as_json, out, command)
    end(found.results)


@main.command()
@FILES
@click.option(
    "--rate", type=float, help="For this rate, tuples/s over all spouts; absent: see below."
)
@BUDGET
@click.option(
    "--rent",
    is_flag=True,
    help="Rent machines of the catalog, although the files give a cluster; --budget does so too.",
)
@click.option(
    "--by",
    "stages",
    multiple=True,
    metavar="STAGE=NAME",
    help="Algorithm of a stage: provision, size or place; repeatable.",
)
@SEED
@SECONDS
@HEADROOM
@what_if
@STRICTLY
@JSON
@OUT
def plan(
    files: tuple[str, ...],
    rate: float | None,
    budget: float | None,
    rent: bool,
    stages: tuple[str, ...],
    seed: int,
    seconds: float | None,
    headroom: Headroom | None,
    what_if: WhatIf,
    as_json: bool,
    out: str | None,
) -> None:
    """All stages at once: which machines, how many tasks, which of them where.

    With a cluster: the counts for the largest rate, or for --rate. With a catalog and no cluster,
    or with --rent: the cheapest machines for --rate (absent: the spouts' rates), or the most
    throughput for --budget. A plan file among the files is the current plan: what moves is shown
    too.
    """
    from headrace.library.verbs import plan as plan_case

    by = {stage: str(name) for stage, name in split(stages)}
    running = load_case(files)

    def make(case: Case, factor: float) -> Sequence[Outcome]:
        wanted = {"rate": times(rate, factor), "budget": budget, "rent": rent}
        limits = {**wanted, "seconds": seconds, "headroom": headroom}
        return [plan_case(case, by=by, seed=seed, running=running, **limits)]  # pyright: ignore[reportArgumentType]

    found = answer(files, what_if, make)
    curve = None
    if out is not None and out.endswith(".html"):
        from headrace.planner import DEFAULT, cost_curve

        name, budgets = by.get("provision", DEFAULT), budget is not None and rate is None
        inputs = found.case.with_headroom(headroom).inputs
        curve = cost_curve(inputs, found.plan, name, budgets=budgets, seed=seed)
    why = {"explanation": explanation_json(found.plan)} if as_json else None
    command = f"headrace plan {' '.join(files)}"
    finish(found, as_json, out, command, more=why, curve=curve)
    if not as_json:
        from headrace import terminal

        terminal.show(terminal.stream_table(costly(found.plan)))
        if found.plan.change is not None:
            terminal.show("From the current plan:", terminal.difference(found.plan.change))
    end(found.results)


def times(rate: float | None, factor: float) -> float | None:
    """The rate asked for under the load asked about."""
    return None if rate is None else rate * factor

"""Commands that choose counts and machines: size, provision, and plan, which runs all stages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headrace.cli.shared import (
    FILES,
    JSON,
    OUT,
    answered,
    costly_of,
    explained,
    finish,
    main,
    parsed,
    read,
    split,
    what_if,
)
from headrace.provision import SCHEDULERS as PROVISIONERS
from headrace.size import SCHEDULERS as SIZERS

if TYPE_CHECKING:
    from headrace.model.read import Inputs
    from headrace.model.what_if import WhatIf
    from headrace.planner import Planned

OPTION = click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the algorithm; repeatable.",
)
SEED = click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same plan.")
SECONDS = click.option(
    "--seconds", type=click.FloatRange(min=0), help="Cut the search short after so many seconds."
)
BUDGET = click.option(
    "--budget", type=float, help="Most throughput within this cost per time unit."
)


@main.command()
@FILES
@click.option(
    "--by",
    type=click.Choice(list(SIZERS)),
    default="headrace",
    show_default=True,
    help="Algorithm.",
)
@click.option(
    "--rate",
    type=float,
    help="Enough tasks for this rate, tuples/s over all spouts; absent: the largest there is.",
)
@OPTION
@SEED
@SECONDS
@what_if
@JSON
@OUT
def size(
    files: tuple[str, ...], by: str, rate: float | None, options: tuple[str, ...], seed: int, seconds: float | None, what_if: WhatIf,
    as_json: bool, out: str | None,
) -> None:  # fmt: skip
    """Decide how many tasks each component gets on the given cluster; rates are tuples/s over all spouts."""
    from headrace import planner
    from headrace.model.workload import Workload

    def planned(inputs: Inputs, factor: float) -> list[Planned]:
        return [
            planner.size(
                Workload(inputs),
                by,
                rate=times(rate, factor),
                options=parsed(options),
                seed=seed,
                seconds=seconds,
            )
        ]

    finish(
        answered(files, what_if, planned),
        as_json,
        out,
        False,
        f"headrace size {' '.join(files)} --by {by}",
    )


@main.command()
@FILES
@click.option(
    "--by",
    type=click.Choice(list(PROVISIONERS)),
    default="headrace",
    show_default=True,
    help="Algorithm.",
)
@BUDGET
@click.option("--rate", type=float, help="Least cost for this rate, tuples/s over all spouts.")
@OPTION
@SEED
@SECONDS
@what_if
@JSON
@OUT
def provision(
    files: tuple[str, ...], by: str, budget: float | None, rate: float | None, options: tuple[str, ...], seed: int, seconds: float | None,
    what_if: WhatIf, as_json: bool, out: str | None,
) -> None:  # fmt: skip
    """Decide which machines of the catalog to rent, and how many tasks run on them."""
    from headrace import planner
    from headrace.model.workload import Workload

    def planned(inputs: Inputs, factor: float) -> list[Planned]:
        chosen, wanted = parsed(options), times(rate, factor)
        return [
            planner.provision(
                Workload(inputs),
                by,
                budget=budget,
                rate=wanted,
                options=chosen,
                seed=seed,
                seconds=seconds,
            )
        ]

    finish(
        answered(files, what_if, planned),
        as_json,
        out,
        False,
        f"headrace provision {' '.join(files)} --by {by}",
    )


@main.command()
@FILES
@click.option(
    "--rate", type=float, help="For this rate, tuples/s over all spouts; absent: see below."
)
@BUDGET
@click.option(
    "--by",
    "stages",
    multiple=True,
    metavar="STAGE=NAME",
    help="Algorithm of a stage: provision, size or place; repeatable.",
)
@SEED
@SECONDS
@what_if
@JSON
@OUT
def plan(
    files: tuple[str, ...], rate: float | None, budget: float | None, stages: tuple[str, ...], seed: int, seconds: float | None,
    what_if: WhatIf, as_json: bool, out: str | None,
) -> None:  # fmt: skip
    """All stages at once: which machines, how many tasks, which of them where.

    With a cluster: the counts for the largest rate, or for --rate. With a catalog and no cluster:
    the cheapest machines for --rate (absent: the spouts' rates), or the most throughput for
    --budget. A plan file among the files is the current plan: what moves is shown too.
    """
    from headrace import planner

    by = {stage: str(name) for stage, name in split(stages)}

    def planned(inputs: Inputs, factor: float) -> list[Planned]:
        return [
            planner.plan(
                inputs,
                rate=times(rate, factor),
                budget=budget,
                by=by,
                seed=seed,
                seconds=seconds,
                running=read(files),
            )
        ]

    answer = answered(files, what_if, planned)
    result = answer.results[0]
    curve = None
    if out is not None and out.endswith(".html"):
        name = by.get("provision", planner.DEFAULT)
        curve = planner.trade_off(
            answer.inputs, result, name, budgets=budget is not None and rate is None, seed=seed
        )
    finish(
        answer,
        as_json,
        out,
        False,
        f"headrace plan {' '.join(files)}",
        more={"explanation": explained(result)},
        curve=curve,
    )
    if not as_json:
        from headrace import terminal

        terminal.show(terminal.stream_table(costly_of(result)))
        if result.change is not None:
            terminal.show("From the current plan:", terminal.difference(result.change))


def times(rate: float | None, factor: float) -> float | None:
    """The rate asked for under the load asked about."""
    return None if rate is None else rate * factor

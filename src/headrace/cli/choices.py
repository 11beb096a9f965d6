"""Commands that choose counts and machines: size and provision."""

from __future__ import annotations

import click

from headrace.cli.shared import FILES, JSON, OUT, finish, main, parsed, read
from headrace.provision import SCHEDULERS as PROVISIONERS
from headrace.size import SCHEDULERS as SIZERS

OPTION = click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the algorithm; repeatable.")
SEED = click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same plan.")
SECONDS = click.option("--seconds", type=click.FloatRange(min=0), help="Cut the search short after so many seconds.")


@main.command()
@FILES
@click.option("--by", type=click.Choice(list(SIZERS)), default="headrace", show_default=True, help="Algorithm.")
@OPTION
@SEED
@SECONDS
@JSON
@OUT
def size(
    files: tuple[str, ...], by: str, options: tuple[str, ...], seed: int, seconds: float | None, as_json: bool, out: str | None
) -> None:
    """Decide how many tasks each component gets on the given cluster; rates are tuples/s over all spouts."""
    from headrace import planner
    from headrace.model.workload import Workload

    inputs = read(files)
    result = planner.size(Workload(inputs), by, options=parsed(options), seed=seed, seconds=seconds)
    finish([result], inputs, as_json, out, False, f"headrace size {' '.join(files)} --by {by}")


@main.command()
@FILES
@click.option("--by", type=click.Choice(list(PROVISIONERS)), default="headrace", show_default=True, help="Algorithm.")
@click.option("--budget", type=float, help="Most throughput within this cost per time unit.")
@click.option("--rate", type=float, help="Least cost for this rate, tuples/s over all spouts.")
@OPTION
@SEED
@SECONDS
@JSON
@OUT
def provision(
    files: tuple[str, ...], by: str, budget: float | None, rate: float | None, options: tuple[str, ...], seed: int, seconds: float | None,
    as_json: bool, out: str | None,
) -> None:  # fmt: skip
    """Decide which machines of the catalog to rent, and how many tasks run on them."""
    from headrace import planner
    from headrace.model.workload import Workload

    inputs = read(files)
    result = planner.provision(
        Workload(inputs), by, budget=budget, rate=rate, options=parsed(options), seed=seed, seconds=seconds
    )
    finish([result], inputs, as_json, out, False, f"headrace provision {' '.join(files)} --by {by}")

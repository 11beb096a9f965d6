"""The command that measures what an application's tuples cost."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.options import DATA, JSON, out_option
from headrace.cli.shared import echo, emit, main, read_options
from headrace.errors import InvalidInput
from headrace.spark import require_spark

if TYPE_CHECKING:
    from headrace.control.profiling import Cost


@main.command()
@click.argument("app")
@click.option(
    "--component", "components", multiple=True, metavar="NAME", help="Only this one; repeatable."
)
@click.option(
    "--on",
    "machine_type",
    default="*",
    show_default=True,
    help="What files call this machine's type; run it once on a machine of each.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=8),
    default=20_000,
    show_default=True,
    help="Rows of the largest batch.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="How often batches grow from an eighth of it to all.",
)
@click.option(
    "--input",
    "rows_file",
    type=click.Path(dir_okay=False),
    help="Rows of the sources, in Parquet; absent: numbers, as generators take them.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the application; repeatable.",
)
@out_option(*DATA, help="Write the sections here: .yaml, .json.")
@JSON
def profile(
    app: str,
    components: tuple[str, ...],
    machine_type: str,
    rows: int,
    repeats: int,
    rows_file: str | None,
    options: tuple[str, ...],
    out: str | None,
    as_json: bool,
) -> None:
    """Measure what an application's tuples cost on this machine, as sections to plan with."""
    require_spark("profile")  # applications are written for it; no Spark is started
    from headrace.control.profiling import profile_app, profile_document
    from headrace.run.apps import load, topology_of

    topology = topology_of(load(app), read_options(options))
    with tempfile.TemporaryDirectory(prefix="headrace-profile-") as folder:
        costs = profile_app(
            topology,
            Path(folder),
            rows=rows,
            repeats=repeats,
            make_rows=None if rows_file is None else rows_of(rows_file),
            components=components,
        )
    for cost in costs:
        echo(cost_line(cost), err=True)
    emit(profile_document(costs, machine_type), out, as_json)


def rows_of(file: str) -> Callable[[int, int], Any]:
    """Rows of a Parquet file, from the beginning again when they are used up."""
    import numpy as np
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(file)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file}: no Parquet file that can be read: {error}") from None
    if not table.num_rows:
        raise InvalidInput(f"{file}: holds no rows")

    def give(first: int, count: int) -> Any:
        return table.take(np.arange(first, first + count) % table.num_rows)

    return give


def cost_line(cost: Cost) -> str:
    """A component in one line."""
    a, b = cost.cpu_ms, cost.batch_ms
    most = f"{cost.most_per_s:,.0f}" if cost.cpu_ms.value > 0 else "any number of"
    line = (
        f"{cost.component}: {a.value:.4g} ms of CPU per tuple ({a.low:.4g} to {a.high:.4g}), "
        f"{b.value:.3g} ms per batch ({b.low:.3g} to {b.high:.3g}); a thread does {most} tuples/s"
    )
    for target, selectivity in cost.selectivity.items():
        line += f"; {selectivity:.4g} tuples of {cost.bytes.get(target, 0):.4g} bytes to {target}"
    return line

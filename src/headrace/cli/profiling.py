"""The command that measures what an application's tuples cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from headrace.cli.options import DATA, JSON, out_option
from headrace.cli.shared import echo, emit, load_case, main, print_json, read_options
from headrace.cli.stopping import end_on_terminate
from headrace.spark import require_spark

if TYPE_CHECKING:
    from headrace.control.profiling import Cost, Interval, Ramp
    from headrace.control.profiling_by_type import ThreadLimit


MOST_WAITING = 1.3  # times the CPU: more is worth a warning


@main.command()
@click.argument("app")
@click.option(
    "--component", "components", multiple=True, metavar="NAME", help="Only this one; repeatable."
)
@click.option(
    "--fleet",
    "cluster",
    type=click.Path(dir_okay=False),
    help="Hold a process to the CPU of a node of each type in this cluster file. "
    "Needs Linux and root.",
)
@click.option(
    "--on",
    "machine_types",
    multiple=True,
    metavar="TYPE",
    help="With --fleet: only this machine type; repeatable. Without: what files call this "
    "machine's type; absent: *, which is any.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=8),
    help="Rows of the largest batch; absent: as many as take 0.4 s of CPU.",
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
    cluster: str | None,
    machine_types: tuple[str, ...],
    rows: int | None,
    repeats: int,
    rows_file: str | None,
    options: tuple[str, ...],
    out: str | None,
    as_json: bool,
) -> None:
    """Measure what an application's tuples cost, as sections to plan with.

    On this machine as it is, or with --fleet on a limited node of each machine type.
    """
    if cluster is None and len(machine_types) > 1:
        raise click.UsageError("without --fleet there is one machine: give one --on")
    require_spark("profile")  # applications are written for it; no Spark is started
    from headrace.control.profiling import Ramp, profile_document, profile_report

    end_on_terminate()
    ramp = Ramp(app, read_options(options), rows, repeats, rows_file, components)
    if cluster is None:
        found = {machine_types[0] if machine_types else "*": profile_here(ramp)}
    else:
        found = profile_limited(ramp, cluster, machine_types)
    document = profile_document(found)
    if out is not None or not as_json:
        emit(document, out)
    if as_json:
        print_json({**document, "report": profile_report(found)})


def profile_here(ramp: Ramp) -> list[Cost]:
    """The costs on this machine as it is."""
    from headrace.control.profiling import profile_ramp
    from headrace.run.leftovers import scratch_folder, sweep_scratch

    sweep_scratch()
    with scratch_folder() as folder:
        costs = profile_ramp(ramp, folder / "run")
    for line in (*map(cost_line, costs), *wait_lines(costs, 100)):
        echo(line, err=True)
    return costs


def profile_limited(
    ramp: Ramp, cluster: str, machine_types: Sequence[str]
) -> Mapping[str, Sequence[Cost]]:
    """The costs on machine types of a cluster file."""
    from headrace.control.profiling_by_type import profile_types, thread_limits
    from headrace.model.cluster import nodes_of

    limits = thread_limits(nodes_of(load_case((cluster,)).inputs), machine_types)
    found: dict[str, list[Cost]] = {}
    for limit, costs in profile_types(ramp, limits, lambda x: echo(limit_line(x), err=True)):
        for line in (*map(cost_line, costs), *wait_lines(costs, limit.cpu)):
            echo(f"  {line}", err=True)
        found[limit.machine_type] = costs
    return found


def limit_line(limit: ThreadLimit) -> str:
    """A machine type in one line."""
    clock = f" of {limit.ghz:g} GHz" if limit.speed < 1 else ""
    return f"on {limit.machine_type}, a thread has {limit.cpu:g} points of CPU{clock}:"


def cost_line(cost: Cost) -> str:
    """A component in one line."""
    line = (
        f"{cost.component}: {figure(cost.cpu_ms)} ms of CPU per tuple, "
        f"{figure(cost.batch_ms)} ms per batch; "
        f"a thread does {figure(cost.most_per_s, ',.0f')} tuples/s"
    )
    for target, selectivity in cost.selectivity.items():
        line += f"; {selectivity:.4g} tuples of {cost.bytes.get(target, 0):.4g} bytes to {target}"
    return line


def wait_lines(costs: Sequence[Cost], cpu: float) -> list[str]:
    """A warning where threads waited longer than their CPU points explain, or nothing."""
    cpu_ms = sum(cost.cpu_ms.value for cost in costs)
    factor = sum(cost.wall_ms.value for cost in costs) * cpu / 100 / cpu_ms if cpu_ms > 0 else 1.0
    if factor < MOST_WAITING:
        return []
    longer = f"by the clock tuples took {factor:.2g} times what their CPU explains"
    return [f"{longer}: the machine was busy, or components wait for something"]


def figure(measured: Interval, digits: str = ".4g") -> str:
    """A figure and its interval; what has no upper bound is `any number`."""
    value, low, high = (
        "any number of" if x == math.inf else f"{x:{digits}}"
        for x in (measured.value, measured.low, measured.high)
    )
    return f"{value} ({low} to {high})" if measured.high < math.inf else f"{value} ({low} or more)"

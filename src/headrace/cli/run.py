"""The command that runs an application on Spark."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.deciding import Deciding, deciding, say_decision
from headrace.cli.fleet import FOLDER
from headrace.cli.options import JSON, AlgorithmName, by_option
from headrace.cli.serving import Serving, serving
from headrace.cli.shared import echo, emit, load_case, main, print_json, read_options
from headrace.errors import InvalidInput
from headrace.spark import require_spark

if TYPE_CHECKING:
    from headrace.control.live import Site
    from headrace.control.planning import LoopSettings
    from headrace.model.read import Inputs
    from headrace.model.topology import Topology
    from headrace.run.batches import BatchDone, Settings
    from headrace.run.engine import RunDone
    from headrace.run.placement import Placement

MASTERS = ("spark://", "k8s://", "yarn", "local")


@main.command()
@click.argument("app")
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(dir_okay=False),
    help="Where tasks run; a change of the file is a new plan.",
)
@click.option(
    "--fleet",
    "cluster",
    type=click.Path(dir_okay=False),
    help="Run on a local fleet of this cluster file's nodes.",
)
@click.option("--master", help="Run on an existing Spark cluster, such as spark://host:7077.")
@click.option(
    "--cluster",
    "described",
    type=click.Path(dir_okay=False),
    help="With --master: what its hosts are; absent: as many cores as their executors have.",
)
@click.option("--batches", type=click.IntRange(min=1), help="Stop after so many.")
@click.option("--once", is_flag=True, help="Take what the sources hold now, and end.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Least seconds from batch to batch.",
)
@click.option(
    "--checkpoint",
    type=click.Path(file_okay=False),
    help="The run's folder; absent: headrace-runs/<topology>.",
)
@click.option(
    "--telemetry",
    type=click.Path(file_okay=False),
    help="Write what tasks measured into this folder.",
)
@click.option(
    "--on-error",
    type=click.Choice(["stop", "quarantine"]),
    default="stop",
    show_default=True,
    help="If a component raises.",
)
@click.option(
    "--crowded",
    is_flag=True,
    help="Run also where a node has fewer cores than tasks of a stage: they queue.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the application; repeatable.",
)
@click.option(
    "--describe", is_flag=True, help="Print the topology as a file to plan, and run nothing."
)
@by_option(
    "place",
    help="The scheduler of the first plan, unless --plan or --first gives it, and of the loop's.",
)
@click.option("--first", type=AlgorithmName("place"), help="The scheduler of the first plan alone.")
@deciding(objective="batch")
@serving("Show it live in a browser meanwhile; the address is printed.")
@FOLDER
@JSON
def run(
    app: str,
    plan_file: str | None,
    cluster: str | None,
    master: str | None,
    described: str | None,
    batches: int | None,
    once: bool,
    interval: float,
    checkpoint: str | None,
    telemetry: str | None,
    on_error: Any,
    crowded: bool,
    options: tuple[str, ...],
    describe: bool,
    by: str | None,
    first: str | None,
    loop: Deciding,
    serving: Serving,
    folder: str,
    as_json: bool,
) -> None:
    """Run an application (a .py file or an example by name) on Spark, tasks where the plan says."""
    start = Start(plan_file, first or by or ("headrace" if loop.on else None), crowded)
    check_choices(cluster, master, described, start, loop.on, first or by)
    require_spark("run")
    from headrace.run.apps import load, topology_of
    from headrace.run.batches import Settings
    from headrace.run.state import Store

    topology = topology_of(load(app), read_options(options))
    if describe:
        # With the rule of the engine, for the planner.
        emit(replace(topology, core_per_task=True).document(), None)
        return
    asked = loop.settings(by or "headrace") if loop.on else None
    where = Path(checkpoint) if checkpoint is not None else Path("headrace-runs") / topology.name
    Store(where.resolve()).check(topology)  # before anything starts
    measured = Path(telemetry) if telemetry is not None else None
    if measured is None and (loop.on or serving.on):
        measured = where.resolve() / "telemetry"
    listener = Listener()
    settings = Settings(
        where.resolve(), batches=batches, once=once, interval_s=interval, telemetry=measured,
        on_error=on_error, listen=listener.listen,
    )  # fmt: skip
    with serving.beside(where):
        if cluster is None:
            done = run_on_master(topology, settings, start, master, described, asked)
        else:
            done = run_on_fleet(topology, settings, start, cluster, Path(folder), asked)
    listener.show_summary(where, done, as_json)


@dataclass(frozen=True, slots=True)
class Start:
    """The first plan: a file, or a scheduler's; and whether tasks may queue for cores."""

    file: str | None
    by: str | None
    crowded: bool


def check_choices(
    cluster: str | None,
    master: str | None,
    described: str | None,
    start: Start,
    adapts: bool,
    scheduler: str | None,
) -> None:
    """Refuse options that do not go together."""
    if cluster is not None and master is not None:
        raise click.UsageError("give --fleet or --master, not both")
    if described is not None and master is None:
        raise click.UsageError("--cluster says what the hosts of --master are; a fleet has its own")
    if master is not None and not master.startswith(MASTERS):
        raise InvalidInput(
            f"`{master}` is no master; one looks like spark://host:7077, "
            "k8s://https://host:443, yarn or local[4]"
        )
    alone = cluster is None and (master is None or master.startswith("local"))
    if (adapts or scheduler is not None) and alone:
        raise click.UsageError(
            "--adaptive, --advise, --by and --first need --fleet or --master: "
            "there must be nodes to plan on"
        )
    if start.file is not None and scheduler is not None and not adapts:
        raise click.UsageError("give --plan or --by, not both")


def run_on_master(
    topology: Topology,
    settings: Settings,
    start: Start,
    master: str | None,
    described: str | None,
    loop: LoopSettings | None,
) -> RunDone | None:
    """Run on an existing cluster, or in local mode; None if it was interrupted."""
    from headrace.control.live import on_master
    from headrace.model.cluster import nodes_of
    from headrace.run.placement import read_placement
    from headrace.spark import is_local

    places = {} if start.file is None else read_placement(start.file, topology).places
    nodes = {node for node, _ in places.values()}
    if nodes and (master is None or is_local(master)):
        say("in local mode there is one node: the plan's task counts are used, its places are not")
    known = None if described is None else load_case((described,)).inputs
    wanted = nodes if known is None else set(nodes_of(known))
    discover = known is None and start.file is None and start.by is not None
    with on_master(master, topology.name, wanted, discover=discover) as site, stop_on_interrupt():
        nodes_known = known or site.describe()
        first = plan_start(topology, nodes_known, start)
        return run_on_site(site, topology, settings, start, first, nodes_known, loop)
    return None


def run_on_fleet(
    topology: Topology,
    settings: Settings,
    start: Start,
    cluster: str,
    folder: Path,
    loop: LoopSettings | None,
) -> RunDone | None:
    """Run on a fleet; with a loop, plan again while it runs. None if it was interrupted."""
    from headrace.control.live import fleet_for, on_fleet
    from headrace.run.machines import machines_of
    from headrace.run.placement import check_cores, read_placement

    inputs = load_case((cluster,)).inputs
    if start.file is not None and not start.crowded:  # before anything starts
        cores = {machine.name: machine.cores for machine in machines_of([cluster])}
        check_cores(topology, read_placement(start.file, topology), cores)
    first = plan_start(topology, inputs, start)
    with (
        fleet_for(cluster, folder, say) as fleet,
        on_fleet(fleet, topology.name, folder=folder) as site,
        stop_on_interrupt(),
    ):
        return run_on_site(site, topology, settings, start, first, inputs, loop)
    return None


def plan_start(topology: Topology, cluster: Inputs, start: Start) -> Placement | None:
    """The first plan, if a scheduler is to make it."""
    from headrace.control.on_spark import plan_first
    from headrace.model.cluster import nodes_of

    if start.file is not None or start.by is None:
        return None
    return plan_first(topology, nodes_of(cluster), start.by)


def run_on_site(
    site: Site,
    topology: Topology,
    settings: Settings,
    start: Start,
    first: Placement | None,
    cluster: Inputs,
    loop: LoopSettings | None,
) -> RunDone:
    """Put the first plan in force, and run; with a loop, plan again meanwhile."""
    from headrace.control.live import decide_beside

    plan = site.put_in_force(topology, first, file=start.file, crowded=start.crowded, say=say)
    if loop is None:
        return site.run(topology, plan, settings)
    assert settings.telemetry is not None
    world = site.watch(topology, plan, cluster, settings.telemetry, settings.checkpoint, by=loop.by)
    with decide_beside(world, loop, say_decision, settings.listen) as listen:
        return site.run(topology, plan, replace(settings, listen=listen))


@contextmanager
def stop_on_interrupt() -> Generator[None]:
    """End quietly on Ctrl-C: a run can go on later."""
    try:
        yield
    except KeyboardInterrupt:
        say("stopped; run again to go on")


def say(message: str) -> None:
    echo(message, err=True)


class Listener:
    """Prints a line after every batch, and keeps what the summary needs."""

    def __init__(self) -> None:
        self.batches: list[BatchDone] = []

    def listen(self, done: BatchDone) -> None:
        self.batches.append(done)
        say(batch_line(done))

    def summary(self, where: Path, ended: RunDone | None) -> dict[str, Any]:
        """The run in numbers."""
        done = self.batches
        return {
            "batches": len(done),
            "tuples": sum(d.tuples for d in done),
            "seconds": [round(d.seconds, 3) for d in done],
            "remote_bytes": sum(d.remote_bytes for d in done),
            "total_bytes": sum(d.total_bytes for d in done),
            # As Spark counts what its shuffles read: compressed, unless that is turned off.
            "spark_remote_bytes": ended.spark_remote_bytes if ended is not None else None,
            "spark_total_bytes": ended.spark_total_bytes if ended is not None else None,
            "misplaced": sum(len(d.misplaced) for d in done),
            "quarantined": sum(d.failure is not None for d in done),
            "plans": list(dict.fromkeys(d.plan for d in done if d.plan is not None)),
            "checkpoint": str(where),
        }

    def show_summary(self, where: Path, ended: RunDone | None, as_json: bool) -> None:
        """Print the run in numbers."""
        numbers = self.summary(where, ended)
        if as_json:
            print_json({"format": "headrace/1", "run": numbers})
            return
        echo(
            f"{numbers['batches']} batches, {numbers['tuples']:,} tuples, "
            f"{numbers['misplaced']} tasks misplaced, "
            f"{numbers['quarantined']} batches put aside; to go on, run again with {where}"
        )
        if ended is not None:
            echo(
                f"between nodes: {numbers['remote_bytes']:,} bytes as tasks sent them, "
                f"{numbers['spark_remote_bytes']:,} as Spark read them from its shuffles"
            )


def batch_line(done: BatchDone) -> str:
    """A batch in one line."""
    line = (
        f"batch {done.batch}: {done.tuples:,} tuples in {done.seconds:.2f} s, "
        f"{done.remote_bytes:,} of {done.total_bytes:,} bytes between nodes"
    )
    if done.plan is not None:
        line += f", plan {done.plan}"
    if done.misplaced:
        line += f", {len(done.misplaced)} misplaced: {', '.join(done.misplaced[:5])}"
    return line if done.failure is None else f"{line}; put aside: {done.failure}"

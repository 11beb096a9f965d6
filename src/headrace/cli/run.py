"""Commands about live runs: run, and the history of what was decided while one ran."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.fleet import FOLDER
from headrace.cli.options import JSON, OBJECTIVES
from headrace.cli.shared import echo, emit, load_case, main, print_json, read_options
from headrace.errors import InvalidInput
from headrace.place import SCHEDULERS
from headrace.spark import require_spark

if TYPE_CHECKING:
    from headrace.control.loop import Entry, LoopSettings
    from headrace.model.topology import Topology
    from headrace.run.batches import BatchDone, Settings
    from headrace.run.engine import RunDone

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
@click.option(
    "--by",
    type=click.Choice(list(SCHEDULERS)),
    help="With --fleet and no --plan: the scheduler of the first plan.",
)
@click.option(
    "--adaptive",
    is_flag=True,
    help="With --fleet: measure, plan again while it runs, and move where it is worth it.",
)
@click.option("--advise", is_flag=True, help="As --adaptive, but recommend only.")
@click.option(
    "--every",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds between decisions.",
)
@click.option(
    "--horizon",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    help="Seconds in which a move must pay.",
)
@click.option(
    "--improve",
    type=click.FloatRange(0, 100),
    default=10.0,
    show_default=True,
    help="Percent that a move must gain.",
)
@click.option(
    "--objective",
    type=click.Choice(OBJECTIVES),
    default="batch",
    show_default=True,
    help="What plans are to be best at.",
)
@FOLDER
@JSON
def run(
    app: str,
    plan_file: str | None,
    cluster: str | None,
    master: str | None,
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
    adaptive: bool,
    advise: bool,
    every: float,
    horizon: float,
    improve: float,
    objective: str,
    folder: str,
    as_json: bool,
) -> None:
    """Run an application (a .py file or an example by name) on Spark, tasks where the plan says."""
    check_choices(cluster, master, plan_file, by, adapts := adaptive or advise)
    require_spark("run")
    from headrace.control.loop import LoopSettings
    from headrace.run.apps import load, topology_of
    from headrace.run.batches import Settings
    from headrace.run.state import Store

    topology = topology_of(load(app), read_options(options))
    if describe:
        # With the rule of the engine, for the planner.
        emit(replace(topology, core_per_task=True).document(), None)
        return
    where = Path(checkpoint) if checkpoint is not None else Path("headrace-runs") / topology.name
    Store(where.resolve()).check(topology)  # before anything starts
    measured = Path(telemetry) if telemetry is not None else None
    if measured is None and adapts:
        measured = where.resolve() / "telemetry"
    listener = Listener()
    settings = Settings(
        where.resolve(), batches=batches, once=once, interval_s=interval, telemetry=measured,
        on_error=on_error, listen=listener.listen,
    )  # fmt: skip
    if cluster is None:
        done = run_on_master(topology, settings, plan_file, master, crowded)
    else:
        loop = LoopSettings(
            objective, interval_s=every, horizon_s=horizon, improve_percent=improve,
            dwell_s=every, advise=advise,
        )  # fmt: skip
        by = by or ("headrace" if adapts and plan_file is None else None)
        fleet = Path(folder)
        done = run_on_fleet(
            topology, settings, plan_file, cluster, fleet, crowded, by, loop if adapts else None
        )
    listener.show_summary(where, done, as_json)


def check_choices(
    cluster: str | None, master: str | None, plan_file: str | None, by: str | None, adapts: bool
) -> None:
    """Refuse options that do not go together."""
    if cluster is not None and master is not None:
        raise click.UsageError("give --fleet or --master, not both")
    if master is not None and not master.startswith(MASTERS):
        raise InvalidInput(
            f"`{master}` is no master; one looks like spark://host:7077, "
            "k8s://https://host:443, yarn or local[4]"
        )
    if (adapts or by is not None) and cluster is None:
        raise click.UsageError(
            "--adaptive, --advise and --by need --fleet: "
            "the cluster file says what there is to plan on"
        )
    if by is not None and plan_file is not None:
        raise click.UsageError("give --plan or --by, not both")


def run_on_master(
    topology: Topology,
    settings: Settings,
    plan_file: str | None,
    master: str | None,
    crowded: bool,
) -> RunDone | None:
    """Run on an existing cluster, or in local mode; None if it was interrupted."""
    from headrace.control.live import on_master
    from headrace.run.placement import read_placement
    from headrace.spark import is_local

    places = {} if plan_file is None else read_placement(plan_file, topology).places
    nodes = {node for node, _ in places.values()}
    if nodes and (master is None or is_local(master)):
        say("in local mode there is one node: the plan's task counts are used, its places are not")
    with on_master(master, topology.name, nodes) as site, stop_on_interrupt():
        plan = site.put_in_force(topology, file=plan_file, crowded=crowded, say=say)
        return site.run(topology, plan, settings)
    return None


def run_on_fleet(
    topology: Topology,
    settings: Settings,
    plan_file: str | None,
    cluster: str,
    folder: Path,
    crowded: bool,
    by: str | None,
    loop: LoopSettings | None,
) -> RunDone | None:
    """Run on a fleet; with a loop, plan again while it runs. None if it was interrupted."""
    from headrace.control.live import decide_beside, fleet_for, on_fleet
    from headrace.control.on_spark import plan_first
    from headrace.model.cluster import nodes_of
    from headrace.run.machines import machines_of
    from headrace.run.placement import check_cores, read_placement

    inputs = load_case((cluster,)).inputs
    if plan_file is not None and not crowded:  # before anything starts
        cores = {machine.name: machine.cores for machine in machines_of([cluster])}
        check_cores(topology, read_placement(plan_file, topology), cores)
    start = None if by is None else plan_first(topology, nodes_of(inputs), by)
    with (
        fleet_for(cluster, folder, say) as fleet,
        on_fleet(fleet, topology.name) as site,
        stop_on_interrupt(),
    ):
        plan = site.put_in_force(topology, start, file=plan_file, crowded=crowded, say=say)
        if loop is None:
            return site.run(topology, plan, settings)
        assert settings.telemetry is not None
        world = site.watch(topology, plan, inputs, settings.telemetry, settings.checkpoint)
        with decide_beside(world, loop, say_decision, settings.listen) as listen:
            return site.run(topology, plan, replace(settings, listen=listen))
    return None


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
            "source_bytes": sum(d.source_bytes for d in done),
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
    if done.source_bytes:
        line += f", {done.source_bytes:,} from a source to its spout"
    if done.plan is not None:
        line += f", plan {done.plan}"
    if done.misplaced:
        line += f", {len(done.misplaced)} misplaced: {', '.join(done.misplaced[:5])}"
    return line if done.failure is None else f"{line}; put aside: {done.failure}"


def say_decision(entry: Entry) -> None:
    say(decision_line(entry))


def decision_line(entry: Entry) -> str:
    """A decision in one line."""
    what = "moves" if entry.applied else "would move" if entry.move else "stays"
    moved = f"; {entry.moved_tasks} tasks, {entry.moved_mb:g} MB" if entry.move else ""
    return f"{what}: {entry.reason}{moved}"


@main.command()
@click.argument("store", type=click.Path(path_type=Path, file_okay=False))
@JSON
def history(store: Path, as_json: bool) -> None:
    """Every decision of a run with --adaptive or --advise, from its folder."""
    from headrace.control.history import entries

    found = entries(store)
    if not found:
        raise InvalidInput(
            f"{store}: holds no decisions; "
            "a run with --adaptive or --advise keeps them in its folder"
        )
    if as_json:
        print_json({"format": "headrace/1", "decisions": [asdict(entry) for entry in found]})
        return
    for entry in found:
        at = datetime.fromtimestamp(entry.at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
        echo(f"{at}  {decision_line(entry)}")

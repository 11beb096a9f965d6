"""Commands that run things: run, history, fleet and export."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from headrace.cli.shared import FILES, JSON, OBJECTIVES, OUT, dumps, emit, main, parsed, read, save
from headrace.errors import InvalidInput, Unsupported
from headrace.place import SCHEDULERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.control.loop import Entry
    from headrace.control.loop import Settings as Loop
    from headrace.model.read import Inputs
    from headrace.run.batches import BatchDone, Settings
    from headrace.run.fleet import Fleet, Machine
    from headrace.run.limits import Limit
    from headrace.run.placement import Placement, PlanInForce
    from headrace.run.topology import Topology

MASTERS = ("spark://", "k8s://", "yarn", "local")

FLEET_FOLDER = click.option(
    "--folder",
    type=click.Path(file_okay=False),
    default=".headrace-fleet",
    show_default=True,
    help="Where its logs and files lie.",
)


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
@FLEET_FOLDER
@JSON
def run(
    app: str, plan_file: str | None, cluster: str | None, master: str | None, batches: int | None, once: bool, interval: float,
    checkpoint: str | None, telemetry: str | None, on_error: Any, crowded: bool, options: tuple[str, ...], describe: bool,
    by: str | None, adaptive: bool, advise: bool, every: float, horizon: float, improve: float, objective: str, folder: str, as_json: bool,
) -> None:  # fmt: skip
    """Run an application (a .py file, or an example by name) on Spark, each task where the plan puts it."""
    from headrace.control.loop import Settings as Loop
    from headrace.run.apps import load, topology_of
    from headrace.run.batches import Settings
    from headrace.run.fleet import machines_of
    from headrace.run.placement import check_cores, read_placement

    if cluster is not None and master is not None:
        raise click.UsageError("give --fleet or --master, not both")
    if master is not None and not master.startswith(MASTERS):
        raise InvalidInput(
            f"`{master}` is no master; one looks like spark://host:7077, k8s://https://host:443, yarn or local[4]"
        )
    topology = topology_of(load(app), parsed(options))
    if describe:
        emit(topology.document(), None)
        return
    loop = Loop(
        objective=objective,
        interval_s=every,
        horizon_s=horizon,
        improve_percent=improve,
        dwell_s=every,
        advise=advise,
    )
    adapts = adaptive or advise
    if (adapts or by is not None) and cluster is None:
        raise click.UsageError(
            "--adaptive, --advise and --by need --fleet: the cluster file says what there is to plan on"
        )
    if by is not None and plan_file is not None:
        raise click.UsageError("give --plan or --by, not both")
    seen: list[BatchDone] = []

    def listen(done: BatchDone) -> None:
        seen.append(done)
        click.echo(told(done), err=True)

    where = Path(checkpoint) if checkpoint is not None else Path("headrace-runs") / topology.name
    settings = Settings(
        where.resolve(), batches=batches, once=once, interval_s=interval, on_error=on_error, listen=listen,
        telemetry=Path(telemetry) if telemetry is not None else where.resolve() / "telemetry" if adapts else None,
    )  # fmt: skip
    with ExitStack() as ending:
        if cluster is None:
            run_on(topology, settings, plan_file, None, master, crowded)
        else:
            if plan_file is not None and not crowded:  # before anything starts
                check_cores(
                    topology,
                    read_placement(plan_file, topology),
                    {m.name: m.cores for m in machines_of([cluster])},
                )
            first = by or ("headrace" if adapts and plan_file is None else None)
            planning = Planning(read((cluster,)), first, loop if adapts else None, where.resolve())
            run_on(
                topology,
                settings,
                plan_file,
                fleet_of(cluster, Path(folder), ending),
                None,
                crowded,
                planning,
            )
    if as_json:
        click.echo(dumps({"format": "headrace/1", "run": summary(seen, where)}))
    else:
        found = summary(seen, where)
        click.echo(
            f"{found['batches']} batches, {found['tuples']:,} tuples, {found['misplaced']} tasks misplaced, "
            f"{found['quarantined']} batches put aside; to go on, run again with {where}"
        )


class Planning(NamedTuple):
    """What to plan on, and how: the scheduler of the first plan, the loop's settings, and where its decisions go."""

    cluster: Inputs
    first: str | None
    loop: Loop | None
    store: Path


def run_on(
    topology: Topology, settings: Settings, plan_file: str | None, fleet: Fleet | None, master: str | None, crowded: bool,
    planning: Planning | None = None,
) -> None:  # fmt: skip
    """Start a session where asked, check the plan against its executors, and run."""
    from dataclasses import replace

    import pyspark
    from py4j.protocol import Py4JError
    from pyspark.sql import SparkSession

    from headrace.run.cluster import executor_cores, wait_for_hosts
    from headrace.run.engine import run as run_topology
    from headrace.run.fleet import check_reachable
    from headrace.run.located import SETTINGS
    from headrace.run.placement import PlanInForce, check_cores, read_placement
    from headrace.spark import is_local, session

    first = None if plan_file is None else read_placement(plan_file, topology)
    if fleet is not None:
        master = fleet.master
    if master is not None:
        check_reachable(master)
    ours = SparkSession.getActiveSession() is None
    try:
        spark = session(
            app=topology.name,
            master=master,
            conf=SETTINGS | (fleet.settings() if fleet is not None else {}),
        )
    except Py4JError as error:
        if master is None or is_local(master):
            raise
        raise Unsupported(  # Spark's own words are a stack trace about its last step
            f"Spark could not start on {master}; what answers there may be no Spark master, or one of another version than {pyspark.__version__}"
        ) from error
    try:
        placed_ones = master is not None and not is_local(master)
        if not placed_ones and first is not None:
            click.echo(
                "in local mode there is one node: the plan's task counts are used, its places are not",
                err=True,
            )
        if fleet is not None:
            hosts = fleet.hosts
            wait_for_hosts(spark, hosts.values())
        elif placed_ones and first is not None:
            hosts = {node: node for node, _ in first.places.values()}
            wait_for_hosts(spark, hosts.values())
        else:
            hosts = None

        def check(placement: Placement) -> None:
            if hosts is not None:
                with suppress(
                    Unsupported
                ):  # a lost executor comes back within seconds; one that does not is named below
                    wait_for_hosts(
                        spark,
                        {hosts[node] for node, _ in placement.places.values() if node in hosts},
                        seconds=20,
                    )
                cores = executor_cores(spark)
                have = {node: cores[host] for node, host in hosts.items() if host in cores}
                check_cores(
                    topology, placement, dict.fromkeys(have, sys.maxsize) if crowded else have
                )

        start = first_plan(topology, planning)
        plan = PlanInForce(
            topology,
            start,
            file=plan_file,
            check=check,
            say=lambda message: click.echo(message, err=True),
        )
        settings = replace(settings, hosts=hosts)
        with ExitStack() as stack:
            if planning is not None and planning.loop is not None and fleet is not None:
                settings = stack.enter_context(
                    adapting(spark, topology, plan, settings, planning, fleet)
                )
            run_topology(spark, topology, plan, settings)
    except KeyboardInterrupt:
        click.echo("stopped; run again to go on", err=True)
    finally:
        if ours:
            spark.sparkContext.setLogLevel(
                "OFF"
            )  # executors that go away while the session ends are no news
            spark.stop()


def first_plan(topology: Topology, planning: Planning | None) -> Placement | None:
    """A plan made before anything was measured."""
    if planning is None or planning.first is None:
        return None
    from headrace.control.on_spark import placement_of, problem_of
    from headrace.model.cluster import nodes_of
    from headrace.planner import place

    nodes = nodes_of(planning.cluster)
    return placement_of(
        place(problem_of(topology, nodes, {}, None), planning.first), planning.first, nodes
    )


@contextmanager
def adapting(
    spark: SparkSession,
    topology: Topology,
    plan: PlanInForce,
    settings: Settings,
    planning: Planning,
    fleet: Fleet,
) -> Generator[Settings]:
    """The same run with the loop beside it: measuring takes seconds, and no batch waits for them."""
    from dataclasses import replace

    from headrace.control.on_spark import OnSpark, after_batches, aside
    from headrace.run.cluster import executor_cores

    assert settings.telemetry is not None
    assert planning.loop is not None

    def there() -> set[str]:
        hosts = executor_cores(spark)
        return {node for node, host in fleet.hosts.items() if host in hosts}

    world = OnSpark(
        spark, topology, planning.cluster, plan, settings.telemetry, planning.store, there
    )
    listen = settings.listen
    with aside() as do:
        decide = after_batches(
            world, planning.loop, lambda entry: click.echo(decided(entry), err=True), do
        )

        def both(done: BatchDone) -> None:
            listen(done)
            decide(done)

        yield replace(settings, listen=both)


def decided(entry: Entry) -> str:
    """A decision in one line."""
    what = "moves" if entry.applied else "would move" if entry.move else "stays"
    moved = f"; {entry.moved_tasks} tasks, {entry.moved_mb:g} MB" if entry.move else ""
    return f"{what}: {entry.reason}{moved}"


@main.command()
@click.argument("store", type=click.Path(path_type=Path, file_okay=False))
@JSON
def history(store: Path, as_json: bool) -> None:
    """Every decision of a run with --adaptive or --advise, from its folder."""
    from dataclasses import asdict

    from headrace.control.history import entries

    found = entries(store)
    if not found:
        raise InvalidInput(
            f"{store}: holds no decisions; a run with --adaptive or --advise keeps them in its folder"
        )
    if as_json:
        click.echo(dumps({"format": "headrace/1", "decisions": [asdict(entry) for entry in found]}))
        return
    for entry in found:
        at = datetime.fromtimestamp(entry.at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
        click.echo(f"{at}  {decided(entry)}")


def fleet_of(cluster: str, folder: Path, ending: ExitStack) -> Fleet:
    """The fleet that is up, if it has this cluster's machines, else one for this run alone."""
    from headrace.run.fleet import found, local_fleet, machines_of

    machines, running = machines_of([cluster]), found(folder)
    if running is not None:
        if not running.stands_for(machines):
            raise InvalidInput(
                f"the fleet that is up ({folder}) has other machines than {cluster}; end it with headrace fleet down"
            )
        return running
    click.echo(f"starting a fleet of {len(machines)} workers for this run ..", err=True)
    import tempfile

    scratch = ending.enter_context(tempfile.TemporaryDirectory(prefix="headrace-fleet-"))
    return ending.enter_context(local_fleet(machines, Path(scratch)))


def told(done: BatchDone) -> str:
    """A batch in one line."""
    line = f"batch {done.batch}: {done.tuples:,} tuples in {done.seconds:.2f} s, {done.remote_bytes:,} of {done.total_bytes:,} bytes between nodes"
    line += f", plan {done.plan}" if done.plan is not None else ""
    line += (
        f", {len(done.misplaced)} misplaced: {', '.join(done.misplaced[:5])}"
        if done.misplaced
        else ""
    )
    return line + (f"; put aside: {done.failure}" if done.failure is not None else "")


def summary(seen: list[BatchDone], where: Path) -> dict[str, Any]:
    """A run in numbers."""
    return {
        "batches": len(seen),
        "tuples": sum(done.tuples for done in seen),
        "seconds": [round(done.seconds, 3) for done in seen],
        "remote_bytes": sum(done.remote_bytes for done in seen),
        "total_bytes": sum(done.total_bytes for done in seen),
        "misplaced": sum(len(done.misplaced) for done in seen),
        "quarantined": sum(done.failure is not None for done in seen),
        "plans": list(dict.fromkeys(done.plan for done in seen if done.plan is not None)),
        "checkpoint": str(where),
    }


@main.group()
def fleet() -> None:
    """A standalone Spark cluster on this machine, one worker per node of a cluster file."""


@fleet.command()
@FILES
@click.option("--port", type=click.IntRange(1, 65535), help="Of the master; absent: a free one.")
@click.option(
    "--limit",
    "limits",
    type=click.Choice(["bandwidth", "cpu"]),
    multiple=True,
    help="Hold every node to its `bandwidth_mbps` or its `cpu`; repeatable. Needs Linux and root.",
)
@FLEET_FOLDER
@JSON
def up(
    files: tuple[str, ...], port: int | None, limits: tuple[Limit, ...], folder: str, as_json: bool
) -> None:
    """Start a fleet; it stays up until `fleet down`."""
    from headrace.run.fleet import up as start

    click.echo("starting the master and the workers, which takes about half a minute ..", err=True)
    running = start(files, Path(folder), port=port, limits=tuple(dict.fromkeys(limits)))
    show_fleet(running, as_json)


@fleet.command()
@FLEET_FOLDER
@JSON
def status(folder: str, as_json: bool) -> None:
    """Which workers are up."""
    from headrace.run.fleet import found

    running = found(Path(folder))
    if running is None:
        raise InvalidInput(
            f"no fleet is up in {folder}; start one with headrace fleet up CLUSTER_FILE"
        )
    show_fleet(running, as_json)


@fleet.command()
@FLEET_FOLDER
def down(folder: str) -> None:
    """End the fleet and all its daemons."""
    from headrace.run.fleet import down as end

    click.echo("the fleet is down" if end(Path(folder)) else f"no fleet is up in {folder}")


def show_fleet(running: Fleet, as_json: bool) -> None:
    """The master and the workers."""
    from headrace.run.fleet import alive

    there = alive(running)
    if as_json:
        rows = [
            {"node": m.name, "host": m.host, "cores": m.cores, "memory_mb": m.memory_mb, "alive": m.name in there, "limits": held(m, running.limits)}
            for m in running.machines
        ]  # fmt: skip
        click.echo(
            dumps(
                {
                    "format": "headrace/1",
                    "fleet": {"master": running.master, "pid": running.pid, "workers": rows},
                }
            )
        )
        return
    click.echo(f"master {running.master}")
    for m in running.machines:
        limits = "".join(f"  {name} {value:g}" for name, value in held(m, running.limits).items())
        state = "up" if m.name in there else "LOST"
        click.echo(
            f"  {m.name:<16} {m.host:<12} {m.cores:>3} cores {m.memory_mb:>7} MB  {state:<4}{limits}".rstrip()
        )


def held(machine: Machine, limits: tuple[Limit, ...]) -> dict[str, float]:
    """The limits that a worker is held to, by the names that a cluster file has for them."""
    known = {
        "bandwidth_mbps": machine.bandwidth_mbps if "bandwidth" in limits else None,
        "cpu": machine.cpu if "cpu" in limits else None,
    }
    return {name: value for name, value in known.items() if value is not None}


@main.group()
def export() -> None:
    """Turn a plan into settings for executors that others start."""


@export.command()
@FILES
@OUT
def spark(files: tuple[str, ...], out: str | None) -> None:
    """Executor counts and shapes, as spark-submit settings."""
    from headrace.run.export import spark as settings

    emit(settings(read(files)), out)


@export.command()
@FILES
@click.option(
    "--label",
    default="kubernetes.io/hostname",
    show_default=True,
    help="The node label that holds the plan's node names.",
)
@OUT
def kubernetes(files: tuple[str, ...], label: str, out: str | None) -> None:
    """Pod templates for executors: one per shape, with the nodes it may stand on."""
    import yaml

    from headrace.run.export import kubernetes as pods

    text = yaml.safe_dump_all(pods(read(files), label=label), sort_keys=False, width=130)
    if out is None:
        click.echo(text, nl=False)
    else:
        save(out, text)
        click.echo(f"wrote {out}", err=True)

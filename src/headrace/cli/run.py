"""The command that runs an application on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from headrace.cli.deciding import Deciding, deciding, say_decision
from headrace.cli.fleet import FOLDER
from headrace.cli.options import JSON, AlgorithmName, by_option
from headrace.cli.run_jobs import make_job, make_topologies, show_topologies
from headrace.cli.run_lines import Job, say, show_summaries
from headrace.cli.serving import Serving, serving
from headrace.cli.shared import load_case, main
from headrace.cli.stopping import end_on_terminate, stop_on_interrupt
from headrace.errors import InvalidInput
from headrace.spark import require_spark

if TYPE_CHECKING:
    from headrace.control.live import Site
    from headrace.control.on_spark import OnSpark
    from headrace.control.planning import LoopSettings
    from headrace.model.read import Inputs
    from headrace.run.batches import BatchDone
    from headrace.run.engine import RunDone
    from headrace.run.placement import Placement, PlanInForce

TOGETHER = "traffic"  # what several topologies have in common; batches they have not
MASTERS = ("spark://", "k8s://", "yarn", "local")


@main.command()
@click.argument("apps", nargs=-1, required=True, metavar="APP..")
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
    help="The run's folder, of several the folder of their folders; "
    "absent: headrace-runs/<topology>.",
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
    help="An option of the application, of one of several as APP:KEY=VALUE; repeatable.",
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
@click.pass_context
def run(
    ctx: click.Context,
    apps: tuple[str, ...],
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
    """Run applications (.py files or examples by name) on Spark, tasks where the plan says.

    Several share the nodes under one plan, in the order of their priority, then of the command.
    """
    # Longer than 60 lines: a parameter for each option.
    start = Start(plan_file, first or by or ("headrace" if loop.on else None), crowded)
    check_choices(cluster, master, described, start, loop.on, first or by)
    require_spark("run")
    topologies = make_topologies(apps, options)
    if describe:
        show_topologies(topologies)
        return
    if len(topologies) > 1 and ctx.get_parameter_source("objective") == ParameterSource.DEFAULT:
        loop = replace(loop, objective=TOGETHER)
    asked = loop.settings(by or "headrace") if loop.on else None
    if len(topologies) > 1 and asked is not None and asked.objective == "batch":
        raise click.UsageError("several topologies have no batch in common: choose --objective")
    end_on_terminate()
    jobs = [
        make_job(
            topology, checkpoint, telemetry, several=len(topologies) > 1,
            measures=loop.on or serving.on,
            batches=batches, once=once, interval_s=interval, on_error=on_error,
        )
        for topology in topologies
    ]  # fmt: skip
    shown = jobs[0].where if len(jobs) == 1 else jobs[0].where.parent
    with serving.beside(shown):
        if cluster is None:
            done = run_on_master(jobs, start, master, described, asked)
        else:
            done = run_on_fleet(jobs, start, cluster, Path(folder), asked)
    show_summaries(jobs, done, as_json)


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
    jobs: Sequence[Job],
    start: Start,
    master: str | None,
    described: str | None,
    loop: LoopSettings | None,
) -> Mapping[str, RunDone]:
    """Run on an existing cluster, or in local mode; empty if it was interrupted."""
    from headrace.control.live import on_master
    from headrace.model.cluster import nodes_of
    from headrace.run.placement import read_placement
    from headrace.spark import is_local

    nodes: set[str] = set()
    if start.file is not None:
        for job in jobs:
            nodes |= {node for node, _ in read_placement(start.file, job.topology).places.values()}
    if nodes and (master is None or is_local(master)):
        say("in local mode there is one node: the plan's task counts are used, its places are not")
    known = None if described is None else load_case((described,)).inputs
    wanted = nodes if known is None else set(nodes_of(known))
    discover = known is None and start.file is None and start.by is not None
    name = "+".join(job.topology.name for job in jobs)
    with on_master(master, name, wanted, discover=discover) as site, stop_on_interrupt():
        nodes_known = known or site.describe()
        return run_on_site(
            site, jobs, start, plan_start(jobs, nodes_known, start), nodes_known, loop
        )
    return {}


def run_on_fleet(
    jobs: Sequence[Job], start: Start, cluster: str, folder: Path, loop: LoopSettings | None
) -> Mapping[str, RunDone]:
    """Run on a fleet; with a loop, plan again while it runs. Empty if it was interrupted."""
    from headrace.control.live import fleet_for, on_fleet
    from headrace.run.machines import machines_of
    from headrace.run.placement import check_cores, read_placement

    inputs = load_case((cluster,)).inputs
    if start.file is not None and not start.crowded:  # before anything starts
        cores = {machine.name: machine.cores for machine in machines_of([cluster])}
        for job in jobs:
            check_cores(job.topology, read_placement(start.file, job.topology), cores)
    first = plan_start(jobs, inputs, start)
    name = "+".join(job.topology.name for job in jobs)
    with (
        fleet_for(cluster, folder, say) as fleet,
        on_fleet(fleet, name, folder=folder) as site,
        stop_on_interrupt(),
    ):
        return run_on_site(site, jobs, start, first, inputs, loop)
    return {}


def plan_start(jobs: Sequence[Job], cluster: Inputs, start: Start) -> Mapping[str, Placement]:
    """The first plan of each topology, if a scheduler is to make it."""
    from headrace.control.on_spark import plan_first
    from headrace.control.several import plan_first_together
    from headrace.model.cluster import nodes_of

    if start.file is not None or start.by is None:
        return {}
    topologies, nodes = [job.topology for job in jobs], nodes_of(cluster)
    if len(topologies) == 1:
        return {topologies[0].name: plan_first(topologies[0], nodes, start.by)}
    return plan_first_together(topologies, nodes, start.by)


def run_on_site(
    site: Site,
    jobs: Sequence[Job],
    start: Start,
    first: Mapping[str, Placement],
    cluster: Inputs,
    loop: LoopSettings | None,
) -> Mapping[str, RunDone]:
    """Put the first plans in force, and run; with a loop, plan again meanwhile."""
    plans = {
        job.topology.name: site.put_in_force(
            job.topology,
            first.get(job.topology.name),
            file=start.file,
            crowded=start.crowded,
            say=say,
        )
        for job in jobs
    }
    if loop is None:
        return site.run_together(
            {j.topology.name: (j.topology, plans[j.topology.name], j.settings) for j in jobs}
        )
    worlds = [
        site.watch(job.topology, plans[job.topology.name], cluster, job.telemetry,
                   job.settings.checkpoint, by=loop.by)
        for job in jobs
    ]  # fmt: skip
    if len(jobs) == 1:
        return run_alone(site, jobs[0], plans, worlds[0], loop)
    return run_beside(site, jobs, plans, worlds, loop)


def run_alone(
    site: Site, job: Job, plans: Mapping[str, PlanInForce], world: OnSpark, loop: LoopSettings
) -> Mapping[str, RunDone]:
    """Run one topology, and decide meanwhile."""
    from headrace.control.live import decide_beside

    name = job.topology.name
    with decide_beside(world, loop, say_decision, job.listener.listen) as listen:
        settings = replace(job.settings, listen=listen)
        return {name: site.run(job.topology, plans[name], settings)}


def run_beside(
    site: Site,
    jobs: Sequence[Job],
    plans: Mapping[str, PlanInForce],
    worlds: Sequence[OnSpark],
    loop: LoopSettings,
) -> Mapping[str, RunDone]:
    """Run topologies beside each other, and decide for all of them."""
    from headrace.control.live import decide_together
    from headrace.control.several import Together

    by_name = {job.topology.name: job for job in jobs}
    shared = jobs[0].settings.checkpoint.parent / "+".join(by_name)
    world = Together(worlds, shared)

    def listen(name: str, done: BatchDone) -> None:
        by_name[name].listener.listen(done)

    with decide_together(world, loop, say_decision, listen) as listener_of:
        return site.run_together(
            {
                name: (job.topology, plans[name], replace(job.settings, listen=listener_of(name)))
                for name, job in by_name.items()
            },
            world.over.add,
        )

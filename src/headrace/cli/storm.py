"""Commands about Apache Storm: a local cluster, and the service that plans a cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.deciding import Duration, history, say_decision
from headrace.cli.options import FILES, JSON, OBJECTIVES, AlgorithmName, by_option
from headrace.cli.shared import echo, main, print_json, split
from headrace.errors import InvalidInput

if TYPE_CHECKING:
    from headrace.run.limits import Limit
    from headrace.storm.local import StormCluster
    from headrace.storm.state import State

FOLDER = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=".headrace-storm",
    show_default=True,
    help="Where a local cluster has its files.",
)
STORE = click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    default="headrace-storm",
    show_default=True,
    help="Where the service keeps plans, telemetry and decisions.",
)
VERSION = click.option("--version", default="2.8.3", show_default=True, help="Of Storm.")


@main.group()
def storm() -> None:
    """Apache Storm: a cluster on this machine, and the service whose plans a cluster follows."""


@storm.command()
@FILES
@VERSION
@click.option(
    "--limit",
    "limits",
    type=click.Choice(["bandwidth", "cpu"]),
    multiple=True,
    help="Hold every node to its `bandwidth_mbps` or its `cpu`; repeatable. Needs Linux and root.",
)
@click.option("--no-telemetry", is_flag=True, help="Leave out the hook that measures.")
@click.option(
    "--plans",
    type=click.Path(path_type=Path, file_okay=False),
    help="Follow the plan files of this folder, instead of a service.",
)
@FOLDER
@JSON
def up(
    files: tuple[str, ...],
    version: str,
    limits: tuple[Limit, ...],
    no_telemetry: bool,
    plans: Path | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Start ZooKeeper, Nimbus and a supervisor per node of the files; up until `storm down`."""
    from headrace.storm.keeper import start_storm
    from headrace.storm.local import has_namespaces

    def say(text: str) -> None:
        echo(text, err=True)

    if not has_namespaces():
        say("note: without root, iproute2 and Linux, Storm's daemons listen on every address")
    say("starting ZooKeeper, Nimbus and the supervisors, which takes about half a minute ..")
    options: dict[str, Any] = {"hook": not no_telemetry}
    if plans is not None:
        plans.mkdir(parents=True, exist_ok=True)
        options["source"] = {"headrace.plans": str(plans.resolve())}
    chosen = tuple(dict.fromkeys(limits))
    found = [Path(file) for file in files]
    cluster = start_storm(found, folder, version=version, limits=chosen, options=options, say=say)
    show_cluster(cluster, as_json)


@storm.command()
@FOLDER
@JSON
def down(folder: Path, as_json: bool) -> None:
    """End the local cluster and everything that runs on it."""
    from headrace.storm.keeper import stop_storm

    ended = stop_storm(folder)
    if as_json:
        print_json({"format": "headrace/1", "storm": {"folder": str(folder), "ended": ended}})
    else:
        echo("the Storm cluster is down" if ended else f"no Storm cluster is up in {folder}")


@storm.command()
@click.argument("topology")
@click.option("--name", help="Absent: the topology's own.")
@click.option("--set", "values", multiple=True, metavar="KEY=VALUE", help="A parameter.")
@click.option("--main", "main_class", help="With a jar: the class that submits.")
@click.argument("arguments", nargs=-1)
@FOLDER
@JSON
def submit(
    topology: str,
    name: str | None,
    values: tuple[str, ...],
    main_class: str | None,
    arguments: tuple[str, ...],
    folder: Path,
    as_json: bool,
) -> None:
    """Submit an example topology, or a jar with --main, to the local cluster.

    Examples are word-count, exclamation, rolling-count, unique-visitors, linear, diamond and star.
    """
    from headrace.storm.java import TOPOLOGIES, submit_example, submit_jar
    from headrace.storm.keeper import need_storm

    cluster = need_storm(folder)
    if topology.endswith(".jar"):
        if main_class is None:
            raise InvalidInput(f"{topology}: a jar needs --main, the class that submits")
        submit_jar(cluster, Path(topology), main_class, arguments)
    elif topology in TOPOLOGIES:
        submit_example(cluster, topology, name or topology, dict(split(values)))
    else:
        known = ", ".join(TOPOLOGIES)
        raise InvalidInput(f"there is no topology `{topology}`; there are {known}, or a .jar")
    nimbus = f"{cluster.nimbus}:{cluster.port}"
    if as_json:
        print_json({"format": "headrace/1", "topology": name or topology, "nimbus": nimbus})
    else:
        echo(f"{name or topology} is submitted to {nimbus}")


@storm.command()
@click.argument("files", nargs=-1, type=click.Path())
@by_option("place", default="headrace", show_default=True, help="The scheduler.")
@click.option(
    "--objective",
    type=click.Choice(OBJECTIVES),
    default="traffic",
    show_default=True,
    help="What to be best at.",
)
@click.option(
    "--rule",
    type=AlgorithmName("rule"),
    default="gain",
    show_default=True,
    help="When to move; or package.module:function.",
)
@click.option("--rule-option", "rule_options", multiple=True, metavar="KEY=VALUE")
@click.option("--by-option", "by_options", multiple=True, metavar="KEY=VALUE")
@click.option("--every", type=Duration(), default="60s", show_default=True, help="Decisions.")
@click.option("--advise", is_flag=True, help="Recommend only; Storm's fallback places.")
@click.option("--port", type=click.IntRange(1, 65535), default=7274, show_default=True)
@click.option("--host", help="Absent: loopback, or the bridge of the local cluster.")
@click.option(
    "--telemetry",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where Storm's workers write; absent: the local cluster's.",
)
@STORE
@FOLDER
@JSON
def serve(
    files: tuple[str, ...],
    by: str,
    objective: str,
    rule: str,
    rule_options: tuple[str, ...],
    by_options: tuple[str, ...],
    every: float,
    advise: bool,
    port: int,
    host: str | None,
    telemetry: Path | None,
    store: Path,
    folder: Path,
    as_json: bool,
) -> None:
    """Answer Nimbus with plans, and keep its topologies where they should be.

    FILES say what Storm does not know of its nodes, such as `bandwidth_mbps`. With --json, the
    address is an object on stdout; decisions are said on stderr.
    """
    from headrace.control.planning import LoopSettings
    from headrace.registry import find
    from headrace.spark import require_spark
    from headrace.storm.keeper import find_storm
    from headrace.storm.service import make_world, serve_until_signal
    from headrace.storm.world import RESTART_S

    require_spark("storm serve")  # telemetry is read with pyarrow
    cluster = find_storm(folder)
    options, rule_given = dict(split(by_options)), dict(split(rule_options))
    find("place", by).checked_options(options)
    find("rule", rule).checked_options(rule_given)
    settings = LoopSettings(
        objective, by, options, rule, rule_given, every, advise=advise, restart_s=RESTART_S
    )
    source = telemetry or (None if cluster is None else cluster.telemetry)
    address = host or ("127.0.0.1" if cluster is None else cluster.host)
    world = make_world(store, files, cluster, source, by)
    here = f"http://{address}:{port}"
    if as_json:
        print_json({"format": "headrace/1", "address": here, "store": str(store)})
        sys.stdout.flush()
    echo(f"answering Nimbus at {here}; decisions are kept in {store}", err=True)
    serve_until_signal(world, settings, say_decision, port, address)


@storm.command()
@STORE
@JSON
def status(store: Path, as_json: bool) -> None:
    """The cluster as Nimbus last described it, and whether every executor is where it should be."""
    from headrace.storm.state import misplaced
    from headrace.storm.world import OnStorm

    world = OnStorm(store)
    state, plans = need_state(world.state(), store), world.plans()
    wrong = misplaced(state, plans)
    if as_json:
        rows = [
            {
                "id": running.id,
                "name": running.name,
                "plan": plans.get(running.id, {}).get("name"),
                "executors": len(running.executors),
                "homeless": len(running.homeless),
                "misplaced": [n for n in wrong if n.startswith(f"{running.name}/")],
            }
            for running in state.topologies
        ]
        content = {"at_s": state.at_s, "storm": state.storm, "nodes": list(state.nodes)}
        print_json({"format": "headrace/1", "storm": {**content, "topologies": rows}})
        return
    echo(f"Storm {state.storm}, nodes {', '.join(state.nodes) or 'none'}")
    for running in state.topologies:
        plan = plans.get(running.id)
        here = [n for n in wrong if n.startswith(f"{running.name}/")]
        words = "no plan" if plan is None else f"{plan['name']}, {len(here)} not in place"
        echo(f"  {running.name:<20} {len(running.executors):>5} executors  {words}")


@storm.command("plan")
@click.argument("topology", required=False)
@STORE
@JSON
def show_plan(topology: str | None, store: Path, as_json: bool) -> None:
    """The plans in force: node and worker of every executor."""
    from headrace.storm.world import OnStorm

    world = OnStorm(store)
    state, plans = need_state(world.state(), store), world.plans()
    names = {running.id: running.name for running in state.topologies}
    chosen = {names.get(id, id): plan for id, plan in plans.items()}
    if topology is not None:
        if topology not in chosen:
            known = ", ".join(chosen) or "none"
            raise InvalidInput(f"there is no plan for `{topology}`; there are: {known}")
        chosen = {topology: chosen[topology]}
    if as_json:
        print_json({"format": "headrace/1", "plans": chosen})
        return
    for name, plan in chosen.items():
        echo(f"{name}: {plan['name']}")
        workers: dict[tuple[str, int], list[str]] = {}
        for executor, place in plan["assignment"].items():
            workers.setdefault((place["node"], place["worker"]), []).append(executor)
        for (node, worker), executors in sorted(workers.items()):
            echo(f"  {node} worker {worker}: {', '.join(executors)}")


@storm.command("history")
@STORE
@JSON
@click.pass_context
def show_history(ctx: click.Context, store: Path, as_json: bool) -> None:
    """Every decision of the service with its reason."""
    ctx.invoke(history, store=store, provenance=False, window=60.0, since=None, until=None,
               telemetry=None, as_json=as_json)  # fmt: skip


@storm.command()
@click.option(
    "--to", "home", required=True, type=click.Path(path_type=Path, file_okay=False),
    help="STORM_HOME of the cluster.",
)  # fmt: skip
@click.option("--address", default="http://127.0.0.1:7274", show_default=True, help="Of serve.")
@click.option("--telemetry", default="/var/storm/headrace/telemetry", show_default=True)
@click.option("--copy", is_flag=True, help="Copy the jar into this STORM_HOME, too.")
@JSON
def install(home: Path, address: str, telemetry: str, copy: bool, as_json: bool) -> None:
    """Print what to copy and set on a cluster of one's own."""
    import yaml

    from headrace.storm.install import copy_jars, installation, storm_version
    from headrace.storm.jars import VERSION, find_jars

    jars = find_jars(storm_version(home) or VERSION, lambda text: echo(text, err=True))
    plan = installation(jars, home, address, telemetry)
    if copy:
        copy_jars(plan)
    if as_json:
        copies = [str(target) for target in plan.copies]
        settings = {"nimbus": plan.nimbus, "supervisors": plan.supervisors}
        print_json({"format": "headrace/1", "jar": str(plan.jar), "copies": copies, **settings})
        return
    echo(f"jar: {plan.jar}")
    echo("copy it to" if not copy else "copied to")
    for target in plan.copies:
        echo(f"  {target}")
    echo("into storm.yaml of Nimbus:")
    echo(yaml.safe_dump(plan.nimbus, sort_keys=False).rstrip())
    echo("into storm.yaml of every supervisor:")
    echo(yaml.safe_dump(plan.supervisors, sort_keys=False).rstrip())
    echo("then start Nimbus and the supervisors again, and: headrace storm serve CLUSTER.yaml")


def need_state(state: State | None, store: Path) -> State:
    """The state; refuses before Nimbus sent one."""
    if state is None:
        raise InvalidInput(f"{store}: Nimbus has not sent the state of a cluster here yet")
    return state


def show_cluster(cluster: StormCluster, as_json: bool) -> None:
    """Nimbus and the supervisors."""
    if as_json:
        nodes = [{"node": n.name, "host": cluster.hosts[n.name], "slots": n.slots}
                 for n in cluster.nodes]  # fmt: skip
        content = {"version": cluster.version, "nimbus": f"{cluster.nimbus}:{cluster.port}"}
        print_json({"format": "headrace/1", "storm": {**content, "nodes": nodes}})
        return
    echo(f"Storm {cluster.version}, Nimbus at {cluster.nimbus}:{cluster.port}")
    for node in cluster.nodes:
        echo(f"  {node.name:<16} {cluster.hosts[node.name]:<14} {node.slots:>2} slots")

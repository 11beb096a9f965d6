"""Commands about a Spark cluster on this machine: fleet up, status, add, remove and down."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.options import FILES, JSON
from headrace.cli.shared import echo, load_case, main, print_json
from headrace.errors import InvalidInput

if TYPE_CHECKING:
    from headrace.run.fleet import Fleet
    from headrace.run.limits import Limit
    from headrace.run.machines import Machine

FOLDER = click.option(
    "--folder",
    type=click.Path(file_okay=False),
    default=".headrace-fleet",
    show_default=True,
    help="Where its logs and files lie.",
)


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
@FOLDER
@JSON
def up(
    files: tuple[str, ...], port: int | None, limits: tuple[Limit, ...], folder: str, as_json: bool
) -> None:
    """Start a fleet; it stays up until `fleet down`."""
    from headrace.run.supervisor import start_fleet
    from headrace.spark import require_spark

    require_spark("fleet up")
    echo("starting the master and the workers, which takes about half a minute ..", err=True)
    running = start_fleet(files, Path(folder), port=port, limits=tuple(dict.fromkeys(limits)))
    show_fleet(running, as_json)


@fleet.command()
@FOLDER
@JSON
def status(folder: str, as_json: bool) -> None:
    """Which workers are up."""
    from headrace.run.supervisor import clear_lost_fleet, find_fleet

    clear_lost_fleet(Path(folder))
    running = find_fleet(Path(folder))
    if running is None:
        raise InvalidInput(
            f"no fleet is up in {folder}; start one with headrace fleet up CLUSTER_FILE"
        )
    show_fleet(running, as_json)


@fleet.command()
@FILES
@FOLDER
@JSON
def add(files: tuple[str, ...], folder: str, as_json: bool) -> None:
    """Start a worker for every node of the files that the fleet does not have."""
    from headrace.model.cluster import nodes_of
    from headrace.run.supervisor import change_fleet, find_fleet

    running = find_fleet(Path(folder))
    have = {} if running is None else running.hosts
    nodes = nodes_of(load_case(files).inputs)
    fresh = {name: node for name, node in nodes.items() if name not in have}
    if not fresh:
        raise InvalidInput(f"the fleet has all nodes of the files already: {', '.join(nodes)}")
    for name, node in fresh.items():
        facts = node.model_dump(mode="json", by_alias=True, exclude_unset=True)
        running = change_fleet(Path(folder), {"add": name, "node": facts})
    assert running is not None
    show_fleet(running, as_json)


@fleet.command()
@click.argument("nodes", nargs=-1, required=True, metavar="NODE..")
@FOLDER
@JSON
def remove(nodes: tuple[str, ...], folder: str, as_json: bool) -> None:
    """End workers of the fleet at once; `headrace drain` empties them before."""
    from headrace.run.supervisor import change_fleet

    running = [change_fleet(Path(folder), {"remove": name}) for name in nodes][-1]
    show_fleet(running, as_json)


@fleet.command()
@FOLDER
@JSON
def down(folder: str, as_json: bool) -> None:
    """End the fleet and all its daemons."""
    from headrace.run.supervisor import stop_fleet

    ended = stop_fleet(Path(folder))
    if as_json:
        print_json({"format": "headrace/1", "fleet": {"folder": folder, "ended": bool(ended)}})
    else:
        echo("the fleet is down" if ended else f"no fleet is up in {folder}")


def show_fleet(running: Fleet, as_json: bool) -> None:
    """The master and the workers."""
    from headrace.run.fleet import nodes_alive

    alive = nodes_alive(running)
    if as_json:
        workers = [
            {
                "node": m.name,
                "host": m.host,
                "cores": m.cores,
                "memory_mb": m.memory_mb,
                "alive": m.name in alive,
                "limits": limits_of(m, running.limits),
            }
            for m in running.machines
        ]
        content = {"master": running.master, "pid": running.pid, "workers": workers}
        print_json({"format": "headrace/1", "fleet": content})
        return
    echo(f"master {running.master}")
    for m in running.machines:
        limits = "".join(f"  {name} {x:g}" for name, x in limits_of(m, running.limits).items())
        state = "up" if m.name in alive else "LOST"
        shape = f"{m.cores:>3} cores {m.memory_mb:>7} MB"
        echo(f"  {m.name:<16} {m.host:<12} {shape}  {state:<4}{limits}".rstrip())


def limits_of(machine: Machine, limits: tuple[Limit, ...]) -> dict[str, float]:
    """The limits in force for a worker, by the names that a cluster file has for them."""
    known = {
        "bandwidth_mbps": machine.bandwidth_mbps if "bandwidth" in limits else None,
        "cpu": machine.cpu if "cpu" in limits else None,
    }
    return {name: value for name, value in known.items() if value is not None}

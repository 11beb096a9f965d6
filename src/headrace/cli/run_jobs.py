"""From applications and options to topologies with their folders, ready to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.run_lines import Job, Listener
from headrace.cli.shared import emit, read_options
from headrace.errors import InvalidInput

if TYPE_CHECKING:
    from headrace.model.topology import Topology

RUNS = Path("headrace-runs")


def make_topologies(apps: Sequence[str], options: Sequence[str]) -> list[Topology]:
    """The applications' topologies; an option `APP:KEY=VALUE` is for one of them."""
    from headrace.run.apps import load, topology_of

    found: dict[str, Topology] = {}
    for app in apps:
        name = Path(app).stem if app.endswith(".py") else app
        mine: list[str] = []
        for option in options:
            owner, colon, _ = option.partition("=")[0].rpartition(":")
            if not colon:
                mine.append(option)
            elif owner in (app, name):
                mine.append(option[len(owner) + 1 :])
            elif owner not in {a for one in apps for a in (one, Path(one).stem)}:
                raise click.UsageError(f"`{option}` is for {owner}, which is not run")
        topology = topology_of(load(app), read_options(mine))
        if topology.name in found:
            raise InvalidInput(
                f"two applications make a topology called {topology.name}; names must differ"
            )
        found[topology.name] = topology
    return list(found.values())


def show_topologies(topologies: Sequence[Topology]) -> None:
    """Print them as a file to plan, with the rule of the engine."""
    from headrace.model.document import FORMAT

    ruled = [replace(topology, core_per_task=True) for topology in topologies]
    if len(ruled) == 1:
        emit(ruled[0].document(), None)
    else:
        emit({"format": FORMAT, "topologies": [one.section() for one in ruled]}, None)


def make_job(
    topology: Topology,
    checkpoint: str | None,
    telemetry: str | None,
    *,
    several: bool,
    measures: bool,
    **how: Any,
) -> Job:
    """A topology with its folders; refused before anything starts if it cannot use them."""
    from headrace.run.batches import Settings
    from headrace.run.state import Store

    where = folder_of(topology, checkpoint, several)
    Store(where.resolve()).check(topology)
    measured = None if telemetry is None else Path(telemetry)
    if measured is not None and several:
        measured /= topology.name
    if measured is None and measures:
        measured = where.resolve() / "telemetry"
    listener = Listener(topology.name if several else None)
    settings = Settings(where.resolve(), telemetry=measured, listen=listener.listen, **how)
    return Job(topology, where, settings, listener)


def folder_of(topology: Topology, checkpoint: str | None, several: bool) -> Path:
    """The folder of a run."""
    if checkpoint is None:
        return RUNS / topology.name
    return Path(checkpoint) / topology.name if several else Path(checkpoint)

"""The command that turns telemetry into measured sections."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

import click

from headrace.cli.options import JSON, OUT_DATA
from headrace.cli.shared import echo, load_case, main, print_json
from headrace.errors import InvalidInput
from headrace.model.output import save, text_for
from headrace.spark import require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.model.read import Inputs
    from headrace.observe.pipeline import Observed, Question
    from headrace.observe.progress import Bar


@main.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep every sample once in this folder, and measure from there.",
)
@click.option(
    "--follow", is_flag=True, help="With --store: go on as telemetry comes in, until interrupted."
)
@click.option(
    "--every",
    type=click.FloatRange(min=1),
    default=10.0,
    show_default=True,
    help="With --follow: seconds between looks.",
)
@click.option(
    "--window",
    "window_s",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    help="Seconds that are added up.",
)
@click.option(
    "--lateness",
    "lateness_s",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds after which a row is late.",
)
@click.option(
    "--traffic",
    default="last",
    show_default=True,
    help="One figure per pair: last (window), average (exponential), or p95 and the like.",
)
@click.option(
    "--for",
    "wanted",
    multiple=True,
    type=click.Path(),
    help="Files whose components and machine types need a cost; estimated if not measured.",
)
@click.option("--master", help="Spark master; absent: this machine.")
@OUT_DATA
@JSON
def observe(
    folder: Path | None,
    store: Path | None,
    follow: bool,
    every: float,
    window_s: int,
    lateness_s: float,
    traffic: str,
    wanted: tuple[str, ...],
    master: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Measure what runs, from telemetry: costs, streams, traffic, nodes and input."""
    if folder is None and store is None:
        raise click.UsageError("give a telemetry FOLDER, a --store, or both")
    if follow and (folder is None or store is None):
        raise click.UsageError("--follow needs both a telemetry FOLDER and a --store")
    require_spark("observe")
    from headrace.observe.pipeline import Question
    from headrace.observe.progress import Bar
    from headrace.observe.sections import steady_figure
    from headrace.observe.source import check_folder
    from headrace.observe.store import check_store
    from headrace.spark import session

    steady_figure(traffic)  # what is wrong with the question is said before Spark starts
    if folder is not None and not follow:
        check_folder(folder)
    elif folder is None and store is not None:
        check_store(store)
    inputs = load_case(wanted).inputs if wanted else None
    question = Question(window_s, traffic, *(topologies_of(inputs) if inputs else (None, None)))
    spark = session(app="headrace-observe", master=master)
    try:
        with Bar(spark) as bar, Interrupt() if follow else nullcontext() as interrupt:
            for observed in looks(
                spark, bar, folder, store, question, lateness_s, every, interrupt
            ):
                document = with_estimates(observed, inputs) if inputs else observed.document()
                if out is not None:
                    save(out, text_for(out, document))
                if as_json:
                    print_json({**observed.to_json(), **document})
                else:
                    show(observed, document, out)
    except KeyboardInterrupt:
        if not follow:
            raise
    finally:
        spark.stop()
    if follow:
        echo(f"stopped; what is not in {store} yet is read next time", err=True)


class Interrupt:
    """Ctrl-C as a wish to end, so that a look comes to its own end; pressed again, it cuts off.

    Spark's own handler asks the JVM to cancel its jobs in the middle of another question to it,
    which goes wrong loudly.
    """

    wished = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._end)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self.wished:
            logging.disable()  # what is cut off complains
            raise KeyboardInterrupt
        self.wished = True
        # A handler must not touch sys.stderr.
        os.write(2, b"ending after this look; Ctrl-C again cuts it off\n")

    def wait(self, seconds: float) -> None:
        """Sleep, unless it is time to end."""
        until = time.monotonic() + seconds
        while not self.wished and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))


def looks(
    spark: SparkSession,
    bar: Bar,
    folder: Path | None,
    store: Path | None,
    question: Question,
    lateness_s: float,
    every_s: float,
    interrupt: Interrupt | None,
) -> Iterator[Observed]:
    """What is observed: once, or again and again until interrupted."""
    from headrace.observe.follow import take_in
    from headrace.observe.pipeline import observe_folder, observe_store

    if store is None:
        assert folder is not None
        yield observe_folder(spark, folder, question, lateness_s=lateness_s)
        return
    for look in count():
        started = time.monotonic()
        taken = (
            take_in(spark, folder, store, lateness_s=lateness_s, progress=bar.streaming)
            if folder is not None
            else 0
        )
        if taken or not look:  # nothing new says nothing new
            try:
                yield observe_store(spark, store, question)
            except InvalidInput as nothing_yet:
                if interrupt is None:
                    raise
                echo(nothing_yet.message, err=True)
        if interrupt is None:
            return
        interrupt.wait(started + every_s - time.monotonic())
        if interrupt.wished:
            return


def topologies_of(inputs: Inputs) -> tuple[tuple[str, ...], bool]:
    """The topologies of files, and whether they prefix their components with their names."""
    from headrace.model.components import components_of

    topologies, _ = components_of(inputs, {})
    return tuple(t.name for t in topologies), inputs.document.topologies is not None


def with_estimates(observed: Observed, inputs: Inputs) -> dict[str, Any]:
    """The measured sections, with estimated costs where the files' components have none."""
    from headrace.model.cluster import nodes_of
    from headrace.model.components import components_of
    from headrace.observe.cold_start import Wanted, estimates

    _, components = components_of(inputs, {})
    types = sorted({node.type for node in nodes_of(inputs).values()})
    inventory = observed.sections.get("inventory", {}).values()
    ghz = {facts["type"]: facts["ghz"] for facts in inventory if {"type", "ghz"} <= facts.keys()}
    profile = {name: dict(costs) for name, costs in observed.sections.get("profile", {}).items()}
    wanted = [Wanted(c.name, c.spec.spout) for c in components]
    for name, costs in estimates(wanted, types, profile, observed.fits, ghz).items():
        profile.setdefault(name, {}).update(costs)
    return {**observed.document(), "profile": profile}


def show(observed: Observed, document: dict[str, Any], out: str | None) -> None:
    """What was measured, in a few lines."""
    for kind, counts in observed.rows.items():
        if any(counts.values()):
            echo(
                f"{kind}: "
                + ", ".join(f"{n:,} {what}" for what, n in counts.items() if n or what == "events")
            )
    for component, costs in document.get("profile", {}).items():
        for machine, cost in costs.items():
            doubt = f"  ({cost['flag']})" if "flag" in cost else ""
            windows = f", {cost['windows']:,} windows" if "windows" in cost else ""
            figures = f"{cost['cpu_ms']:g} ms per tuple + {cost['cpu_fixed']:g} points"
            echo(f"{component} on {machine}: {figures}{windows}{doubt}")
    for stream in document.get("streams", ()):
        echo(f"{stream['from']} -> {stream['to']}: {stream['tuples_per_s']:,.6g} tuples/s")
    if observed.heaviest:
        echo(
            "most talk: "
            + "; ".join(
                f"{p.source} -> {p.target} {p.tuples_per_s:,.6g}/s" for p in observed.heaviest[:5]
            )
        )
    for note in observed.notes:
        echo(f"  {note}")
    if out is not None:
        echo(f"wrote {out}")


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--node", help="What the cluster calls this machine; absent: its host name.")
@click.option("--type", "machine_type", help="Machine type; absent: the processor's name.")
@click.option("--slots", type=click.IntRange(min=1), default=4, show_default=True)
@click.option(
    "--every",
    type=click.FloatRange(min=1),
    default=10.0,
    show_default=True,
    help="Seconds between samples of CPU, memory and network in use.",
)
@click.option("--once", is_flag=True, help="Write what this machine is, and end.")
@JSON
def agent(
    folder: Path,
    node: str | None,
    machine_type: str | None,
    slots: int,
    every: float,
    once: bool,
    as_json: bool,
) -> None:
    """Report to a telemetry folder what this machine is, and what of it is in use."""
    require_spark("agent")  # telemetry is written with pyarrow
    from headrace.observe.node_agent import follow, node_facts

    facts = node_facts(node=node, machine_type=machine_type, slots=slots)
    known = {k: v for k, v in facts.items() if k != "event_time" and v is not None}
    if as_json:
        print_json({"format": "headrace/1", "node": known})
    else:
        echo(", ".join(f"{name} {value}" for name, value in known.items()), err=True)
    try:
        follow(folder, facts, every_s=every, samples=0 if once else None)
    except KeyboardInterrupt:
        echo("stopped", err=True)

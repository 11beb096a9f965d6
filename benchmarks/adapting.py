"""The loop on a running fleet: all is quiet, the rate doubles, a key gets hot, a node is lost.

A batch takes 30 points of CPU in all, and others leave 40 of every node: one large node holds
everything, until the rate doubles.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from killing import executors
from measure import Row
from pyspark import cloudpickle

from headrace.control.history import Entry
from headrace.control.live import Site, decide_beside, on_fleet
from headrace.control.on_spark import plan_first
from headrace.control.planning import LoopSettings
from headrace.errors import HeadraceError
from headrace.model.cluster import nodes_of
from headrace.model.document import FORMAT
from headrace.model.read import Inputs, validated
from headrace.run import Keyed, Topology
from headrace.run.batches import BatchDone, Settings
from headrace.run.fleet import local_fleet
from headrace.run.machines import machines_for
from headrace.run.placement import PlanInForce
from headrace.run.sources import draw, numbers

LINES, WORDS, PAYLOAD = 2000, 10, 100  # lines of a batch, words of a line, bytes of a word
BATCH_EVERY_S = 2.0
SPLIT_MS, COUNT_MS = 0.1, 0.02  # CPU that a line and a word take
CORES = {"n1": 4, "n2": 4, "n3": 2, "n4": 2}
FREE = 40  # points that others leave of every node
DECIDE_AFTER, AT_MOST = 6, 8  # batches; a decision that takes long makes the next one late
SETTLING, WITHIN = 3, 3  # decisions until a plan is found, and after a change
HOT = 0.6  # share of the words that are the hot key


@dataclass(frozen=True, slots=True)
class Times:
    """The batches from which on things change."""

    double: int
    hot: int
    lost: int
    end: int

    @staticmethod
    def after(quiet: int) -> Times:
        double, each = (SETTLING + quiet) * AT_MOST, (WITHIN + 1) * AT_MOST
        return Times(double, double + each, double + 2 * each, double + 3 * each)


def busy(seconds: float) -> None:
    """Take so much CPU."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


class Sentences:
    """Numbers as lines; from a batch on, two for each."""

    def __init__(self, double: int) -> None:
        self.double = double

    def __call__(self, table: pa.Table) -> pa.Table:
        number = table["value"].to_numpy()
        times = np.where(number >= self.double * LINES, 2, 1)
        return pa.table({"line": np.repeat(number, times)})


class Split:
    """Lines as words; from a batch on, most of them the same."""

    def __init__(self, hot: int) -> None:
        self.hot = hot

    def __call__(self, table: pa.Table) -> pa.Table:
        line = table["line"].to_numpy()
        busy(SPLIT_MS / 1000 * len(line))
        number = (line[:, None] * WORDS + np.arange(WORDS)).ravel()
        word = (draw(number, 0, seed=1) * 4096).astype(np.int64)
        hot = (np.repeat(line, WORDS) >= self.hot * LINES) & (draw(number, 1, seed=1) < HOT)
        payload = pa.repeat(pa.scalar(bytes(PAYLOAD), pa.binary(PAYLOAD)), len(number))
        return pa.table({"word": np.where(hot, 0, word), "payload": payload})


def count(table: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
    """How often each word has come."""
    busy(COUNT_MS / 1000 * table.num_rows)
    fresh = table.group_by("word").aggregate([("word", "count")]).rename_columns(["word", "count"])
    both = (
        pa.concat_tables([state, fresh])
        .group_by("word")
        .aggregate([("count", "sum")])
        .rename_columns(["word", "count"])
    )
    return fresh, both


def topology(times: Times) -> Topology:
    """Lines, their words, and how often each has come."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors cannot import this file
    found = Topology("changing").spout("sentence", numbers(LINES), Sentences(times.double), tasks=2)
    found = found.bolt("split", Split(times.hot), inputs={"sentence": "shuffle"}, tasks=4)
    state = Keyed(pa.schema([("word", pa.int64()), ("count", pa.int64())]), ("word",))
    return found.bolt(
        "count",
        count,
        inputs={"split": {"grouping": "fields", "fields": ["word"]}},
        tasks=4,
        state=state,
    )


def rows(quick: bool) -> Iterator[Row]:
    """Run it all once."""
    quiet = 3 if quick else 20
    times = Times.after(quiet)
    with tempfile.TemporaryDirectory() as name:
        try:
            entries, lost = decisions(times, Path(name))
        except HeadraceError as refusal:
            yield Row("the loop on a local fleet", f"SKIPPED: {refusal.message}", "", False)
            return
    settled, rest = entries[:SETTLING], entries[SETTLING:]
    yield from outcome("from storm-even's plan to a better one", settled)
    calm = [
        entry for entry in rest if entry.at_s <= times.double
    ]  # a decision's time is the number of batches before it
    moved = sum(entry.applied for entry in calm)
    yield Row(
        f"{len(calm)} quiet intervals: plans changed",
        str(moved),
        "0",
        not moved and len(calm) >= quiet,
    )
    for what, since in (
        ("the rate doubles", times.double),
        ("a key gets hot", times.hot),
        ("a node is lost", lost),
    ):
        yield from outcome(what, [entry for entry in rest if entry.at_s > since][:WITHIN])


def outcome(what: str, entries: Sequence[Entry]) -> Iterator[Row]:
    """Whether decisions have led to a better plan, and why."""
    first = next((i for i, entry in enumerate(entries) if entry.applied), None)
    value = "none" if first is None else f"after {first + 1}"
    yield Row(
        f"{what}: decisions until a better plan is in force",
        value,
        f"<= {WITHIN}",
        first is not None,
    )
    yield Row(f"  {entries[-1 if first is None else first].reason}", "")


def cluster() -> Inputs:
    """Nodes of which others use all but a part."""
    nodes = {
        name: {
            "cpu": 100 * cores,
            "taken": {"cpu": 100 * cores - FREE},
            "memory_mb": 1024,
            "slots": 2,
            "bandwidth_mbps": 25,
        }
        for name, cores in CORES.items()
    }
    return validated({"format": FORMAT, "cluster": {"nodes": nodes}}, {})


def decisions(times: Times, folder: Path) -> tuple[list[Entry], float]:
    """Run the topology on a fleet; what the loop decides, and when the node was lost."""
    nodes, running = nodes_of(cluster()), topology(times)
    first = plan_first(running, nodes, "storm-even")
    with (
        local_fleet(machines_for(nodes), folder / "fleet") as fleet,
        on_fleet(fleet, "headrace-benchmark") as site,
    ):
        plan = site.put_in_force(running, first)
        watch = Watch(plan, times, folder / "fleet")
        run_with_loop(site, running, plan, watch, folder)
    assert watch.lost_at is not None
    return watch.decisions, watch.lost_at


def run_with_loop(
    site: Site, running: Topology, plan: PlanInForce, watch: Watch, folder: Path
) -> None:
    """The run, with a loop whose time is counted in batches."""
    telemetry = folder / "telemetry"
    world = site.watch(
        running, plan, cluster(), telemetry, folder / "store", window_s=1, clock=lambda: watch.now
    )
    loop = LoopSettings(objective="traffic", interval_s=DECIDE_AFTER)
    with decide_beside(world, loop, watch.note_decision, watch.count_batch) as listen:
        settings = Settings(
            folder / "run",
            batches=watch.times.end,
            interval_s=BATCH_EVERY_S,
            telemetry=telemetry,
            listen=listen,
        )
        site.run(running, plan, settings)


@dataclass(slots=True)
class Watch:
    """Counts batches, keeps decisions, and kills a node when its time has come."""

    plan: PlanInForce
    times: Times
    fleet: Path
    now: float = 0.0  # batches so far
    lost_at: float | None = None
    decisions: list[Entry] = field(default_factory=list[Entry])

    def count_batch(self, done: BatchDone) -> None:
        self.now += 1

    def note_decision(self, entry: Entry) -> None:
        """Keep a decision; after one, so that it is the next that meets it, a node is lost."""
        self.decisions.append(entry)
        if self.now >= self.times.lost and self.lost_at is None:
            placement = self.plan.current()
            assert placement is not None
            self.lost_at = self.now
            lose(self.fleet, placement.places["count", 0][0])


def lose(folder: Path, node: str) -> None:
    """Kill a worker of the fleet in a folder, and then its executor."""
    work = os.fsencode((folder / "work" / node).resolve())
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            if work in (process / "cmdline").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
    for executor in executors(folder):
        if executor.node == node:
            os.kill(executor.pid, signal.SIGKILL)

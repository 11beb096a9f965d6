"""Throughput where the network is narrow: headrace's plan against storm-even's, in turns on one fleet whose nodes have 100 Mbit/s.

One large node and two small ones; the widest stage of every topology has one to three tasks more
than the large node has cores, so that no node can hold it. Every tuple carries 500 random bytes.
Spark's shuffle compression is off: random bytes do not get smaller, and it would only cost time.
headrace plans for the objective of the loop on Spark (`batch`), from what the first batches under
storm-even's plan measured.

What can be gained depends on the layout. Words go from every task of `split` to every task of
`count`, so a node with a part x of both sends and receives x (1 - x) of all bytes: 0.24 where 13
tasks are dealt over three nodes, 0.07 on a node with 12 of them. With 18 tasks a stage the large
node takes 2/3 at most, which is 2/9 as before, and there is little to gain: that is measured too.

Besides the network a batch costs CPU (about 3 s of it for 400,000 words, some more where more is
sent). Where other processes keep the machine busy, that part takes longer under either plan, and
the ratio is smaller: run it on a quiet machine.
"""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import statistics
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from measure import Row, within
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from headrace.control.on_spark import OnSpark, placement_of, problem_of
from headrace.control.prediction import Batch, measured, predicted
from headrace.errors import HeadraceError
from headrace.model.cluster import nodes_of
from headrace.model.read import Inputs, read
from headrace.planner import place
from headrace.run.apps import load, topology_of
from headrace.run.batches import BatchDone, Settings
from headrace.run.cluster import wait_for_hosts
from headrace.run.engine import run
from headrace.run.fleet import Fleet, local_fleet, machines_of
from headrace.run.located import SETTINGS
from headrace.run.placement import Placement, PlanInForce, check_cores
from headrace.run.topology import Topology
from headrace.spark import session

CLUSTER = """
format: headrace/1
cluster:
  nodes:
    large:        {cpu: 1200, memory_mb: 2048, bandwidth_mbps: 100}
    small-{1..2}: {cpu: 600, memory_mb: 2048, bandwidth_mbps: 100}
"""
PAYLOAD_BYTES = 500
WORDS_PER_SENTENCE = 10
WORD_COUNT_TASKS = {13: 1.5, 18: None}  # of split, and of count -> what headrace must gain
MICRO_TASKS = {
    "linear": 13,
    "diamond": 5,
    "star": 7,
}  # of every bolt: 13, 15 and 14 in the widest stage
WARM_UP = 6  # batches at the start: Java compiles for about so long
TURN = 3  # batches under a plan before it is the other's turn; the first is left out
SHUFFLE = {"spark.shuffle.compress": "false"}


class Laden:
    """A function whose rows get random bytes, the same whenever a task is run again."""

    def __init__(self, function: Callable[[pa.Table], pa.Table]) -> None:
        self.function = function

    def __call__(self, table: pa.Table) -> pa.Table:
        rows = self.function(table)
        seed = zlib.crc32(repr(table.slice(0, 1).to_pylist()).encode())
        noise = np.random.Generator(np.random.SFC64(seed)).bytes(len(rows) * PAYLOAD_BYTES)
        column = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(PAYLOAD_BYTES), len(rows), [None, pa.py_buffer(noise)]
        )
        return rows.append_column("payload", column)


def laden_word_count(words: int, tasks: int, out: Path) -> Topology:
    """Word count whose sentences and words carry a payload; counts do not."""
    app: Any = load("word-count")
    options = {
        "sentences": words // WORDS_PER_SENTENCE,
        "words": WORDS_PER_SENTENCE,
        "tasks": tasks,
        "out": str(out),
    }
    topology = topology_of(app, options)
    functions = {
        "sentence": Laden(app.Sentences(WORDS_PER_SENTENCE, seed=0)),
        "split": Laden(app.split),
    }
    laden = {
        name: replace(topology.work[name], function=function)
        for name, function in functions.items()
    }
    return replace(topology, work={**topology.work, **laden})


@dataclass(frozen=True, slots=True)
class Turns:
    """Seconds of the batches that count, under each plan."""

    seconds: Mapping[str, list[float]]
    remote: Mapping[str, float]  # part of all bytes that goes between nodes
    foretold: Batch  # under headrace's plan, before it ran
    happened: Batch
    before: Batch  # under storm-even's plan
    batches: int
    misplaced: int

    @property
    def ratio(self) -> float:
        return statistics.median(self.seconds["storm-even"]) / statistics.median(
            self.seconds["headrace"]
        )


def rows(quick: bool) -> Iterator[Row]:
    """Measure on a fleet with limited bandwidth."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "cluster.yaml"
        file.write_text(CLUSTER)
        try:
            with local_fleet(machines_of([file]), folder / "fleet", limits=["bandwidth"]) as fleet:
                yield from on_fleet(fleet, read([file]), folder, quick)
        except HeadraceError as refusal:
            yield Row(
                "throughput at 100 Mbit/s per node", f"SKIPPED: {refusal.message}", ">= 1.5", False
            )


def on_fleet(fleet: Fleet, cluster: Inputs, folder: Path, quick: bool) -> Iterator[Row]:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    spark = session(
        app="benchmark", master=fleet.master, conf=SETTINGS | SHUFFLE | fleet.settings()
    )
    try:
        wait_for_hosts(spark, fleet.hosts.values())
        rounds = 1 if quick else 2
        often = (
            1 if quick else 5
        )  # where something is promised: a busy machine makes single batches differ by half
        yield Row(
            "nodes of 12, 6, 6 cores, 100 Mbit/s each; 500 random bytes per tuple; spark.shuffle.compress off",
            "",
        )
        words = 200_000 if quick else 400_000
        for tasks, least in WORD_COUNT_TASKS.items():
            out = folder / f"counts-{tasks}"
            turns = rounds if least is None else often
            found = in_turns(
                spark,
                laden_word_count(words, tasks, out),
                fleet,
                cluster,
                folder / f"words-{tasks}",
                turns,
            )
            check_counts(out, found.batches, words)
            yield from told(
                f"word count, {tasks} tasks a stage, {words:,} words per batch", words, found, least
            )
            yield from prediction(found) if least else ()
        tuples = 20_000 if quick else 80_000
        for shape, tasks in MICRO_TASKS.items():
            options = {
                "shape": shape,
                "tasks": tasks,
                "per_batch": tuples,
                "payload_bytes": PAYLOAD_BYTES,
                "out": str(folder / shape),
            }
            found = in_turns(
                spark,
                topology_of(load("micro"), options),
                fleet,
                cluster,
                folder / f"micro-{shape}",
                rounds,
            )
            yield from told(
                f"{shape}, {tasks} tasks a bolt, {tuples:,} tuples per spout and batch",
                tuples,
                found,
            )
    finally:
        spark.sparkContext.setLogLevel("OFF")
        spark.stop()


def in_turns(
    spark: SparkSession,
    topology: Topology,
    fleet: Fleet,
    cluster: Inputs,
    folder: Path,
    rounds: int,
) -> Turns:
    """One run in which the two plans take turns."""
    nodes = nodes_of(cluster)
    even = placement_of(
        place(problem_of(topology, nodes, {}, None), "storm-even"), "storm-even", nodes
    )
    plan = PlanInForce(
        topology, even, check=lambda placement: check_cores(topology, placement, fleet.cores)
    )
    world = OnSpark(
        spark,
        topology,
        cluster,
        plan,
        folder / "telemetry",
        folder / "store",
        lambda: set(fleet.hosts),
        window_s=1,
    )
    seen: list[BatchDone] = []
    ours: list[tuple[Placement, Batch]] = []

    def listen(done: BatchDone) -> None:
        seen.append(done)
        world.seen(done)
        since = len(seen) - WARM_UP
        if since > 0 and since % TURN == 0:
            if not ours:
                ours.append(planned(world))
            plan.set((even, ours[0][0])[since // TURN % 2])

    batches = WARM_UP + 2 * TURN * rounds
    run(
        spark,
        topology,
        plan,
        Settings(
            folder / "run",
            hosts=fleet.hosts,
            batches=batches,
            telemetry=folder / "telemetry",
            listen=listen,
        ),
    )
    counted = [done for i, done in enumerate(seen[WARM_UP:]) if i % TURN]
    by = {
        name: [done for done in counted if done.plan == name] for name in ("storm-even", "headrace")
    }
    return Turns(
        {name: [done.seconds for done in found] for name, found in by.items()},
        {
            name: sum(d.remote_bytes for d in found) / sum(d.total_bytes for d in found)
            for name, found in by.items()
        },
        ours[0][1],
        measured(by["headrace"], ours[0][0]),
        measured(by["storm-even"], even),
        len(seen),
        sum(len(done.misplaced) for done in seen),
    )


def planned(world: OnSpark) -> tuple[Placement, Batch]:
    """headrace's plan from what was measured, and what a batch will be under it."""
    problem = world.problem()
    found = place(problem, "headrace", objective="batch")
    assert found.assignment is not None
    return placement_of(found, "headrace", world.nodes()), predicted(problem, found.assignment)


def told(what: str, tuples: int, found: Turns, least: float | None = None) -> Iterator[Row]:
    for name, seconds in found.seconds.items():
        rate = tuples / statistics.median(seconds)
        yield Row(
            f"  {what}: {name}, {found.remote[name]:.0%} of bytes remote", f"{rate:,.0f} tuples/s"
        )
    target, holds = (
        ("", None)
        if least is None
        else (f">= {least:g}", found.ratio >= least and not found.misplaced)
    )
    slip = f", {found.misplaced} tasks misplaced" if found.misplaced else ""
    foretold = found.before.seconds / found.foretold.seconds
    yield Row(
        f"    headrace / storm-even (foretold {foretold:.2f})",
        f"{found.ratio:.2f}{slip}",
        target,
        holds,
    )


def prediction(found: Turns) -> Iterator[Row]:
    """What was foretold of headrace's plan from batches under storm-even's, against what happened."""
    foretold, happened = found.foretold, found.happened
    yield Row(
        "    foretold remote bytes, off by",
        *within(off(foretold.remote_bytes, happened.remote_bytes), 10, "%"),
    )
    cpu = {node: off(foretold.cpu_ms.get(node, 0.0), ms) for node, ms in happened.cpu_ms.items()}
    worst = max(cpu, key=lambda node: cpu[node])
    yield Row(
        f"    foretold CPU per node, off by most ({worst}, {happened.cpu_ms[worst]:.0f} ms)",
        *within(cpu[worst], 15, "%"),
    )
    yield Row(
        f"    foretold batch_seconds ({foretold.seconds:.2f} s; it took {happened.seconds:.2f} s), off by",
        *within(off(foretold.seconds, happened.seconds), 20, "%"),
    )


def off(foretold: float, happened: float) -> float:
    """Percent."""
    return 100 * abs(foretold / happened - 1)


def check_counts(out: Path, batches: int, words: int) -> None:
    app: Any = load("word-count")
    if app.counted(str(out)) != app.expected(
        batches, sentences=words // WORDS_PER_SENTENCE, words=WORDS_PER_SENTENCE
    ):
        raise RuntimeError("the counts are wrong")

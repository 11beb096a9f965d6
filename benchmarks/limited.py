"""Throughput where nodes have 100 Mbit/s: headrace's plan against storm-even's, in turns.

One large node and two small ones; the widest stage of every topology has one to three tasks more
than the large node has cores, so that no node can hold it. Every tuple carries 500 random bytes.
Spark's shuffle compression is off: random bytes do not get smaller, and it would only cost time.
headrace plans for the objective of the loop on Spark (`batch`), from what the first batches under
storm-even's plan measured.

What can be gained depends on the layout. Words go from every task of `split` to every task of
`count`, so a node with a share x of both sends and receives x (1 - x) of all bytes: 0.24 where 13
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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from measure import Row, within
from pyspark import cloudpickle

from headrace.control.live import Site, on_fleet
from headrace.control.on_spark import OnSpark, placement_from_plan, plan_first
from headrace.control.prediction import BatchFigures, median_figures, predict_batch
from headrace.errors import HeadraceError
from headrace.model.cluster import nodes_of
from headrace.model.read import Inputs, read
from headrace.model.topology import Topology
from headrace.planner import place
from headrace.run.apps import load, topology_of
from headrace.run.batches import BatchDone, Settings
from headrace.run.fleet import local_fleet
from headrace.run.machines import machines_of
from headrace.run.placement import Placement, PlanInForce

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
        name: replace(topology.code[name], function=function)
        for name, function in functions.items()
    }
    return replace(topology, code={**topology.code, **laden})


@dataclass(frozen=True, slots=True)
class Turns:
    """Seconds of the batches that count, under each plan."""

    seconds: Mapping[str, list[float]]
    remote: Mapping[str, float]  # share of all bytes that goes between nodes
    predicted: BatchFigures  # under headrace's plan, before it ran
    happened: BatchFigures
    before: BatchFigures  # under storm-even's plan
    batches: int
    misplaced: int

    @property
    def ratio(self) -> float:
        even, ours = (statistics.median(self.seconds[by]) for by in ("storm-even", "headrace"))
        return even / ours


def rows(quick: bool) -> Iterator[Row]:
    """Measure on a fleet with limited bandwidth."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "cluster.yaml"
        file.write_text(CLUSTER)
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        try:
            with (
                local_fleet(machines_of([file]), folder / "fleet", limits=["bandwidth"]) as fleet,
                on_fleet(fleet, "benchmark", SHUFFLE) as site,
            ):
                yield Row(
                    "nodes of 12, 6, 6 cores, 100 Mbit/s each; 500 random bytes per tuple; "
                    "spark.shuffle.compress off",
                    "",
                )
                yield from word_counts(site, read([file]), folder, quick)
                yield from micro_topologies(site, read([file]), folder, quick)
        except HeadraceError as refusal:
            yield Row(
                "throughput at 100 Mbit/s per node", f"SKIPPED: {refusal.message}", ">= 1.5", False
            )


def word_counts(site: Site, cluster: Inputs, folder: Path, quick: bool) -> Iterator[Row]:
    """Word count with two numbers of tasks, and how well its batches were predicted."""
    words = 200_000 if quick else 400_000
    for tasks, least in WORD_COUNT_TASKS.items():
        out = folder / f"counts-{tasks}"
        # More where something is promised: a busy machine makes single batches differ by half.
        rounds = 1 if quick else 2 if least is None else 5
        topology = laden_word_count(words, tasks, out)
        turns = in_turns(site, topology, cluster, folder / f"words-{tasks}", rounds)
        check_counts(out, turns.batches, words)
        what = f"word count, {tasks} tasks a stage, {words:,} words per batch"
        yield from throughput(what, words, turns, least)
        if least is not None:
            yield from prediction(turns)


def micro_topologies(site: Site, cluster: Inputs, folder: Path, quick: bool) -> Iterator[Row]:
    """Linear, diamond and star."""
    tuples = 20_000 if quick else 80_000
    for shape, tasks in MICRO_TASKS.items():
        options = {
            "shape": shape,
            "tasks": tasks,
            "per_batch": tuples,
            "payload_bytes": PAYLOAD_BYTES,
            "out": str(folder / shape),
        }
        topology = topology_of(load("micro"), options)
        turns = in_turns(site, topology, cluster, folder / f"micro-{shape}", 1 if quick else 2)
        what = f"{shape}, {tasks} tasks a bolt, {tuples:,} tuples per spout and batch"
        yield from throughput(what, tuples, turns)


@dataclass(slots=True)
class Alternation:
    """Listens to a run and has the two plans take turns; headrace's is made when it is due."""

    world: OnSpark
    plan: PlanInForce
    even: Placement
    batches: list[BatchDone] = field(default_factory=list[BatchDone])
    ours: tuple[Placement, BatchFigures] | None = None  # the plan, and what a batch will be

    def listen(self, done: BatchDone) -> None:
        self.batches.append(done)
        self.world.add_batch(done)
        since = len(self.batches) - WARM_UP
        if since > 0 and since % TURN == 0:
            if self.ours is None:
                self.ours = plan_from_measurements(self.world)
            self.plan.set((self.even, self.ours[0])[since // TURN % 2])


def in_turns(site: Site, topology: Topology, cluster: Inputs, folder: Path, rounds: int) -> Turns:
    """One run in which the two plans take turns."""
    even = plan_first(topology, nodes_of(cluster), "storm-even")
    plan, telemetry = site.put_in_force(topology, even), folder / "telemetry"
    world = site.watch(topology, plan, cluster, telemetry, folder / "store", window_s=1)
    both = Alternation(world, plan, even)
    batches = WARM_UP + 2 * TURN * rounds
    settings = Settings(folder / "run", batches=batches, telemetry=telemetry, listen=both.listen)
    site.run(topology, plan, settings)
    assert both.ours is not None
    ours, predicted = both.ours
    counted = [done for i, done in enumerate(both.batches[WARM_UP:]) if i % TURN]
    by = {
        name: [done for done in counted if done.plan == name] for name in ("storm-even", "headrace")
    }
    return Turns(
        seconds={name: [done.seconds for done in found] for name, found in by.items()},
        remote={
            name: sum(d.remote_bytes for d in found) / sum(d.total_bytes for d in found)
            for name, found in by.items()
        },
        predicted=predicted,
        happened=median_figures(by["headrace"], ours),
        before=median_figures(by["storm-even"], even),
        batches=len(both.batches),
        misplaced=sum(len(done.misplaced) for done in both.batches),
    )


def plan_from_measurements(world: OnSpark) -> tuple[Placement, BatchFigures]:
    """headrace's plan from what was measured, and what a batch will be under it."""
    problem = world.problem()
    found = place(problem, "headrace", objective="batch")
    assert found.assignment is not None
    placement = placement_from_plan(found, "headrace", world.nodes())
    return placement, predict_batch(problem, found.assignment)


def throughput(what: str, tuples: int, found: Turns, least: float | None = None) -> Iterator[Row]:
    """Tuples/s under both plans, and their ratio."""
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
    predicted = found.before.seconds / found.predicted.seconds
    yield Row(
        f"    headrace / storm-even (predicted {predicted:.2f})",
        f"{found.ratio:.2f}{slip}",
        target,
        holds,
    )


def prediction(found: Turns) -> Iterator[Row]:
    """What was predicted of headrace's plan under storm-even's, against what happened."""
    predicted, happened = found.predicted, found.happened
    yield Row(
        "    predicted remote bytes, off by",
        *within(off(predicted.remote_bytes, happened.remote_bytes), 10, "%"),
    )
    cpu = {node: off(predicted.cpu_ms.get(node, 0.0), ms) for node, ms in happened.cpu_ms.items()}
    worst = max(cpu, key=lambda node: cpu[node])
    yield Row(
        f"    predicted CPU per node, off by most ({worst}, {happened.cpu_ms[worst]:.0f} ms)",
        *within(cpu[worst], 15, "%"),
    )
    yield Row(
        f"    predicted batch_seconds ({predicted.seconds:.2f} s; "
        f"it took {happened.seconds:.2f} s), off by",
        *within(off(predicted.seconds, happened.seconds), 20, "%"),
    )


def off(predicted: float, happened: float) -> float:
    """Percent."""
    return 100 * abs(predicted / happened - 1)


def check_counts(out: Path, batches: int, words: int) -> None:
    app: Any = load("word-count")
    if app.counted(str(out)) != app.expected(
        batches, sentences=words // WORDS_PER_SENTENCE, words=WORDS_PER_SENTENCE
    ):
        raise RuntimeError("the counts are wrong")

"""Batches as the simulator has them beside batches measured on Spark, on a local fleet.

Word count runs batch after batch, once with small and once with large batches. What the small ones
measured (profile, streams, what a batch takes beside its tasks' work) is all that the simulator
gets; it says what the large ones take, and how many tuples/s pass when one batch follows another.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from measure import Row, within
from running import deal_tasks

from headrace.control.live import Site, on_fleet
from headrace.control.on_spark import OnSpark
from headrace.errors import HeadraceError
from headrace.model.problem import Problem
from headrace.model.read import Inputs, read
from headrace.run.apps import load, topology_of
from headrace.run.batches import BatchDone, Settings
from headrace.run.fleet import local_fleet
from headrace.run.machines import machines_of
from headrace.simulate import simulate

CLUSTER = "format: headrace/1\ncluster:\n  nodes:\n    n{1..2}: {cpu: 200, memory_mb: 1024}\n"
WORDS = 10  # of a sentence
TIMES = 4  # as many sentences in a large batch
WARM_UP = 6  # batches at the start: Java compiles for about so long
SIMULATED = 60  # batches


def rows(quick: bool) -> Iterator[Row]:
    """Measure on a fleet of two workers with two cores each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "cluster.yaml"
        file.write_text(CLUSTER)
        try:
            with (
                local_fleet(machines_of([file]), folder / "fleet") as fleet,
                on_fleet(fleet, "benchmark") as site,
            ):
                yield from beside_spark(site, read([file]), folder, quick)
        except HeadraceError as refusal:
            yield Row("simulated batches beside Spark's", f"SKIPPED: {refusal.message}", "", False)


def beside_spark(site: Site, cluster: Inputs, folder: Path, quick: bool) -> Iterator[Row]:
    """Seconds of a batch and tuples/s: simulated from small batches, measured on large ones."""
    count, sentences = (6, 5_000) if quick else (12, 20_000)
    world = measure(site, cluster, folder / "small", WARM_UP + count, sentences)
    problem = world.problem()
    small = statistics.median(done.seconds for done in world.batches[-count:])
    large = measure(site, cluster, folder / "large", WARM_UP + count, TIMES * sentences)
    happened = large.batches[-count:]
    measured_s = statistics.median(done.seconds for done in happened)
    interval_s = float(str(problem.options["judge"]["batch_interval_s"]))
    gap_s = max(0.0, interval_s - small)
    larger = with_interval(problem, TIMES * interval_s)
    batch_s, rate = simulated(larger, TIMES * interval_s, gap_s)
    yield Row(
        f"a batch of {sentences:,} sentences on Spark; simulated from what it measured",
        f"{small:.2f}; {simulated(problem, interval_s, gap_s)[0]:.2f} s",
    )
    far = 100 * abs(batch_s / measured_s - 1)
    yield Row(
        f"  a batch of {TIMES} times as many: {batch_s:.2f} s simulated, {measured_s:.2f} s on "
        "Spark, off by",
        *within(far, 20, "%"),
    )
    passed = throughput(happened)
    yield Row(
        f"  one after another: {rate:,.0f} tuples/s simulated, {passed:,.0f} on Spark, off by",
        *within(100 * abs(rate / passed - 1), 20, "%"),
    )


def measure(site: Site, cluster: Inputs, folder: Path, batches: int, sentences: int) -> OnSpark:
    """A run of word count, as the loop sees it at its end."""
    options = {"sentences": sentences, "words": WORDS, "out": str(folder / "out")}
    topology = topology_of(load("word-count"), options)
    plan = site.put_in_force(topology, deal_tasks(topology, tuple(site.hosts or ())))
    telemetry = folder / "telemetry"
    world = site.watch(topology, plan, cluster, telemetry, folder / "store", window_s=1)
    settings = Settings(
        folder / "run", batches=batches, telemetry=telemetry, listen=world.add_batch
    )
    site.run(topology, plan, settings)
    return world


def with_interval(problem: Problem, interval_s: float) -> Problem:
    """The problem with a batch every so many seconds."""
    judged = {**problem.options["judge"], "batch_interval_s": interval_s}
    return replace(problem, options={**problem.options, "judge": judged})


def simulated(problem: Problem, interval_s: float, gap_s: float) -> tuple[float, float]:
    """Seconds of a batch, and tuples/s where the next one waits already.

    Where batches have time enough, a tuple waits for half an interval in the mean, then for its
    batch; where many times as much arrives as they take, they follow one another, with a gap.
    """
    assert problem.current is not None
    constant = replace(problem, dynamics=replace(problem.dynamics, arrivals="constant", cv=0.0))
    # The same batches, but so rarely that none is late.
    rare = with_interval(constant.scaled(1 / 3), 3 * interval_s)
    found = simulate(rare, problem.current, seconds=SIMULATED * 3 * interval_s, detail="batch")
    batch_s = (found.mean_latency_ms.mean or 0.0) / 1000 - 1.5 * interval_s
    options = {**constant.options, "simulate": {"batch_gap_s": gap_s}}
    often = with_interval(replace(constant, options=options).scaled(100.0), interval_s / 100)
    full = simulate(often, problem.current, seconds=SIMULATED * interval_s, detail="batch")
    return batch_s, full.throughput_per_s.mean or 0.0


def throughput(batches: tuple[BatchDone, ...]) -> float:
    """Sentences/s, from the start of the first batch to the end of the last."""
    begin = batches[0].ended - batches[0].seconds
    sent = sum(r.tuples_out for done in batches for r in done.reports if r.component == "sentence")
    return sent / (batches[-1].ended - begin)

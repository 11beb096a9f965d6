"""Word count on a local fleet: misplaced tasks, the fixed cost of a batch, and what placing costs in throughput."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from measure import Row

from headrace.errors import HeadraceError
from headrace.run.apps import load, topology_of
from headrace.run.batches import BatchDone, Settings
from headrace.run.cluster import wait_for_hosts
from headrace.run.engine import run
from headrace.run.fleet import Fleet, local_fleet, machines_of
from headrace.run.located import SETTINGS
from headrace.run.placement import Placement, PlanInForce
from headrace.run.topology import Topology
from headrace.spark import session

CLUSTER = "format: headrace/1\ncluster:\n  nodes:\n    n{1..3}: {cpu: 200, memory_mb: 1024}\n"
WORDS_PER_SENTENCE = 10
WARM_UP = 2  # batches


def dealt(topology: Topology, nodes: tuple[str, ...]) -> Placement:
    """Tasks dealt over the nodes in turn, as Storm's default does."""
    tasks = {name: component.tasks for name, component in topology.components.items()}
    every = [(name, number) for name, count in tasks.items() for number in range(count)]
    return Placement(
        "dealt", tasks, {task: (nodes[i % len(nodes)], 0) for i, task in enumerate(every)}
    )


def rows(quick: bool) -> Iterator[Row]:
    """Measure on a fleet of three workers with two cores each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cluster.yaml").write_text(CLUSTER)
        try:
            with local_fleet(machines_of([folder / "cluster.yaml"]), folder / "fleet") as fleet:
                yield from measured(fleet, folder, quick)
        except HeadraceError as refusal:
            yield Row("word count on a local fleet", f"SKIPPED: {refusal.message}", "", False)


def measured(fleet: Fleet, folder: Path, quick: bool) -> Iterator[Row]:
    app = load("word-count")
    spark = session(app="benchmark", master=fleet.master, conf=SETTINGS | fleet.settings())
    try:
        wait_for_hosts(spark, fleet.hosts.values())
        runs = 0

        def batches(count: int, sentences: int, placed: bool) -> list[BatchDone]:
            nonlocal runs
            runs += 1
            seen: list[BatchDone] = []
            options = {
                "sentences": sentences,
                "words": WORDS_PER_SENTENCE,
                "out": str(folder / f"out-{runs}"),
            }
            topology = topology_of(app, options)
            plan = PlanInForce(topology, dealt(topology, tuple(fleet.hosts)) if placed else None)
            settings = Settings(folder / f"run-{runs}", batches=count, listen=seen.append)
            run(spark, topology, plan, replace(settings, hosts=fleet.hosts) if placed else settings)
            if app.result(options["out"], count) != app.expected(
                count, sentences=sentences, words=WORDS_PER_SENTENCE
            ):
                raise RuntimeError("the counts are wrong")
            return seen

        small = batches(10 if quick else 100, 100, placed=True)
        misplaced = sum(len(done.misplaced) for done in small)
        yield Row(
            f"word count on three workers: misplaced tasks in {len(small)} batches",
            str(misplaced),
            "0",
            misplaced == 0,
        )
        overhead = statistics.median(done.seconds for done in small[WARM_UP:])
        yield Row("  fixed cost of a batch, 10 tasks in three stages", f"{overhead:.2f} s")

        sentences, words = 100_000, 100_000 * WORDS_PER_SENTENCE
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(1 if quick else 3):
            for placed in (False, True):
                done = batches(WARM_UP + (2 if quick else 4), sentences, placed)
                seconds[placed] += [d.seconds for d in done[WARM_UP:]]
        rate = {placed: words / statistics.median(times) for placed, times in seconds.items()}
        yield Row(
            "  1,000,000 words per batch, each a row through the shuffle",
            f"{rate[True] / 1e6:.2f} M words/s",
        )
        ratio = rate[True] / rate[False]
        yield Row(
            "  the same, as a part of the same stages unplaced",
            f"{ratio:.2f}",
            ">= 0.7",
            ratio >= 0.7,
        )
    finally:
        spark.sparkContext.setLogLevel("OFF")
        spark.stop()

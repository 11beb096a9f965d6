"""Word count on a local fleet: misplaced tasks, a batch's fixed cost, and what placing costs."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from measure import Row

from headrace.control.live import Site, on_fleet
from headrace.errors import HeadraceError
from headrace.model.topology import Topology
from headrace.run.apps import load, topology_of
from headrace.run.batches import BatchDone, Settings
from headrace.run.fleet import local_fleet
from headrace.run.machines import machines_of
from headrace.run.placement import Placement

CLUSTER = "format: headrace/1\ncluster:\n  nodes:\n    n{1..3}: {cpu: 200, memory_mb: 1024}\n"
WORDS_PER_SENTENCE = 10
COMPONENTS = ("sentence", "split", "count")  # stage after stage
WARM_UP = 2  # batches
MOST_S, LEAST_SHARE = 0.4, 0.95  # of a batch's fixed cost; of the speed of the same stages unplaced


def deal_tasks(topology: Topology, nodes: tuple[str, ...]) -> Placement:
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
            with (
                local_fleet(machines_of([folder / "cluster.yaml"]), folder / "fleet") as fleet,
                on_fleet(fleet, "benchmark") as site,
            ):
                words = WordCount(site, folder)
                yield from small_batches(words, quick)
                yield from large_batches(words, quick)
        except HeadraceError as refusal:
            yield Row("word count on a local fleet", f"SKIPPED: {refusal.message}", "", False)


class WordCount:
    """Runs word count, and compares its counts with the batch computation."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site, self.folder, self.runs = site, folder, 0
        self.app = load("word-count")
        self.jobs: list[tuple[float, float]] = []  # when each began and ended
        self._watch_jobs(site.spark.sparkContext)

    def _watch_jobs(self, context: Any) -> None:
        """Note when Spark's jobs begin and end."""
        run_job = context.runJob

        def timed(*given: Any) -> Any:
            began = time.time()
            try:
                return run_job(*given)
            finally:
                self.jobs.append((began, time.time()))

        context.runJob = timed

    def run(self, count: int, sentences: int, *, placed: bool) -> list[BatchDone]:
        """Some batches, with every task on its node, or wherever Spark puts it."""
        self.runs += 1
        out, done = str(self.folder / f"out-{self.runs}"), list[BatchDone]()
        options = {"sentences": sentences, "words": WORDS_PER_SENTENCE}
        topology = topology_of(self.app, {**options, "out": out})
        site = self.site if placed else Site(self.site.spark)
        start = deal_tasks(topology, tuple(site.hosts)) if site.hosts is not None else None
        settings = Settings(self.folder / f"run-{self.runs}", batches=count, listen=done.append)
        site.run(topology, site.put_in_force(topology, start), settings)
        if self.app.result(out, count) != self.app.expected(count, **options):
            raise RuntimeError("the counts are wrong")
        return done


def small_batches(words: WordCount, quick: bool) -> Iterator[Row]:
    """Batches that are nearly all overhead."""
    small = words.run(10 if quick else 100, 100, placed=True)
    misplaced = sum(len(done.misplaced) for done in small)
    yield Row(
        f"word count on three workers: misplaced tasks in {len(small)} batches",
        str(misplaced),
        "0",
        misplaced == 0,
    )
    warm = small[-len(small) // 2 :]  # Java is warming up for some ten batches
    overhead = statistics.median(done.seconds for done in warm)
    yield Row(
        "  fixed cost of a batch, 10 tasks in three stages",
        f"{overhead:.2f} s",
        f"<= {MOST_S} s",
        overhead <= MOST_S,
    )
    yield from where_it_goes(warm, words.jobs[-len(warm) :])


def where_it_goes(batches: Sequence[BatchDone], jobs: Sequence[tuple[float, float]]) -> list[Row]:
    """The seconds of a batch, one after another; their sum is the fixed cost, but for medians."""
    found: dict[str, list[float]] = {}
    for done, (began, ended) in zip(batches, jobs, strict=True):
        levels = [[r for r in done.reports if r.component == name] for name in COMPONENTS]
        python = [(min(r.began for r in some), max(r.ended for r in some)) for some in levels]
        start = done.ended - done.seconds
        parts = {
            "compile the stages and hand them to Spark": began - start,
            "Spark's job: until the Python of a task begins": python[0][0] - began,
            "  the Python of three stages": sum(end - first for first, end in python),
            "  from stage to stage (shuffle files, scheduling), twice": sum(
                later[0] - earlier[1] for earlier, later in pairwise(python)
            ),
            "  from the last Python to the end of the job": ended - python[-1][1],
            "outputs and commit": done.ended - ended,
        }
        for what, seconds in parts.items():
            found.setdefault(what, []).append(seconds)
    around = [later.ended - later.seconds - earlier.ended for earlier, later in pairwise(batches)]
    cpu_s = statistics.median(sum(r.cpu_ms for r in done.reports) / 1000 for done in batches)
    return [
        *(Row(f"    {what}", f"{statistics.median(s):.3f} s") for what, s in found.items()),
        Row("    CPU of the tasks' Python, of all that", f"{cpu_s:.3f} s"),
        Row(
            "    beside it, Spark's own log of what it read and planning the next batch",
            f"{statistics.median(around):.3f} s",
        ),
    ]


def large_batches(words: WordCount, quick: bool) -> Iterator[Row]:
    """Batches of a million words, placed and not, in turns."""
    sentences = 100_000
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(1 if quick else 3):
        for placed in (False, True):
            done = words.run(WARM_UP + (2 if quick else 4), sentences, placed=placed)
            seconds[placed] += [d.seconds for d in done[WARM_UP:]]
    rate = {
        placed: sentences * WORDS_PER_SENTENCE / statistics.median(times)
        for placed, times in seconds.items()
    }
    yield Row(
        "  1,000,000 words per batch, each a row through the shuffle",
        f"{rate[True] / 1e6:.2f} M words/s",
    )
    ratio = rate[True] / rate[False]
    yield Row(
        "  the same, as a share of the same stages unplaced",
        f"{ratio:.2f}",
        f">= {LEAST_SHARE}",
        ratio >= LEAST_SHARE,
    )

"""Word count on a local fleet: misplaced tasks, the fixed cost of a batch, what placing costs in throughput, and exact counts under fire."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
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
MARK = "HEADRACE_BENCHMARK"  # in the environment of everything that is started to be killed


def dealt(topology: Topology, nodes: tuple[str, ...]) -> Placement:
    """Tasks dealt over the nodes in turn, as Storm's default does."""
    tasks = {name: component.tasks for name, component in topology.components.items()}
    every = [(name, number) for name, count in tasks.items() for number in range(count)]
    return Placement("dealt", tasks, {task: (nodes[i % len(nodes)], 0) for i, task in enumerate(every)})


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
            return
        yield under_fire(folder)


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
            options = {"sentences": sentences, "words": WORDS_PER_SENTENCE, "out": str(folder / f"out-{runs}")}
            topology = topology_of(app, options)
            plan = PlanInForce(topology, dealt(topology, tuple(fleet.hosts)) if placed else None)
            settings = Settings(folder / f"run-{runs}", batches=count, listen=seen.append)
            run(spark, topology, plan, replace(settings, hosts=fleet.hosts) if placed else settings)
            if app.counted(options["out"]) != app.expected(count, sentences=sentences, words=WORDS_PER_SENTENCE):
                raise RuntimeError("the counts are wrong")
            return seen

        small = batches(10 if quick else 100, 100, placed=True)
        misplaced = sum(len(done.misplaced) for done in small)
        yield Row(f"word count on three workers: misplaced tasks in {len(small)} batches", str(misplaced), "0", misplaced == 0)
        overhead = statistics.median(done.seconds for done in small[WARM_UP:])
        yield Row("  fixed cost of a batch, 10 tasks in three stages", f"{overhead:.2f} s")

        sentences, words = 100_000, 100_000 * WORDS_PER_SENTENCE
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(1 if quick else 3):
            for placed in (False, True):
                done = batches(WARM_UP + (2 if quick else 4), sentences, placed)
                seconds[placed] += [d.seconds for d in done[WARM_UP:]]
        rate = {placed: words / statistics.median(times) for placed, times in seconds.items()}
        yield Row("  1,000,000 words per batch, each a row through the shuffle", f"{rate[True] / 1e6:.2f} M words/s")
        ratio = rate[True] / rate[False]
        yield Row("  the same, as a part of the same stages unplaced", f"{ratio:.2f}", ">= 0.7", ratio >= 0.7)
    finally:
        spark.sparkContext.setLogLevel("OFF")
        spark.stop()


def under_fire(folder: Path, batches: int = 9, sentences: int = 1000) -> Row:
    """Two executors and the driver killed with kill -9, and three new plans on the way; all words must be counted exactly once."""
    what = "  exact counts: two executors and the driver killed, three new plans on the way"
    if not Path("/proc/self/environ").exists():
        return Row(what, "SKIPPED: needs /proc to find executors", "exact", False)
    app, mark = load("word-count"), uuid.uuid4().hex
    run_folder, out, plan = folder / "fire", folder / "fire-out", folder / "fire-plan.json"
    killed: list[str] = []

    def start(count: int) -> subprocess.Popen[str]:
        options = ["--option", f"out={out}", "--option", f"sentences={sentences}", "--batches", str(count)]
        where = [
            "--fleet",
            str(folder / "cluster.yaml"),
            "--plan",
            str(plan),
            "--checkpoint",
            str(run_folder),
            "--folder",
            str(folder / "none"),
        ]
        command = [sys.executable, "-m", "headrace.cli", "run", "word-count", *where, *options]
        return subprocess.Popen(
            command, env={**os.environ, MARK: mark}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    write_plan(plan, 0)
    driver = start(batches)
    assert driver.stderr is not None
    for line in driver.stderr:
        match line.split(":")[0]:
            case "batch 0" | "batch 2" | "batch 4" as at:
                write_plan(plan, int(at[-1]) // 2 + 1)
            case "batch 1" | "batch 3":
                pid = next(iter(processes(mark, "CoarseGrainedExecutorBackend")))
                os.kill(pid, signal.SIGKILL)
                killed.append(f"executor {pid}")
            case "batch 5":
                driver.kill()
                killed.append("driver")
            case _:
                pass
    driver.wait()
    while list(processes(mark, "org.apache.spark")):  # they end by themselves, each when it misses its parent
        time.sleep(0.2)
    done = max(int(file.stem) for file in (run_folder / "commits").glob("*.json")) + 1
    again = start(batches - done)
    again.communicate()
    exact = app.counted(str(out)) == app.expected(batches, sentences=sentences) and len(killed) == 3 and again.returncode == 0
    return Row(what, "exact" if exact else f"WRONG (killed: {', '.join(killed)})", "exact", exact)


def write_plan(file: Path, shift: int) -> None:
    """Tasks dealt over the three nodes, each plan from another node on."""
    tasks = {"sentence": 2, "split": 4, "count": 4 - shift % 2}
    every = [f"{name}.{number}" for name, count in tasks.items() for number in range(1, count + 1)]
    assignment = {task: {"node": f"n{(i + shift) % 3 + 1}"} for i, task in enumerate(every)}
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps({"format": "headrace/1", "plan": {"assignment": assignment, "tasks": tasks}}))
    draft.replace(file)


def processes(mark: str, words: str) -> Iterator[int]:
    """Processes that carry a mark in their environment and have some words in their command line."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (
                f"{MARK}={mark}".encode() in (folder / "environ").read_bytes()
                and words.encode() in (folder / "cmdline").read_bytes()
            ):
                yield int(folder.name)
        except OSError:
            continue

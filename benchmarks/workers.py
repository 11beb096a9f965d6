"""What a worker of its own costs: a process more, and what then goes through sockets.

The same tasks are on the same nodes, once all tasks of a node in one worker, once in two so that
half of what stays in the node crosses between them. Both plans take turns in one run, so that what
disturbs, disturbs both. Executors of a host read from each other by sockets, as headrace has it, or
read the other's files, as is Spark's default (decision 0008).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median

from measure import Row

from headrace.control.live import Site, on_fleet
from headrace.errors import HeadraceError
from headrace.model.cluster import nodes_of
from headrace.model.document import FORMAT
from headrace.model.read import validated
from headrace.run.apps import load, topology_of
from headrace.run.batches import BatchDone, Settings
from headrace.run.fleet import local_fleet
from headrace.run.leftovers import processes_in
from headrace.run.machines import machines_for
from headrace.run.placement import Placement

TASKS = {"sentence": 2, "split": 4, "count": 4}
SENTENCES, QUICK_SENTENCES = 40_000, 5_000
TURNS, IN_A_TURN, COLD = 4, 4, 8
HOST_LOCAL = "spark.shuffle.readHostLocalDisk"
PAGE = os.sysconf("SC_PAGE_SIZE")


def rows(quick: bool) -> Iterator[Row]:
    """By sockets, then by files."""
    sentences = QUICK_SENTENCES if quick else SENTENCES
    for files in (False, True):
        with tempfile.TemporaryDirectory() as name:
            yield from measure(Path(name), sentences, files=files)


def measure(folder: Path, sentences: int, *, files: bool) -> Iterator[Row]:
    """One fleet, one run."""
    node = {"cpu": 400, "cores": 4, "memory_mb": 1024, "slots": 2}
    nodes = nodes_of(
        validated({"format": FORMAT, "cluster": {"nodes": {"n1": node, "n2": node}}}, {})
    )
    how = "files" if files else "sockets"
    try:
        with (
            local_fleet(machines_for(nodes), folder / "fleet") as fleet,
            on_fleet(fleet, "headrace-workers", {HOST_LOCAL: str(files).lower()}) as site,
        ):
            if not files:
                yield from start_costs(site, folder / "fleet")
            yield from compare(site, folder, sentences, how)
    except HeadraceError as refusal:
        yield Row(f"workers, {how}", f"SKIPPED: {refusal.message}", "", False)


def start_costs(site: Site, fleet: Path) -> Iterator[Row]:
    """Seconds until the second workers of two nodes are there, and the memory of one."""
    before, began = resident_mb(fleet), time.monotonic()
    site.have_workers(plan_of(2))
    yield Row(
        "workers: seconds until a second one on each of 2 nodes", f"{time.monotonic() - began:.1f}"
    )
    time.sleep(2)
    after = resident_mb(fleet)
    fresh = {pid: mb for pid, mb in after.items() if pid not in before}
    yield Row("workers: MB of the processes of one, idle", f"{sum(fresh.values()) / 2:.0f}")


def resident_mb(fleet: Path) -> Mapping[int, float]:
    """Resident memory of a fleet's executors and of Spark's workers, by process."""
    found: dict[int, float] = {}
    inside = set(processes_in(fleet / "work"))
    for process in Path("/proc").glob("[0-9]*"):
        try:
            named = os.fsencode(str(fleet)) in (process / "cmdline").read_bytes()
            if named or int(process.name) in inside:
                pages = int((process / "statm").read_text().split()[1])
                found[int(process.name)] = pages * PAGE / 1e6
        except OSError:
            continue
    return found


def compare(site: Site, folder: Path, sentences: int, how: str) -> Iterator[Row]:
    """Batches under both plans, by turns."""
    topology = topology_of(load("word-count"), {"sentences": sentences, "out": str(folder / "out")})
    plans = {name: plan_of(workers) for name, workers in (("one", 1), ("two", 2))}
    in_force = site.put_in_force(topology, plans["one"])
    seen: list[BatchDone] = []

    def listen(done: BatchDone) -> None:
        seen.append(done)
        turn = (len(seen) - COLD) // IN_A_TURN
        in_force.set(plans["two" if len(seen) < COLD or turn % 2 else "one"])

    batches = COLD + 2 * TURNS * IN_A_TURN
    site.run(topology, in_force, Settings(folder / "run", batches=batches, listen=listen))
    warm = {name: [d for d in seen[COLD:] if d.plan == f"{name} worker"] for name in plans}
    seconds = {name: median(d.stages_s for d in some) for name, some in warm.items()}
    cpu_ms = {name: median(cpu_of(d) for d in some) for name, some in warm.items()}
    crossed = warm["two"][-1].crossed
    mb = (crossed.worker_bytes - crossed.node_bytes) / 1e6
    yield Row(
        f"workers, {how}: seconds of a batch, two workers a node over one "
        f"({seconds['two']:.3f} over {seconds['one']:.3f} s, {mb:.1f} MB between them)",
        f"{seconds['two'] / seconds['one']:.3f}",
    )
    yield Row(
        f"workers, {how}: CPU of all tasks, two over one", f"{cpu_ms['two'] / cpu_ms['one']:.3f}"
    )
    shared = sum(bool(d.shared or d.misplaced) for d in warm["two"])
    yield Row(
        f"workers, {how}: batches with a shared or missed worker", str(shared), "0", shared == 0
    )


def cpu_of(done: BatchDone) -> float:
    return sum(report.cpu_ms for report in done.reports)


def plan_of(workers: int) -> Placement:
    """Tasks in turn on two nodes, and on each in turn over its workers."""
    places = {
        (name, number): (f"n{1 + number % 2}", number // 2 % workers)
        for name, count in TASKS.items()
        for number in range(count)
    }
    return Placement(f"{'one' if workers == 1 else 'two'} worker", TASKS, places)


if __name__ == "__main__":
    for row in rows(quick=False):
        print(row, flush=True)

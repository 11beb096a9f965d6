"""Every application under fire: executors and driver killed with kill -9, new plans on the way.

Two executors are killed, and three plans come in: one gives every component one task, the others 2,
3 and 7, in an order of chance. After every batch the output must equal the batch computation of the
same input.

What really happened is counted from what it left behind: executors from the folders that workers
made for them and for their replacements, the driver from its exit status, plans from the nodes on
which the tasks of each batch say that they ran. A run in which less happened does not count as
shown.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq
from killing import Executor, count_executors, driver, executors, fleet_up, kill
from measure import Row

from headrace.errors import HeadraceError, InvalidInput
from headrace.model.files import write_whole
from headrace.model.topology import Topology, task_name
from headrace.run.apps import load, topology_of

CLUSTER = "format: headrace/1\ncluster:\n  nodes:\n    n{1..3}: {cpu: 700, memory_mb: 768}\n"
NODES = ("n1", "n2", "n3")
TASKS = (1, 2, 3, 7)  # of every component, plan by plan; stages have three components at most
EXECUTORS, PLANS = 2, len(TASKS) - 1  # to be killed, to come in
BATCHES_AFTER = 5  # of the second driver
LONGEST_WAIT_S = 1.5  # into a batch; the first one of a driver takes longer than all others
ENDS_WITHIN_S = 240.0
EXECUTORS_WITHIN_S = 60.0

Event = Literal["executor", "plan"]


@dataclass(frozen=True, slots=True)
class Case:
    """An application, and the options of its generator."""

    app: str
    options: Mapping[str, Any]
    shape: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def name(self) -> str:
        return " ".join([self.app, *map(str, self.shape.values())])


CASES = (
    Case("word-count", {"sentences": 500}),
    Case("smart-home", {"readings": 1500, "houses": 2, "every_s": 400}),  # 7 hours per batch
    Case("taxi-routes", {"trips": 400, "trips_per_s": 0.5}),  # 13 minutes per batch
    Case("unique-visitors", {"views": 500, "pages": 40, "users": 60}),
    Case("rolling-count", {"sentences": 500}),
    Case("exclamation", {"per_batch": 1000}),
    Case("prefix-word-count", {"sentences": 500}),
    Case("micro", {"per_batch": 200, "work": 0.1}, {"shape": "linear"}),
    Case("micro", {"per_batch": 200, "work": 0.1}, {"shape": "diamond"}),
    Case("micro", {"per_batch": 200, "work": 0.1}, {"shape": "star"}),
    Case("flight", {"lines": 700}),
    Case("sessions", {"clicks": 700, "users": 25, "every_s": 5.0}),
    Case("windows", {"views": 600, "pages": 9, "every_s": 0.5}),
    Case("windows", {"views": 600, "pages": 9, "every_s": 0.5}, {"slide_s": 25}),
)


def rows(quick: bool) -> Iterator[Row]:
    """One fleet for all applications, one after another."""
    if not Path("/proc/self/cwd").exists():
        yield Row("applications under fire", "SKIPPED: needs /proc to find executors", "", False)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cluster.yaml").write_text(CLUSTER)
        try:
            with fleet_up(folder / "cluster.yaml", folder / "fleet"):
                for seed, case in enumerate(CASES[:2] if quick else CASES):
                    yield Fire(case, folder, seed).row()
        except HeadraceError as refusal:
            yield Row("applications under fire", f"SKIPPED: {refusal.message}", "", False)


class Fire:
    """A run of an application, and what is done to it."""

    def __init__(self, case: Case, ground: Path, seed: int) -> None:
        self.case, self.ground, self.rng = case, ground, random.Random(seed)
        self.folder = ground / case.name.replace(" ", "-")
        self.app, self.options = load(case.app), {**case.options, **case.shape, "seed": seed}
        self.topology = topology_of(self.app, self.options)
        self.counts = self.rng.sample(TASKS, len(TASKS))
        self.plans: list[dict[str, str]] = []
        self.killed: list[tuple[int, Executor]] = []  # with the batch that ran
        self.driver_killed: list[tuple[int, int]] = []  # the batch that ran, and the exit status
        self.end: int | None = None  # the exit status of the second driver
        self.last_words = ""

    def row(self) -> Row:
        """Run it, with five events in a seeded order, the driver killed before the last of them."""
        began = time.monotonic()
        events: list[Event] = [*repeat("executor", EXECUTORS), *repeat("plan", PLANS)]
        self.rng.shuffle(events)
        self.folder.mkdir()
        self.replan()
        with driver(self.command(), ends_within_s=ENDS_WITHIN_S) as first:
            if self.disturb(first, events[:-1]):
                self.driver_killed.append((self.batches(), kill(first)))
        with driver(
            [*self.command(), "--batches", str(BATCHES_AFTER)], ends_within_s=ENDS_WITHIN_S
        ) as second:
            self.disturb(second, events[-1:])
            self.end = self.listen(second)
        faults = [*self.not_shown(), *self.wrong()]
        executors, drivers = (
            " and ".join(str(batch) for batch, _ in killed) or "none"
            for killed in (self.killed, self.driver_killed)
        )
        what = (
            f"{self.case.name}, {self.batches()} batches: executors killed in {executors}, "
            f"driver in {drivers}, tasks {', '.join(map(str, self.counts[: len(self.plans)]))}"
        )
        return Row(
            f"{what}; {time.monotonic() - began:.0f} s",
            "; ".join(faults) or "exact",
            "exact",
            not faults,
        )

    def command(self) -> list[str]:
        """The arguments of `headrace run`."""
        folders = {
            "--fleet": self.ground / "cluster.yaml",
            "--folder": self.ground / "fleet",
            "--plan": self.folder / "plan.json",
        }
        folders |= {"--checkpoint": self.folder / "run", "--telemetry": self.folder / "telemetry"}
        options = {**self.options, "out": self.folder / "out"}
        return [
            self.case.app,
            *(word for key, value in folders.items() for word in (key, str(value))),
            *(word for key, value in options.items() for word in ("--option", f"{key}={value}")),
        ]

    def disturb(self, process: subprocess.Popen[str], events: Sequence[Event]) -> bool:
        """Have the events happen, each in another batch; gives whether all of them did."""
        waiting, since = list(events), -1
        assert process.stderr is not None
        for line in process.stderr:
            self.last_words = line.strip()
            # Every plan is to rule a whole batch, and an executor is to be back before the next
            # event.
            if not line.startswith("batch ") or number(line) <= since or "misplaced" in line:
                continue
            # Into the batch that runs now.
            time.sleep(self.rng.random() * min(seconds(line), LONGEST_WAIT_S))
            if not waiting:
                return True
            since = self.batches()
            self.replan() if waiting.pop(0) == "plan" else self.kill_executor()
        return False

    def listen(self, process: subprocess.Popen[str]) -> int:
        """Wait for the end of a driver; gives its exit status."""
        said = process.communicate()[1].strip()
        self.last_words = said.splitlines()[-1] if said else self.last_words
        return process.returncode

    def replan(self) -> None:
        """Replace the plan file by one with other task counts and places."""
        count = self.counts[len(self.plans)]
        found = deal_tasks(self.topology, count, self.rng.randrange(len(NODES)))
        self.plans.append(found)
        plan = {
            "assignment": {task: {"node": node} for task, node in found.items()},
            "tasks": dict.fromkeys(self.topology.components, count),
        }
        content = {"format": "headrace/1", "plan": plan}
        write_whole(self.folder / "plan.json", json.dumps(content))

    def kill_executor(self) -> None:
        """Kill one of the executors, whichever the seed says."""
        until = time.monotonic() + EXECUTORS_WITHIN_S
        # A plan with other workers has other executors, and the old ones end first.
        while not (alive := executors(self.ground / "fleet")) and time.monotonic() < until:
            time.sleep(0.1)
        if not alive:
            raise InvalidInput(f"{self.case.name}: no executor in {EXECUTORS_WITHIN_S:.0f} s")
        # Those of a killed driver take a moment to end.
        newest = max(executor.application for executor in alive)
        chosen = self.rng.choice([executor for executor in alive if executor.application == newest])
        self.killed.append((self.batches(), chosen))
        os.kill(chosen.pid, signal.SIGKILL)

    def batches(self) -> int:
        """How many are committed, which is the number of the one that runs."""
        return max(
            (int(file.stem) + 1 for file in (self.folder / "run" / "commits").glob("*.json")),
            default=0,
        )

    def plans_in_force(self) -> list[int]:
        """The plans under which batches ran wholly: their tasks, each on its node."""
        found: list[int] = []
        for file in sorted((self.folder / "telemetry" / "tasks").glob("*.parquet")):
            rows = pq.ParquetFile(file).read(["task", "node"])
            places = dict(zip(rows["task"].to_pylist(), rows["node"].to_pylist(), strict=True))
            found += [i for i, plan in enumerate(self.plans) if plan == places and i not in found]
        return found

    def not_shown(self) -> Iterator[str]:
        """What should have happened and did not."""
        applications = {executor.application for _, executor in self.killed}
        fleet = self.ground / "fleet"
        replaced = sum(count_executors(fleet, a) - len(NODES) for a in applications)
        lost = min(replaced, len({batch for batch, _ in self.killed}))
        if lost < EXECUTORS:
            yield f"only {lost} executors lost"
        if [status for _, status in self.driver_killed] != [-signal.SIGKILL]:
            yield "the driver was not killed"
        if len(ruled := self.plans_in_force()) != PLANS + 1:
            yield f"only {len(ruled)} of {PLANS + 1} plans ruled a batch"
        if self.end != 0:
            yield f"ended with status {self.end}: {self.last_words}"

    def wrong(self) -> Iterator[str]:
        """The first batch after which the output differs from the batch computation."""
        out = self.folder / "out"
        if beyond := [
            f for f in out.rglob("batch=*") if int(f.name.removeprefix("batch=")) >= self.batches()
        ]:
            yield f"WRONG: {beyond[0].name} was not committed"
        for batches in range(1, self.batches() + 1):
            found = self.app.result(str(out), batches, **self.case.shape)
            if found != self.app.expected(batches, **self.options):
                yield f"WRONG in batch {batches - 1}"
                return


def deal_tasks(topology: Topology, count: int, first: int) -> dict[str, str]:
    """So many tasks of every component, over the nodes in turn: no node runs out of cores."""
    tasks = [task_name(name, n + 1) for name in topology.components for n in range(count)]
    return {task: NODES[(first + i) % len(NODES)] for i, task in enumerate(tasks)}


def number(line: str) -> int:
    """The number of a batch, from the line that the driver prints about it."""
    return int(line.removeprefix("batch ").partition(":")[0])


def seconds(line: str) -> float:
    """How long a batch took, from the same line."""
    return float(line.partition(" tuples in ")[2].partition(" s,")[0])

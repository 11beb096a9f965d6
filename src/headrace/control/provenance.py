"""What ran where, what flowed, which plan was in force and why: window by window.

From the telemetry of a run and its decisions; both are kept in the run's folder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from headrace.control.history import Entry
from headrace.errors import InvalidInput
from headrace.observe.classify import EVENTS, LATENESS_S
from headrace.observe.small import classify, edge_windows, read_kind, task_windows
from headrace.observe.source import check_folder


@dataclass(frozen=True, slots=True)
class Ran:
    """A task in a window."""

    task: str
    node: str
    tuples_in: int
    tuples_out: int
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Flowed:
    """What went from one component to another in a window."""

    source: str
    target: str
    tuples: int
    bytes: int
    between_nodes: int  # of the tuples
    between_workers: int = 0  # of the tuples, those between nodes included


@dataclass(frozen=True, slots=True)
class Window:
    """A window of a run."""

    start_s: float
    end_s: float
    plan: str  # fingerprint of the plan in force at its beginning; empty before the first decision
    why: str  # what the newest decision for a plan said
    decisions: tuple[str, ...]  # taken in the window
    tasks: tuple[Ran, ...]
    flows: tuple[Flowed, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        """The window in words: nodes with their tasks, then streams."""
        nodes: dict[str, list[Ran]] = {}
        for ran in self.tasks:
            nodes.setdefault(ran.node, []).append(ran)
        found = [f"plan {self.plan or 'of the start'}: {self.why or 'no decision before'}"]
        for node, tasks in sorted(nodes.items()):
            cpu_s = sum(ran.cpu_ms for ran in tasks) / 1000
            names = ", ".join(ran.task for ran in tasks)
            found.append(f"{node}: {cpu_s:.3g} s of CPU in {names}")
        for flow in self.flows:
            tuples = max(flow.tuples, 1)
            found.append(
                f"{flow.source} -> {flow.target}: {flow.tuples:,} tuples, {flow.bytes:,} bytes, "
                f"{flow.between_nodes / tuples:.0%} between nodes, "
                f"{flow.between_workers / tuples:.0%} between workers"
            )
        return found


def provenance(
    telemetry: Path,
    history: Sequence[Entry],
    *,
    window_s: int = 60,
    begin_s: float = -math.inf,
    end_s: float = math.inf,
) -> list[Window]:
    """The windows of a run that hold samples, oldest first."""
    files = check_folder(telemetry, None)
    rows = {}
    for kind in ("tasks", "edges"):
        read = read_kind(kind, [f for f in files[kind] if f.suffix == ".parquet"])
        usable = classify(read, kind, LATENESS_S)
        rows[kind] = usable[usable["table"] == EVENTS]
    tasks = task_windows(rows["tasks"], window_s)
    worker = worker_of_tasks(rows["tasks"])
    edges = edge_windows(rows["edges"], window_s)
    starts = sorted({int(start) for start in tasks["start_s"]} | {int(s) for s in edges["start_s"]})
    chosen = [start for start in starts if start + window_s > begin_s and start < end_s]
    if not chosen:
        raise InvalidInput(f"{telemetry}: holds no samples of that time")
    return [
        _window(
            start,
            window_s,
            tasks[tasks["start_s"] == start],
            edges[edges["start_s"] == start],
            history,
            worker,
        )
        for start in chosen
    ]


def worker_of_tasks(samples: Any) -> dict[tuple[str, str], int | None]:
    """The worker in which a task last ran on a node; None where nobody said."""
    known = samples.sort_values("event_time", kind="stable")
    return {
        (task, node): None if worker is pd.NA else int(worker)
        for task, node, worker in zip(known["task"], known["node"], known["worker"], strict=True)
    }


def _window(
    start: int,
    window_s: int,
    tasks: Any,
    edges: Any,
    history: Sequence[Entry],
    worker: Mapping[tuple[str, str], int | None],
) -> Window:
    ran = tuple(
        Ran(row.task, row.node, int(row.tuples_in), int(row.tuples_out), float(row.cpu_ms))
        for row in tasks.sort_values(["node", "task"]).itertuples()
    )
    node = {one.task: one.node for one in ran}
    place = {one.task: (one.node, worker.get((one.task, one.node))) for one in ran}
    flows: dict[tuple[str, str], list[int]] = {}
    for row in edges.fillna({"bytes": 0}).itertuples():
        total = flows.setdefault((row.source, row.target), [0, 0, 0, 0])
        total[0] += int(row.tuples)
        total[1] += int(row.bytes)
        if node.get(row.from_task) != node.get(row.to_task):
            total[2] += int(row.tuples)
        if place.get(row.from_task) != place.get(row.to_task):
            total[3] += int(row.tuples)
    end = start + window_s
    before = [entry for entry in history if entry.at_s < start]
    plan = before[-1].plan if before else (history[0].left if history else "")
    why = next((e.reason for e in reversed(before) if e.applied and e.plan == plan), "")
    taken = tuple(entry.reason for entry in history if start <= entry.at_s < end)
    found = tuple(Flowed(*names, *total) for names, total in sorted(flows.items()))
    return Window(float(start), float(end), plan, why, taken, ran, found)

"""The journal of a run: a line when it begins, per new plan, per batch, and when it ends.

Readers beside the run follow it: `headrace serve` shows nothing else of batches. A line is handed
to the system at once and not waited for: what a crash takes away is only the newest picture.

    {"kind": "begin", "at_s", "pid", "document": topology and cluster, "telemetry": folder or null}
    {"kind": "plan", "name", "tasks", "placement"}        before the first batch under it
    {"kind": "batch", "batch", "at_s", "seconds", "plan", "tuples", .., "nodes", "streams"}
    {"kind": "end", "at_s", "failure": words or null}
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from headrace.model.document import FORMAT

if TYPE_CHECKING:
    from headrace.model.document import Node
    from headrace.model.topology import Topology
    from headrace.run.batches import BatchDone
    from headrace.run.placement import Placement, Task
    from headrace.run.seats import TaskReport

    Located = Sequence[tuple[TaskReport, str]]  # what tasks say, and the nodes they ran on

NAME = "journal.jsonl"
VERSION = 1
ANYWHERE = "no plan"  # where tasks ran when nothing said where they belong


class Journal:
    """Adds lines to the journal of a folder; the first line is written with the first batch."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / NAME
        self._lines: TextIO | None = None
        self._plan: Placement | None = None
        self._anywhere = False

    def begin(self, document: Mapping[str, Any], **facts: Any) -> None:
        """Say what runs: the sections of a file that could be planned."""
        self._write({"kind": "begin", "version": VERSION, "at_s": time.time(), "pid": os.getpid(),
                     "document": {"format": FORMAT, **document}, **facts})  # fmt: skip

    def add_plan(self, name: str, tasks: Mapping[str, int], placement: Mapping[str, Any]) -> None:
        """Say where tasks are from the next batch on."""
        plan = {"kind": "plan", "name": name, "tasks": dict(tasks), "placement": dict(placement)}
        self._write(plan)

    def add(self, line: Mapping[str, Any]) -> None:
        """Add what was measured of a batch."""
        self._write({"kind": "batch", **line})

    def end(self, failure: str | None = None) -> None:
        """Say that nothing more comes."""
        if self._lines is not None:
            self._write({"kind": "end", "at_s": time.time(), "failure": failure})
            self._lines.close()
            self._lines = None

    def record(
        self,
        topology: Topology,
        done: BatchDone,
        reports: Located,
        placement: Placement | None,
        telemetry: Path | None,
    ) -> None:
        """Add a batch of a run; before it, where that is new, the run and the plan."""
        if self._lines is None:
            nodes = placement.nodes if placement is not None else {}
            self.begin(describe(topology, nodes, reports), telemetry=telemetry and str(telemetry))
        if placement is not None and placement is not self._plan:
            self._plan = placement
            self.add_plan(placement.name, placement.tasks, runs_of(placement.places))
        elif placement is None and not self._anywhere:
            self._anywhere = True
            places = {(r.component, r.number): (node, 0) for r, node in reports}
            counts = {name: c.tasks for name, c in topology.components.items()}
            self.add_plan(ANYWHERE, counts, runs_of(places))
        self.add(batch_line(done, reports))

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._lines is None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            torn = self.file.exists() and not ends_line(self.file)
            self._lines = self.file.open("a", encoding="utf-8", buffering=1)
            if torn:  # a crash has cut a line off
                self._lines.write("\n")
        self._lines.write(json.dumps(line, separators=(",", ":")) + "\n")


def ends_line(file: Path) -> bool:
    """Whether a file is empty or its last line is whole."""
    with file.open("rb") as content:
        content.seek(0, os.SEEK_END)
        if content.tell() == 0:
            return True
        content.seek(-1, os.SEEK_END)
        return content.read(1) == b"\n"


def describe(topology: Topology, nodes: Mapping[str, Node], reports: Located) -> dict[str, Any]:
    """A topology and its nodes as a file; where no plan names nodes, those that tasks ran on."""
    known = {
        name: node.model_dump(mode="json", by_alias=True, exclude_unset=True)
        for name, node in nodes.items()
    }
    found = known or {node: {} for _, node in reports}
    section = replace(topology, core_per_task=True).section()  # the engine's rule
    return {"topology": section, "cluster": {"nodes": found}}


def runs_of(places: Mapping[Task, tuple[str, int]]) -> dict[str, list[list[Any]]]:
    """The places of a plan, tasks of a component in one worker together, numbers from 1."""
    found: dict[str, list[list[Any]]] = {}
    for (component, number), (node, worker) in sorted(places.items()):
        runs = found.setdefault(component, [])
        if runs and runs[-1][:2] == [node, worker] and runs[-1][3] == number:
            runs[-1][3] = number + 1
        else:
            runs.append([node, worker, number + 1, number + 1])
    return found


def batch_line(done: BatchDone, reports: Located) -> dict[str, Any]:
    """A batch in figures: of itself, of every node, component and stream."""
    return {
        "batch": done.batch,
        "at_s": round(done.ended, 3),
        "seconds": round(done.seconds, 4),
        "plan": done.plan,
        "tuples": done.tuples,
        "remote_bytes": done.remote_bytes,
        "total_bytes": done.total_bytes,
        "misplaced": len(done.misplaced),
        "failure": done.failure,
        **measures(reports),
    }


def measures(reports: Located) -> dict[str, Any]:
    """What nodes, components and streams did in a batch.

    Nodes: CPU ms, MB, bytes out and in; components: tuples in and out, CPU ms; streams: tuples,
    bytes, and tuples between nodes. Memory is that of the component whose tasks need most: tasks of
    other stages run later, in the same processes.
    """
    where = {(r.component, r.number): node for r, node in reports}
    nodes: dict[str, list[float]] = {node: [0.0] * 4 for _, node in reports}
    components: dict[str, list[float]] = {}
    streams: dict[tuple[str, str], list[int]] = {}
    memory: dict[tuple[str, str], float] = {}
    for r, node in reports:
        nodes[node][0] += r.cpu_ms
        memory[node, r.component] = memory.get((node, r.component), 0.0) + r.memory_mb
        row = components.setdefault(r.component, [0, 0, 0.0])
        row[0], row[1], row[2] = row[0] + r.tuples_in, row[1] + r.tuples_out, row[2] + r.cpu_ms
        for target, number, tuples, size in r.edges:
            flow = streams.setdefault((r.component, target), [0, 0, 0])
            there = where.get((target, number), node)
            flow[0], flow[1] = flow[0] + tuples, flow[1] + size
            if there != node:
                flow[2] += tuples
                nodes[node][2] += size
                nodes[there][3] += size
    for (node, _), mb in memory.items():
        nodes[node][1] = max(nodes[node][1], mb)
    return {
        "nodes": {name: _rounded(row) for name, row in nodes.items()},
        "components": {name: _rounded(row) for name, row in components.items()},
        "streams": [[*ends, *row] for ends, row in streams.items()],
    }


def _rounded(row: Sequence[float]) -> list[float]:
    return [round(value, 1) for value in row]

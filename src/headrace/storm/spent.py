"""CPU as Storm's workers measured it: of executors, of threads that carry messages, of serialising.

Executors are in the telemetry that `observe` reads; what a worker says of itself lies beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from headrace.storm.state import State

KIND = "workers"
Place = tuple[str, int]  # node, and number of the slot


def executor_points(
    folder: Path, state: State, since_ms: float = 0.0
) -> dict[str, tuple[str, float]]:
    """Machine type and CPU points of every executor, by its name in a problem."""
    import pyarrow.parquet as pq  # here: slow to load

    several, topologies = len(state.topologies) > 1, {one.name for one in state.topologies}
    spent: dict[str, dict[float, float]] = {}
    types: dict[str, str] = {}
    columns = ["event_time", "topology", "task", "machine_type", "cpu_ms"]
    for file in newer_files(folder / "tasks", "*.parquet", since_ms):
        for row in pq.read_table(file, columns=columns).to_pylist():
            at_s = row["event_time"].timestamp()
            if row["topology"] in topologies and at_s * 1000 > since_ms:
                name = f"{row['topology']}/{row['task']}" if several else row["task"]
                spent.setdefault(name, {})[at_s] = row["cpu_ms"]
                types[name] = row["machine_type"] or ""
    found: dict[str, tuple[str, float]] = {}
    for name, by_time in spent.items():
        if len(by_time) > 1:  # a sample is of the time since the one before
            first, last = min(by_time), max(by_time)
            ms = sum(ms for at_s, ms in by_time.items() if at_s > first)
            found[name] = (types[name], ms / (last - first) / 10)
    return found


def messaging_by_worker(folder: Path, state: State, since_ms: float = 0.0) -> dict[Place, float]:
    """Milliseconds a second that a worker's own threads spend on messages."""
    return by_worker(folder, state, since_ms, "messaging_ms")


def waiting_by_worker(folder: Path, state: State, since_ms: float = 0.0) -> dict[Place, float]:
    """Milliseconds a second of the thread that looks for messages to send: it never rests."""
    return by_worker(folder, state, since_ms, "transfer_ms")


def by_worker(folder: Path, state: State, since_ms: float, figure: str) -> dict[Place, float]:
    slots = {(s.node, port): i for s in state.supervisors for i, port in enumerate(s.ports)}
    spent: dict[Place, list[float]] = {}
    for row in worker_rows(folder, state, since_ms):
        if figure in row and (row["node"], row["port"]) in slots:
            place = (row["node"], slots[(row["node"], row["port"])])
            sums = spent.setdefault(place, [0.0, 0.0])
            sums[0] += row[figure]
            sums[1] += row["seconds"]
    return {place: ms / seconds for place, (ms, seconds) in spent.items() if seconds > 0}


def serialising_ms(folder: Path, state: State, since_ms: float = 0.0) -> dict[str, float]:
    """Milliseconds that an executor of each component takes to serialise a tuple, from samples."""
    several = len(state.topologies) > 1
    sums: dict[str, list[float]] = {}
    for row in worker_rows(folder, state, since_ms):
        for component, (count, ms) in row.get("serialised", {}).items():
            name = f"{row['topology']}/{component}" if several else component
            both = sums.setdefault(name, [0.0, 0.0])
            both[0] += count
            both[1] += ms
    return {name: ms / count for name, (count, ms) in sums.items() if count > 0}


def worker_rows(folder: Path, state: State, since_ms: float) -> Iterator[dict[str, Any]]:
    """What workers of the running topologies said of themselves since then."""
    topologies = {running.name for running in state.topologies}
    for file in newer_files(folder / KIND, "*.jsonl", since_ms):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            at_ms = datetime.fromisoformat(row["event_time"]).timestamp() * 1000
            if row["topology"] in topologies and at_ms - row["seconds"] * 1000 >= since_ms:
                yield row


def newer_files(folder: Path, pattern: str, since_ms: float) -> list[Path]:
    """Files that were gathered since then, by their names."""
    return [file for file in sorted(folder.glob(pattern)) if int(file.name[:15]) > since_ms]

"""What a tuple to another worker costs in CPU: serialised, sent, received, deserialised.

Threads of the worker do that, not those of executors, so no component's profile has it. Each worker
says what these threads spent; all of it over the tuples that went between workers is the price of
one. At low rates it is higher than at high ones, where messages travel together.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from headrace.storm.state import State, named_executors

KIND = "workers"
LEAST_PER_S = 50.0  # tuples between workers: of fewer, timers make the price


def sending_price(
    folder: Path, state: State, traffic: Sequence[Sequence[Any]], since_ms: float = 0.0
) -> float | None:
    """CPU milliseconds of a tuple from one worker to another; None where it is not known.

    `traffic` are measured rows between executors, of the places that the state has.
    """
    place = {name: state.place_of(executor) for name, executor in named_executors(state)}
    remote = sum(
        float(row[2])
        for row in traffic
        if row[0] in place and row[1] in place and place[row[0]] != place[row[1]]
    )
    spent = messaging_ms_per_s(folder, {running.name for running in state.topologies}, since_ms)
    return spent / remote if remote >= LEAST_PER_S and spent > 0 else None


def messaging_ms_per_s(folder: Path, topologies: set[str], since_ms: float) -> float:
    """CPU milliseconds a second that all workers of the topologies spend on messages."""
    spent: dict[tuple[str, int], list[float]] = {}
    for file in sorted((folder / KIND).glob("*.jsonl")):
        if int(file.name[:15]) <= since_ms:
            continue
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            at_ms = datetime.fromisoformat(row["event_time"]).timestamp() * 1000
            if row["topology"] in topologies and at_ms - row["seconds"] * 1000 >= since_ms:
                sums = spent.setdefault((row["node"], row["port"]), [0.0, 0.0])
                sums[0] += row["messaging_ms"]
                sums[1] += row["seconds"]
    return sum(ms / seconds for ms, seconds in spent.values() if seconds > 0)

"""What a line of a journal says, as figures: rates over the time since the line before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from headrace.serve.columns import Columns

BITS = 8e-6  # Mbit in a byte
SHORTEST_S = 1e-3
BLOCK = 4096  # lines that are turned into columns together

Line = Mapping[str, Any]


def stream_name(source: str, target: str) -> str:
    """What a stream is called among the figures."""
    return f"{source}→{target}"


def figures_of(line: Line, before_s: float | None, plan: int) -> dict[str, float]:
    """The figures of a batch; `before_s` is when the batch before it ended.

    A tuple of the batch came at the earliest when the batch before it began, if nothing waits at
    the source: so old it is at most when its batch is committed.
    """
    at_s, seconds = float(line["at_s"]), float(line["seconds"])
    elapsed = max(seconds if before_s is None else at_s - before_s, SHORTEST_S)
    found = {
        "batch": float(line["batch"]),
        "plan": float(plan),
        "tuples_per_s": line["tuples"] / elapsed,
        "batch_s": seconds,
        "latency_s": float(line.get("latency_s") or elapsed + seconds),
        "remote_mbps": BITS * line["remote_bytes"] / elapsed,
        "total_mbps": BITS * line["total_bytes"] / elapsed,
        "misplaced": float(line["misplaced"]),
    }
    if line.get("pending") is not None:
        found["pending"] = float(line["pending"])
    for name, (cpu_ms, memory_mb, out, arrived) in line["nodes"].items():
        found[f"cpu:{name}"] = cpu_ms / (10 * elapsed)
        found[f"memory_mb:{name}"] = memory_mb
        found[f"mbps:{name}"] = BITS * max(out, arrived) / elapsed
    for name, (taken, given, cpu_ms) in line["components"].items():
        found[f"in:{name}"] = taken / elapsed
        found[f"out:{name}"] = given / elapsed
        found[f"cost:{name}"] = cpu_ms / (10 * elapsed)
    for source, target, tuples, _, crossing in line["streams"]:
        name = stream_name(source, target)
        found[f"stream:{name}"] = tuples / elapsed
        found[f"crossing:{name}"] = crossing / elapsed
    return found


def add_all(columns: Columns, rows: Iterable[tuple[float, dict[str, float]]]) -> None:
    """Add many rows; those with the same figures together."""
    names: tuple[str, ...] = ()
    block: list[list[float]] = []
    times: list[float] = []

    def flush() -> None:
        if block:
            columns.add_block(times, names, np.array(block, dtype=np.float32))
            block.clear()
            times.clear()

    for at_s, figures in rows:
        own = tuple(figures)
        if own != names or len(block) == BLOCK:
            flush()
            names = own
        block.append(list(figures.values()))
        times.append(at_s)
    flush()

"""What a line of a journal says, as figures: rates over the time since the line before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
        "remote_mbps": BITS * line["remote_bytes"] / elapsed,
        "total_mbps": BITS * line["total_bytes"] / elapsed,
        "misplaced": float(line["misplaced"]),
    }
    if "latency_s" not in line:
        found["latency_s"] = elapsed + seconds
    else:  # simulated: a span of time is no batch
        del found["batch_s"]
        if line["latency_s"] is not None:
            found["latency_s"] = float(line["latency_s"])
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


def newest_measured(lines: Sequence[Line], document: Mapping[str, Any]) -> dict[str, Any]:
    """Rates of the spouts, streams and costs, from batches one after another.

    Telemetry says more, where a run writes it: what a machine type costs, and shares of tasks.
    """
    seconds = lines[-1]["at_s"] - lines[0]["at_s"] if len(lines) > 1 else 0.0
    if seconds <= 0:
        return {"rates": {}, "measured": {}}
    facts = document.get("topology", {}).get("components", {})
    worked: dict[str, list[float]] = {}
    sent: dict[tuple[str, str], list[float]] = {}
    for line in lines[1:]:
        for name, row in line["components"].items():
            worked[name] = [a + b for a, b in zip(worked.get(name, [0.0] * 3), row, strict=True)]
        for source, target, *row in line["streams"]:
            before = sent.get((source, target), [0.0] * 3)
            sent[source, target] = [a + b for a, b in zip(before, row, strict=True)]
    basis = {
        name: row[1] if facts.get(name, {}).get("spout") else row[0] for name, row in worked.items()
    }
    streams = [
        {
            "from": source,
            "to": target,
            "tuples_per_s": tuples / seconds,
            "selectivity": tuples / basis[source],
            "bytes": size / tuples,
        }
        for (source, target), (tuples, size, _) in sent.items()
        if tuples > 0 and basis.get(source)
    ]
    profile = {
        name: {"*": {"cpu_ms": worked[name][2] / count}} for name, count in basis.items() if count
    }
    rates = {
        name: count / seconds
        for name, count in basis.items()
        if count and facts.get(name, {}).get("spout")
    }
    return {"rates": rates, "measured": {"streams": streams, "profile": profile}}

"""Runs to look at, written as a run writes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.control.history import Entry, keep
from headrace.run.journal import NAME, Journal

START_S = 1_790_000_000.0
WORDS: dict[str, Any] = {
    "name": "word-count",
    "components": {
        "sentence": {"spout": True, "tasks": 2},
        "split": {"tasks": 4, "inputs": {"sentence": "shuffle"}},
        "count": {
            "tasks": 4,
            "inputs": {"split": {"grouping": "fields", "fields": ["word"]}},
            "state_mb": 10,
        },
    },
}
NODES = {
    "large": {"cpu": 400, "memory_mb": 4096, "slots": 4, "bandwidth_mbps": 100, "rack": "r1"},
    "small-1": {"cpu": 200, "memory_mb": 2048, "slots": 4, "bandwidth_mbps": 100, "rack": "r2"},
    "small-2": {"cpu": 200, "memory_mb": 2048, "slots": 4, "bandwidth_mbps": 100, "rack": "r2"},
}
SPREAD = {
    "sentence": [["large", 0, 1, 1], ["small-1", 0, 2, 2]],
    "split": [["large", 0, 1, 2], ["small-1", 0, 3, 3], ["small-2", 0, 4, 4]],
    "count": [["large", 0, 1, 2], ["small-1", 0, 3, 3], ["small-2", 0, 4, 4]],
}
TOGETHER = {
    "sentence": [["large", 0, 1, 2]],
    "split": [["large", 0, 1, 4]],
    "count": [["large", 0, 1, 3], ["small-1", 0, 4, 4]],
}
COUNTS = {"sentence": 2, "split": 4, "count": 4}


def batch(number: int, at_s: float, plan: str, *, remote: float = 0.6) -> dict[str, Any]:
    """A batch in figures, the same every time for a number."""
    wave = 1 + 0.2 * ((number % 20) - 10) / 10
    words, size = round(70_000 * wave), round(900_000 * wave)
    on_large = 0.5 if remote > 0.5 else 0.85
    rest = (1 - on_large) / 2
    return {
        "batch": number, "at_s": at_s, "seconds": 0.7 * wave, "plan": plan,
        "tuples": round(10_000 * wave), "remote_bytes": round(size * remote), "total_bytes": size,
        "misplaced": 0, "failure": None,
        "nodes": {
            "large": [1900 * wave * on_large, 300.0, size * remote / 2, size * remote / 2],
            "small-1": [1900 * wave * rest, 150.0, size * remote / 4, size * remote / 4],
            "small-2": [1900 * wave * rest, 150.0, size * remote / 4, size * remote / 4],
        },
        "components": {
            "sentence": [0, round(10_000 * wave), 300.0 * wave],
            "split": [round(10_000 * wave), words, 900.0 * wave],
            "count": [words, 0, 700.0 * wave],
        },
        "streams": [
            ["sentence", "split", round(10_000 * wave), size // 2, round(10_000 * wave * remote)],
            ["split", "count", words, size // 2, round(words * remote)],
        ],
    }  # fmt: skip


def decision(at_s: float, **facts: Any) -> Entry:
    """A decision for another plan."""
    told: dict[str, Any] = {
        "at_s": at_s, "move": True, "applied": True,
        "reason": "gains 31 % of the batch time, above the 5 % that are asked for",
        "plan": "b" * 16, "left": "a" * 16, "by": "headrace", "rule": "gain",
        "before": {"batch_seconds": 0.71, "inter_node_traffic": 48_000.0, "feasible": True},
        "after": {"batch_seconds": 0.49, "inter_node_traffic": 9_000.0, "feasible": True},
        "moved_tasks": 5, "moved_mb": 20.0, "rate_per_s": 10_000.0,
        "measured": {"batch_seconds": 0.7},
        "plans": {
            "a" * 16: {"tasks": COUNTS, "placement": SPREAD},
            "b" * 16: {"tasks": COUNTS, "placement": TOGETHER},
        },
    }  # fmt: skip
    return Entry(**{**told, **facts})


def write_run(
    folder: Path,
    *,
    batches: int = 120,
    moved_at: int | None = 60,
    ended: bool = True,
    topology: Mapping[str, Any] = WORDS,
    nodes: Mapping[str, Any] = NODES,
    period_s: float = 1.0,
    start_s: float = START_S,
) -> Path:
    """A run of word count that got a better plan in its middle."""
    journal = Journal(folder)
    journal.begin({"topology": dict(topology), "cluster": {"nodes": dict(nodes)}},
                  telemetry=None, at_s=start_s)  # fmt: skip
    journal.add_plan("storm-even", COUNTS, SPREAD)
    for number in range(batches):
        if number == moved_at:
            journal.add_plan("plan-1", COUNTS, TOGETHER)
            keep(folder, decision(start_s + number * period_s))
        after = moved_at is not None and number >= moved_at
        name, remote = ("plan-1", 0.15) if after else ("storm-even", 0.6)
        journal.add(batch(number, start_s + (number + 1) * period_s, name, remote=remote))
    if ended:
        journal.end()
    return folder


def write_large_run(folder: Path, *, nodes: int, tasks: int, racks: int, batches: int = 30) -> Path:
    """A run with many nodes or many tasks, spread evenly."""
    names = [f"node-{i:04d}" for i in range(nodes)]
    facts = {
        name: {"cpu": 400, "memory_mb": 8192, "slots": 4, "bandwidth_mbps": 1000,
               "rack": f"r{i % racks}"}
        for i, name in enumerate(names)
    }  # fmt: skip
    counts = {"sentence": tasks // 10, "split": tasks * 4 // 10, "count": tasks // 2}
    placement = {
        component: [[names[k % nodes], 0, k + 1, k + 1] for k in range(count)]
        for component, count in counts.items()
    }
    journal = Journal(folder)
    components = {name: {**WORDS["components"][name], "tasks": counts[name]} for name in counts}
    topology = {"name": "large", "components": components}
    journal.begin({"topology": topology, "cluster": {"nodes": facts}}, telemetry=None,
                  at_s=START_S)  # fmt: skip
    journal.add_plan("spread", counts, placement)
    for number in range(batches):
        line = batch(number, START_S + number + 1, "spread")
        line["nodes"] = {
            name: [(i * 37 % 100) / 100 * 3900, 2000.0 + i % 50, 4e6 * (i % 7), 3e6 * (i % 5)]
            for i, name in enumerate(names)
        }
        journal.add(line)
    journal.end()
    return folder


def journal_of(folder: Path) -> Path:
    """The file that a run's batches are in."""
    return folder / NAME

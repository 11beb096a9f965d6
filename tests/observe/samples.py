"""Telemetry rows for tests: three inline, or a small topology that runs for some minutes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
APP = {
    "format": "headrace/1",
    "topology": {
        "name": "words",
        "components": {
            "say": {"spout": True},
            "split": {"tasks": 2, "inputs": {"say": "shuffle"}},
            "count": {"tasks": 3, "inputs": {"split": {"grouping": "fields", "fields": ["word"]}}},
        },
    },
    "cluster": {"nodes": {"n{1..3}": {"type": "i7", "cpu": 800}}},
}


def task(**given: Any) -> dict[str, Any]:
    at = given.get("event_time") or NOON
    row = {
        "event_time": at, "arrival": at + timedelta(seconds=1), "topology": "words", "task": "split.1", "component": "split",
        "node": "n1", "machine_type": "i7", "tuples_in": 100, "tuples_out": 700, "cpu_ms": 50.0, "queue_length": 0, "memory_mb": 64.0,
    }  # fmt: skip
    return {**row, **given}


def edge(**given: Any) -> dict[str, Any]:
    at = given.get("event_time") or NOON
    row = {"event_time": at, "arrival": at + timedelta(seconds=1), "topology": "words", "from_task": "split.1", "to_task": "count.1",
           "tuples": 10, "bytes": 480}  # fmt: skip
    return {**row, **given}


def node(**given: Any) -> dict[str, Any]:
    row = {"event_time": NOON, "arrival": NOON, "node": "n1", "machine_type": "i7", "sockets": 1, "cores": 8, "ghz": 3.4,
           "flops_per_cycle": 16.0, "memory_mb": 16384.0, "bandwidth_mbps": 1000.0, "slots": 4}  # fmt: skip
    return {**row, **given}


def word_count(
    minutes: int, *, start: datetime = NOON, ahead: Mapping[str, timedelta] = {}
) -> dict[str, list[dict[str, Any]]]:
    """A spout of one task, two tasks of `split` and three of `count`, sampled every ten seconds.

    In minute m the spout emits 100 + 10 m tuples/s; split makes 7 of each; of these count.1 gets a
    half, the others a quarter. A tuple costs split 0.5 ms (and 2 points at rest) on i7; count 0.1
    ms.
    """
    tasks: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    where = {
        "say.1": "n1",
        "split.1": "n1",
        "split.2": "n2",
        "count.1": "n2",
        "count.2": "n3",
        "count.3": "n3",
    }
    shares = {"count.1": 0.5, "count.2": 0.25, "count.3": 0.25}

    for step in range(6 * minutes):
        said = 10 * (100 + 10 * (step // 6))

        def sample(task_: str, taken: float, given: float, cpu_ms: float, step: int = step) -> None:
            node = where[task_]
            at = start + timedelta(seconds=10 * step) + ahead.get(node, timedelta(0))
            row = task(event_time=at, task=task_, component=task_[:-2], node=node)
            tasks.append(
                {**row, "tuples_in": round(taken), "tuples_out": round(given), "cpu_ms": cpu_ms}
            )

        def sent(a: str, b: str, tuples: float, step: int = step) -> None:
            at = start + timedelta(seconds=10 * step) + ahead.get(where[a], timedelta(0))
            edges.append(
                edge(
                    event_time=at,
                    from_task=a,
                    to_task=b,
                    tuples=round(tuples),
                    bytes=round(tuples) * 48,
                )
            )

        sample("say.1", 0, said, 20.0)
        for n in (1, 2):
            sent("say.1", f"split.{n}", said / 2)
            sample(f"split.{n}", said / 2, said * 3.5, said / 2 * 0.5 + 200)
            for target, share in shares.items():
                sent(f"split.{n}", target, said * 3.5 * share)
        for target, share in shares.items():
            sample(target, said * 7 * share, 0, said * 7 * share * 0.1)
    return {"tasks": tasks, "edges": edges}


def noisy_load(
    windows: int, *, cpu_ms: float, cpu_fixed: float, window_s: int, seed: int
) -> list[dict[str, Any]]:
    """One sample per window of a task at changing rates, with 10 % noise on its CPU, and one window in a hundred ten times as dear."""
    random = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for i in range(windows):
        rate = random.uniform(1, 1000)
        points = (
            (rate * cpu_ms / 10 + cpu_fixed)
            * random.normal(1, 0.1)
            * (10 if random.random() < 0.01 else 1)
        )
        used_ms = max(points, 0.0) * 10 * window_s
        rows.append(
            task(
                event_time=NOON + timedelta(seconds=i * window_s),
                tuples_in=round(rate * window_s),
                cpu_ms=used_ms,
            )
        )
    return rows

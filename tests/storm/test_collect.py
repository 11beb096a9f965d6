"""Telemetry of workers is gathered once, by executor, and can be observed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pq = pytest.importorskip("pyarrow.parquet")

from headrace.storm.collect import collect

AT = datetime.fromtimestamp(1000, UTC).isoformat()


def task(name: str, tuples: int, cpu_ms: float) -> dict[str, Any]:
    return {
        "version": 1, "event_time": AT, "arrival": AT, "topology": "wc", "task": name,
        "component": name.partition(".")[0], "node": "n1", "machine_type": "",
        "tuples_in": tuples, "tuples_out": 0, "cpu_ms": cpu_ms, "queue_length": 0,
        "memory_mb": 0.0,
    }  # fmt: skip


def edge(source: str, target: str, tuples: int) -> dict[str, Any]:
    ends = {"from_task": source, "to_task": target, "tuples": tuples, "bytes": tuples * 10}
    return {"version": 1, "event_time": AT, "arrival": AT, "topology": "wc", **ends}


def write(folder: Path, kind: str, name: str, *lines: str) -> None:
    (folder / kind).mkdir(parents=True, exist_ok=True)
    (folder / kind / name).write_text("".join(line + "\n" for line in lines))


def test_tasks_of_one_executor_are_added_up_and_files_are_gathered_once(tmp_path: Path) -> None:
    source, store = tmp_path / "workers", tmp_path / "store"
    rows = [json.dumps(task("split.1", 5, 1.0)), json.dumps(task("split.2", 7, 2.0))]
    write(source, "tasks", "a.jsonl", *rows)
    write(source, "tasks", ".half.jsonl", "{")
    edges = [json.dumps(edge("split.1", "count.1", 3)), json.dumps(edge("split.2", "count.1", 4))]
    write(source, "edges", "a.jsonl", *edges, "no json", '{"version": 2}')
    names = {"wc": {"split.1": "split.1", "split.2": "split.1"}}
    assert collect(source, store, names, 1001.0) == 4
    [found] = pq.read_table(next((store / "tasks").glob("*.parquet"))).to_pylist()
    assert (found["task"], found["tuples_in"], found["cpu_ms"]) == ("split.1", 12, 3.0)
    [found] = pq.read_table(next((store / "edges").glob("*.parquet"))).to_pylist()
    assert (found["from_task"], found["tuples"], found["bytes"]) == ("split.1", 7, 70)
    assert collect(source, store, names, 1002.0) == 0
    assert [f.name for f in (source / "tasks").iterdir()] == [".half.jsonl"]

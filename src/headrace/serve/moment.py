"""One moment of a run: its figures, and what every task did in its batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace.serve.runs import Run

MOST_EDGES = 20_000  # pairs of tasks, the busiest


def moment(run: Run, at_s: float | None) -> dict[str, Any]:
    """The figures at a moment; None: the newest."""
    columns = run.columns
    if not columns.rows:
        return {"at_s": None, "batch": None, "plan": None, "figures": {}}
    index = columns.rows - 1 if at_s is None else columns.nearest(at_s)
    figures = columns.row(index)
    batch, change = round(figures.pop("batch", 0.0)), round(figures.pop("plan", 0.0))
    plan = run.changes[min(change, len(run.changes) - 1)][1] if run.changes else None
    return {
        "at_s": float(columns.at_s[index]),
        "batch": batch,
        "plan": plan,
        "figures": figures,
        "live": index == columns.rows - 1,
    }


def task_detail(run: Run, batch: int) -> dict[str, Any]:
    """What each task did in a batch, and with whom it spoke; from the batch's own telemetry."""
    empty: dict[str, Any] = {"batch": batch, "tasks": {}, "edges": []}
    if run.telemetry is None:
        return empty | {"note": "the run writes no telemetry, which has what tasks did"}
    name = f"{run.name}-{batch:08d}-000000.parquet"
    files = {kind: _inside(run.telemetry, kind, name) for kind in ("tasks", "edges")}
    if files["tasks"] is None or not files["tasks"].is_file():
        return empty | {"note": "there is no telemetry of this batch"}
    try:
        import pyarrow.parquet as pq
    except ImportError:
        return empty | {"note": "telemetry is read with pyarrow, which is not installed"}
    columns = ["task", "node", "tuples_in", "tuples_out", "cpu_ms", "memory_mb"]
    tasks = pq.ParquetFile(files["tasks"]).read(columns).to_pylist()
    edges: list[list[Any]] = []
    if files["edges"] is not None and files["edges"].is_file():
        read = pq.ParquetFile(files["edges"]).read(["from_task", "to_task", "tuples", "bytes"])
        edges = [list(row.values()) for row in read.to_pylist()]
        edges.sort(key=lambda row: -row[2])
    return {
        "batch": batch,
        "tasks": {row.pop("task"): row for row in tasks},
        "edges": edges[:MOST_EDGES],
    }


def _inside(folder: Path, kind: str, name: str) -> Path | None:
    """A file of a folder; None if its name leads elsewhere."""
    file = folder / kind / name
    return file if file.parent == folder / kind and "/" not in name else None

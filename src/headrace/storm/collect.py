"""Telemetry of Storm's workers, gathered into the store as `observe` reads it.

Workers write JSON lines, one small file each every few seconds. They are gathered into one Parquet
file a sweep, named by its time, so that the newest files are the newest samples; what was gathered
is removed. A task is what Storm calls an executor: what its tasks did is added up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from headrace.model.files import write_whole
from headrace.model.telemetry import KINDS, VERSION, Writer
from headrace.storm.spent import KIND

KEEP = 2000  # files of a kind: hours of them


def collect(source: Path, store: Path, names: Mapping[str, Mapping[str, str]], at_s: float) -> int:
    """Gather what workers wrote; gives the number of samples."""
    writer = Writer(store, name=f"{round(at_s * 1000):015d}")
    gathered, read = 0, list[Path]()
    for kind in ("tasks", "edges"):
        files = [file for file in sorted((source / kind).glob("*.jsonl")) if file.name[0] != "."]
        rows = [rename(row, names) for file in files for row in read_lines(file)]
        if rows:
            writer.write(kind, add_up(kind, rows))
        gathered += len(rows)
        read += files
        for old in sorted((store / kind).glob("*.parquet"))[:-KEEP]:
            old.unlink(missing_ok=True)
    writer.flush()
    read += collect_workers(source / KIND, store / KIND, f"{round(at_s * 1000):015d}")
    for file in read:  # after a crash before this they are gathered again; a sample counts once
        file.unlink(missing_ok=True)
    return gathered


def collect_workers(source: Path, store: Path, name: str) -> list[Path]:
    """Gather what workers said of themselves; gives the files that were read."""
    files = [file for file in sorted(source.glob("*.jsonl")) if file.name[0] != "."]
    rows = [row for file in files for row in read_lines(file)]
    if rows:
        store.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        write_whole(store / f"{name}.jsonl", lines)
    for old in sorted(store.glob("*.jsonl"))[:-KEEP]:
        old.unlink(missing_ok=True)
    return files


def read_lines(file: Path) -> list[dict[str, Any]]:
    """The samples of a file; a line that cannot be read is left out."""
    found: list[dict[str, Any]] = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and row.pop("version", None) == VERSION:  # pyright: ignore[reportUnknownMemberType]
            found.append(row)  # pyright: ignore[reportUnknownArgumentType]
    return found


def rename(row: dict[str, Any], names: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    known = names.get(row["topology"], {})
    ends = [key for key in ("task", "from_task", "to_task") if key in row]
    return {**row, **{key: known.get(row[key], row[key]) for key in ends}}


def add_up(kind: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Samples of tasks of one executor at one time as one; times as the format has them."""
    sums = {"tasks": ("tuples_in", "tuples_out", "cpu_ms"), "edges": ("tuples", "bytes")}[kind]
    values = (*sums, "arrival", "queue_length", "memory_mb")
    keys = [name for name in KINDS[kind].names if name not in values]
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(row.get(name) for name in keys)
        if key in found:
            for name in sums:
                found[key][name] += row[name]
        else:
            found[key] = dict(row)
    for row in found.values():
        for name in ("event_time", "arrival"):
            row[name] = datetime.fromisoformat(row[name])
    return list(found.values())

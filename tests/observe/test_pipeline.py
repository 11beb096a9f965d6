"""Rows are judged one by one, each sample counts once, and windows add up."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from headrace.errors import InvalidInput
from headrace.model.telemetry import TASKS, VERSION_KEY, Writer
from headrace.observe.classify import events, others
from headrace.observe.source import check_folder, columns_of, read_files
from headrace.observe.windows import edge_windows, task_windows
from tests.observe.samples import NOON, edge, node, task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HOUR = timedelta(hours=1)


def rows(spark: SparkSession, kind: str, *given: dict[str, Any]) -> DataFrame:
    columns = columns_of(kind).add("version", "integer").add("raw", "string")
    return spark.createDataFrame(
        [tuple(row.get(name) for name in columns.names) for row in given], columns
    )


def test_every_row_is_used_or_late_or_quarantined_with_its_reason(spark: SparkSession) -> None:
    given = {
        "good": task(),
        "late": task(arrival=NOON + timedelta(seconds=61)),
        "just in time": task(arrival=NOON + timedelta(seconds=60)),
        "no event_time": {**task(), "event_time": None},
        "no arrival": task(arrival=None),
        "no topology": task(topology=""),
        "task is not component.N": task(task="split"),
        "task is not one of its component": task(task="count.1"),
        "no tuples_in": task(tuples_in=None),
        "tuples_out is negative": task(tuples_out=-1),
        "cpu_ms is not a number": task(cpu_ms=float("nan")),
        "event_time is after arrival: a clock is ahead": task(arrival=NOON - HOUR),
        "version 2; this headrace reads 1": task(version=2),
        "no queue length is fine": task(queue_length=None),
    }
    # The memory tells the rows apart.
    all_rows = rows(
        spark, "tasks", *({**row, "memory_mb": float(i)} for i, row in enumerate(given.values()))
    )
    judged = events(all_rows, "tasks").unionByName(others(all_rows, "tasks")).collect()
    found = {list(given)[int(row["memory_mb"])]: (row["table"], row["reason"]) for row in judged}
    assert len(judged) == len(given)
    used = {
        "good": "events",
        "late": "late",
        "just in time": "events",
        "no queue length is fine": "events",
    }
    assert found == {
        name: (used[name], None) if name in used else ("quarantine", name) for name in given
    }


def test_edges_and_nodes_are_judged_too(spark: SparkSession) -> None:
    edges = rows(spark, "edges", edge(), edge(to_task="count.0"), edge(tuples=-1), edge(bytes=None))
    assert events(edges, "edges").count() == 2
    assert [row["reason"] for row in others(edges, "edges").collect()] == [
        "to_task is not component.N",
        "tuples is negative",
    ]
    nodes = rows(spark, "nodes", node(), node(node=None), node(ghz=-1.0))
    assert [row["reason"] for row in others(nodes, "nodes").collect()] == [
        "no node",
        "ghz is negative",
    ]


def test_a_window_adds_up_each_sample_once(spark: SparkSession) -> None:
    once = [task(event_time=NOON + timedelta(seconds=s), tuples_in=10 + s) for s in (0, 10, 59, 60)]
    sent_again = [{**once[1], "arrival": NOON + timedelta(seconds=30)}, once[3]]
    other = task(event_time=NOON, task="split.2", tuples_in=5)
    windows = task_windows(rows(spark, "tasks", *once, *sent_again, other)).collect()
    noon = int(NOON.timestamp())
    found = {
        (row["task"], row["start_s"] - noon): (row["tuples_in"], row["samples"]) for row in windows
    }
    assert found == {
        ("split.1", 0): (10 + 20 + 69, 3),
        ("split.1", 60): (70, 1),
        ("split.2", 0): (5, 1),
    }
    assert {row["component"] for row in windows} == {"split"}


def test_samples_close_together_are_not_taken_for_one(spark: SparkSession) -> None:
    close = [edge(event_time=NOON + timedelta(milliseconds=ms), tuples=1) for ms in range(5)]
    (row,) = edge_windows(rows(spark, "edges", *close, close[0])).collect()
    assert (row["tuples"], row["samples"], row["source"], row["target"]) == (5, 5, "split", "count")


def test_json_lines_and_parquet_read_alike_and_bad_lines_are_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    for format in ("parquet", "jsonl"):
        with Writer(tmp_path, format=format, name="a") as writer:
            writer.write("tasks", [task()])
    lines = [
        json.dumps({"version": 1, **task(tuples_in="many", event_time=None, arrival=None)}),
        '{"version": 1, "task"',
    ]
    (tmp_path / "tasks" / "b.jsonl").write_text("\n".join(lines) + "\n")
    found = read_files(spark, "tasks", check_folder(tmp_path)["tasks"])
    good, bad = events(found, "tasks").collect(), others(found, "tasks").collect()
    assert len(good) == 2
    assert good[0].asDict() | {"version": 1} == good[1].asDict() | {"version": 1}
    assert sorted(row["raw"] for row in bad) == sorted(lines)
    assert {row["reason"] for row in bad} == {"not a JSON line of this kind"}


def test_what_is_not_telemetry_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no such folder"):
        check_folder(tmp_path / "absent")
    with pytest.raises(
        InvalidInput,
        match="is not a telemetry folder; it needs at least one of the folders tasks, edges, nodes",
    ):
        check_folder(tmp_path)
    (tmp_path / "tasks").mkdir()
    with pytest.raises(InvalidInput, match="holds no telemetry yet"):
        check_folder(tmp_path)
    later = TASKS.with_metadata({VERSION_KEY: b"2"}).empty_table()
    pq.write_table(later, tmp_path / "tasks" / "a.parquet")
    with pytest.raises(
        InvalidInput, match=r"a\.parquet: is telemetry of version 2; this headrace reads version 1"
    ):
        check_folder(tmp_path)
    pq.write_table(
        TASKS.empty_table().drop_columns(["task"]).replace_schema_metadata(None),
        tmp_path / "tasks" / "a.parquet",
    )
    with pytest.raises(
        InvalidInput, match="is not telemetry of kind `tasks`; it has no column `task`"
    ):
        check_folder(tmp_path)
    (tmp_path / "tasks" / "a.parquet").write_text("no")
    with pytest.raises(InvalidInput, match="is not a Parquet file"):
        check_folder(tmp_path)
    (tmp_path / "tasks" / "a.parquet").unlink()
    (tmp_path / "tasks" / "a.jsonl").write_text('{"version": 3}\n')
    with pytest.raises(InvalidInput, match="is telemetry of version 3"):
        check_folder(tmp_path)

"""The telemetry writer: what it refuses, and that no file is ever seen half-written."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import InvalidInput
from headrace.model import telemetry
from headrace.model.telemetry import KINDS, VERSION, VERSION_KEY, Writer

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def edge(**given: Any) -> dict[str, Any]:
    row = {
        "event_time": NOON,
        "topology": "words",
        "from_task": "split.1",
        "to_task": "count.2",
        "tuples": 7,
        "bytes": 336,
    }
    return {**row, **given}


def test_rows_come_back_with_their_columns_and_the_version(tmp_path: Path) -> None:
    with Writer(tmp_path, name="a") as writer:
        writer.write("edges", [edge(arrival=NOON + timedelta(seconds=1))])
    (file,) = (tmp_path / "edges").iterdir()
    rows = pq.read_table(file)
    assert rows.schema.metadata[VERSION_KEY] == str(VERSION).encode()
    assert rows.column_names == KINDS["edges"].names
    assert rows.to_pylist() == [edge(arrival=NOON + timedelta(seconds=1))]


def test_json_lines_say_the_same(tmp_path: Path) -> None:
    with Writer(tmp_path, format="jsonl", name="a") as writer:
        writer.write("edges", [edge(arrival=NOON), edge(arrival=NOON, tuples=8)])
    said = [
        json.loads(line)
        for line in (tmp_path / "edges" / "a-000000.jsonl").read_text().splitlines()
    ]
    assert [row["tuples"] for row in said] == [7, 8]
    assert {row["version"] for row in said} == {VERSION}
    assert datetime.fromisoformat(said[0]["event_time"]) == NOON


def test_a_row_without_arrival_gets_the_time_it_was_handed_over(tmp_path: Path) -> None:
    with Writer(tmp_path, name="a", clock=lambda: NOON + timedelta(seconds=3)) as writer:
        writer.write("edges", [edge(), edge(arrival=NOON)])
    arrival = pq.read_table(tmp_path / "edges")["arrival"].to_pylist()
    assert arrival == [NOON + timedelta(seconds=3), NOON]


def test_a_table_is_taken_as_it_is_and_what_it_lacks_is_null(tmp_path: Path) -> None:
    with Writer(tmp_path, name="a") as writer:
        writer.write(
            "tasks",
            pa.table(
                {"event_time": [NOON], "task": ["split.1"], "tuples_in": pa.array([3], pa.int32())}
            ),
        )
    (row,) = pq.read_table(tmp_path / "tasks").to_pylist()
    assert (row["task"], row["tuples_in"], row["cpu_ms"]) == ("split.1", 3, None)


def test_files_roll_at_their_number_of_rows(tmp_path: Path) -> None:
    writer = Writer(tmp_path, rows_per_file=2, name="a")
    writer.write("edges", [edge()])
    assert not (tmp_path / "edges").exists()
    writer.write("edges", [edge()] * 4)
    files = sorted((tmp_path / "edges").iterdir())
    assert [pq.read_metadata(file).num_rows for file in files] == [2, 2, 1]
    writer.close()
    assert sorted((tmp_path / "edges").iterdir()) == files


def test_the_same_name_again_replaces_its_files(tmp_path: Path) -> None:
    for tuples in (1, 2):
        with Writer(tmp_path, name="batch-7") as writer:
            writer.write("edges", [edge(tuples=tuples)])
    assert pq.read_table(tmp_path / "edges")["tuples"].to_pylist() == [2]


def test_two_writers_without_a_name_do_not_replace_each_other(tmp_path: Path) -> None:
    for _ in range(2):
        with Writer(tmp_path) as writer:
            writer.write("edges", [edge()])
    assert pq.read_table(tmp_path / "edges").num_rows == 2


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_a_writer_that_dies_while_writing_leaves_nothing_to_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: Literal["parquet", "jsonl"]
) -> None:
    encode = telemetry.ENCODERS[format]

    def half(rows: pa.Table, file: Path) -> None:  # pyright: ignore[reportUnknownParameterType]
        encode(rows, file)
        file.write_bytes(file.read_bytes()[:10])
        raise KeyboardInterrupt

    monkeypatch.setattr(telemetry, "ENCODERS", {format: half})
    writer = Writer(tmp_path, format=format)
    writer.write("edges", [edge()])
    with pytest.raises(KeyboardInterrupt):
        writer.flush()
    assert not list((tmp_path / "edges").iterdir())


def test_what_is_not_telemetry_is_refused_by_name(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    with pytest.raises(
        InvalidInput, match="no telemetry of kind `edge`; there are tasks, edges, nodes"
    ):
        writer.write("edge", [])
    with pytest.raises(InvalidInput, match="`edges` has no column `tuple`"):
        writer.write("edges", [edge(tuple=1)])
    with pytest.raises(InvalidInput, match="`edges`"):
        writer.write("edges", [edge(tuples="many")])
    with pytest.raises(InvalidInput, match="no telemetry format `csv`"):
        Writer(tmp_path, format="csv")  # pyright: ignore[reportArgumentType]

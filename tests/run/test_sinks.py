"""Output: one run per folder, and nothing that no task reported."""

# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import InvalidInput
from headrace.run import Parquet, Topology
from headrace.run.batches import BoltFailed, Settings
from headrace.run.rehearsal import rehearse
from headrace.run.sinks import read_batches
from headrace.run.sources import numbers
from tests.run.topologies import values, word_count


def test_output_of_another_run_is_not_mixed_in(tmp_path: Path) -> None:
    rehearse(word_count(tmp_path / "out"), [values(0, 50)], Settings(tmp_path / "one"))
    with pytest.raises(InvalidInput, match="holds the output of another run"):
        rehearse(word_count(tmp_path / "out"), [values(0, 50)], Settings(tmp_path / "two"))


def test_only_what_reports_name_reaches_the_parquet_output(tmp_path: Path) -> None:
    sink, rows = Parquet(str(tmp_path / "out")), pa.table({"value": [1]})
    sink.open("run")
    parts = sink.parts(0, "attempt", tmp_path)
    parts.mkdir()
    named, unnamed = (
        parts / "b.1-aaaaaaaa.arrow",
        parts / "b.1-bbbbbbbb.arrow",
    )  # the second by a task whose executor was killed
    for file in (named, unnamed):
        sink.writer()(file, rows)
    sink.deliver(0, parts, [named])
    assert [file.name for file in (tmp_path / "out").rglob("*.parquet")] == ["b.1-aaaaaaaa.parquet"]
    with pytest.raises(
        InvalidInput, match=r"b\.1-aaaaaaaa\.parquet was written by a task and is not there"
    ):
        sink.deliver(1, sink.parts(1, "attempt", tmp_path), [named])
    assert sorted(file.name for file in (tmp_path / "out").glob("batch=*")) == ["batch=0"]


def emitting(out: Path, *tables: pa.Table, schema: pa.Schema | None = None) -> Topology:
    """A spout that gives one of the tables in each batch."""
    return (
        Topology("t")
        .spout("n", numbers(1), lambda table, batch: tables[batch])
        .sink("n", Parquet(str(out), schema=schema))
    )


ONE = {"n": pa.table({"value": [1]})}


def test_a_column_that_is_all_null_in_one_batch_keeps_its_type(tmp_path: Path) -> None:
    tables = pa.table({"a": ["x"], "b": [1]}), pa.table({"a": pa.nulls(1), "b": [2]})
    rehearse(emitting(tmp_path / "out", *tables), [ONE, ONE], Settings(tmp_path / "run"))
    files = sorted((tmp_path / "out").rglob("*.parquet"))
    assert [pq.read_schema(file).field("a").type for file in files] == [pa.string()] * 2
    read = pa.concat_tables(pq.ParquetFile(file).read() for file in files)
    assert read["a"].to_pylist() == ["x", None]


def test_a_declared_schema_holds_from_the_first_batch_on(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.int64())])
    tables = [pa.table({"b": pa.array([1], pa.int32()), "a": pa.nulls(1)})]
    topology = emitting(tmp_path / "out", *tables, schema=schema)
    rehearse(topology, [ONE], Settings(tmp_path / "run"))
    (file,) = (tmp_path / "out").rglob("*.parquet")
    assert pq.read_schema(file) == schema
    other = emitting(tmp_path / "out", schema=pa.schema([("a", pa.int64())]))
    with pytest.raises(InvalidInput, match="files have the columns a string, b int64; now a int64"):
        rehearse(other, [ONE, ONE], Settings(tmp_path / "run"))


def test_a_column_without_a_type_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    table = pa.table({"a": pa.nulls(1)})
    with pytest.raises(InvalidInput, match="all values of `a` are null in the first output"):
        rehearse(emitting(tmp_path / "out", table), [ONE], Settings(tmp_path / "run"))
    schema = pa.schema([("a", pa.string())])
    done = rehearse(
        emitting(tmp_path / "out", table, schema=schema), [ONE], Settings(tmp_path / "run")
    )
    assert [d.batch for d in done] == [0]


def test_a_schema_that_changes_stops_the_run_and_mended_it_goes_on(tmp_path: Path) -> None:
    first, other = pa.table({"a": [1]}), pa.table({"c": [1]})
    with pytest.raises(
        BoltFailed, match=r"task n\.1, batch 1: .* columns c int64; before.* a int64"
    ):
        rehearse(emitting(tmp_path / "out", first, other), [ONE, ONE], Settings(tmp_path / "run"))
    topology = emitting(tmp_path / "out", first, pa.table({"a": ["x"]}))
    with pytest.raises(BoltFailed, match=r"has `a` as string; before, .* it was int64"):
        rehearse(topology, [ONE, ONE], Settings(tmp_path / "run"))
    mended = emitting(tmp_path / "out", first, pa.table({"a": [2]}))
    done = rehearse(mended, [ONE, ONE], Settings(tmp_path / "run"))
    assert [d.batch for d in done] == [1]
    rows = [row for rows in read_batches(str(tmp_path / "out"), 2) for row in rows]
    assert rows == [{"a": 1}, {"a": 2}]


def test_a_start_that_fails_claims_nothing(tmp_path: Path) -> None:
    rehearse(word_count(tmp_path / "taken"), [values(0, 50)], Settings(tmp_path / "one"))
    topology = word_count(tmp_path / "free").sink("split", Parquet(str(tmp_path / "taken")))
    with pytest.raises(InvalidInput, match="holds the output of another run"):
        rehearse(topology, [values(0, 50)], Settings(tmp_path / "two"))
    assert not (tmp_path / "free").exists()
    assert not (tmp_path / "two").exists()
    rehearse(word_count(tmp_path / "free"), [values(0, 50)], Settings(tmp_path / "two"))

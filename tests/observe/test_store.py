"""The store holds every valid sample once, and keeps aside what is late or wrong."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from headrace.errors import InvalidInput, Unsupported
from headrace.model.telemetry import Writer
from headrace.observe import follow
from headrace.observe.follow import keep_batch, lock_store, take_in, take_in_stream
from headrace.observe.source import columns_of
from headrace.observe.store import (
    check_store,
    compact,
    events,
    events_between,
    segment_folder,
    segments,
)
from tests.observe.samples import NOON, edge
from tests.observe.stored import kept, numbered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def batch(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    columns = columns_of("edges").add("version", "integer").add("raw", "string")
    return spark.createDataFrame(
        [tuple(row.get(name) for name in columns.names) for row in rows], columns
    )


def test_a_sample_is_kept_once_within_a_batch_and_across_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    keep_batch(batch(spark, numbered(1), numbered(2), numbered(2)), 0, "edges", tmp_path)
    late = numbered(3, arrival=NOON + timedelta(hours=1))
    keep_batch(batch(spark, numbered(2), numbered(4), late, numbered(-5)), 1, "edges", tmp_path)
    assert kept(spark, tmp_path) == [1, 2, 4]
    assert kept(spark, tmp_path, "late") == [3]
    assert kept(spark, tmp_path, "quarantine") == [-5]
    folder = (
        tmp_path
        / "edges"
        / "segment=0000000001"
        / "table=events"
        / "day=2026-03-01"
        / "topology=words"
    )
    assert list(folder.glob("*.parquet"))
    assert events(spark, tmp_path, "edges").columns == columns_of("edges").names


@pytest.mark.parametrize("most_seconds", [200_000, 0], ids=["by second", "each by itself"])
def test_samples_of_one_second_and_sent_any_number_of_times_are_told_apart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_seconds: int
) -> None:
    monkeypatch.setattr(follow, "MOST_SECONDS", most_seconds)
    close = [edge(event_time=NOON + timedelta(milliseconds=10 * n), tuples=n) for n in range(5)]
    apart = [numbered(n) for n in range(63, 70)]  # on both sides of a group of seconds
    again = [close[0], *[close[1]] * 2, *[apart[0]] * 2, *[apart[6]] * 3]
    wrong = [
        {**row, "tuples": -1} for row in (close[2], close[2], apart[1])
    ]  # the same keys, but no events
    keep_batch(batch(spark, *close, *apart, *again, *wrong), 0, "edges", tmp_path)
    assert kept(spark, tmp_path) == [*range(5), *range(63, 70)]
    assert kept(spark, tmp_path, "quarantine") == [-1, -1, -1]
    keep_batch(batch(spark, close[4], apart[3], numbered(80), *wrong), 1, "edges", tmp_path)
    assert kept(spark, tmp_path) == [*range(5), *range(63, 70), 80]
    assert kept(spark, tmp_path, "quarantine") == [-1] * 6


def test_files_of_another_time_are_not_read_for_duplicates(
    spark: SparkSession, tmp_path: Path
) -> None:
    for number, at in enumerate((1, 100, 200)):
        keep_batch(batch(spark, numbered(at), numbered(at + 9)), number, "edges", tmp_path)
    found = segments(tmp_path, "edges")
    between = [NOON + timedelta(seconds=s) for s in (105, 199)]
    read = events_between(spark, tmp_path, "edges", found, between[0], between[1])
    assert [row["tuples"] for row in read.collect()] == [109]
    assert all("segment=0000000001" in file for file in read.inputFiles())


def test_a_batch_that_was_cut_off_does_not_count_and_runs_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    keep_batch(batch(spark, numbered(1)), 0, "edges", tmp_path)
    keep_batch(batch(spark, numbered(2)), 1, "edges", tmp_path)
    (segment_folder(tmp_path, "edges", 1, 1) / "_SUCCESS").unlink()
    assert kept(spark, tmp_path) == [1]
    for _ in range(2):
        keep_batch(batch(spark, numbered(1), numbered(2)), 1, "edges", tmp_path)
        assert kept(spark, tmp_path) == [1, 2]


def test_compacting_changes_nothing_wherever_it_is_cut_off(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    for n in range(3):
        keep_batch(batch(spark, numbered(n)), n, "edges", store)
    before = tmp_path / "before"
    shutil.copytree(store, before)
    compact(spark, store, "edges", before=3, from_segments=3)
    assert [s.folder.name for s in segments(store, "edges")] == ["segment=0000000000-0000000002"]
    assert kept(spark, store) == [0, 1, 2]
    # Cut off after the wide segment was whole and before the narrow ones were gone: both are there,
    # the wide one counts.
    shutil.copytree(before / "edges", store / "edges", dirs_exist_ok=True)
    assert kept(spark, store) == [0, 1, 2]
    # Cut off before it was whole: the narrow ones count, and what was begun is cleared away.
    (store / "edges" / "segment=0000000000-0000000002" / "_SUCCESS").unlink()
    assert kept(spark, store) == [0, 1, 2]
    compact(spark, store, "edges", before=3)
    assert len(list((store / "edges").glob("segment=*"))) == 3


def test_only_one_process_writes_to_a_store(tmp_path: Path) -> None:
    with (
        lock_store(tmp_path),
        pytest.raises(Unsupported, match="another process is writing to this store"),
        lock_store(tmp_path),
    ):
        pass
    with pytest.raises(InvalidInput, match="no such folder; a store is made by headrace observe"):
        check_store(tmp_path / "absent")
    with pytest.raises(InvalidInput, match="is not a store"):
        check_store(tmp_path)


def test_a_folder_is_taken_in_once_and_what_is_added_later_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, store = tmp_path / "telemetry", tmp_path / "store"
    said: list[tuple[str, int]] = []
    for name, numbers in (("a", [1, 2]), ("b", [2, 3])):
        with Writer(folder, name=name, format="parquet" if name == "a" else "jsonl") as writer:
            writer.write("edges", [numbered(n) for n in numbers])
        take_in(
            spark, folder, store, progress=lambda kind, p: said.append((kind, p["numInputRows"]))
        )
    take_in(spark, folder, store)
    assert kept(spark, store) == [1, 2, 3]
    assert said == [("edges", 2), ("edges", 1)]


def test_any_stream_of_spark_is_taken_in(spark: SparkSession, tmp_path: Path) -> None:
    with Writer(tmp_path / "telemetry", name="a") as writer:
        writer.write("edges", [numbered(n) for n in (1, 2, 2, -3)])
    rows = spark.readStream.schema(columns_of("edges")).parquet(
        str(tmp_path / "telemetry" / "edges")
    )
    nothing = F.lit(None)
    rows = rows.withColumns({"version": nothing.cast("int"), "raw": nothing.cast("string")})
    take_in_stream(rows, "edges", tmp_path / "store")
    assert kept(spark, tmp_path / "store") == [1, 2]
    assert kept(spark, tmp_path / "store", "quarantine") == [-3]

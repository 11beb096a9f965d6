"""What goes wrong on the disk is named; once it is mended, the run goes on exactly where it was."""

# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import errno
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import InvalidInput
from headrace.run import Callback, Keyed, Topology
from headrace.run.batches import Batches, Settings
from headrace.run.engine import SparkFailed, run
from headrace.run.placement import PlanInForce
from headrace.run.rehearsal import rehearse, rehearse_batch
from headrace.run.sources import files, numbers
from headrace.run.state import Store
from headrace.run.storage import StorageFailed
from tests.run.topologies import (
    BY_WORD,
    COUNTS,
    count,
    expected_counts,
    final_counts,
    sentences,
    settings,
    split,
    values,
    word_count,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INPUTS = [values(0, 50), values(50, 80)]


def begin(folder: Path) -> Path:
    """A run of one batch; gives one of its files of state."""
    rehearse(word_count(folder / "out"), INPUTS[:1], settings(folder))
    return folder / "run" / Store(folder / "run").last().state[0].file


def go_on(folder: Path, **others: Any) -> None:
    rehearse(word_count(folder / "out"), INPUTS, settings(folder, **others))


def stream(spark: SparkSession, folder: Path, batches: int) -> None:
    """Go on for some batches of 100 sentences, as a stream of Spark."""
    run(spark, word_count(folder / "out"), None, Settings(folder / "run", batches=batches))


def finish(folder: Path) -> None:
    go_on(folder)
    assert final_counts(folder / "out") == expected_counts(80)


@pytest.mark.parametrize("on_error", ["stop", "quarantine"])
@pytest.mark.parametrize("fault", ["missing", "cut off", "other bytes"])
def test_a_file_of_state_that_cannot_be_read_is_named(
    fault: str, on_error: str, tmp_path: Path
) -> None:
    file = begin(tmp_path)
    content = file.read_bytes()
    if fault == "missing":
        file.unlink()
    else:
        file.write_bytes(content[:60] if fault == "cut off" else b"x" * len(content))
    with pytest.raises(
        StorageFailed, match=rf"task count\.1, batch 1: .*{file.name}: the state of `count`"
    ):
        go_on(tmp_path, on_error=on_error)
    file.write_bytes(content)
    finish(tmp_path)


@pytest.mark.parametrize(
    "where", ["headrace.run.storage.pa.OSFile", "headrace.run.state.write_whole"]
)
def test_a_full_disk_is_named_and_nothing_is_lost(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(tmp_path)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(where, full)
        with pytest.raises(StorageFailed, match=r"cannot be written: No space left on device"):
            go_on(tmp_path, on_error="quarantine")
    finish(tmp_path)


def test_a_commit_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    begin(tmp_path)
    file = tmp_path / "run" / "commits" / "0.json"
    content = file.read_text()
    file.write_text(content[:40])
    with pytest.raises(StorageFailed, match=r"commits/0\.json: is not a commit that can be read"):
        go_on(tmp_path)
    file.write_text(content)
    finish(tmp_path)


def test_a_stream_that_is_ahead_of_the_commits_is_refused(tmp_path: Path) -> None:
    begin(tmp_path)
    go_on(tmp_path)
    file = tmp_path / "run" / "commits" / "1.json"
    content = file.read_text()
    file.unlink()
    topology = word_count(tmp_path / "out")
    batches = Batches(topology, PlanInForce(topology), settings(tmp_path))
    with pytest.raises(StorageFailed, match=r"goes on with batch 2, and the commit of batch 1 is"):
        rehearse_batch(batches, 2, values(80, 90))
    file.write_text(content)
    rehearse_batch(batches, 2, values(80, 90))
    assert final_counts(tmp_path / "out") == expected_counts(90)


def test_a_batch_whose_commit_is_lost_is_run_again_as_the_message_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    stream(spark, tmp_path, 3)
    (folder / "commits" / "2.json").write_text("{")
    with pytest.raises(StorageFailed, match=r"2\.json: is not a commit") as refusal:
        stream(spark, tmp_path, 1)
    advice = "commits/2.json .* spark/commits from 2 on and spark/offsets from 3 on"
    assert re.search(advice, refusal.value.fix or "")
    (folder / "commits" / "2.json").unlink()
    for kind, first in (("commits", 2), ("offsets", 3)):
        for file in (folder / "spark" / kind).iterdir():
            if int(file.name.strip(".").partition(".")[0]) >= first:
                file.unlink()
    stream(spark, tmp_path, 2)
    assert final_counts(tmp_path / "out") == expected_counts(400)


def test_a_source_whose_types_change_is_named_and_read_once_it_is_mended(
    spark: SparkSession, tmp_path: Path
) -> None:
    came: list[list[int]] = []
    source, file = tmp_path / "numbers", tmp_path / "numbers" / "1.parquet"
    source.mkdir()
    topology = (
        Topology("t")
        .spout("n", files(str(source), schema="value bigint", per_batch=1))
        .sink("n", Callback(lambda _, rows: came.append(rows["value"].to_pylist())))
    )
    pq.write_table(pa.table({"value": [1, 2]}), source / "0.parquet")
    run(spark, topology, None, Settings(tmp_path / "run", once=True))
    pq.write_table(pa.table({"value": ["three"]}), file)
    with pytest.raises(SparkFailed, match=r"batch 1: .* file://\S+/1\.parquet.* \[value\]") as said:
        run(spark, topology, None, Settings(tmp_path / "run", once=True))
    assert "\n" not in said.value.message
    pq.write_table(pa.table({"value": [3]}), file)
    run(spark, topology, None, Settings(tmp_path / "run", once=True))
    assert came == [[1, 2], [3]]


def test_spark_s_record_of_the_stream_is_named_if_it_cannot_be_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    stream(spark, tmp_path, 2)
    last = folder / "spark" / "offsets" / "1"
    content = last.read_bytes()
    last.write_text("v1\n{")
    last.with_name(".1.crc").unlink()
    with pytest.raises(
        SparkFailed, match=r"run/spark: Spark cannot go on with the stream: "
    ) as said:
        stream(spark, tmp_path, 1)
    assert "\n" not in said.value.message
    last.write_bytes(content)
    stream(spark, tmp_path, 1)
    assert final_counts(tmp_path / "out") == expected_counts(300)


def test_the_folder_of_another_topology_is_refused(tmp_path: Path) -> None:
    begin(tmp_path)
    with pytest.raises(
        InvalidInput, match="is a run of the topology `word-count`, and this is `t`"
    ):
        rehearse(Topology("t").spout("n", numbers(1)), [], settings(tmp_path))
    other = Topology("word-count").spout("sentence", numbers(1))
    with pytest.raises(InvalidInput, match="holds state of `count`, which keeps none"):
        rehearse(other, [], settings(tmp_path))
    finish(tmp_path)


def test_the_folder_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    begin(tmp_path)
    about = tmp_path / "run" / "run"
    content = about.read_text()
    about.write_text("0123456789ab")  # as version 1 had it
    with pytest.raises(InvalidInput, match=r"is a run of version 1 of these files; .* version 2"):
        go_on(tmp_path)
    about.unlink()
    with pytest.raises(InvalidInput, match="is a run of version 1"):
        go_on(tmp_path)
    about.write_text(content)
    finish(tmp_path)


def test_state_whose_columns_change_stops_the_run(tmp_path: Path) -> None:
    begin(tmp_path)

    def topology(state: Keyed) -> Topology:
        return (
            Topology("word-count")
            .spout("sentence", numbers(1), sentences, tasks=2)
            .bolt("split", split, inputs={"sentence": "shuffle"}, tasks=3)
            .bolt("count", count, inputs={"split": BY_WORD}, tasks=2, state=state)
        )

    renamed = Keyed(pa.schema([("word", pa.string()), ("times", pa.int64())]), ("word",))
    retyped = Keyed(pa.schema([("word", pa.string()), ("count", pa.date32())]), ("word",))
    for state, words in (
        (renamed, "was kept with columns word, count; now it has word, times"),
        (retyped, "was kept with other types"),
    ):
        with pytest.raises(StorageFailed, match=words):
            rehearse(topology(state), INPUTS, settings(tmp_path, on_error="quarantine"))
    assert COUNTS.schema.names == ["word", "count"]
    finish(tmp_path)

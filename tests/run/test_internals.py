"""Every use of PySpark's inside, on its own: run these against a version of PySpark to try it."""

# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyspark
import pytest
from pyspark import cloudpickle

from headrace.errors import Unsupported
from headrace.model.topology import Source
from headrace.run import Callback, Topology
from headrace.run.batches import BatchDone, Settings
from headrace.run.engine import RunDone, run
from headrace.run.internals import (
    arrow_messages,
    executors,
    forget_shuffles,
    name_stage,
    read_at_hosts,
    seats_at_hosts,
    send_by_value,
    send_to_hosts,
    stage_bytes,
)
from headrace.run.sources import files, numbers
from headrace.spark import TRIED, check_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def test_this_version_of_pyspark_was_tried() -> None:
    check_version(pyspark.__version__)
    for other in ("3.5.1", "4.99.0", "5.0.0.dev1"):
        with pytest.raises(Unsupported, match=rf"PySpark {other} .* tried with {TRIED[0]}"):
            check_version(other)


def here(spark: SparkSession) -> str:
    """The only host of a session in local mode, which would wait for any other forever."""
    return spark.conf.get("spark.driver.host") or ""


def test_rows_come_as_arrow_messages_partition_by_partition(spark: SparkSession) -> None:
    messages, schema = arrow_messages(spark.range(10, numPartitions=3))
    lists = read_at_hosts(spark.sparkContext, messages, [None, here(spark), None])
    assert lists.getNumPartitions() == 3

    def read(part: int, found: Any) -> Any:
        batches = [
            pa.ipc.read_record_batch(pa.py_buffer(m), schema) for some in found for m in some
        ]
        yield part, pa.Table.from_batches(batches, schema)["id"].to_pylist()

    assert lists.mapPartitionsWithIndex(read).collect() == [
        (0, [0, 1, 2]), (1, [3, 4, 5]), (2, [6, 7, 8, 9]),
    ]  # fmt: skip


def test_records_reach_the_partition_they_are_sent_to(spark: SparkSession) -> None:
    context = spark.sparkContext
    records = context.parallelize(range(12), 3).map(lambda n: (n % 4, n))
    for hosts in ([None] * 4, [here(spark), None, None, here(spark)]):
        sent = send_to_hosts(records, hosts)
        found = sent.mapPartitionsWithIndex(
            lambda part, chunks: [(part, sorted(n for c in chunks for n in pickle.loads(c)))]
        )
        assert found.collect() == [(part, [part, part + 4, part + 8]) for part in range(4)]
        forget_shuffles(sent)
    assert seats_at_hosts(context, [None, here(spark)]).count() == 2


def test_spark_counts_what_its_shuffles_read_and_calls_stages_as_told(spark: SparkSession) -> None:
    context = spark.sparkContext
    context.setJobGroup("counted", "here")
    try:
        records = context.parallelize(range(4), 2).map(lambda n: (n % 2, bytes(50_000)))
        name_stage(context, "stage one")
        sent = send_to_hosts(records, [None, None])
        name_stage(context, "stage two")
        assert len(context.runJob(sent, list)) == 4
    finally:
        name_stage(context, None)
        cast(Any, context)._jsc.clearJobGroup()
    tracker = context.statusTracker()
    (job,) = tracker.getJobIdsForGroup("counted")
    info = tracker.getJobInfo(job)
    assert info is not None
    remote, total = stage_bytes(context, info.stageIds)
    assert remote == 0
    assert total > 500  # zeros, which Spark has compressed
    names = [stage.name for i in info.stageIds if (stage := tracker.getStageInfo(i)) is not None]
    assert sorted(names) == ["stage one", "stage two"]
    assert executors(context) == []  # local mode has none but the driver


def test_the_code_of_an_application_travels() -> None:
    module = sys.modules[twice.__module__]
    by_name = cloudpickle.dumps(twice)
    send_by_value(module)
    try:
        by_value = cloudpickle.dumps(twice)
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    assert b"return" not in by_name
    assert len(by_value) > len(by_name) + 100
    assert pickle.loads(by_value)(4) == 8


def twice(n: int) -> int:
    return 2 * n


def union_of_two(spark: SparkSession) -> DataFrame:
    return numbers(2)(spark).unionByName(numbers(4)(spark))


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "union"])
def test_the_partitions_of_a_source_are_dealt_to_the_tasks_of_its_spout(
    plain: bool, spark: SparkSession, tmp_path: Path
) -> None:
    came: list[tuple[str, int]] = []
    seen: list[BatchDone] = []
    topology = (
        Topology("two")
        .spout("one", numbers(6, partitions=3), tasks=2)
        .spout("two", numbers(6) if plain else union_of_two, tasks=2)
        .bolt(
            "tell",
            lambda table, source: table.append_column("source", [[source] * table.num_rows]),
            inputs={"one": "global", "two": "global"},
        )
        .sink("tell", Callback(lambda batch, table: came.extend(
            (row["source"], row["value"]) for row in table.to_pylist()
        )))
    )  # fmt: skip
    done = run(spark, topology, None, Settings(tmp_path / "run", batches=2, listen=seen.append))
    rest = range(12) if plain else [*range(4), *range(8)]
    assert sorted(came) == sorted([*(("one", n) for n in range(12)), *(("two", n) for n in rest)])
    assert isinstance(done, RunDone)
    assert done.spark_total_bytes > 0
    taken = {r.task: r.tuples_in for r in seen[0].reports if r.role == "work"}
    # Three partitions for two tasks; a union has those of both streams.
    assert (taken["one.1"], taken["one.2"]) == (4, 2)
    assert (taken["two.1"], taken["two.2"]) == (3, 3)


def texts(folder: Path, lines: Sequence[str]) -> Source:
    """One file per line, one file per batch."""
    folder.mkdir()
    for age, line in enumerate(lines):
        (folder / line).write_text(line)
        os.utime(folder / line, (age, age))
    return files(str(folder), format="text", schema="value string", per_batch=1)


def joined(source: Source) -> Source:
    """A source that Spark plans with a shuffle and a join."""

    def make(spark: SparkSession) -> DataFrame:
        known = spark.createDataFrame([("b0",), ("b1",)], "value string")
        return source(spark).repartition(2).join(known, "value")

    return make


@pytest.mark.parametrize("kind", ["plain", "joined"])
def test_a_spout_gets_its_own_rows_whichever_streams_have_news(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    long, short = texts(tmp_path / "x", ["x0", "x1", "x2"]), texts(tmp_path / "y", ["y0", "y1"])
    other = texts(tmp_path / "b", ["b0"])
    came: dict[str, list[list[str]]] = {"a": [], "b": []}

    def take(spout: str) -> Callback:
        return Callback(lambda _, rows: came[spout].append(sorted(rows["value"].to_pylist())))

    topology = (
        Topology("news")
        .spout("a", lambda spark: long(spark).unionByName(short(spark)), tasks=2)
        .spout("b", other if kind == "plain" else joined(other))
        .sink("a", take("a"))
        .sink("b", take("b"))
    )
    run(spark, topology, None, Settings(tmp_path / "run", once=True))
    assert came == {"a": [["x0", "y0"], ["x1", "y1"], ["x2"]], "b": [["b0"]]}

"""Batches on Spark, in local mode: places are not looked at, everything else is as on a cluster."""

# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headrace.errors import InvalidInput, Unsupported
from headrace.run import Callback, Parquet, Topology
from headrace.run.batches import BatchDone, BoltFailed, Settings
from headrace.run.engine import Running, run
from headrace.run.placement import Placement, PlanInForce
from headrace.run.sinks import read_batches
from headrace.run.sources import files, kafka, numbers, rate
from tests.run.topologies import expected_counts, final_counts, places, word_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_new_plans_take_effect_at_the_next_batch_and_nothing_is_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    topology = word_count(tmp_path / "out")

    def plan(name: str, count: int) -> Placement:
        tasks = {"sentence": 2, "split": 2, "count": count}
        return Placement(name, tasks, places(tasks, ("a", "b")))

    coming = [plan("second", 3), plan("third", 1)]
    in_force, seen = PlanInForce(topology, plan("first", 2)), list[BatchDone]()

    def listen(done: BatchDone) -> None:
        seen.append(done)
        if coming:
            in_force.set(coming.pop(0))

    run(
        spark,
        topology,
        in_force,
        Settings(tmp_path / "run", batches=3, telemetry=tmp_path / "telemetry", listen=listen),
    )
    assert [done.plan for done in seen] == ["first", "second", "third"]
    assert [len([r for r in done.reports if r.component == "count"]) for done in seen] == [2, 3, 1]
    assert all(done.tuples == 100 and not done.misplaced for done in seen)
    assert final_counts(tmp_path / "out") == expected_counts(300)
    assert len(list((tmp_path / "telemetry" / "edges").iterdir())) == 3


def test_spouts_of_different_kinds_share_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for n in range(2):
        file = tmp_path / "in" / f"{n}.json"
        file.write_text(f'{{"name": "n{n}", "at": "2026-01-01T00:00:0{n}Z"}}\n')
        os.utime(file, (1_000_000 + n, 1_000_000 + n))  # Spark takes the older file first
    came: list[tuple[int, str]] = []

    def tell(table: pa.Table, source: str) -> pa.Table:
        texts = [f"{source} {row.get('name', row.get('value'))}" for row in table.to_pylist()]
        return pa.table({"text": texts})

    named = files(
        str(tmp_path / "in"), format="json", schema="name string, at timestamp", per_batch=1
    )
    topology = (
        Topology("two")
        .spout("numbers", numbers(2, partitions=1))
        .spout("names", named)
        .bolt("tell", tell, inputs={"numbers": "shuffle", "names": "global"}, tasks=2)
        .sink(
            "tell",
            Callback(
                lambda batch, table: came.extend(
                    (batch, text) for text in table["text"].to_pylist()
                )
            ),
        )
    )
    run(spark, topology, None, Settings(tmp_path / "run", batches=2))
    assert sorted(came) == [
        (0, "names n0"), (0, "numbers 0"), (0, "numbers 1"), (1, "names n1"), (1, "numbers 2"), (1, "numbers 3"),
    ]  # fmt: skip


def test_arrow_has_one_thread_in_a_task_so_that_rows_keep_their_order(
    spark: SparkSession, tmp_path: Path
) -> None:
    came: list[int] = []
    topology = (
        Topology("threads")
        .spout("numbers", numbers(4))
        .bolt(
            "tell",
            lambda table: pa.table({"threads": [pa.cpu_count()]}),
            inputs={"numbers": "shuffle"},
            tasks=2,
        )
        .sink("tell", Callback(lambda batch, table: came.extend(table["threads"].to_pylist())))
    )
    run(spark, topology, None, Settings(tmp_path / "run", batches=1))
    assert came == [1, 1]


def test_the_rate_source_gives_every_number_once(spark: SparkSession, tmp_path: Path) -> None:
    came: list[tuple[int, Any]] = []

    def take(batch: int, table: pa.Table) -> None:
        came.extend(zip(table["value"].to_pylist(), table["timestamp"].to_pylist(), strict=True))

    topology = Topology("clock").spout("tick", rate(50), tasks=2).sink("tick", Callback(take))
    for _ in range(2):  # the second run goes on where the first one ended
        run(spark, topology, None, Settings(tmp_path / "run", batches=2))
    assert sorted(number for number, _ in came) == list(range(len(came)))
    assert len(came) >= 50
    assert all(at.tzinfo is not None for _, at in came)


def test_a_python_data_source_is_a_spout(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

    class Letters(SimpleDataSourceStreamReader):
        def initialOffset(self) -> dict[str, int]:
            return {"at": 0}

        def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[str, int]], dict[str, int]]:
            end = {"at": start["at"] + 3}
            return self.readBetweenOffsets(start, end), end

        def readBetweenOffsets(
            self, start: dict[str, int], end: dict[str, int]
        ) -> Iterator[tuple[str, int]]:
            return iter([(chr(ord("a") + n), n) for n in range(start["at"], end["at"])])

    class Alphabet(DataSource):
        @classmethod
        def name(cls) -> str:
            return "alphabet"

        def schema(self) -> str:
            return "letter string, number int"

        def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:
            return Letters()

    spark.dataSource.register(Alphabet)
    topology = (
        Topology("letters")
        .spout("letter", lambda spark: spark.readStream.format("alphabet").load(), tasks=2)
        .bolt(
            "upper",
            lambda row: [{"letter": row["letter"].upper()}],
            form="tuple",
            inputs={"letter": "shuffle"},
            tasks=2,
        )
        .sink("upper", Parquet(str(tmp_path / "out")))
    )
    for _ in range(2):
        run(spark, topology, None, Settings(tmp_path / "run", batches=2))
    found = [
        "".join(sorted(row["letter"] for row in rows))
        for rows in read_batches(str(tmp_path / "out"), 4)
    ]
    assert found == ["ABC", "DEF", "GHI", "JKL"]


def test_without_its_connector_kafka_is_refused_with_what_to_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    topology = Topology("topic").spout("line", kafka("localhost:9092", "lines"))
    with pytest.raises(
        Unsupported,
        match=r"Kafka connector is not there: .*--packages org\.apache\.spark:spark-sql-kafka-0-10_2\.13:4",
    ):
        run(spark, topology, None, Settings(tmp_path / "run", batches=1))


def test_a_bolt_that_raises_stops_the_run_or_is_put_aside(
    spark: SparkSession, tmp_path: Path
) -> None:
    def pick(table: pa.Table) -> pa.Table:
        if 3 in table["value"].to_pylist():
            raise ValueError("three")
        return table

    topology = (
        Topology("picky")
        .spout("numbers", numbers(2))
        .bolt("pick", pick, inputs={"numbers": "shuffle"}, tasks=2)
    )
    with pytest.raises(
        BoltFailed, match=r"component `pick`, task pick\.\d, batch 1: ValueError: three"
    ):
        run(spark, topology, None, Settings(tmp_path / "run", batches=9))
    seen: list[BatchDone] = []
    run(
        spark,
        topology,
        None,
        Settings(tmp_path / "run", batches=2, on_error="quarantine", listen=seen.append),
    )
    assert [(done.batch, done.failure is None) for done in seen] == [(1, False), (2, True)]
    aside = spark.read.parquet(str(tmp_path / "run" / "quarantine" / "batch=1" / "input"))
    assert sorted(row.numbers.value for row in aside.collect()) == [2, 3]


def test_a_bolt_that_takes_its_process_down_is_named_and_put_aside(
    spark: SparkSession, tmp_path: Path
) -> None:
    def die(table: pa.Table) -> pa.Table:
        if 3 in table["value"].to_pylist():
            os._exit(1)
        return table

    topology = (
        Topology("deadly")
        .spout("numbers", numbers(2))
        .bolt("die", die, inputs={"numbers": "global"}, tasks=2)
    )
    seen: list[BatchDone] = []
    run(
        spark,
        topology,
        None,
        Settings(tmp_path / "run", batches=3, on_error="quarantine", listen=seen.append),
    )
    assert [done.batch for done in seen if done.failure is None] == [0, 2]
    assert (seen[1].failure or "").startswith("die.1: the process that ran it ended without a word")
    told = json.loads((tmp_path / "run" / "quarantine" / "batch=1" / "error.json").read_text())
    assert (told["component"], told["task"]) == ("die", "die.1")


def test_a_table_is_no_source(spark: SparkSession, tmp_path: Path) -> None:
    topology = Topology("t").spout("numbers", lambda spark: spark.range(3))
    with pytest.raises(InvalidInput, match="spout `numbers`: its source gives a table"):
        Running(spark, topology, PlanInForce(topology), Settings(tmp_path / os.urandom(4).hex()))

"""Batches on Spark, in local mode: places are not looked at, everything else is as on a cluster."""

# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyarrow says nothing about its types.

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headrace.errors import InvalidInput
from headrace.run import Callback, Topology
from headrace.run.batches import BatchDone, BoltFailed, Settings
from headrace.run.engine import Running, run
from headrace.run.placement import Placement, PlanInForce
from headrace.run.sources import files, numbers
from tests.run.killed import FATAL_BATCH
from tests.run.topologies import expected_counts, final_counts, places, word_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


def test_a_driver_killed_with_kill_9_loses_and_doubles_nothing(spark: SparkSession, tmp_path: Path) -> None:
    driver = subprocess.run(
        [sys.executable, "-m", "tests.run.killed", str(tmp_path)], cwd=ROOT, start_new_session=True, check=False, timeout=120
    )
    assert driver.returncode == -signal.SIGKILL
    out = tmp_path / "out"
    assert (out / f"batch={FATAL_BATCH}").exists()  # delivered, not committed: this batch must be run again
    assert not (tmp_path / "run" / "commits" / f"{FATAL_BATCH}.json").exists()
    seen: list[BatchDone] = []
    run(spark, word_count(out), None, Settings(tmp_path / "run", batches=2, listen=seen.append))
    assert [done.batch for done in seen] == [FATAL_BATCH, FATAL_BATCH + 1]
    assert final_counts(out) == expected_counts(100 * (FATAL_BATCH + 2))


def test_new_plans_take_effect_at_the_next_batch_and_nothing_is_lost(spark: SparkSession, tmp_path: Path) -> None:
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

    run(spark, topology, in_force, Settings(tmp_path / "run", batches=3, telemetry=tmp_path / "telemetry", listen=listen))
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

    named = files(str(tmp_path / "in"), format="json", schema="name string, at timestamp", per_batch=1)
    topology = (
        Topology("two")
        .spout("numbers", numbers(2, partitions=1))
        .spout("names", named)
        .bolt("tell", tell, inputs={"numbers": "shuffle", "names": "global"}, tasks=2)
        .sink("tell", Callback(lambda batch, table: came.extend((batch, text) for text in table["text"].to_pylist())))
    )
    run(spark, topology, None, Settings(tmp_path / "run", batches=2))
    assert sorted(came) == [
        (0, "names n0"), (0, "numbers 0"), (0, "numbers 1"), (1, "names n1"), (1, "numbers 2"), (1, "numbers 3"),
    ]  # fmt: skip


def test_a_bolt_that_raises_stops_the_run_or_is_put_aside(spark: SparkSession, tmp_path: Path) -> None:
    def pick(table: pa.Table) -> pa.Table:
        if 3 in table["value"].to_pylist():
            raise ValueError("three")
        return table

    topology = Topology("picky").spout("numbers", numbers(2)).bolt("pick", pick, inputs={"numbers": "shuffle"}, tasks=2)
    with pytest.raises(BoltFailed, match=r"component `pick`, task pick\.\d, batch 1: ValueError: three"):
        run(spark, topology, None, Settings(tmp_path / "run", batches=9))
    seen: list[BatchDone] = []
    run(spark, topology, None, Settings(tmp_path / "run", batches=2, on_error="quarantine", listen=seen.append))
    assert [(done.batch, done.failure is None) for done in seen] == [(1, False), (2, True)]
    aside = spark.read.parquet(str(tmp_path / "run" / "quarantine" / "batch=1" / "input"))
    assert sorted(row.numbers.value for row in aside.collect()) == [2, 3]


def test_a_table_is_no_source(spark: SparkSession, tmp_path: Path) -> None:
    topology = Topology("t").spout("numbers", lambda spark: spark.range(3))
    with pytest.raises(InvalidInput, match="spout `numbers`: its source gives a table"):
        Running(spark, topology, PlanInForce(topology), Settings(tmp_path / os.urandom(4).hex()))

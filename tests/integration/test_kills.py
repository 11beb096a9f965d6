"""Drivers killed with kill -9 in the middle of their work: nothing is lost and nothing doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.model.telemetry import Writer
from headrace.observe.follow import take_in
from headrace.run.batches import BatchDone, Settings
from headrace.run.engine import run
from tests.integration.killed_driver import FATAL_BATCH
from tests.observe.samples import NOON
from tests.observe.stored import kept, numbered
from tests.run.topologies import expected_counts, final_counts, word_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


def test_a_driver_killed_with_kill_9_loses_and_doubles_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    driver = subprocess.run(
        [sys.executable, "-m", "tests.integration.killed_driver", str(tmp_path)],
        cwd=ROOT,
        start_new_session=True,
        check=False,
        timeout=120,
    )
    assert driver.returncode == -signal.SIGKILL
    out = tmp_path / "out"
    # Delivered, not committed: this batch must be run again.
    assert (out / f"batch={FATAL_BATCH}").exists()
    assert not (tmp_path / "run" / "commits" / f"{FATAL_BATCH}.json").exists()
    seen: list[BatchDone] = []
    run(spark, word_count(out), None, Settings(tmp_path / "run", batches=2, listen=seen.append))
    assert [done.batch for done in seen] == [FATAL_BATCH, FATAL_BATCH + 1]
    assert final_counts(out) == expected_counts(100 * (FATAL_BATCH + 2))


TAKE_IN = """
import sys
from pathlib import Path
from headrace.observe import source
from headrace.observe.follow import take_in
from headrace.spark import session
source.BYTES_PER_BATCH = 12_000  # many small batches, so that a kill falls into one
conf = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "1",
}
take_in(session(master="local[1]", conf=conf), Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_store_whose_writer_is_killed_at_any_moment_holds_every_sample_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, store = tmp_path / "telemetry", tmp_path / "store"
    expected = {"events": range(1, 2000), "late": range(2000, 2020), "quarantine": range(-20, 0)}
    rows = [numbered(n) for n in (*expected["events"], *expected["quarantine"])]
    rows += [numbered(n, arrival=NOON + timedelta(days=1)) for n in expected["late"]]
    rows += rows[:20]  # sent twice
    random.Random(1).shuffle(rows)
    with Writer(folder, rows_per_file=200, name="a") as writer:
        writer.write("edges", rows)
    for _ in range(2):
        driver = subprocess.Popen(
            [sys.executable, "-c", TAKE_IN, str(folder), str(store)], start_new_session=True
        )
        deadline = time.monotonic() + 120
        done = len(list(store.glob("edges/segment=*/_SUCCESS")))
        while (
            len(list(store.glob("edges/segment=*"))) <= done + 1
            and driver.poll() is None
            and time.monotonic() < deadline
        ):
            time.sleep(0.02)
        os.killpg(driver.pid, signal.SIGKILL)  # the JVM with it
        driver.wait()
    assert 0 < len(kept(spark, store)) < 1999
    take_in(spark, folder, store)
    assert {table: kept(spark, store, table) for table in expected} == {
        table: list(n) for table, n in expected.items()
    }

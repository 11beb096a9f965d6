"""Advice from a real history server, a real driver, and a session that is attached to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import headrace as hr
from headrace.advise.live import follow
from headrace.cli import main
from headrace.observe.spark_log.trace import SUCCEEDED
from headrace.run.addresses import free_port
from headrace.spark import environment

WITHIN_S = 180
# An unchanged query and a batch job; attaches, prints its page, and ends when its input does.
PROGRAM = """
import sys, time
import headrace as hr
from headrace.spark import session
events, attached = sys.argv[1:3]
conf = {"spark.ui.enabled": "true", "spark.ui.port": sys.argv[3], "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": "file://" + events, "spark.sql.shuffle.partitions": "2"}
spark = session(app="live", master="local[2]", conf=conf)
listening = hr.attach(spark, attached)
rows = spark.readStream.format("rate").option("rowsPerSecond", 1000).load()
keyed = rows.selectExpr("value % 10 AS k").groupBy("k").count()
query = keyed.writeStream.outputMode("complete").format("noop").queryName("counts")
query = query.trigger(processingTime="1 second").start()
spark.range(200000).selectExpr("id % 7 AS k").groupBy("k").count().collect()
print("running", flush=True)
sys.stdin.readline()
query.stop()
listening.stop()
print("stopped", flush=True)
spark.stop()
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {name: tmp_path_factory.mktemp(name) for name in ("events", "attached")}
    return found


@pytest.fixture(scope="module")
def driver(folders: dict[str, Path]) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    port = free_port("127.0.0.1")
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, folders.values()), str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    assert any(line.strip() == "running" for line in program.stdout)
    try:
        yield f"http://127.0.0.1:{port}", program
    finally:
        program.kill()
        program.wait()


def finish(program: subprocess.Popen[str]) -> None:
    if program.poll() is None:
        assert program.stdin is not None
        program.stdin.write("\n")
        program.stdin.flush()
        program.wait(WITHIN_S)
    assert program.returncode == 0


def test_a_running_driver_is_followed(driver: tuple[str, subprocess.Popen[str]]) -> None:
    url, _ = driver
    looks = follow(url, every_s=2)
    first = next(looks)
    deadline = time.monotonic() + WITHIN_S
    while not (later := next(looks)).streams or later.streams[0].batches < 6:
        assert time.monotonic() < deadline
    assert first.trace.name == "live"
    assert later.trace.wall_s > first.trace.wall_s
    assert sum(len(s.attempts) for s in later.trace.stages) > 0
    (stream,) = later.streams
    assert stream.name == "counts"
    assert stream.rows_per_s == pytest.approx(1000, rel=0.3)
    assert later.error < 0.25
    answer = CliRunner().invoke(main, ["advise", url, "--json"])
    assert json.loads(answer.stdout)["application"]["name"] == "live"


def test_the_attached_log_says_what_sparks_own_log_says(
    driver: tuple[str, subprocess.Popen[str]], folders: dict[str, Path]
) -> None:
    finish(driver[1])
    own = hr.advise(next(folders["events"].iterdir()))
    (head,) = folders["attached"].glob("*.head")
    whole = b"".join(file.read_bytes() for file in (head, head.with_suffix("")))
    joined = folders["attached"] / "joined"
    joined.write_bytes(whole)
    ours = hr.advise(joined)
    assert ours.trace.id == own.trace.id
    tasks = {(s.id, s.attempt): len(s.attempts) for s in own.trace.stages}
    seen = {(s.id, s.attempt): len(s.attempts) for s in ours.trace.stages}
    assert seen == tasks
    assert [e.cores for e in ours.trace.executors] == [2]
    assert own.streams[0].batches >= ours.streams[0].batches > 3
    assert own.error < 0.25
    table = pq.read_table(folders["attached"] / "telemetry" / "tasks")
    # The end of the query may kill a batch half-way: telemetry has what succeeded.
    done = [(s.attempts.metrics, s.attempts.status == SUCCEEDED) for s in own.trace.stages]
    assert table.num_rows == sum(int(ended.sum()) for _, ended in done) > 0
    names = ("input_records", "shuffle_records")
    read = sum(float(np.nansum(m[name][ended])) for m, ended in done for name in names)
    assert sum(table["tuples_in"].to_pylist()) == read


@pytest.fixture(scope="module")
def history(driver: tuple[str, subprocess.Popen[str]], folders: dict[str, Path]) -> Iterator[str]:
    """A history server of the pip package over the driver's log."""
    finish(driver[1])
    port = free_port("127.0.0.1")
    variables = {**os.environ, **environment("local", os.environ)}
    options = f"-Dspark.history.fs.logDirectory=file://{folders['events']}"
    options += f" -Dspark.history.ui.port={port} -Dspark.history.fs.update.interval=1s"
    variables |= {"SPARK_HISTORY_OPTS": options, "SPARK_DAEMON_MEMORY": "512m"}
    spark_class = str(Path(variables["SPARK_HOME"]) / "bin" / "spark-class")
    server = subprocess.Popen(
        [spark_class, "org.apache.spark.deploy.history.HistoryServer"],
        env=variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + WITHIN_S
    try:
        while not _lists_an_application(url):
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.5)
        yield url
    finally:
        server.terminate()
        server.wait(30)


def _lists_an_application(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/api/v1/applications", timeout=5) as answer:
            return bool(json.load(answer))
    except (OSError, ValueError):
        return False


def test_a_history_server_says_what_its_file_says(history: str, folders: dict[str, Path]) -> None:
    there = hr.advise(history).to_json()
    here = hr.advise(next(folders["events"].iterdir())).to_json()
    assert there == here


def test_a_history_server_without_the_application_is_refused(history: str) -> None:
    refused = CliRunner().invoke(main, ["advise", history, "--app", "nobody"])
    assert refused.exit_code == 1
    assert "has no application `nobody`" in refused.stderr
    missing = CliRunner().invoke(main, ["advise", f"{history}/nowhere", "--app", "nobody"])
    assert missing.exit_code == 1

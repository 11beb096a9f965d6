"""headrace observe --follow as a user runs it: files appear while it follows, and Ctrl-C ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from headrace.model.telemetry import Writer
from headrace.observe.store import events, rows_of, segments
from tests.observe.samples import task, word_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def wait_until(
    holds: Callable[[], bool], process: subprocess.Popen[bytes], *, seconds: float = 300
) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert process.poll() is None, f"ended by itself with status {process.returncode}"
        assert time.monotonic() < deadline, f"still waiting after {seconds} s"
        time.sleep(0.1)


def test_files_that_appear_while_it_follows_are_kept_once_and_ctrl_c_ends_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, store, measured = tmp_path / "telemetry", tmp_path / "store", tmp_path / "measured.yaml"
    said, complaints = tmp_path / "said", tmp_path / "complaints"
    rows = word_count(6)["tasks"]
    first, second = rows[:100], rows[100:]
    with Writer(folder, name="a") as writer:
        writer.write("tasks", first)
    command = [
        sys.executable,
        "-m",
        "headrace.cli",
        "observe",
        folder,
        "--store",
        store,
        "--follow",
        "--every",
        "1",
        "--out",
        measured,
    ]
    with said.open("wb") as stdout, complaints.open("wb") as stderr:
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr, start_new_session=True)
        try:
            wait_until(lambda: "tasks: 100 events" in said.read_text(), process)
            with Writer(
                folder, name="b", format="jsonl"
            ) as writer:  # the first JSON lines of this folder, some sent before
                writer.write("tasks", [*first[:7], *second, task(cpu_ms=-1.0)])
            wait_until(
                lambda: f"tasks: {len(rows)} events, 1 quarantine" in said.read_text(), process
            )
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to all of the group
            assert process.wait(60) == 0
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    assert (
        complaints.read_text().splitlines()[-1]
        == f"stopped; what is not in {store} yet is read next time"
    )
    assert "Traceback" not in complaints.read_text()
    assert said.read_text().count("tasks: ") == 2  # nothing new says nothing new
    kept = {(row["task"], row["event_time"]) for row in events(spark, store, "tasks").collect()}
    assert len(kept) == len(rows)
    assert rows_of(spark, store, "tasks", segments(store, "tasks")).count() == len(rows) + 1
    assert "profile" in yaml.safe_load(measured.read_text())

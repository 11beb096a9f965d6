"""A fleet: started, robbed of an executor, given a new plan, and gone afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.run.apps import load

TASKS = {"sentence": 2, "split": 4, "count": 4}
MARK = "HEADRACE_TEST_FLEET"  # in the environment of everything that the test starts
CLUSTER = """
format: headrace/1
cluster:
  nodes:
    big:   {cpu: 300, memory_mb: 768, type: i7}
    small: {cpu: 200, memory_mb: 512, type: i5}
"""


def write_plan(file: Path, big: dict[str, int]) -> None:
    """The first tasks of each component on `big`, the others on `small`."""
    runs = {
        name: [["big", 0, 1, big[name]], ["small", 0, big[name] + 1, n]]
        for name, n in TASKS.items()
    }
    draft = file.with_suffix(".draft")
    draft.write_text(
        json.dumps({"format": "headrace/1", "plan": {"placement": runs, "tasks": TASKS}})
    )
    draft.replace(file)


def processes(mark: str, words: str) -> Iterator[int]:
    """Processes that carry a mark and have some words in their command line."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (
                f"{MARK}={mark}".encode() in (folder / "environ").read_bytes()
                and words.encode() in (folder / "cmdline").read_bytes()
            ):
                yield int(folder.name)
        except OSError:
            continue


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and loopback addresses")
def test_every_task_runs_where_the_plan_says_and_nothing_is_lost(tmp_path: Path) -> None:
    cluster, plan, out, mark = (
        tmp_path / "cluster.yaml",
        tmp_path / "plan.json",
        tmp_path / "out",
        uuid.uuid4().hex,
    )
    cluster.write_text(CLUSTER)
    write_plan(plan, {"sentence": 1, "split": 2, "count": 3})
    command = [
        sys.executable, "-m", "headrace.cli", "run", "word-count", "--fleet", str(cluster), "--plan", str(plan), "--batches", "3", "--json",
        "--checkpoint", str(tmp_path / "run"), "--telemetry", str(tmp_path / "telemetry"), "--option", f"out={out}", "--option", "sentences=500",
    ]  # fmt: skip
    driver = subprocess.Popen(
        command,
        env={**os.environ, MARK: mark},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert driver.stderr is not None
    said: list[str] = []
    for line in driver.stderr:
        said.append(line.strip())
        if line.startswith("batch 0"):
            write_plan(plan, {"sentence": 2, "split": 3, "count": 2})  # from batch 1 or 2 on
        if line.startswith("batch 1"):
            os.kill(next(processes(mark, "CoarseGrainedExecutorBackend")), signal.SIGKILL)
    result = json.loads(driver.communicate()[0])["run"]
    assert driver.returncode == 0, said
    batches = [line for line in said if line.startswith("batch ")]
    assert not any("misplaced" in line for line in batches[:2]), (
        batches
    )  # after that, an executor was missing for a while
    assert result["batches"] == 3
    assert 0 < result["remote_bytes"] < result["total_bytes"]
    assert any("a new plan" in line for line in said)
    app = load("word-count")
    assert app.counted(str(out)) == app.expected(3, sentences=500)
    wait_until_gone(mark)


def wait_until_gone(mark: str) -> None:
    """No daemon outlives the fleet; executors take a moment to notice that their worker is gone."""
    for _ in range(100):
        if not list(processes(mark, "org.apache.spark")):
            return
        time.sleep(0.2)
    pytest.fail(f"still running: {list(processes(mark, 'org.apache.spark'))}")

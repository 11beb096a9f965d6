"""A Spark cluster of one's own: the loop plans on its hosts, recommends, and moves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.control.history import entries
from headrace.run.addresses import free_port
from headrace.run.apps import load
from headrace.run.fleet import QUICK_START, enter_room
from headrace.run.limits import Room
from headrace.spark import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs loopback addresses")
HOSTS = ("127.0.0.31", "127.0.0.32")
BATCHES = 8


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A master and two workers that headrace has not started and knows nothing of."""
    folder, port, page = tmp_path_factory.mktemp("cluster"), free_port(), free_port()
    name = f"spark://127.0.0.1:{port}"
    variables = {**os.environ, **environment(name, os.environ)}
    variables |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": QUICK_START}
    spark_class = str(Path(variables["SPARK_HOME"]) / "bin" / "spark-class")
    commands = [("127.0.0.1", ["master.Master", "--port", str(port), "--webui-port", str(page)])]
    for host in HOSTS:
        shape = ["--cores", "6", "--memory", "1024m", "--work-dir", str(folder / host)]
        commands.append((host, ["worker.Worker", *shape, "--webui-port", "0", name]))
    started: list[subprocess.Popen[bytes]] = []
    try:
        for host, (kind, *rest) in commands:
            command = [spark_class, f"org.apache.spark.deploy.{kind}", "--host", host, *rest]
            log = (folder / f"{kind}-{host}.log").open("wb")
            own = {**variables, "SPARK_LOCAL_IP": host}
            started.append(
                subprocess.Popen([*enter_room(Room()), *command], env=own, stdout=log, stderr=log)
            )
        wait_for_workers(f"http://127.0.0.1:{page}/json/")
        yield name
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def wait_for_workers(page: str) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(page, timeout=5) as answer:
                if json.load(answer)["aliveworkers"] == len(HOSTS):
                    return
        except OSError:
            pass
        time.sleep(0.3)
    pytest.fail("the cluster did not come up")


def run(master: str, folder: Path, *more: str) -> dict[str, object]:
    command = [
        sys.executable, "-m", "headrace.cli", "run", "word-count", "--master", master,
        "--first", "storm-even", "--by", "t3-scheduler", "--rule", "once", "--rule-option",
        "after_s=0", "--every", "2s", "--interval", "1", "--objective", "traffic",
        "--batches", str(BATCHES), "--checkpoint", "run", "--json", "--option",
        f"out={folder / 'out'}", "--option", "sentences=400", *more,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    app = load("word-count")
    assert app.counted(str(folder / "out")) == app.expected(BATCHES, sentences=400)
    return json.loads(done.stdout)["run"]


def test_the_loop_moves_on_a_cluster_of_one_s_own(master: str, tmp_path: Path) -> None:
    told = run(master, tmp_path, "--adaptive")
    moved = next(e for e in entries(tmp_path / "run") if e.applied)
    assert (moved.by, moved.rule) == ("t3-scheduler", "once")
    assert told["plans"] == ["storm-even", "plan-1"]
    assert told["misplaced"] == 0
    [section] = [s for name, s in moved.plans.items() if name == moved.plan]
    assert {r[0] for runs in section["placement"].values() for r in runs} <= set(HOSTS)
    assert moved.after["inter_node_traffic"] < moved.before["inter_node_traffic"]


def test_it_recommends_and_changes_nothing(master: str, tmp_path: Path) -> None:
    told = run(master, tmp_path, "--advise")
    kept = entries(tmp_path / "run")
    assert any(e.move for e in kept)
    assert not any(e.applied for e in kept)
    assert told["plans"] == ["storm-even"]

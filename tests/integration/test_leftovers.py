"""SIGTERM and kill -9 of fleet, agents and driver: after the next command nothing is left."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.run.apps import load
from headrace.run.limits import DEVICES, LOCKS, NAMESPACES
from headrace.run.quotas import find_quotas

CLUSTER = """
format: headrace/1
cluster:
  nodes:
    n{1..2}: {cpu: 400, cores: 4, memory_mb: 1024, slots: 2, bandwidth_mbps: 200}
"""
MARK = "HEADRACE_TEST_LEFTOVERS"  # in the environment of everything that the test starts
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
LIMITS = ("--limit", "bandwidth", "--limit", "cpu") if os.geteuid() == 0 else ()


class Ground:
    """A folder of its own for everything, temporary files of Python and of Java included."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mark = folder, uuid.uuid4().hex
        self.before = set(limits_left())
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        (folder / "cluster.yaml").write_text(CLUSTER)
        self.variables = {
            **os.environ,
            MARK: self.mark,
            "TMPDIR": str(self.temporary),
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={self.temporary} -XX:-UsePerfData",
        }

    def headrace(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "headrace.cli", *arguments]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
        )

    def start_run(self, batches: int) -> subprocess.Popen[str]:
        """A driver that has done its first batch."""
        command = [
            sys.executable, "-m", "headrace.cli", "run", "word-count", "--fleet", "cluster.yaml",
            "--folder", "fleet", "--checkpoint", "run", "--batches", str(batches), "--json",
            "--interval", "1", "--by", "storm-even", "--option", f"out={self.folder / 'out'}",
            "--option", "sentences=200",
        ]  # fmt: skip
        driver = subprocess.Popen(
            command, cwd=self.folder, env=self.variables, start_new_session=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert driver.stderr is not None
        said: list[str] = []
        for line in driver.stderr:
            said.append(line)
            if line.startswith("batch "):
                return driver
        pytest.fail(f"the driver ended: {said[-10:]}")

    def fleet_up(self, *limits: str) -> dict[str, int]:
        done = self.headrace("fleet", "up", "cluster.yaml", "--folder", "fleet", *limits, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["fleet"]

    def processes(self, words: str = "") -> list[int]:
        """Processes that carry the mark and have some words in their command line."""
        found: list[int] = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                marked = f"{MARK}={self.mark}".encode() in (process / "environ").read_bytes()
                if marked and words.encode() in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
            except OSError:
                continue
        return found

    def check_nothing_left(self) -> None:
        """Of processes, limits and files; a process that was killed may take a moment."""
        deadline = time.monotonic() + 10
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert self.processes() == []
        assert set(limits_left()) - self.before == set()
        assert [path.name for path in self.temporary.iterdir()] == []
        fleet = self.folder / "fleet"
        kept = {"logs", "agents", "supervisor.log"}
        assert {path.name for path in fleet.glob("*")} <= kept


def limits_left() -> Iterator[str]:
    """What fleets with limits have made that are not up: nobody has locked their number."""
    made = [*NAMESPACES.glob("headrace-*"), *DEVICES.glob("headrace*"), *LOCKS.glob("*")]
    if LIMITS:
        made += find_quotas().groups("headrace-")
    for path in made:
        number = re.search(r"\d+", path.name)
        if number is not None and not is_locked(LOCKS / number[0]):
            yield str(path)


def is_locked(file: Path) -> bool:
    """Whether a process holds a lock on a file."""
    try:
        with file.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    made = Ground(tmp_path)
    yield made
    for process in made.processes():
        os.kill(process, signal.SIGKILL)
    made.headrace("fleet", "down", "--folder", "fleet")


def test_a_fleet_with_limits_is_killed_and_so_are_its_driver_and_agents(ground: Ground) -> None:
    fleet = ground.fleet_up(*LIMITS)
    driver = ground.start_run(batches=100)
    os.killpg(driver.pid, signal.SIGKILL)  # Python and its Java
    driver.communicate()
    [agent, *_] = ground.processes("headrace.observe.node_agent")
    os.kill(agent, signal.SIGKILL)
    up = ground.headrace("fleet", "status", "--folder", "fleet", "--json")
    assert all(worker["alive"] for worker in json.loads(up.stdout)["fleet"]["workers"])
    assert [path.name for path in ground.temporary.iterdir()] == [], "of the driver"
    # A lost driver goes on.
    commits = len(list((ground.folder / "run" / "commits").iterdir()))
    assert commits
    again = ground.start_run(batches=2)
    told = json.loads(again.communicate()[0].splitlines()[-1])["run"]
    assert again.returncode == 0
    assert told["batches"] == 2
    app = load("word-count")
    total = max(int(path.stem) for path in (ground.folder / "run" / "commits").iterdir()) + 1
    assert app.counted(str(ground.folder / "out")) == app.expected(total, sentences=200)
    os.kill(fleet["pid"], signal.SIGKILL)
    down = ground.headrace("fleet", "down", "--folder", "fleet")
    assert "no fleet is up" in down.stdout
    ground.check_nothing_left()


def test_a_fleet_and_a_driver_with_a_fleet_of_its_own_are_asked_to_end(ground: Ground) -> None:
    fleet = ground.fleet_up()
    os.kill(fleet["pid"], signal.SIGTERM)
    deadline = time.monotonic() + 30
    while ground.processes("headrace.run.supervisor") and time.monotonic() < deadline:
        time.sleep(0.1)
    ground.check_nothing_left()
    driver = ground.start_run(batches=100)
    driver.terminate()
    driver.communicate()
    assert driver.returncode == 128 + signal.SIGTERM
    ground.check_nothing_left()
    driver = ground.start_run(batches=100)
    driver.kill()
    driver.communicate()
    ground.headrace("fleet", "status", "--folder", "fleet")
    ground.check_nothing_left()

"""Scratch folders: gone with their owner, or after it, and never while it lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from headrace.run.leftovers import (
    LOCK,
    YOUNG_S,
    end_processes_in,
    processes_in,
    scratch_folder,
    sweep_scratch,
)
from headrace.run.supervisor import PID, clear_lost_fleet

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
OWNER = """
import sys, time
from headrace.run.leftovers import scratch_folder
with scratch_folder() as folder:
    print(folder, flush=True)
    time.sleep(60)
"""
TWO_SESSIONS = """
from headrace.control.live import open_session
from headrace.spark import session
for master in ("local[1]", "local[2]"):
    with open_session("first", master, {}) as spark:
        assert spark.range(100).repartition(2).count() == 100
assert session(master="local[1]").range(100).repartition(2).count() == 100
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_its_owner_and_stays_while_it_lives() -> None:
    with scratch_folder() as folder:
        (folder / "inside").mkdir()
        assert sweep_scratch() == []
        assert folder.exists()
    assert not folder.exists()


def test_what_a_killed_owner_left_is_swept() -> None:
    # A process of its own: the kernel lets go of a lock when its process ends.
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    folder = Path(owner.stdout.readline().strip())
    assert sweep_scratch() == []
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    assert folder.exists()
    assert sweep_scratch() == [folder]
    assert not folder.exists()


def test_a_folder_that_is_about_to_be_locked_is_left_alone(temporary: Path) -> None:
    young = temporary / "headrace-scratch-young"
    young.mkdir()
    assert sweep_scratch() == []
    os.utime(young, (0, time.time() - 2 * YOUNG_S))
    assert sweep_scratch() == [young]
    assert not (young / LOCK).exists()


def test_a_second_session_of_a_process_has_a_folder_too_and_nothing_stays(temporary: Path) -> None:
    # Java starts with the first session and keeps its folders for the next.
    java = {**os.environ, "JAVA_TOOL_OPTIONS": "-XX:-UsePerfData"}
    done = subprocess.run(
        [sys.executable, "-c", TWO_SESSIONS], env=java, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    deadline = time.monotonic() + 10  # Java ends a moment after its Python
    while (left := list(temporary.glob("headrace-*"))) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


def test_processes_that_work_in_a_folder_are_ended(tmp_path: Path) -> None:
    inside, outside = tmp_path / "work", tmp_path / "worker"
    sleeping: list[subprocess.Popen[bytes]] = []
    for place in (inside / "deep", outside):
        place.mkdir(parents=True)
        sleeping.append(subprocess.Popen([sys.executable, "-c", "input()"], cwd=place,
                                         stdin=subprocess.PIPE))  # fmt: skip
    try:
        assert processes_in(inside) == [sleeping[0].pid]
        end_processes_in(inside)
        assert sleeping[0].wait(5) == -signal.SIGKILL
        assert sleeping[1].poll() is None
    finally:
        sleeping[1].kill()
        sleeping[1].wait()


def test_a_lost_fleet_leaves_its_logs_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    for name in ("logs", "work", "local", "requests"):
        (folder / name).mkdir(parents=True)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (folder / PID).write_text(str(gone.pid))
    (folder / "fleet.json").write_text("{")
    clear_lost_fleet(folder)
    assert [path.name for path in folder.iterdir()] == ["logs"]

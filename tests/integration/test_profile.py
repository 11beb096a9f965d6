"""Word-count profiled on limited nodes: CPU per tuple stays, a thread's rate follows the limit."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from headrace.errors import HeadraceError
from headrace.run.leftovers import PREFIX
from headrace.run.limits import Bounds, make_rooms
from headrace.run.quotas import find_quotas

CLUSTER = """
format: headrace/1
cluster:
  nodes:
    big-{1..4}: {type: big, cpu: 100}
    small-{1..4}: {type: small, cpu: 40}
"""
HEADRACE = [sys.executable, "-m", "headrace.cli"]


def missing() -> str:
    """Why limits cannot be tried here; empty if they can."""
    try:
        with make_rooms([Bounds(cpu=50)], ["cpu"]):
            return ""
    except HeadraceError as refusal:
        return refusal.message


MISSING = missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def left_behind() -> set[str]:
    """Groups and scratch folders."""
    groups = find_quotas().groups("headrace-")
    folders = Path(tempfile.gettempdir()).glob(f"{PREFIX}*")
    return {str(path) for path in (*groups, *folders)}


def headrace(*words: str) -> str:
    done = subprocess.run([*HEADRACE, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_quota_changes_the_rate_of_a_thread_and_not_the_cpu_of_a_tuple(tmp_path: Path) -> None:
    cluster, out, app = (tmp_path / f"{name}.yaml" for name in ("cluster", "profile", "app"))
    cluster.write_text(CLUSTER)
    before = left_behind()
    asked = ["profile", "word-count", "--fleet", str(cluster), "--rows", "150000"]
    said = json.loads(headrace(*asked, "--repeats", "2", "--out", str(out), "--json"))
    assert left_behind() <= before
    found = {(c["component"], c["type"]): c for c in said["report"]["costs"]}
    cost = {key: c["cpu_ms"]["value"] for key, c in found.items()}
    rate = {key: c["most_per_s"]["value"] for key, c in found.items()}
    components = ("sentence", "split")
    for component in components:
        big, small = (component, "big"), (component, "small")
        assert 0.4 < cost[small] / cost[big] < 2.5
        # Cores that a thread had: neighbours on the machine make it fewer, never more.
        assert 0.2 < rate[big] * cost[big] / 1000 < 1.3
        assert 0.2 < rate[small] * cost[small] / 1000 < 0.6
    slower = sum(1 / rate[c, "small"] for c in components) / sum(
        1 / rate[c, "big"] for c in components
    )
    assert 1.1 < slower < 6, "2.5 on a quiet machine"
    assert found["split", "small"]["selectivity"] == {"count": 10.0}
    app.write_text(headrace("run", "word-count", "--describe"))
    placed = json.loads(headrace("place", str(app), str(cluster), str(out), "--json"))
    assert placed["report"]["feasible"]


def test_nothing_is_left_of_a_profile_that_is_ended(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    asked = ["profile", "word-count", "--fleet", str(tmp_path / "cluster.yaml")]
    before = left_behind()
    running = subprocess.Popen([*HEADRACE, *asked], stderr=subprocess.DEVNULL)
    try:
        while not (inside := processes_limited(left_behind() - before)):
            assert running.poll() is None
            time.sleep(0.05)
    finally:
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 128 + signal.SIGTERM
    assert left_behind() <= before
    assert not [pid for pid in inside if Path(f"/proc/{pid}").exists()]


def processes_limited(paths: set[str]) -> list[str]:
    """The processes in new groups."""
    files = [Path(path) / "cgroup.procs" for path in paths]
    return [pid for file in files if file.exists() for pid in file.read_text().split()]

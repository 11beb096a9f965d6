"""Limits that hold, and of which nothing is left: between namespaces and groups, and on a fleet."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.errors import HeadraceError
from headrace.run import limits
from headrace.run.fleet import enter_room
from headrace.run.limits import DEVICES, NAMESPACES, Bounds, Room, make_rooms, sweep
from headrace.run.quotas import find_quotas
from headrace.run.supervisor import find_fleet, start_fleet, stop_fleet

CLUSTER = """
format: headrace/1
cluster:
  nodes:
    quick: {cpu: 200, memory_mb: 512, bandwidth_mbps: 400}
    slow:  {cpu: 100, memory_mb: 512, bandwidth_mbps: 100}
"""
RECEIVE = """
import socket, sys, time
with socket.create_server((sys.argv[1], 0)) as server:
    print(server.getsockname()[1], flush=True)
    peer, _ = server.accept()
    total, first = 0, 0.0
    while block := peer.recv(1 << 20):
        total, first = total + len(block), first or time.monotonic()
    print(total / (time.monotonic() - first), flush=True)
"""
SEND = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as peer:
    peer.sendall(bytes(int(sys.argv[3])))
"""
BUSY = """
import os, time
end = time.monotonic() + 2
while time.monotonic() < end:
    pass
used = os.times()
print((used.user + used.system) / 2)
"""


def missing() -> str:
    """Why limits cannot be tried here; empty if they can."""
    try:
        with make_rooms([Bounds(100, 100)], limits.LIMITS):
            return ""
    except HeadraceError as refusal:
        return refusal.message


MISSING = missing()
needs_rights = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def started(room: Room, code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*enter_room(room), sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )


def transfer_mbps(source: Room, target: Room, size: int) -> float:
    """Send so many bytes from one room to another; 10^6 bit/s."""
    assert target.host is not None
    receiver = started(target, RECEIVE, target.host)
    assert receiver.stdout is not None
    port = receiver.stdout.readline().strip()
    assert started(source, SEND, target.host, port, str(size)).wait(60) == 0
    return float(receiver.communicate(timeout=60)[0]) * 8 / 1e6


def left_behind() -> list[str]:
    """All that any fleet has made and not removed."""
    namespaces = [file.name for file in NAMESPACES.glob("headrace-*")]
    return [
        *namespaces,
        *(d.name for d in DEVICES.glob("headrace*")),
        *(g.name for g in find_quotas().groups("headrace-")),
    ]


@needs_rights
def test_a_node_sends_and_receives_at_its_bandwidth_and_no_faster() -> None:
    with make_rooms([Bounds(400), Bounds(100), Bounds()], ["bandwidth"]) as ground:
        quick, slow, free = ground.rooms
        assert 60 < transfer_mbps(quick, slow, 10_000_000) < 115  # what the slow one receives
        assert 60 < transfer_mbps(slow, free, 10_000_000) < 115  # what it sends
        assert 200 < transfer_mbps(quick, free, 25_000_000) < 440
        assert transfer_mbps(free, Room(ground.host), 50_000_000) > 440  # nobody limits these two


@needs_rights
def test_a_namespace_has_no_way_out_but_the_bridge() -> None:
    with make_rooms([Bounds(100)], ["bandwidth"]) as ground:
        routes = (
            started(ground.rooms[0], "print(open('/proc/net/route').read())")
            .communicate()[0]
            .strip()
            .splitlines()[1:]
        )
        assert [route.split()[0] for route in routes] == ["eth0"]
        assert routes[0].split()[2] == "00000000"  # no gateway


@needs_rights
def test_processes_of_a_node_get_their_quota_and_no_more() -> None:
    with make_rooms([Bounds(cpu=10), Bounds(cpu=1000)], ["cpu"]) as ground:
        slow, quick = (float(started(room, BUSY).communicate()[0]) for room in ground.rooms)
    assert 0.02 < slow < 0.16
    assert quick > 1.5 * slow  # other processes of the machine leave it that much


@needs_rights
def test_nothing_is_left_behind_also_after_an_error() -> None:
    before, inside = left_behind(), list[subprocess.Popen[str]]()
    with suppress(RuntimeError), make_rooms([Bounds(100, 100)] * 2, limits.LIMITS) as ground:
        assert len(left_behind()) == len(before) + 2 + 3 + 2  # namespaces, devices, groups
        inside.append(
            started(ground.rooms[0], "import time; print('in', flush=True); time.sleep(600)")
        )
        assert inside[0].stdout is not None
        assert inside[0].stdout.readline() == "in\n"
        raise RuntimeError
    assert inside[0].wait(5) == -signal.SIGKILL  # a process ends with its room
    assert left_behind() == before


@needs_rights
def test_a_crashed_fleet_is_swept_and_one_that_is_up_is_not() -> None:
    hold = """
import time
from headrace.run.limits import LIMITS, Bounds, make_rooms
with make_rooms([Bounds(100, 100)], LIMITS) as ground:
    print(ground.rooms[0].namespace.name, flush=True)
    time.sleep(600)
"""
    crashed = subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE, text=True)
    assert crashed.stdout is not None
    name = crashed.stdout.readline().strip()
    number = int(name.split("-")[1])
    try:
        assert number not in sweep()
        assert (NAMESPACES / name).exists()
    finally:
        crashed.kill()
        crashed.communicate()
    assert (NAMESPACES / name).exists()
    assert number in sweep()
    assert not [
        left
        for left in left_behind()
        if left.startswith((f"headrace-{number}-", f"headrace{number}"))
    ]


@needs_rights
def test_a_fleet_with_limits_runs_and_leaves_nothing_after_kill_9(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    folder, before = tmp_path / "fleet", left_behind()
    fleet = start_fleet([str(tmp_path / "cluster.yaml")], folder, limits=limits.LIMITS)
    try:
        command = [sys.executable, "-m", "headrace.cli"]
        told = subprocess.run(
            [*command, "fleet", "status", "--folder", str(folder)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        assert "bandwidth_mbps 400  cpu 200" in told
        assert "bandwidth_mbps 100  cpu 100" in told
        where = [
            "--fleet",
            str(tmp_path / "cluster.yaml"),
            "--folder",
            str(folder),
            "--checkpoint",
            str(tmp_path / "run"),
        ]
        options = [
            "--by",
            "storm-even",
            "--option",
            "tasks=2",
            "--option",
            "sentences=200",
            "--batches",
            "2",
            "--json",
        ]
        done = subprocess.run(
            [*command, "run", "word-count", *where, *options],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)["run"]
        assert result["misplaced"] == 0
        assert result["remote_bytes"] > 0
    finally:
        os.kill(fleet.pid, signal.SIGKILL)
        while find_fleet(folder) is not None:
            time.sleep(0.05)
    assert left_behind() != before
    assert not stop_fleet(folder)
    assert left_behind() == before

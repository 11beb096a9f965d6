"""Limits that really hold, and of which nothing is left: between namespaces and groups, and on a fleet."""

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
from click.testing import CliRunner

from headrace.cli import main
from headrace.errors import HeadraceError, InvalidInput, Unsupported
from headrace.run import limits
from headrace.run.fleet import enter_room, local_fleet
from headrace.run.limits import DEVICES, NAMESPACES, Bounds, Room, check_limits, make_rooms, sweep
from headrace.run.machines import Machine
from headrace.run.quotas import Quotas, find_quotas
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


@pytest.mark.spark
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


def test_limits_are_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unsaid, told = (
        [Machine("n1", "127.0.0.2", 1, 512)],
        "no node has `bandwidth_mbps`, .* the nodes are n1",
    )
    with (
        pytest.raises(InvalidInput, match=told),
        local_fleet(unsaid, tmp_path, limits=["bandwidth"]),
    ):
        pass
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    if sys.platform == "linux":
        with pytest.raises(Unsupported, match="need root, and this is user 1000"):
            check_limits(["cpu"])
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(limits, "TOOLS", str(tmp_path))
        with pytest.raises(Unsupported, match="needs `ip`, which is not there"):
            check_limits(["bandwidth"])
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(Unsupported, match="need Linux, and this is darwin"):
        check_limits(["cpu"])
    check_limits([])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system is refused first")
def test_the_command_refuses_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    command = [
        "fleet",
        "up",
        str(tmp_path / "cluster.yaml"),
        "--limit",
        "cpu",
        "--folder",
        str(tmp_path / "fleet"),
    ]
    refused = CliRunner().invoke(main, command)
    assert refused.exit_code == 1
    assert "limits of a fleet need root" in refused.output
    assert not (tmp_path / "fleet").exists()


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """A folder that looks like control groups of version 2, as far as files go."""
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io\n")
    (tmp_path / "cgroup.subtree_control").write_text("io\n")
    return tmp_path


def test_groups_of_both_versions_are_found_and_told_their_quota(
    mounted: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    mounts = tmp_path_factory.mktemp("proc") / "mounts"
    mounts.write_text(f"cgroup2 {mounted} cgroup2 rw 0 0\n")
    group = find_quotas(mounts)
    assert group == Quotas(mounted, 2)
    assert group.make("headrace-0-2", 250) == mounted / "headrace-0-2" / "cgroup.procs"
    assert (mounted / "cgroup.subtree_control").read_text() == "+cpu"
    assert (mounted / "headrace-0-2" / "cpu.max").read_text() == "250000 100000"
    mounts.write_text(
        f"none /sys/fs/cgroup tmpfs rw 0 0\ncgroup {mounted} cgroup rw,relatime,cpu,cpuacct 0 0\n"
    )
    assert find_quotas(mounts) == Quotas(mounted, 1)
    find_quotas(mounts).make("headrace-0-3", 50)
    assert (mounted / "headrace-0-3" / "cpu.cfs_quota_us").read_text() == "50000"
    assert [found.name for found in find_quotas(mounts).groups("headrace-0-")] == [
        "headrace-0-2",
        "headrace-0-3",
    ]
    mounts.write_text("cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n")
    with pytest.raises(Unsupported, match="a cpu controller, and none is mounted"):
        find_quotas(mounts)

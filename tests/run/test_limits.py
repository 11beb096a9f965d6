"""Limits that are refused, and the files that set a quota."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli import main
from headrace.errors import InvalidInput, Unsupported
from headrace.run import limits
from headrace.run.fleet import local_fleet
from headrace.run.limits import check_limits
from headrace.run.machines import Machine
from headrace.run.quotas import Quotas, find_quotas

CLUSTER = """
format: headrace/1
cluster:
  nodes:
    quick: {cpu: 200, memory_mb: 512, bandwidth_mbps: 400}
    slow:  {cpu: 100, memory_mb: 512, bandwidth_mbps: 100}
"""


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
    assert (mounted / "headrace-0-2" / "cpu.weight").read_text() == "250"
    mounts.write_text(
        f"none /sys/fs/cgroup tmpfs rw 0 0\ncgroup {mounted} cgroup rw,relatime,cpu,cpuacct 0 0\n"
    )
    assert find_quotas(mounts) == Quotas(mounted, 1)
    find_quotas(mounts).make("headrace-0-3", 50)
    assert (mounted / "headrace-0-3" / "cpu.cfs_quota_us").read_text() == "50000"
    assert (mounted / "headrace-0-3" / "cpu.shares").read_text() == "512"
    assert [found.name for found in find_quotas(mounts).groups("headrace-0-")] == [
        "headrace-0-2",
        "headrace-0-3",
    ]
    mounts.write_text("cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n")
    with pytest.raises(Unsupported, match="a cpu controller, and none is mounted"):
        find_quotas(mounts)

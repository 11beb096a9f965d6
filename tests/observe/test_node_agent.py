"""What a machine says about itself, from files as Linux has them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.model.telemetry import NODE_FACTS, NODES
from headrace.observe.node_agent import (
    Counters,
    bandwidth_mbps,
    cpu_facts,
    follow,
    memory_mb,
    node_facts,
    read_counters,
    use_between,
)
from headrace.observe.small import read_inventory, read_kind

PROCESSOR = """processor\t: {number}
model name\t: Intel(R) Xeon(R) CPU E5-2650 @ 2.00GHz
cpu MHz\t\t: 1200.000
physical id\t: {socket}
core id\t\t: {core}
flags\t\t: fpu sse2 avx avx2
"""


def test_two_sockets_of_two_cores_with_two_threads_each() -> None:
    threads = [(s, c) for s in range(2) for c in range(2) for _ in range(2)]
    text = "\n".join(
        PROCESSOR.format(number=i, socket=s, core=c) for i, (s, c) in enumerate(threads)
    )
    facts = cpu_facts(text)
    assert (facts["sockets"], facts["cores"], facts["ghz"], facts["flops_per_cycle"]) == (
        2,
        2,
        2.0,
        16.0,
    )


def test_a_processor_that_says_little() -> None:
    facts = cpu_facts(
        "processor\t: 0\nBogoMIPS\t: 50.0\nFeatures\t: fp asimd\n\nprocessor\t: 1\n"
        "Features\t: fp asimd\n"
    )
    assert (facts["sockets"], facts["cores"], facts["ghz"], facts["flops_per_cycle"]) == (
        1,
        2,
        None,
        8.0,
    )


def test_memory_and_the_fastest_interface(tmp_path: Path) -> None:
    assert memory_mb("MemTotal:       16384 kB\nMemFree: 1 kB\n") == 16
    for name, speed in {"lo": "", "eth0": "1000\n", "eth1": "10000\n", "down": "-1\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "speed").write_text(speed)
    assert bandwidth_mbps(tmp_path) == 10000
    assert bandwidth_mbps(tmp_path / "absent") is None


def test_this_machine_has_cores_and_memory() -> None:
    facts = node_facts(machine_type="mine")
    if not Path("/proc/meminfo").exists():
        pytest.skip("not Linux")
    assert facts["machine_type"] == "mine"
    assert facts["cores"] >= 1
    assert facts["memory_mb"] > 0
    assert set(NODE_FACTS) <= set(facts) <= {*NODES.names}


def test_use_is_what_counters_rose_by(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "stat").write_text("cpu  100 0 50 800 50 0 0 0 9 9\ncpu0 1 1 1 1\n")
    (tmp_path / "net" / "dev").write_text(
        "Inter-|\n face |\n    lo: 9 0 0 0 0 0 0 0 9 0\n  eth0: 1000 0 0 0 0 0 0 0 250 0\n"
    )
    found = read_counters(tmp_path, lambda: 7.0)
    ticks = os.sysconf("SC_CLK_TCK")
    assert found == Counters(7.0, 150 / ticks, 250.0, 1000.0)
    later = Counters(9.0, 150 / ticks + 3.0, 1_000_250.0, 1000.0)
    memory = "MemTotal:  16384 kB\nMemAvailable: 4096 kB\n"
    assert use_between(found, later, memory) == {
        "cpu_used": 150.0,  # 3 s of CPU in 2 s: one core and a half
        "sent_mbps": 4.0,  # a megabyte in 2 s
        "received_mbps": 0.0,
        "memory_used_mb": 12.0,
    }
    unknown = read_counters(tmp_path / "absent", lambda: 8.0)
    assert use_between(found, unknown, "") == {}, "unknown is unknown"


def test_an_agent_writes_facts_first_and_then_what_is_in_use(tmp_path: Path) -> None:
    waits: list[float] = []
    facts = {"node": "n1", "machine_type": "i7", "cores": 8, "slots": 4}
    follow(tmp_path, facts, every_s=10.0, samples=2, sleep=waits.append)
    follow(tmp_path, {**facts, "node": "n2", "cores": 4}, every_s=10.0, samples=0)
    assert waits == [10.0, 10.0]
    assert len(list((tmp_path / "nodes").glob("agent-n1-*.parquet"))) == 3
    found = read_inventory(tmp_path)
    assert {name: node["cores"] for name, node in found.items()} == {"n1": 8, "n2": 4}
    rows = read_kind("nodes", sorted((tmp_path / "nodes").glob("agent-n1-*.parquet")))
    if Path("/proc/stat").exists():
        assert rows["memory_used_mb"].notna().tolist() == [False, True, True]

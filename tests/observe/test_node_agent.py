"""What a machine says about itself, from files as Linux has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.observe.classify import OPTIONAL
from headrace.observe.node_agent import bandwidth_mbps, cpu_facts, memory_mb, node_facts

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
    assert set(OPTIONAL["nodes"]) <= set(facts)

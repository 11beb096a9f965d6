"""LSA and MBA on the authors' profiles: threads, CPU and memory of each task as their implementation gives them."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.errors import InvalidInput, Unsupported
from headrace.model.document import ThreadPoint
from headrace.size.lsa import allocate_linearly, lsa
from headrace.size.mba import allocate_bundles, mba
from headrace.size.threads import Allocation, count_slots
from tests.size.workloads import workload_of

# threads -> peak rate, CPU %, memory % of one slot
PROFILES: dict[str, dict[int, tuple[float, float, float]]] = {
    "xml": {1: (310, 84.69, 35.63)},
    "table": {
        1: (3, 1.02, 1.15), 2: (5, 2.04, 1.15), 10: (10, 11.22, 3.45), 40: (20, 26.53, 9.2), 50: (30, 38.78, 12.64),
        60: (40, 54.08, 16.09),
    },
    "pi": {1: (105, 92.35, 2.07), 2: (110, 94.9, 3.53)},
    "write": {1: (60000, 58.27, 11.95), 2: (50000, 51.84, 2.76)},
    "blob": {1: (2, 6.73, 23.92), 2: (3, 6.63, 23.98), 20: (10, 14.69, 26.3), 30: (20, 54.18, 28.74), 50: (30, 76.73, 31.38)},
}  # fmt: skip


def points(name: str) -> dict[int, ThreadPoint]:
    return {t: ThreadPoint(rate=r, cpu=c, memory=m) for t, (r, c, m) in PROFILES[name].items()}


@pytest.mark.parametrize(
    ("name", "threads", "cpu", "memory"),
    [
        ("xml", 1, 73.76, 31.03),
        ("table", 410, 638.78, 612.64),
        ("pi", 5, 243.98, 200.99),
        ("blob", 450, 900, 900),
    ],
)
def test_mba_at_270_tuples_per_s(name: str, threads: int, cpu: float, memory: float) -> None:
    found = allocate_bundles(270, points(name))
    assert (found.threads, found.cpu, found.memory) == (
        threads,
        pytest.approx(cpu, abs=0.005),
        pytest.approx(memory, abs=0.005),
    )


@pytest.mark.parametrize(
    ("name", "threads", "cpu", "memory"),
    [
        ("xml", 1, 43.71, 18.39),
        ("table", 54, 54.4, 61.33),
        ("pi", 2, 140.72, 3.15),
        ("blob", 80, 538.4, 1913.6),
    ],
)
def test_lsa_at_160_tuples_per_s(name: str, threads: int, cpu: float, memory: float) -> None:
    found = allocate_linearly(160, points(name))
    assert (found.threads, found.cpu, found.memory) == (
        threads,
        pytest.approx(cpu, abs=0.005),
        pytest.approx(memory, abs=0.005),
    )


def test_one_thread_writes_270_tuples_per_s() -> None:
    assert allocate_bundles(270, points("write")).threads == 1


def test_slots_hold_what_needs_more() -> None:
    assert count_slots({"a": Allocation(1, 50, 120), "b": Allocation(1, 50, 80)}) == 2
    assert count_slots({"a": Allocation(1, 50, 120), "b": Allocation(1, 50, 81)}) == 3


def document(rate: float, threads: dict[str, Any]) -> dict[str, Any]:
    components = {
        "s": {"spout": True, "rate": rate, "tasks": 2},
        "blob": {"inputs": {"s": "shuffle"}},
    }
    return {
        "topology": {"components": components},
        "profile": {"blob": threads},
        "cluster": {"nodes": {"n": {"type": "x"}, "m": {"type": "y"}}},
    }


def as_yaml(name: str) -> dict[int, dict[str, float]]:
    return {t: {"rate": r, "cpu": c, "memory": m} for t, (r, c, m) in PROFILES[name].items()}


def test_counts_come_from_the_file() -> None:
    content = document(160, {"*": {"threads": as_yaml("blob")}})
    assert lsa(workload_of(content)).tasks == {"s": 2, "blob": 80}
    sized = mba(workload_of(content))  # 5 x 30 tuples/s with 50 threads, then 10 tuples/s with 20
    assert sized.tasks == {"s": 2, "blob": 270}
    assert sized.assignment is None
    assert sized.rate == 160
    assert "6 slots" in sized.notes[-1]


def test_slots_that_differ_and_missing_points_are_refused() -> None:
    two = {"x": {"threads": as_yaml("blob")}, "y": {"threads": as_yaml("pi")}}
    with pytest.raises(Unsupported, match="one kind of slot"):
        mba(workload_of(document(10, two)))
    with pytest.raises(InvalidInput, match="no component has thread points"):
        lsa(workload_of(document(10, {"*": {"cpu_ms": 1}})))
    with pytest.raises(InvalidInput, match="lack those of 1 thread"):
        lsa(workload_of(document(10, {"*": {"threads": {2: {"rate": 3, "cpu": 6}}}})))

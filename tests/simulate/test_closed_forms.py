"""The simulator against queueing theory: all loads and percentiles are in benchmarks/simulating.py.

Runs are short here, so tolerances are some times the chance in them.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

import headrace as hr

INSTANT = {"worker": 0, "node": 0, "rack": 0}


def chain(rate: float, times_ms: list[float], **sections: Any) -> hr.Case:
    """A spout and bolts in a row; every task has a core."""
    components: dict[str, Any] = {"s0": {"spout": True, "rate": rate}}
    for i in range(1, len(times_ms)):
        components[f"s{i}"] = {"inputs": {f"s{i - 1}": "shuffle"}}
    return hr.case(
        {
            "topology": {"components": components},
            "profile": {f"s{i}": {"*": {"cpu_ms": t}} for i, t in enumerate(times_ms)},
            "cluster": {"nodes": {"n": {"cpu": 100 * len(times_ms)}}},
            "latency_ms": INSTANT,
            **sections,
        }
    )


def run(case: hr.Case, tuples: float, rate: float, **options: Any) -> hr.Simulation:
    seconds = tuples / rate
    plan = hr.place(case, by="storm-even")
    return hr.simulate(plan, seconds=seconds, warm_up=seconds / 10, **options)


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_one_exponential_server_is_m_m_1(load: float) -> None:
    found = run(chain(1000 * load, [1.0]), 4e5, 1000 * load)
    assert found.latency_ms["mean"] == pytest.approx(1 / (1 - load), rel=0.03)
    assert found.latency_ms["p99"] == pytest.approx(math.log(100) / (1 - load), rel=0.05)
    assert found.throughput_per_s.mean == pytest.approx(1000 * load, rel=0.01)


@pytest.mark.parametrize(("cv", "section"), [(0.0, {"kind": "constant"}), (0.5, {"cv": 0.5})])
def test_waiting_follows_pollaczek_and_khinchine(cv: float, section: dict[str, Any]) -> None:
    found = run(chain(600, [1.0], service=section), 4e5, 600)
    wait = 0.6 / 0.4 * (1 + cv**2) / 2
    assert found.latency_ms["mean"] == pytest.approx(1 + wait, rel=0.03)


def test_cores_are_shared_as_in_m_m_c() -> None:
    load, servers = 0.7, 3
    components = {"s0": {"spout": True, "rate": 1000 * load * servers, "tasks": 600}}
    case = chain(
        1,
        [1.0],
        topology={"components": components},
        cluster={"nodes": {"n": {"cpu": 100 * servers}}},
    )
    offered = load * servers
    last = offered**servers / math.factorial(servers) / (1 - load)
    waits = last / (sum(offered**k / math.factorial(k) for k in range(servers)) + last)
    found = run(case, 3e5, 2100)
    expected = 1 + waits / (servers * (1 - load))
    assert found.latency_ms["mean"] == pytest.approx(expected, rel=0.03)


def test_servers_in_a_row_add_up() -> None:
    found = run(chain(500, [1.0, 0.8, 0.5]), 3e5, 500)
    expected = sum(1 / (1 / t - 0.5) for t in (1.0, 0.8, 0.5))
    assert found.latency_ms["mean"] == pytest.approx(expected, rel=0.03)


def test_a_network_with_feedback_is_jacksons() -> None:
    work = {"tasks": 2, "selectivity": 0.4}
    keyed = {"grouping": "fields", "fields": ["k"]}
    case = chain(
        1,
        [0.0],
        topology={
            "components": {
                "s0": {"spout": True, "rate": 400},
                "w": {**work, "inputs": {"s0": keyed, "w": keyed}},
            }
        },
        profile={"s0": {"*": {"cpu_ms": 0}}, "w": {"*": {"cpu_ms": 1}}},
        cluster={"nodes": {"n": {"cpu": 300}}},
        streams=[
            {"from": "s0", "to": "w", "shares": [0.7, 0.3]},
            {"from": "w", "to": "w", "shares": [0.7, 0.3]},
        ],
    )
    loads = [0.4 / 0.6 * share for share in (0.7, 0.3)]
    expected = sum(r / (1 - r) for r in loads) / 0.4
    found = run(case, 3e5, 400)
    assert found.latency_ms["mean"] == pytest.approx(expected, rel=0.03)


def test_a_limit_on_open_trees_closes_the_network() -> None:
    times, customers = [1.0, 1.4, 0.7], 5
    queue, throughput = [0.0] * 3, 0.0
    for n in range(1, customers + 1):
        stay = [t * (1 + q) for t, q in zip(times, queue, strict=True)]
        throughput = n / sum(stay)
        queue = [throughput * s for s in stay]
    found = run(chain(2000, times, max_spout_pending=customers), 3e5, 2000)
    assert found.throughput_per_s.mean == pytest.approx(1000 * throughput, rel=0.02)
    assert not found.stable


def test_links_serve_one_tuple_after_another() -> None:
    # 1,000 bytes at 10 Mbit/s take 0.8 ms out and 0.8 ms in; 0.5 of the link is in use, and the
    # second link gets tuples that are already apart, so that only the first makes them wait.
    case = hr.case(
        {
            "topology": {
                "components": {
                    "a": {"spout": True, "rate": 625, "bytes": 1000, "nodes": ["x"]},
                    "b": {"inputs": {"a": "shuffle"}, "nodes": ["y"]},
                }
            },
            "cluster": {"nodes": {"x": {"bandwidth_mbps": 10}, "y": {"bandwidth_mbps": 10}}},
            "latency_ms": {"node": 2, "rack": 2},
        }
    )
    found = run(case, 2e5, 625)
    assert found.latency_ms["mean"] == pytest.approx(2 + 0.8 + 0.8 * (1 + 0.5), rel=0.03)
    assert found.nodes["x"]["link_out"] == pytest.approx(0.5, rel=0.02)


def test_the_uplink_of_a_rack_is_in_use_as_long_as_it_sends() -> None:
    # 62.5 tuples of 1,000 bytes are 0.5 Mbit in a second, over an uplink of 0.8.
    case = hr.case(
        {
            "topology": {
                "components": {
                    "a": {"spout": True, "rate": 62.5, "bytes": 1000, "nodes": ["x"]},
                    "b": {"inputs": {"a": "shuffle"}, "nodes": ["y"]},
                }
            },
            "cluster": {
                "nodes": {"x": {"rack": "r1"}, "y": {"rack": "r2"}},
                "racks": {"r1": {"uplink_mbps": 0.8}},
            },
        }
    )
    found = run(case, 1e5, 62.5)
    assert found.racks["r1"]["uplink_out"] == pytest.approx(0.625, rel=0.02)
    assert found.racks["r1"]["uplink_in"] == 0
    assert "r2" not in found.racks
    assert str(found.summary()["bottleneck"]) == "rack r1: uplink out"


@pytest.mark.parametrize("kind", ["node", "thread"])
def test_throughput_saturates_at_max_rate(kind: str) -> None:
    cluster = {"nodes": {"n": {"cpu": 100 if kind == "node" else 800}}}
    fixed = {"cpu_ms": 1.0, "cpu_fixed": 10}
    case = chain(400, [1.0, 1.0], cluster=cluster, profile={"s0": {"*": fixed}, "s1": {"*": fixed}})
    plan = hr.place(case, by="storm-even")
    limit = plan.report.max_rate
    assert limit is not None
    found = hr.simulate(plan, seconds=60, warm_up=10, rate_factor=1.5 * limit)
    assert found.throughput_per_s.mean == pytest.approx(400 * limit, rel=0.02)
    assert not found.stable
    below = hr.simulate(plan, seconds=60, warm_up=10, rate_factor=0.9 * limit)
    assert below.stable

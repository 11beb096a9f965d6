"""The price of a tuple to another worker, worked out by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headrace.storm.collect import collect_workers
from headrace.storm.messaging import component_rates, price_sending
from headrace.storm.state import describe, price_messages, read_state
from tests.storm.states import cluster, executor, word_count

TRAFFIC = [
    ["sentence.1", "split.1", 100.0, 1000.0],  # in one worker
    ["split.1", "count.1", 300.0, 3000.0],  # to the other worker of the node
    ["split.1", "count.2", 200.0, 2000.0],  # to another node
]
PLACES = {"split.1": ("n1", 6700), "sentence.1": ("n1", 6700), "count.1": ("n1", 6701),
          "count.2": ("n2", 6700)}  # fmt: skip


def running() -> dict[str, Any]:
    topology = word_count(place=("n1", 6700))
    topology["executors"] = [
        executor(row["name"], row["first"], PLACES.get(row["name"], ("n1", 6700)))
        for row in topology["executors"]
    ]
    return topology


def row(
    node: str, port: int, at_s: float, ms: float, topology: str = "wc", **serialised: list[float]
) -> str:
    at = datetime.fromtimestamp(at_s, UTC).isoformat()
    who = {"version": 1, "event_time": at, "topology": topology, "node": node, "port": port}
    return json.dumps({**who, "seconds": 10.0, "messaging_ms": ms, "serialised": serialised})


def price(store: Path, traffic: list[list[Any]], since_ms: float = 0.0) -> float | None:
    state = read_state(cluster(running()))
    return price_sending(store, state, {"traffic": traffic}, since_ms).get("send_cpu_ms")


def gathered(tmp_path: Path, *rows: str) -> Path:
    source, store = tmp_path / "source", tmp_path / "store" / "workers"
    source.mkdir()
    (source / "a.jsonl").write_text("\n".join(rows) + "\n")
    (source / ".half.jsonl").write_text("{")
    assert [f.name for f in collect_workers(source, store, f"{2_000_000:015d}")] == ["a.jsonl"]
    return tmp_path / "store"


def test_all_that_workers_spend_on_messages_is_shared_by_the_tuples_between_them(
    tmp_path: Path,
) -> None:
    # n1:6700 5 ms/s (mean of two windows), n1:6701 2 ms/s, n2:6700 3 ms/s, over 500 tuples/s.
    store = gathered(
        tmp_path,
        row("n1", 6700, 1000, 40), row("n1", 6700, 1010, 60), row("n1", 6701, 1010, 20),
        row("n2", 6700, 1010, 30), row("n2", 6700, 1010, 9999, topology="other"),
    )  # fmt: skip
    assert price(store, TRAFFIC) == pytest.approx(10 / 500)
    # Since 995 s: the first window began at 990.
    assert price(store, TRAFFIC, 995_000) == pytest.approx(11 / 500)
    assert price(store, TRAFFIC, 3_000_000) is None
    assert price(store, TRAFFIC[:1]) is None, "hardly anything is sent"


def test_what_an_executor_serialises_is_part_of_the_price_and_not_of_its_profile(
    tmp_path: Path,
) -> None:
    # A split takes 0.02 ms to serialise a tuple, and 500 of them leave its worker for 100 that come
    # in: 0.1 ms of the 0.25 ms that an input costs it, 10 ms/s in all, beside 10 ms/s of threads.
    store = gathered(tmp_path, row("n1", 6700, 1010, 100, split=[50.0, 1.0], sentence=[9.0, 0.9]))
    profile = {"split": {"*": {"cpu_ms": 0.25, "cpu_fixed": 1.0}}, "sentence": {"*": {"cpu_ms": 1}}}
    measured = {"traffic": TRAFFIC, "profile": profile}
    found = price_sending(store, read_state(cluster(running())), measured)
    assert found["profile"]["split"]["*"] == pytest.approx({"cpu_ms": 0.15, "cpu_fixed": 1.0})
    assert found["profile"]["sentence"] == profile["sentence"], "all it sends stays in its worker"
    assert found["send_cpu_ms"] == pytest.approx((10 + 10) / 500)
    # A cost is never below nothing, and what is not taken out is not added either.
    cheap = {**measured, "profile": {"split": {"*": {"cpu_ms": 0.04}}}}
    found = price_sending(store, read_state(cluster(running())), cheap)
    assert found["profile"]["split"]["*"]["cpu_ms"] == pytest.approx(0, abs=1e-12)
    assert found["send_cpu_ms"] == pytest.approx((10 + 4) / 500)


def test_a_spouts_rate_is_what_it_emits_and_a_bolts_what_it_gets() -> None:
    acks = [["sentence.1", "__acker.1", 100.0], ["__acker.1", "sentence.1", 100.0],
            ["split.1", "__acker.1", 100.0]]  # fmt: skip
    assert component_rates([*TRAFFIC, *acks]) == {
        "sentence": 100.0, "split": 100.0, "count": 500.0, "__acker": 200.0,
    }  # fmt: skip


def test_a_price_that_was_measured_is_the_judges_unless_it_has_one() -> None:
    state = read_state(cluster(running()))
    content = describe(state, {}, {"send_cpu_ms": 0.02}, {})
    assert content["options"]["judge"] == {"send_worker_cpu_ms": 0.02, "send_node_cpu_ms": 0.02}
    assert "options" not in describe(state, {}, {}, {})
    own = {"judge": {"send_node_cpu_ms": 0.5}, "tstorm": {"gamma": 1.5}}
    assert price_messages(own, 0.02) == {
        "judge": {"send_worker_cpu_ms": 0.02, "send_node_cpu_ms": 0.5},
        "tstorm": {"gamma": 1.5},
    }

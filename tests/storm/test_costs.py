"""What executors, messages and workers cost: true costs are found again, and figures by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headrace.model.document import Node
from headrace.storm.collect import collect
from headrace.storm.costs import (
    Load,
    Messages,
    Seen,
    fit_executors,
    fit_workers,
    learn_costs,
    see_plan,
)
from headrace.storm.state import State, describe, price_messages, read_state
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


def worker(node: str, port: int, at_s: float, ms: float, **other: Any) -> str:
    at = datetime.fromtimestamp(at_s, UTC).isoformat()
    who = {"version": 1, "event_time": at, "topology": "wc", "node": node, "port": port}
    return json.dumps({**who, "seconds": 10.0, "messaging_ms": ms, **other})


def task(name: str, at_s: float, cpu_ms: float) -> str:
    at = datetime.fromtimestamp(at_s, UTC).isoformat()
    who = {"version": 1, "event_time": at, "arrival": at, "topology": "wc", "task": name}
    rest = {"component": name.rpartition(".")[0], "node": "n1", "machine_type": ""}
    counts = {"tuples_in": 1, "tuples_out": 1, "cpu_ms": cpu_ms, "queue_length": 0}
    return json.dumps({**who, **rest, **counts, "memory_mb": 0.0})


def gathered(tmp_path: Path, workers: list[str], tasks: list[str] | None = None) -> Path:
    source, store = tmp_path / "source", tmp_path / "store"
    for kind, lines in (("workers", workers), ("tasks", tasks or [])):
        (source / kind).mkdir(parents=True)
        (source / kind / "a.jsonl").write_text("".join(f"{line}\n" for line in lines))
        (source / kind / ".half.jsonl").write_text("{")
    collect(source, store, {}, 2000.0)
    return store


def state_of(topology: dict[str, Any]) -> State:
    return read_state(cluster(topology))


def test_what_a_worker_takes_at_rest_is_told_from_what_messages_take() -> None:
    # 14 ms/s at rest and 0.03 ms a tuple; the thread that looks for messages took 14.
    plan = Seen("a", (), (Messages(1000, 44), Messages(2000, 74)), 14.0)
    assert fit_workers([plan]) == pytest.approx((14, 0.03))
    # Where all carry as much, that thread tells them apart.
    even = Seen("b", (), (Messages(1800, 68),) * 3, 14.0)
    assert fit_workers([even]) == pytest.approx((14, 0.03))
    # Of another plan, more is known: here the thread had work to do as well.
    busy = Seen("c", (), (Messages(1800, 68), Messages(1800, 68)), 30.0)
    quiet = Seen("d", (), (Messages(100, 17), Messages(20, 14.6)), 14.5)
    assert fit_workers([busy, quiet]) == pytest.approx((14, 0.03), rel=0.02)
    assert fit_workers([Seen("e", (), (Messages(40, 20), Messages(40, 20)), 14.0)])[1] is None


def loads(rows: list[tuple[str, float, float]], times: float) -> tuple[Load, ...]:
    """Executors that cost as the truth below says, serialising so many times what is timed."""
    return tuple(
        Load(name, "*", rate, sent, TIMED[name] * sent,
             TRUE[name][0] * rate / 10 + TRUE[name][1] + times * TIMED[name] * sent / 10)
        for name, rate, sent in rows
    )  # fmt: skip


TRUE = {"split": (0.2, 1.0), "count": (0.02, 0.5)}  # milliseconds a tuple, points at rest
TIMED = {"split": 0.02, "count": 0.01}
SPREAD = [("split", 75.0, 400.0)] * 4 + [("count", 500.0, 500.0)] * 3
TOGETHER = [("split", 300.0, 0.0), ("count", 1500.0, 100.0), *[("split", 0.0, 0.0)] * 3]


def profile_of(plan: tuple[Load, ...]) -> dict[str, dict[str, Any]]:
    """As `observe` has it where rates hardly differ: all goes to the tuples."""
    found: dict[str, dict[str, Any]] = {}
    for name in TRUE:
        own = [load for load in plan if load.component == name]
        points, rate = sum(x.points for x in own), sum(x.rate_per_s for x in own)
        found[name] = {"*": {"cpu_ms": 10 * points / rate, "cpu_fixed": 0.0, "windows": 12}}
    return found


def test_under_one_plan_what_was_timed_is_taken_out_of_the_profile() -> None:
    plan = loads(SPREAD, times=1.0)
    guess = profile_of(plan)
    fitted, times = fit_executors(guess, [Seen("a", plan, (), 14.0)])
    assert times == pytest.approx(1, rel=0.1)
    # 0.107 ms of the 0.44 ms that an input costs a split is for 5.3 tuples that leave its worker.
    assert fitted["split"]["*"]["cpu_ms"] == pytest.approx(
        guess["split"]["*"]["cpu_ms"] - 0.107, rel=0.1
    )
    assert fitted["split"]["*"]["windows"] == 12


def test_two_plans_tell_rest_tuples_and_sending_apart() -> None:
    plans = [Seen(str(i), loads(p, times=0.6), (), 14.0) for i, p in enumerate((SPREAD, TOGETHER))]
    fitted, times = fit_executors(profile_of(plans[1].executors), plans)
    assert times == pytest.approx(0.6, rel=0.15)
    for name, (each, rest) in TRUE.items():
        assert fitted[name]["*"]["cpu_ms"] == pytest.approx(each, rel=0.1)
        assert fitted[name]["*"]["cpu_fixed"] == pytest.approx(rest, rel=0.15)


def test_no_cost_is_below_nothing() -> None:
    plan = tuple(Load("split", "*", 100.0, 500.0, 250.0, points) for points in (0.1, 0.2))
    guess = {"split": {"*": {"cpu_ms": 0.01, "cpu_fixed": 0.0}}}
    fitted, times = fit_executors(guess, [Seen("a", plan, (), 0.0)])
    assert times >= 0
    assert min(fitted["split"]["*"]["cpu_ms"], fitted["split"]["*"]["cpu_fixed"]) >= 0


def test_rates_cpu_and_messages_are_those_of_the_places(tmp_path: Path) -> None:
    acks = [["sentence.1", "__acker.1", 100.0], ["__acker.1", "sentence.1", 100.0]]
    store = gathered(
        tmp_path,
        [worker("n1", 6700, 1000, 140, transfer_ms=90, serialised={"split": [50.0, 1.0]}),
         worker("n1", 6701, 1010, 20),
         worker("n1", 6700, 1010, 160, transfer_ms=70), worker("n2", 6700, 1010, 30),
         worker("n2", 6799, 1010, 9999)],
        [task("split.1", at, ms) for at, ms in ((1000, 99.0), (1010, 200.0), (1020, 400.0))],
    )  # fmt: skip
    seen = see_plan(store, state_of(running()), [*TRAFFIC, *acks], 0.0)
    # 600 ms in 20 s; 0.02 ms for each of 500 tuples.
    assert seen.executors == (Load("split", "*", 100.0, 500.0, 10.0, 3.0),)
    assert seen.workers == (Messages(500.0, 15.0), Messages(300.0, 2.0), Messages(200.0, 3.0))
    assert seen.waiting_ms == 8.0
    # Since 995 s: the first window of a worker began at 990.
    later = see_plan(store, state_of(running()), TRAFFIC, 995_000)
    assert Messages(500.0, 16.0) in later.workers


def test_a_spouts_rate_is_what_it_emits(tmp_path: Path) -> None:
    acks = [["sentence.1", "__acker.1", 100.0], ["__acker.1", "sentence.1", 100.0]]
    samples = [task(name, at, 10.0) for name in ("sentence.1", "__acker.1") for at in (1000, 1010)]
    store = gathered(tmp_path, [worker("n1", 6700, 1000, 1)], samples)
    seen = see_plan(store, state_of(running()), [*TRAFFIC, *acks], 0.0)
    assert [load.rate_per_s for load in seen.executors] == [100.0, 100.0]


def test_plans_seen_before_count_until_the_topology_is_submitted_again(tmp_path: Path) -> None:
    rows = [worker("n1", 6700, 1010, 290, transfer_ms=140), worker("n1", 6701, 1010, 230),
            worker("n2", 6700, 1010, 200)]  # fmt: skip
    store, measured = gathered(tmp_path, rows), {"traffic": TRAFFIC}
    first = learn_costs(store, state_of(running()), measured, {})
    assert first["worker_cpu"] == pytest.approx(1.4)
    assert first["carry_cpu_ms"] == pytest.approx(0.03)
    moved = word_count(place=("n1", 6700))
    second = learn_costs(store, state_of(moved), {"traffic": TRAFFIC}, first)
    assert len(second["seen"]) == 2
    assert second["seen"][0] == first["seen"][0]
    assert len(learn_costs(store, state_of(moved), measured, second)["seen"]) == 2, "no new plan"
    other = {**second, "seen": [{**one, "workers": [{"ms": 1}]} for one in second["seen"]]}
    found = learn_costs(store, state_of(moved), measured, other)
    assert len(found["seen"]) == 1, "another version wrote them"
    again = {**moved, "id": "wc-2-200"}
    third = learn_costs(store, state_of(again), measured, second)
    assert len(third["seen"]) == 1
    assert third["carry_cpu_ms"] == second["carry_cpu_ms"], "hardly anything is sent: as it was"
    assert "carry_cpu_ms" not in learn_costs(store, state_of(again), measured, {})


def test_what_a_worker_takes_at_rest_is_taken_on_every_node() -> None:
    known = {"n1": Node.model_validate({"taken": {"cpu": 20}})}
    nodes = describe(state_of(running()), known, {"worker_cpu": 1.4}, {})["cluster"]["nodes"]
    assert {name: node["taken"]["cpu"] for name, node in nodes.items()} == {"n1": 21.4, "n2": 1.4}


def test_a_price_that_was_measured_is_the_judges_unless_it_has_one() -> None:
    state = state_of(running())
    measured = {"own_cpu_ms": 0.01, "carry_cpu_ms": 0.02}
    judged = describe(state, {}, measured, {})["options"]["judge"]
    assert judged == pytest.approx(
        {"send_worker_cpu_ms": 0.05, "send_node_cpu_ms": 0.03, "receive_node_cpu_ms": 0.02}
    )
    assert "options" not in describe(state, {}, {}, {})
    own = {"judge": {"send_node_cpu_ms": 0.5}, "tstorm": {"gamma": 1.5}}
    assert price_messages(own, 0.01, 0.02) == own

"""The loop with Storm as its world, without Storm: states come from here instead of Nimbus."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.control.planning import LoopSettings
from headrace.storm.service import decide
from headrace.storm.world import OnStorm
from tests.storm.states import PORTS, cluster, word_count

pytest.importorskip("pyarrow")
SETTINGS = LoopSettings("traffic", "headrace", interval_s=60.0)


@dataclass
class Trial:
    """A world whose states are written by hand."""

    world: OnStorm
    now: float = 1000.0

    def send(self, *topologies: dict[str, Any], nodes: tuple[str, ...] = ("n1", "n2")) -> None:
        content = cluster(*topologies, nodes=nodes, at_s=self.now)
        (self.world.store / "state.json").write_text(json.dumps(content))

    def follow(self, topology: dict[str, Any]) -> dict[str, Any]:
        """The topology where the plan in force wants it."""
        places = self.world.plans()[topology["id"]]["assignment"]
        rows = [
            {
                **row,
                "supervisor": f"id-{places[row['name']]['node']}",
                "port": PORTS[places[row["name"]]["worker"]],
            }
            for row in topology["executors"]
        ]
        return {**topology, "executors": rows}


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    world = OnStorm(tmp_path)
    found = Trial(world)
    world.clock = lambda: found.now
    return found


def test_a_new_topology_gets_a_plan_at_once(trial: Trial) -> None:
    trial.send(word_count())
    entry = decide(trial.world, SETTINGS)
    assert entry.applied
    assert set(trial.world.plans()) == {"wc-1-100"}
    assert len(trial.world.plans()["wc-1-100"]["assignment"]) == 7
    assert trial.world.history()[-1].reason == "wc has no place yet: 7 executors get one"


def test_a_running_topology_stays_until_there_are_measurements(trial: Trial) -> None:
    trial.send(word_count())
    decide(trial.world, SETTINGS)
    before = trial.world.plans()
    trial.now += 60
    trial.send(trial.follow(word_count()))
    entry = decide(trial.world, SETTINGS)
    assert not entry.applied
    assert "not enough measurements" in entry.reason
    assert trial.world.plans() == before


def test_a_lost_node_is_planned_around_at_once(trial: Trial) -> None:
    trial.send(word_count())
    decide(trial.world, SETTINGS)
    trial.now += 5
    trial.send(word_count(), nodes=("n2",))
    state = trial.world.state()
    assert state is not None
    lost = any(p["node"] == "n1" for p in trial.world.plans()["wc-1-100"]["assignment"].values())
    assert trial.world.needs_plan(state) == lost
    trial.send(word_count(), nodes=("n3",))
    entry = decide(trial.world, SETTINGS)
    assert entry.applied
    places = trial.world.plans()["wc-1-100"]["assignment"].values()
    assert {p["node"] for p in places} == {"n3"}


def test_a_second_topology_leaves_the_first_its_plan_name_where_it_stays(trial: Trial) -> None:
    trial.send(word_count("a"))
    decide(trial.world, SETTINGS)
    first = trial.world.plans()["a-1-100"]
    trial.now += 5
    running = trial.follow(word_count("a"))
    trial.send(running, word_count("b"))
    assert decide(trial.world, SETTINGS).applied
    plans = trial.world.plans()
    assert set(plans) == {"a-1-100", "b-1-100"}
    if plans["a-1-100"]["assignment"] == first["assignment"]:
        assert plans["a-1-100"]["name"] == first["name"]


def test_advice_gives_nimbus_a_reason_instead_of_a_plan(trial: Trial) -> None:
    trial.send(word_count())
    entry = decide(trial.world, LoopSettings("traffic", "headrace", advise=True))
    assert entry.move
    assert not entry.applied
    content = json.loads((trial.world.store / "plans.json").read_text())
    assert content["plans"] == {}
    assert content["refusals"] == {"wc-1-100": "Headrace only advises"}


def test_what_cannot_be_planned_is_refused_in_words_and_the_next_try_waits(trial: Trial) -> None:
    content = word_count()
    for row in content["executors"]:
        row["memory_mb"] = 5000.0  # a supervisor has 2048
    trial.send(content)
    entry = decide(trial.world, SETTINGS)
    assert not entry.applied
    refusals = json.loads((trial.world.store / "plans.json").read_text())["refusals"]
    assert "memory" in refusals["wc-1-100"]
    state = trial.world.state()
    assert state is not None
    assert state.shape == trial.world.seen


def test_a_service_that_starts_again_has_its_plans_and_decisions(trial: Trial) -> None:
    trial.send(word_count())
    decide(trial.world, SETTINGS)
    again = OnStorm(trial.world.store, clock=lambda: trial.now)
    assert again.plans() == trial.world.plans()
    assert len(again.history()) == 1
    state = again.state()
    assert state is not None
    assert not again.needs_plan(state)


def test_a_nimbus_that_is_silent_is_not_planned_for(trial: Trial) -> None:
    trial.send(word_count())
    trial.now += 600
    entry = decide(trial.world, SETTINGS)
    assert not entry.applied
    assert "600 s ago" in entry.reason


def samples(folder: Path, at_s: float, rate: float) -> None:
    """What a worker would have written about ten seconds."""
    from datetime import UTC, datetime

    at = datetime.fromtimestamp(at_s, UTC).isoformat()
    stamp = {"version": 1, "event_time": at, "arrival": at, "topology": "wc"}
    tasks: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    for row in word_count()["executors"]:
        name, n = row["name"], int(rate * 10)
        spout = name.startswith("sentence")
        counts = {"tuples_in": 0 if spout else n, "tuples_out": n, "cpu_ms": n * 0.1}
        kind = {"task": name, "component": name.rpartition(".")[0], "node": "n1"}
        tasks.append({**stamp, **kind, "machine_type": "", **counts, "queue_length": 0,
                      "memory_mb": 0.0})  # fmt: skip
    for source, target in (("sentence", "split"), ("split", "count")):
        for i in (1, 2):
            ends = {"from_task": f"{source}.{i}", "to_task": f"{target}.{i}"}
            edges.append({**stamp, **ends, "tuples": int(rate * 10), "bytes": int(rate * 500)})
    for kind, rows in (("tasks", tasks), ("edges", edges)):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / kind / f"w-{int(at_s)}.jsonl").write_text(text)


def test_measurements_after_a_change_are_planned_on(trial: Trial, tmp_path: Path) -> None:
    trial.world.source = tmp_path / "workers"
    trial.send(word_count())
    decide(trial.world, SETTINGS)
    running = trial.follow(word_count())
    trial.now += 35
    for _ in range(8):
        trial.now += 10
        samples(trial.world.source, trial.now, 100.0)
        trial.world.gather()
    trial.send(running)
    entry = decide(trial.world, SETTINGS)
    assert "not enough measurements" not in entry.reason
    assert entry.rate_per_s == pytest.approx(200, rel=0.02)
    assert not list((trial.world.source / "tasks").glob("*.jsonl"))
    assert "inter_node_traffic" in entry.measured


def test_the_price_of_messages_is_kept_while_hardly_any_are_sent(
    trial: Trial, tmp_path: Path
) -> None:
    trial.world.source = tmp_path / "workers"
    trial.send(word_count())
    decide(trial.world, SETTINGS)
    running = trial.follow(word_count())
    (trial.world.store / "measured.json").write_text('{"own_cpu_ms": 0.01, "carry_cpu_ms": 0.02}')
    trial.now += 35
    for _ in range(8):
        trial.now += 10
        samples(trial.world.source, trial.now, 100.0)  # which says nothing of messages
        trial.world.gather()
    trial.send(running)
    state = trial.world.state()
    assert state is not None
    fresh, measured = trial.world.measure(state)
    assert fresh
    assert (measured["own_cpu_ms"], measured["carry_cpu_ms"]) == (0.01, 0.02)

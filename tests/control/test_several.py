"""Two topologies on one cluster: one problem, one plan, and a history for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from headrace.control.draining import set_drained
from headrace.control.history import entries
from headrace.control.loop import step
from headrace.control.on_spark import OnSpark
from headrace.control.planning import LoopSettings
from headrace.control.several import (
    Together,
    count_moved,
    join_placements,
    own_section,
    plan_first_together,
    split_placement,
)
from headrace.errors import Infeasible
from headrace.model.cluster import nodes_of
from headrace.model.document import FORMAT, Node
from headrace.model.read import validated
from headrace.model.topology import Topology
from headrace.run.apps import load, topology_of
from headrace.run.batches import Batches, Settings
from headrace.run.placement import PlanInForce
from headrace.run.rehearsal import rehearse_batch

NODE = {"cpu": 1000, "cores": 10, "memory_mb": 4096, "slots": 2, "bandwidth_mbps": 100}
CLUSTER = validated(
    {"format": FORMAT, "cluster": {"nodes": {f"n{i}": NODE for i in range(1, 4)}}}, {}
)
NODES = nodes_of(CLUSTER)
ROWS = pa.table({"value": pa.array(np.arange(600))})
SPOUT = {"word-count": "sentence", "exclamation": "word"}


@pytest.fixture
def topologies(tmp_path: Path) -> list[Topology]:
    return [
        topology_of(load("word-count"), {"tasks": 4, "out": str(tmp_path / "counts")}),
        topology_of(load("exclamation"), {"out": str(tmp_path / "words")}),
    ]


class Cluster:
    """Both topologies, run in this process, as the loop sees them."""

    def __init__(self, topologies: list[Topology], folder: Path) -> None:
        first = plan_first_together(topologies, NODES, "storm-even")
        self.now, self.number = 0.0, 0
        self.plans = {t.name: PlanInForce(t, first[t.name]) for t in topologies}
        self.batches = {
            t.name: Batches(
                t, self.plans[t.name],
                Settings(folder / t.name, telemetry=folder / t.name / "telemetry"),
            )
            for t in topologies
        }  # fmt: skip
        self.parts = {
            t.name: OnSpark(
                cast(Any, None), t, CLUSTER, self.plans[t.name], folder / t.name / "telemetry",
                folder / t.name, lambda: set(NODES), window_s=1,
            )
            for t in topologies
        }  # fmt: skip
        self.world = Together(list(self.parts.values()), folder / "both", clock=lambda: self.now)

    def run(self, count: int) -> None:
        for _ in range(count):
            for name, batches in self.batches.items():
                done = rehearse_batch(batches, self.number, {SPOUT[name]: ROWS})
                assert done is not None
                self.parts[name].add_batch(done)
            self.number += 1
            self.now += 60.0


def test_one_plan_moves_both_and_each_keeps_its_own_history(
    topologies: list[Topology], tmp_path: Path
) -> None:
    cluster = Cluster(topologies, tmp_path)
    before = {name: plan.current() for name, plan in cluster.plans.items()}
    cluster.run(4)
    settings = LoopSettings(objective="traffic", interval_s=60.0)
    entry = step(cluster.world, settings)
    assert entry.applied, entry.reason
    for name, plan in cluster.plans.items():
        now = plan.current()
        assert now is not None
        assert now is not before[name]
        assert now.name == "plan-1"
        [own] = entries(tmp_path / name)
        assert own.applied
        assert own.reason.startswith(entry.reason)
        other = next(n for n in cluster.plans if n != name)
        assert own.reason.endswith(f"(one decision, with {other})")
        # Its own components only, its own input, and what is predicted of it alone.
        assert set(own.plans[own.plan]["placement"]) == set(now.tasks)
        assert 0 < own.rate_per_s < entry.rate_per_s
        assert own.after["inter_node_traffic"] < own.before["inter_node_traffic"]
    [shared] = entries(tmp_path / "both")
    own_before, own_after = (
        sum(entries(tmp_path / name)[0].__getattribute__(which)["inter_node_traffic"]
            for name in cluster.plans)
        for which in ("before", "after")
    )  # fmt: skip
    assert own_before == pytest.approx(shared.before["inter_node_traffic"])
    assert own_after == pytest.approx(shared.after["inter_node_traffic"])
    # A slot holds one topology: it is one process.
    slots = [set(p.places.values()) for plan in cluster.plans.values() if (p := plan.current())]
    assert not slots[0] & slots[1]
    cluster.run(2)
    again = step(cluster.world, settings)
    assert not again.applied
    assert [e.applied for e in entries(tmp_path / "exclamation")] == [True, False]


def test_a_topology_that_has_ended_is_planned_no_more(
    topologies: list[Topology], tmp_path: Path
) -> None:
    cluster = Cluster(topologies, tmp_path)
    cluster.run(4)
    cluster.world.over.add("exclamation")
    entry = step(cluster.world, LoopSettings(objective="traffic", interval_s=60.0))
    assert entry.applied
    assert set(entry.plans[entry.plan]["tasks"]) == {
        f"word-count/{name}" for name in ("sentence", "split", "count")
    }
    assert entries(tmp_path / "exclamation") == []


def test_a_node_is_emptied_of_all_topologies(topologies: list[Topology], tmp_path: Path) -> None:
    cluster = Cluster(topologies, tmp_path)
    cluster.run(4)
    set_drained(tmp_path / "word-count", frozenset({"n2"}))
    entry = step(cluster.world, LoopSettings(objective="traffic", interval_s=60.0))
    assert entry.applied, entry.reason
    for plan in cluster.plans.values():
        placed = plan.current()
        assert placed is not None
        assert "n2" not in {node for node, _ in placed.places.values()}


def test_a_plan_that_one_topology_cannot_take_changes_none(
    topologies: list[Topology], tmp_path: Path
) -> None:
    def refuse(_: object) -> None:
        raise Infeasible("an executor is gone")

    cluster = Cluster(topologies, tmp_path)
    cluster.run(4)
    before = cluster.plans["word-count"].current()
    cluster.plans["exclamation"].check = refuse
    entry = step(cluster.world, LoopSettings(objective="traffic", interval_s=60.0))
    assert not entry.applied
    assert entry.reason == "nothing is moved: an executor is gone"
    assert cluster.plans["word-count"].current() is before


def test_a_topology_without_room_is_named(topologies: list[Topology]) -> None:
    small = {"n1": Node.model_validate({**NODE, "slots": 1})}
    with pytest.raises(Infeasible, match="no room for topology"):
        plan_first_together(topologies, small, "storm-even")


def test_shares_of_a_plan_come_together_again(topologies: list[Topology]) -> None:
    first = plan_first_together(topologies, NODES, "headrace")
    joined = join_placements(first, "headrace")
    assert split_placement(joined, list(first)) == first
    section = {"tasks": {"a/x": 2, "b/y": 1},
               "placement": {"a/x": [["n1", 0, 1, 2]], "b/y": [["n1", 1, 1, 1]]}}  # fmt: skip
    own = own_section(section, "a")
    assert own == {"tasks": {"x": 2}, "placement": {"x": [["n1", 0, 1, 2]]}}
    moved = {"tasks": {"x": 3}, "placement": {"x": [["n1", 0, 1, 1], ["n2", 0, 2, 3]]}}
    assert count_moved(own, moved) == 2

"""The loop on Spark: what a run measured becomes a problem, and the next batch a better plan."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from headrace.checks.problems import problem_of
from headrace.cli import main
from headrace.control.beside import background, decide_after_batches
from headrace.control.on_spark import (
    OnSpark,
    placement_from_plan,
    problem_on_spark,
    with_inventory,
    with_measured_pairs,
)
from headrace.control.planning import LoopSettings
from headrace.demo import NODES, fleet_cluster
from headrace.errors import InvalidInput
from headrace.model.cluster import nodes_of
from headrace.model.document import Node
from headrace.model.problem import UNPLACED
from headrace.model.topology import Topology
from headrace.planner import place
from headrace.run.apps import load, topology_of
from headrace.run.batches import BatchDone, Settings
from headrace.run.placement import Placement, PlanInForce, check_cores
from headrace.run.rehearsal import rehearse
from headrace.run.task import where_am_i

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLUSTER = fleet_cluster()
CORES = {name: cpu // 100 for name, cpu in NODES.items()}


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    return topology_of(load("word-count"), {"tasks": 6, "out": str(tmp_path / "out")})


def placed(topology: Topology, by: str) -> Placement:
    nodes = nodes_of(CLUSTER)
    return placement_from_plan(place(problem_on_spark(topology, nodes, {}, None), by), by, nodes)


def test_a_node_takes_no_more_tasks_of_a_stage_than_it_has_cores(topology: Topology) -> None:
    plan = placed(topology, "headrace")
    check_cores(topology, plan, CORES)
    per_stage = Counter((component, node) for (component, _), (node, _) in plan.places.items())
    assert all(count <= CORES[node] for (_, node), count in per_stage.items())


def test_a_plan_goes_back_and_forth_by_names_and_lost_nodes_leave_tasks_nowhere(
    topology: Topology,
) -> None:
    plan, nodes = placed(topology, "storm-even"), nodes_of(CLUSTER)
    current = problem_on_spark(topology, nodes, {}, plan).current
    assert current is not None
    assert (current.node != UNPLACED).all()
    fewer = problem_on_spark(
        topology, {name: node for name, node in nodes.items() if name != "small-2"}, {}, plan
    ).current
    assert fewer is not None
    stood_there = [where == "small-2" for where, _ in plan.places.values()]
    assert int((fewer.node == UNPLACED).sum()) == sum(stood_there) > 0


def test_a_plan_that_leaves_a_task_out_is_refused(topology: Topology) -> None:
    planned = place(problem_on_spark(topology, nodes_of(CLUSTER), {}, None), "storm-even")
    assert planned.assignment is not None
    planned.assignment.node.flags.writeable = True
    planned.assignment.node[0] = UNPLACED
    with pytest.raises(InvalidInput, match="does not place every task"):
        placement_from_plan(planned, "plan", {})


def test_what_was_measured_leads_to_a_better_plan_for_the_next_batch(
    spark: SparkSession, topology: Topology, tmp_path: Path
) -> None:
    plan = PlanInForce(topology, placed(topology, "storm-even"))
    time = iter(np.arange(0.0, 1000.0, 30.0).tolist())
    world = OnSpark(
        spark,
        topology,
        CLUSTER,
        plan,
        tmp_path / "telemetry",
        tmp_path,
        lambda: set(NODES),
        window_s=1,
        clock=lambda: next(time),
    )
    said: list[str] = []
    decide = decide_after_batches(
        world,
        LoopSettings(objective="traffic", interval_s=60.0, rule_options={"dwell_s": 0}),
        lambda entry: said.append(entry.reason),
    )
    plans: list[str | None] = []

    def listen(done: BatchDone) -> None:
        plans.append(done.plan)
        decide(done)

    # Without Spark all tasks run here; the settings say that this is one node.
    settings = Settings(
        tmp_path / "run",
        hosts={"large": where_am_i()[0]},
        telemetry=tmp_path / "telemetry",
        listen=listen,
    )
    rows = pa.table({"value": pa.array(np.arange(3000))})
    rehearse(topology, [{"sentence": rows}] * 4, settings, plan)
    assert said[0].startswith("traffic between nodes falls from")
    assert plans[0] == "storm-even"
    assert plans[-1] == "plan-1"
    [first, *_] = world.history()
    assert first.applied
    shown = CliRunner().invoke(main, ["history", str(tmp_path), "--json"])
    assert json.loads(shown.stdout)["decisions"][0]["reason"] == first.reason


def test_what_is_done_aside_is_done_one_at_a_time_and_its_failure_is_not_lost() -> None:
    hold, done = threading.Event(), list[str]()

    def slow() -> None:
        hold.wait(10)
        done.append("slow")

    def fails() -> None:
        raise InvalidInput("no telemetry")

    with background() as do:
        assert do(slow)
        assert not do(fails)
        assert not done
        hold.set()
    assert done == ["slow"]
    with pytest.raises(InvalidInput, match="no telemetry"), background() as do:
        do(fails)


def test_a_store_without_decisions_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["history", str(tmp_path)])
    assert result.exit_code == 1
    assert "holds no decisions" in result.stderr


def test_measured_pairs_divide_a_stream_as_they_were_measured() -> None:
    components = {
        "s": {"spout": True, "rate": 100, "tasks": 1, "bytes": 8},
        "b": {"tasks": 2, "inputs": {"s": "shuffle"}},
        "c": {"tasks": 1, "inputs": {"b": "shuffle"}},
    }
    nodes = {"n": {"cpu": 400}}
    problem = problem_of({"topology": {"components": components}, "cluster": {"nodes": nodes}})
    # Averages of half the time: 30 and 10 of 100 tuples/s. What went to c was not measured.
    rows = [["s.1", "b.1", 30.0, 240.0], ["s.1", "b.2", 10.0, 80.0], ["s.1", "gone.1", 5.0, 1.0]]
    found = with_measured_pairs(problem, rows)
    assert found.pairs.tuples_per_s.tolist() == pytest.approx([75, 25])
    assert found.pairs.bytes_per_s.tolist() == pytest.approx([600, 200])
    assert [(s.source, s.target) for s in found.streams] == [(1, 2)]
    assert with_measured_pairs(problem, []) is problem


def test_agents_fill_in_what_the_cluster_file_does_not_say() -> None:
    stated = {"a": Node(cpu=200.0, ghz=3.0), "b": Node()}
    inventory = {"a": {"cpu": 1600, "ghz": 2.0, "cores": 16, "power": {"node": 1}}, "x": {"ghz": 9}}
    found = with_inventory(stated, inventory)
    assert (found["a"].cpu, found["a"].ghz, found["a"].cores) == (200, 3, 16)
    assert found["b"] == Node(), "unknown is unknown"


def test_nodes_that_joined_are_planned_on_once_they_have_an_executor(tmp_path: Path) -> None:
    topology = topology_of(load("word-count"), {"tasks": 2, "out": str(tmp_path)})
    plan, up = PlanInForce(topology, placed(topology, "storm-even")), {"large"}
    joined = {"new": Node(cpu=100.0)}
    nobody: Any = None  # no session is asked
    world = OnSpark(
        nobody, topology, CLUSTER, plan, tmp_path, tmp_path, lambda: up, joined=lambda: joined
    )
    assert list(world.nodes()) == ["large"]
    up.add("new")
    assert list(world.nodes()) == ["large", "new"]

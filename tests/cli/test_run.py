"""`headrace run` in local mode, and `headrace export`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner, Result

from headrace.cli import main
from headrace.errors import InvalidInput
from headrace.run.apps import load, topology_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAN = """
format: headrace/1
topology:
  components:
    spout: {spout: true, tasks: 2, rate: 100, cpu: 50, memory_mb: 100}
    work: {tasks: 4, inputs: {spout: shuffle}, cpu: 80, memory_mb: 1000}
cluster:
  nodes:
    a: {cpu: 800, memory_mb: 8000}
    b: {cpu: 400, memory_mb: 4000}
    c: {cpu: 400, memory_mb: 4000}
    idle: {cpu: 400, memory_mb: 4000}
plan:
  assignment:
    spout.1: {node: a}
    spout.2: {node: a}
    work.1: {node: a}
    work.2: {node: a}
    work.3: {node: b}
    work.4: {node: c}
"""
BAD = """
from headrace.run import Topology
from headrace.run.sources import numbers

def refuse(table):
    raise ValueError("never")

def topology():
    return Topology("bad").spout("numbers", numbers(5)).bolt("refuse", refuse, inputs={"numbers":
    "shuffle"}, tasks=2)
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_word_count_equals_the_batch_computation(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = [
        "--option",
        f"out={out}",
        "--option",
        "sentences=300",
        "--option",
        "seed=7",
        "--option",
        "tasks=2",
    ]
    result = run(
        "run", "word-count", "--batches", "2", "--checkpoint", tmp_path / "run", *options, "--json"
    )
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)["run"]
    assert (told["batches"], told["tuples"], told["misplaced"], told["quarantined"]) == (
        2,
        600,
        0,
        0,
    )
    app = load("word-count")
    assert app.counted(str(out)) == app.expected(2, sentences=300, seed=7)
    assert app.expected(2, sentences=300, seed=8) != app.expected(2, sentences=300, seed=7)


def test_a_component_that_raises_is_named_in_the_error(spark: SparkSession, tmp_path: Path) -> None:
    app = tmp_path / "bad.py"
    app.write_text(BAD)
    result = run("run", app, "--checkpoint", tmp_path / "run", "--json")
    assert result.exit_code == 1
    error = json.loads(result.stdout)["error"]
    assert (error["kind"], error["task"]) == ("bolt-failed", "refuse.1")
    assert (
        "component `refuse`, task refuse.1, batch 0: ValueError: never (bad.py:6)"
        in error["message"]
    )
    assert "--on-error quarantine" in error["fix"]


def test_the_topology_of_an_application_can_be_planned(tmp_path: Path) -> None:
    described = run("run", "word-count", "--describe", "--option", "tasks=3")
    assert described.exit_code == 0
    components = yaml.safe_load(described.stdout)["topology"]["components"]
    assert {name: c["tasks"] for name, c in components.items()} == {
        "sentence": 2,
        "split": 3,
        "count": 3,
    }


def test_wrong_applications_and_options_are_named(tmp_path: Path) -> None:
    assert "did you mean `word-count`?" in run("run", "word-cuont").stderr
    assert "no such file" in run("run", tmp_path / "none.py").stderr
    assert (
        "no option `task` (did you mean `tasks`?)"
        in run("run", "word-count", "--option", "task=3").stderr
    )
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(InvalidInput, match="has no function `topology`"):
        topology_of(load(str(tmp_path / "empty.py")), {})
    assert run("run", "word-count", "--fleet", "x", "--master", "y").exit_code == 2
    assert "no fleet is up" in run("fleet", "status", "--folder", tmp_path).stderr


def test_a_plan_without_cores_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object) -> None:
        pytest.fail("a fleet was started")

    monkeypatch.setattr("headrace.control.live.fleet_for", start)
    cluster, plan = tmp_path / "cluster.yaml", tmp_path / "plan.json"
    cluster.write_text("format: headrace/1\ncluster:\n  nodes:\n    a: {cpu: 200}\n")
    places = [
        f"{name}.{n}"
        for name, count in (("sentence", 1), ("split", 3), ("count", 1))
        for n in range(1, count + 1)
    ]
    plan.write_text(
        json.dumps(
            {
                "format": "headrace/1",
                "plan": {"assignment": {task: {"node": "a"} for task in places}},
            }
        )
    )
    result = run("run", "word-count", "--fleet", cluster, "--plan", plan)
    assert result.exit_code == 1
    assert (
        "runs 3 tasks at once on node a (split.1, split.2, split.3), which has 2 cores"
        in result.stderr
    )
    assert "--crowded" in result.stderr
    plan.write_text(plan.read_text().replace('"a"', '"b"'))
    assert (
        "puts sentence.1 on node b, which is not there; there are: a"
        in run("run", "word-count", "--fleet", cluster, "--plan", plan).stderr
    )


def test_a_master_that_is_none_is_refused() -> None:
    assert (
        "`nowhere` is no master; one looks like spark://host:7077"
        in run("run", "word-count", "--master", "nowhere").stderr
    )
    told = run("run", "word-count", "--master", "spark://127.0.0.1:1").stderr
    assert "spark://127.0.0.1:1 cannot be reached" in told
    assert "headrace fleet up" in told


def exported(kind: str, tmp_path: Path) -> list[Any]:
    (tmp_path / "plan.yaml").write_text(PLAN)
    result = run("export", kind, tmp_path / "plan.yaml")
    assert result.exit_code == 0, result.output
    return list(yaml.safe_load_all(result.stdout))


def test_export_spark_gives_counts_and_the_largest_shape(tmp_path: Path) -> None:
    (settings,) = exported("spark", tmp_path)
    # a: 2 x 50 + 2 x 80 = 260 points and 2,200 MB; b and c: 80 points and 1,000 MB, of which Spark
    # makes 1,024.
    assert settings["executors"] == [
        {"node": "a", "cores": 3, "memory_mb": 2200, "tasks": 4},
        {"node": "b", "cores": 1, "memory_mb": 1024, "tasks": 1},
        {"node": "c", "cores": 1, "memory_mb": 1024, "tasks": 1},
    ]
    conf = settings["conf"]
    assert (
        conf["spark.executor.instances"],
        conf["spark.executor.cores"],
        conf["spark.executor.memory"],
    ) == ("3", "3", "2200m")
    assert conf["spark.sql.shuffle.partitions"] == "6"
    assert "--conf spark.executor.cores=3" in settings["spark_submit"]
    assert len(shlex.split(settings["spark_submit"])) == 1 + 2 * len(conf)


def test_export_kubernetes_gives_a_pod_per_shape_and_its_nodes(tmp_path: Path) -> None:
    large, small = exported("kubernetes", tmp_path)
    assert large["spec"]["containers"][0]["resources"]["requests"] == {
        "cpu": "3",
        "memory": "2584Mi",
    }  # with Spark's 384 MB beside the heap
    affinity = small["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert affinity["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["b", "c"]
    assert small["metadata"]["annotations"]["headrace/executors"] == "2"


def test_export_needs_a_plan(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(PLAN[: PLAN.index("plan:")])
    assert "no plan to export" in run("export", "spark", tmp_path / "app.yaml").stderr

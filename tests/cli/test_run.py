"""`headrace run` in local mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from click.testing import CliRunner, Result

from headrace.cli import main
from headrace.errors import InvalidInput
from headrace.run.apps import load, topology_of
from headrace.run.state import VERSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


def test_a_checkpoint_of_another_topology_is_refused_before_anything_starts(
    tmp_path: Path,
) -> None:
    about = {"version": VERSION, "run": "x", "topology": "another"}
    (tmp_path / "run").write_text(json.dumps(about))
    result = run("run", "word-count", "--checkpoint", tmp_path)
    assert result.exit_code == 1
    first, *rest = result.stderr.splitlines()
    assert first == (
        f"headrace: {tmp_path}: is a run of the topology `another`, and this is `word-count`"
    )
    assert rest == ["  what would help: name another folder (--checkpoint)"]


def test_several_applications_are_one_file_to_plan_and_have_options_of_their_own() -> None:
    several = ("run", "word-count", "exclamation", "--describe")
    described = run(*several, "--option", "word-count:tasks=3", "--option", "seed=4")
    assert described.exit_code == 0, described.stderr
    topologies = yaml.safe_load(described.stdout)["topologies"]
    assert [one["name"] for one in topologies] == ["word-count", "exclamation"]
    assert topologies[0]["components"]["split"]["tasks"] == 3
    assert all(one["core_per_task"] for one in topologies)
    wrong = run(*several, "--option", "flight:tasks=3")
    assert wrong.exit_code == 2
    assert "is for flight, which is not run" in wrong.stderr
    assert "no option `tasks`" in run(*several, "--option", "tasks=3").stderr
    twice = run("run", "word-count", "word-count", "--describe")
    assert "two applications make a topology called word-count" in twice.stderr


def test_several_topologies_have_no_batch_in_common(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("format: headrace/1\ncluster:\n  nodes:\n    a: {cpu: 200}\n")
    command = ["run", "word-count", "exclamation", "--fleet", cluster, "--adaptive"]
    refused = run(*command, "--objective", "batch")
    assert refused.exit_code == 2
    assert "several topologies have no batch in common" in refused.stderr


def test_two_applications_run_beside_each_other(spark: SparkSession, tmp_path: Path) -> None:
    counts, words = tmp_path / "counts", tmp_path / "words"
    options = [
        f"word-count:out={counts}", "word-count:sentences=200", "word-count:tasks=2",
        f"exclamation:out={words}", "exclamation:per_batch=100",
    ]  # fmt: skip
    given = [word for option in options for word in ("--option", option)]
    command = ["run", "word-count", "exclamation", "--batches", "2", "--checkpoint", tmp_path]
    result = run(*command, *given, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)["runs"]
    assert {name: one["tuples"] for name, one in told.items()} == {
        "word-count": 400,
        "exclamation": 200,
    }
    assert load("word-count").counted(str(counts)) == load("word-count").expected(2, sentences=200)
    found = load("exclamation")
    assert found.result(str(words), 2) == found.expected(2, per_batch=100)

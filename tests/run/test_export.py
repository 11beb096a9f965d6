"""A plan for those who start executors: it fits the nodes, and Kubernetes takes it as it is."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner, Result

from headrace.cli import main
from tests.run.kubernetes_forms import POD, REQUIRED, SPARK_APPLICATION

# a: 2 x 50 + 2 x 80 = 260 points and 2,200 MB; b and c: 80 points and 1,000 MB, of which Spark
# makes 1,024. All executors of an application are as large as the largest: 3 cores, 2,200 MB of
# heap and 384 beside it.
PLAN = """
format: headrace/1
topology:
  name: Words & Counts
  components:
    sentence: {spout: true, tasks: 2, cpu: 50, memory_mb: 100}
    count: {tasks: 4, inputs: {sentence: shuffle}, cpu: 80, memory_mb: 1000}
cluster: {nodes: {a: {cpu: 400, memory_mb: 4000}, b: {cpu: 300, memory_mb: 2584}, c: {cpu: 400}}}
plan:
  assignment:
    sentence.1: {node: a}
    sentence.2: {node: a}
    count.1: {node: a}
    count.2: {node: a}
    count.3: {node: b}
    count.4: {node: c}
"""
TWO = """
format: headrace/1
topologies:
  - {name: one, components: {s: {spout: true, tasks: 2, cpu: 100, memory_mb: 600}}}
  - {name: two, components: {s: {spout: true, tasks: 1, cpu: 100, memory_mb: 600}}}
cluster: {nodes: {a: {cpu: 200, memory_mb: 3000}, b: {cpu: 200, memory_mb: 3000}}}
plan: {assignment: {one/s.1: {node: a}, one/s.2: {node: b}, two/s.1: {node: b, worker: 1}}}
"""


def export(tmp_path: Path, text: str, *arguments: str) -> Result:
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    return CliRunner().invoke(main, ["export", arguments[0], str(file), *arguments[1:]])


def documents(tmp_path: Path, text: str, *arguments: str) -> list[Any]:
    result = export(tmp_path, text, *arguments)
    assert result.exit_code == 0, result.output
    return list(yaml.safe_load_all(result.stdout))


def test_spark_gives_counts_and_the_largest_shape(tmp_path: Path) -> None:
    (settings,) = documents(tmp_path, PLAN, "spark")
    assert settings["executors"] == [
        {"node": "a", "cores": 3, "memory_mb": 2200, "tasks": 4},
        {"node": "b", "cores": 1, "memory_mb": 1024, "tasks": 1},
        {"node": "c", "cores": 1, "memory_mb": 1024, "tasks": 1},
    ]
    conf = settings["conf"]
    assert conf["spark.executor.instances"] == "3"
    assert conf["spark.executor.cores"] == "3"
    assert (conf["spark.executor.memory"], conf["spark.executor.memoryOverhead"]) == (
        "2200m",
        "384m",
    )
    assert conf["spark.sql.shuffle.partitions"] == "6"
    assert len(shlex.split(settings["spark_submit"])) == 1 + 2 * len(conf)


def test_an_application_is_one_pod_template_on_the_plans_nodes(tmp_path: Path) -> None:
    (pod,) = documents(tmp_path, PLAN, "kubernetes")
    jsonschema.validate(pod, POD)
    asked = pod["spec"]["containers"][0]["resources"]["requests"]
    assert asked == {"cpu": "3", "memory": "2584Mi"}
    term = pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"][0]
    assert term["matchExpressions"][0]["values"] == ["a", "b", "c"]
    assert pod["metadata"]["name"] == "words-counts"
    assert pod["metadata"]["annotations"]["headrace/executors"] == "3"


def test_the_operators_form_says_the_same(tmp_path: Path) -> None:
    (app,) = documents(tmp_path, PLAN, "kubernetes", "--form", "operator", "--image", "x/spark:4.1")
    jsonschema.validate(app, SPARK_APPLICATION)
    executor = app["spec"]["executor"]
    assert (executor["instances"], executor["cores"]) == (3, 3)
    assert (executor["memory"], executor["memoryOverhead"]) == ("2200m", "384m")
    assert app["spec"]["sparkVersion"] == "4.1"
    (pod,) = documents(tmp_path, PLAN, "kubernetes")
    assert executor["affinity"] == pod["spec"]["affinity"]


def test_the_schemas_refuse_what_kubernetes_would(tmp_path: Path) -> None:
    (pod,) = documents(tmp_path, PLAN, "kubernetes")
    (app,) = documents(tmp_path, PLAN, "kubernetes", "--form", "operator")
    app["spec"]["executor"]["core"] = 3
    pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = "2584MB"
    for wrong, schema in ((app, SPARK_APPLICATION), (pod, POD)):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_every_topology_is_an_application_of_its_own(tmp_path: Path) -> None:
    pods = documents(tmp_path, TWO, "kubernetes")
    assert [pod["metadata"]["name"] for pod in pods] == ["one", "two"]
    for pod in pods:
        jsonschema.validate(pod, POD)
    settings = json.loads(export(tmp_path, TWO, "spark", "--json").stdout)
    assert set(settings["applications"]) == {"one", "two"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # One megabyte less than heap and overhead; half a core less than three.
        (PLAN.replace("2584", "2583"), "node b cannot hold the executor of `Words & Counts`"),
        (PLAN.replace("b: {cpu: 300", "b: {cpu: 250"), "cpu needed 300, free 250"),
        # Each fits alone; together they need 2 x (1024 + 384).
        (TWO.replace("b: {cpu: 200, memory_mb: 3000}", "b: {cpu: 200, memory_mb: 2800}"), "2816"),
    ],
)
def test_what_does_not_fit_a_node_is_refused(tmp_path: Path, text: str, said: str) -> None:
    for kind in ("spark", "kubernetes"):
        result = export(tmp_path, text, kind)
        assert (result.exit_code, result.stdout) == (1, "")
        assert said in result.stderr


def test_a_plan_is_needed(tmp_path: Path) -> None:
    assert "no plan to export" in export(tmp_path, PLAN[: PLAN.index("plan:")], "spark").stderr

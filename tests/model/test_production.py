"""The importer of production clusters."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import headrace as hr
from headrace.cli import main
from headrace.errors import InvalidInput
from headrace.model.build import build
from headrace.model.production import production
from headrace.model.read import read

CLUSTER: dict[str, Any] = {
    "source": "made up for this test",
    "cpu_unit": "100 = one core",
    "nodes": [
        {"id": "r0n0", "rack": "r0", "cpu": 400, "memory_mb": 4096.5, "slots": 4},
        {"id": "r1n0", "rack": "r1", "cpu": 200, "memory_mb": 2048, "slots": 2},
    ],
    "topologies": [
        {
            "name": "clicks",
            "priority": 29,
            "worker_max_heap_mb": 2048.0,
            "components": [
                {"id": "count", "kind": "bolt", "tasks": 3, "cpu": 30, "memory_mb": 256, "inputs": [
                    {"from": "read", "stream": "default", "grouping": "fields"},
                    {"from": "read", "stream": "tick", "grouping": "all"},
                    {"from": "clean", "stream": "default", "grouping": "custom_serialized"},
                ]},
                {"id": "read", "kind": "spout", "tasks": 4, "cpu": 100, "memory_mb": 512,
                 "inputs": []},
                {"id": "clean", "kind": "bolt", "tasks": 2, "cpu": 10.0, "memory_mb": 128,
                 "inputs": [
                    {"from": "count", "stream": "back", "grouping": "direct"},
                    {"from": "read", "stream": "default", "grouping": "local_or_shuffle"},
                ]},
            ],
        },
        {"name": "idle", "priority": 2, "components": [
            {"id": "read", "kind": "bolt", "tasks": 1, "cpu": 1, "memory_mb": 1, "inputs": []},
        ]},
    ],
}  # fmt: skip


def imported(tmp_path: Path, content: object = CLUSTER) -> dict[str, Any]:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(content, indent=1))
    return production(path)


def test_a_production_cluster_becomes_topologies_and_nodes(tmp_path: Path):
    document = imported(tmp_path)
    assert document["cluster"]["nodes"]["r0n0"] == {
        "rack": "r0",
        "cpu": 400,
        "memory_mb": 4096.5,
        "slots": 4,
    }
    clicks, idle = document["topologies"]
    assert {key: clicks[key] for key in ("name", "priority", "worker_max_heap_mb")} == {
        "name": "clicks", "priority": 29, "worker_max_heap_mb": 2048,
    }  # fmt: skip
    assert clicks["components"]["read"] == {
        "spout": True,
        "rate": 4,
        "tasks": 4,
        "cpu": 100,
        "memory_mb": 512,
    }
    assert clicks["components"]["clean"] == {
        "tasks": 2,
        "cpu": 10,
        "memory_mb": 128,
        "inputs": {
            "count": [{"stream": "back", "grouping": "direct"}],
            "read": [{"stream": "default", "grouping": "local-or-shuffle"}],
        },
    }
    assert idle == {
        "name": "idle",
        "priority": 2,
        "components": {"read": {"tasks": 1, "cpu": 1, "memory_mb": 1}},
    }


def test_every_stream_carries_one_tuple_per_source_task_and_none_is_passed_on(tmp_path: Path):
    out = tmp_path / "out.yaml"
    out.write_text(yaml.safe_dump(imported(tmp_path), sort_keys=False))
    problem = build(read([out]))
    names = problem.components
    carried = {(names[s.source], names[s.target], s.name): s.tuples_per_s for s in problem.streams}
    assert carried == {
        ("clicks/read", "clicks/count", "default"): 4,
        ("clicks/read", "clicks/count", "tick"): 4,
        ("clicks/clean", "clicks/count", "default"): 2,
        ("clicks/count", "clicks/clean", "back"): 3,
        ("clicks/read", "clicks/clean", "default"): 4,
    }
    # `all` copies: 4 + 3 * 4 + 2 tuples/s reach count's three tasks
    assert problem.rate[names.index("clicks/count")] == 18
    assert problem.task_count == 10
    assert problem.racks == ("r0", "r1")
    assert problem.priority.tolist() == [29, 2]


def changed(path: list[str | int], value: object) -> dict[str, Any]:
    content: Any = copy.deepcopy(CLUSTER)
    here = content
    for key in path[:-1]:
        here = here[key]
    if value is None:
        del here[path[-1]]
    else:
        here[path[-1]] = value
    return content


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["nodes"], None, "nodes: `nodes` is needed and missing"),
        (["nodes"], {}, "nodes: is a mapping; a list is needed"),
        (["nodes", 0, "cpu"], -1, "nodes[0].cpu: is -1; it must be at least 0"),
        (["nodes", 0, "slots"], None, "nodes[0].slots: `slots` is needed and missing"),
        (["nodes", 1, "id"], "r0n0", "nodes[1].id: `r0n0` is given twice"),
        (["cpu_unit"], "1 = one core", "cpu_unit: '1 = one core' is not one of 100 = one core"),
        (["topologies", 0, "worker_heap"], 7,
         "topologies[0].worker_heap: unknown key `worker_heap`"),
        (["topologies", 1, "name"], "clicks", "topologies[1].name: `clicks` is given twice"),
        (["topologies", 0, "components", 1, "id"], "count",
         "topologies[0].components[1].id: `count` is given twice"),
        (["topologies", 0, "components", 1, "kind"], "sprout",
         "topologies[0].components[1].kind: 'sprout' is not one of spout, bolt"),
        (["topologies", 0, "components", 0, "tasks"], 0,
         "topologies[0].components[0].tasks: is 0; it must be at least 1"),
        (["topologies", 0, "components", 0, "kind"], "spout",
         "topologies[0].components[0].inputs: the spout `count` has inputs"),
        (
            ["topologies", 0, "components", 0, "inputs", 2, "from"], "claen",
            ("topologies[0].components[0].inputs[2].from: `clicks` has no component `claen` (did "
             "you mean `clean`?)"),
        ),
        (
            ["topologies", 0, "components", 0, "inputs", 0, "grouping"], "field",
            "topologies[0].components[0].inputs[0].grouping: 'field' is not one of",
        ),
        (
            ["topologies", 0, "components", 0, "inputs", 1, "stream"], "default",
            "topologies[0].components[0].inputs[1]: the stream `default` of `read` is given twice",
        ),
    ],
)  # fmt: skip
def test_a_wrong_layout_is_named_with_its_place(
    tmp_path: Path, path: list[str | int], value: object, message: str
):
    with pytest.raises(InvalidInput) as caught:
        imported(tmp_path, changed(path, value))
    where, said = str(caught.value).split("\n")[0].split(": ", 1)
    assert said.startswith(message)
    assert where.removeprefix(str(tmp_path / "cluster.json"))[:1] == ":"


def test_the_line_of_a_mistake_is_named(tmp_path: Path):
    with pytest.raises(InvalidInput, match=r"cluster\.json:15: nodes\[1\]\.cpu: is -1"):
        imported(tmp_path, changed(["nodes", 1, "cpu"], -1))


@pytest.mark.parametrize("text", ["[]", "7", "{}", '{"nodes": []}', "topologies: ["])
def test_what_is_no_cluster_is_refused(tmp_path: Path, text: str):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"x\.json"):
        production(path)


def test_empty_lists_are_refused(tmp_path: Path):
    lists: list[Callable[[], dict[str, Any]]] = [
        lambda: changed(["nodes"], []),
        lambda: changed(["topologies"], []),
    ]
    for content in lists:
        with pytest.raises(InvalidInput, match="at least 1 item"):
            imported(tmp_path, content())


def test_a_topology_without_components_is_a_note_and_the_others_are_planned(tmp_path: Path) -> None:
    given, out = tmp_path / "given.json", tmp_path / "out.yaml"
    given.write_text(json.dumps(changed(["topologies", 1, "components"], [])))
    run = CliRunner().invoke(main, ["import", "production", str(given), "--out", str(out)])
    assert run.exit_code == 0, run.output
    assert "the topology `idle` has no components" in run.stderr
    checked = CliRunner().invoke(main, ["check", str(out)])
    assert checked.exit_code == 0, checked.output
    assert "1 topologies, 3 components, 9 tasks" in checked.output
    said = "the topology `idle` has no components; it is left out"
    assert said in checked.output
    plan = hr.place(out, by="storm-even")
    assert plan.problem.topologies == ("clicks",)
    assert said in plan.report.notes
    assert {name.split("/")[0] for name in plan.node_of} == {"clicks"}


def test_a_file_of_topologies_without_components_has_nothing_to_plan(tmp_path: Path) -> None:
    nothing = changed(["topologies", 1, "components"], [])
    nothing["topologies"] = nothing["topologies"][1:]
    file = tmp_path / "given.json"
    file.write_text(json.dumps(nothing))
    with pytest.raises(InvalidInput, match=r"topologies: no topology has components"):
        production(file)
    with pytest.raises(InvalidInput, match=r"the topology `a` has no components"):
        hr.place({"topologies": [{"name": "a"}, {"name": "b"}], "cluster": {"nodes": {"n": {}}}})

"""The importer of Storm's Flux files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from headrace.errors import HeadraceError, InvalidInput, Unsupported
from headrace.model.build import build
from headrace.model.flux import flux, read_properties
from headrace.model.read import read

WORDS = """\
name: "words"
config:
  topology.workers: 3
  topology.priority: 7
  topology.worker.max.heap.size.mb: 1024.0
  topology.max.spout.pending: 1000
components:
  - id: "scheme"
    className: "org.example.Scheme"
spouts:
  - id: "read"
    className: "org.example.Read"
    constructorArgs:
      - ref: "scheme"
      - "${hosts}"
    parallelism: 4
    cpuLoad: 20
    onHeapMemoryLoad: 128
    offHeapMemoryLoad: 64
bolts:
  - id: "split"
    className: "org.example.Split"
    parallelism: 6
    numTasks: 12
  - id: "count"
    className: "org.example.Count"
    parallelism: 8
    numTasks: 5
  - id: "left over"
    className: "org.example.Nothing"
streams:
  - name: "read to split"
    from: "read"
    to: "split"
    grouping: {type: SHUFFLE}
  - from: "split"
    to: "count"
    grouping:
      type: FIELDS
      args: ["word", "language"]
  - from: "read"
    to: "count"
    grouping: {type: ALL, streamId: tick}
  - from: "read"
    to: "count"
    grouping: {type: LOCAL_OR_SHUFFLE, streamId: extra}
"""


def imported(
    tmp_path: Path, text: str, properties: Mapping[str, str] | None = None, **others: str
) -> dict[str, Any]:
    for name, content in others.items():
        (tmp_path / f"{name}.yaml").write_text(content)
    (tmp_path / "words.yaml").write_text(text)
    return flux(tmp_path / "words.yaml", properties or {})["topology"]


def refusal(
    tmp_path: Path, text: str, properties: Mapping[str, str] | None = None, **others: str
) -> str:
    with pytest.raises(HeadraceError) as caught:
        imported(tmp_path, text, properties, **others)
    return str(caught.value).replace(f"{tmp_path}/", "")


def test_a_flux_file_becomes_a_topology(tmp_path: Path):
    assert imported(tmp_path, WORDS) == {
        "name": "words",
        "workers": 3,
        "priority": 7,
        "worker_max_heap_mb": 1024,
        "components": {
            "read": {"spout": True, "tasks": 4, "cpu": 20, "memory_mb": 192},
            "split": {"tasks": 6, "inputs": {"read": "shuffle"}},
            "count": {
                "tasks": 5,
                "inputs": {
                    "split": {"grouping": "fields", "fields": ["word", "language"]},
                    "read": [
                        {"stream": "tick", "grouping": "all"},
                        {"stream": "extra", "grouping": "local-or-shuffle"},
                    ],
                },
            },
        },
    }


def test_an_imported_topology_can_be_built(tmp_path: Path):
    imported(tmp_path, WORDS)
    out, cluster = tmp_path / "out.yaml", tmp_path / "cluster.yaml"
    out.write_text(yaml.safe_dump(flux(tmp_path / "words.yaml"), sort_keys=False))
    cluster.write_text("format: headrace/1\ncluster: {nodes: {n: {}}}")
    problem = build(read([out, cluster]))
    assert problem.tasks.tolist() == [4, 6, 5]
    assert problem.workers.tolist() == [3]
    assert [s.grouping for s in problem.streams] == ["shuffle", "fields", "all", "local-or-shuffle"]


@pytest.mark.parametrize(
    ("grouping", "expected"),
    [
        ("{type: SHUFFLE}", "shuffle"),
        ("{type: ALL}", "all"),
        ("{type: GLOBAL}", "global"),
        ("{type: DIRECT}", "direct"),
        ("{type: LOCAL_OR_SHUFFLE}", "local-or-shuffle"),
        ("{type: NONE}", "none"),
        ("{type: CUSTOM, customClass: {className: org.example.Mine}}", "custom"),
        ("{type: FIELDS, args: [a]}", {"grouping": "fields", "fields": ["a"]}),
        ("{type: NONE, streamId: s}", {"grouping": "none", "stream": "s"}),
    ],
)
def test_every_grouping_of_flux_is_known(tmp_path: Path, grouping: str, expected: object):
    topology = imported(tmp_path, WORDS.replace("{type: SHUFFLE}", grouping))
    assert topology["components"]["split"]["inputs"]["read"] == expected


def test_parallelism_defaults_to_one_executor_and_a_limit_for_all_holds(tmp_path: Path):
    assert (
        imported(tmp_path, WORDS.replace("    parallelism: 4\n", ""))["components"]["read"]["tasks"]
        == 1
    )
    limited = imported(
        tmp_path, WORDS.replace("topology.workers: 3", "topology.max.task.parallelism: 2")
    )
    assert [component["tasks"] for component in limited["components"].values()] == [2, 2, 2]


def test_what_a_component_asks_for_goes_before_its_configuration_and_that_before_the_topologys(
    tmp_path: Path,
):
    shared = (
        "topology.workers: 3\n  topology.component.cpu.pcore.percent: 10.0\n"
        "  topology.component.resources.onheap.memory.mb: 100"
    )
    own = 'id: "split"\n    config: {topology.component.cpu.pcore.percent: 15, topology.tasks: 2}'
    text = (
        WORDS.replace("topology.workers: 3", shared)
        .replace('id: "split"', own)
        .replace("    numTasks: 12\n", "")
    )
    components = imported(tmp_path, text)["components"]
    assert (components["read"]["cpu"], components["read"]["memory_mb"]) == (20, 192)
    assert (
        components["split"]["cpu"],
        components["split"]["memory_mb"],
        components["split"]["tasks"],
    ) == (15, 100, 2)
    assert (components["count"]["cpu"], components["count"]["memory_mb"]) == (10, 100)


def test_properties_are_filled_in_where_they_are_given(tmp_path: Path):
    text = WORDS.replace("parallelism: 4", "parallelism: ${spouts}").replace(
        '"words"', '"${app[1]}-${ENV-STAGE}"'
    )
    properties = {"spouts": "9", "app": '["first", "second"]', "ENV-STAGE": "test"}
    topology = imported(tmp_path, text, properties)
    assert topology["name"] == "second-test"
    assert topology["components"]["read"]["tasks"] == 9


def test_a_property_that_is_needed_and_not_given_is_named(tmp_path: Path):
    text = WORDS.replace("parallelism: 4", "parallelism: ${spouts}")
    assert (
        refusal(tmp_path, text, {"spout": "9"})
        == "words.yaml:16: spouts[0].parallelism: is '${spouts}': no property `spouts` is given"
    )
    text = WORDS.replace("topology.workers: 3", "topology.workers: ${workers}")
    assert (
        refusal(tmp_path, text)
        == "words.yaml:3: config.topology.workers: is '${workers}': no property `workers` is given"
    )


def test_a_properties_file_is_read_as_java_does(tmp_path: Path):
    path = tmp_path / "dev.properties"
    path.write_text(
        "# a comment\n! another\nspouts=9\n hosts : a:1,\\\n   b:2\nempty=\nname word count\n"
    )
    assert read_properties(path) == {
        "spouts": "9",
        "hosts": "a:1,b:2",
        "empty": "",
        "name": "word count",
    }


MORE = """\
name: "more"
config: {topology.workers: 9, topology.priority: 1}
spouts: [{id: "read", parallelism: 1}]
bolts: [{id: "store", parallelism: 2}]
streams: [{from: "count", to: "store", grouping: {type: GLOBAL}}]
includes: [{file: "missing.yaml"}]
"""


def test_an_included_file_adds_to_the_including_one(tmp_path: Path):
    topology = imported(
        tmp_path,
        WORDS.replace("  topology.priority: 7\n", "") + 'includes: [{file: "more.yaml"}]',
        more=MORE,
    )
    assert (topology["name"], topology["workers"], topology["priority"]) == ("words", 3, 1)
    assert topology["components"]["read"]["tasks"] == 4
    assert topology["components"]["store"] == {"tasks": 2, "inputs": {"count": "global"}}


def test_an_included_file_that_overrides_replaces_what_both_have(tmp_path: Path):
    topology = imported(
        tmp_path, WORDS + 'includes: [{file: "more.yaml", override: true}]', more=MORE
    )
    assert (topology["name"], topology["workers"]) == ("more", 9)
    assert topology["components"]["read"] == {"spout": True, "tasks": 1}


def test_a_resource_of_the_jar_is_looked_for_beside_the_file(tmp_path: Path):
    topology = imported(
        tmp_path, WORDS + 'includes: [{resource: true, file: "/configs/more.yaml"}]', more=MORE
    )
    assert "store" in topology["components"]


def test_of_two_equal_streams_the_last_decides(tmp_path: Path):
    again = "  - {from: read, to: split, grouping: {type: GLOBAL}}\n"
    assert imported(tmp_path, WORDS + again)["components"]["split"]["inputs"] == {"read": "global"}


def test_a_topology_built_in_java_is_refused_as_such(tmp_path: Path):
    (tmp_path / "java.yaml").write_text(
        'name: x\ntopologySource:\n  className: "org.example.Source"\n'
    )
    with pytest.raises(
        Unsupported,
        match=r"java\.yaml:2: topologySource: this topology is built in Java "
        r"\(org\.example\.Source\)",
    ):
        flux(tmp_path / "java.yaml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('to: "split"', 'to: "splt"',
         ("words.yaml:34: streams[0].to: `splt` is no bolt of this topology (did you mean "
          "`split`?)")),
        ('to: "split"', 'to: "read"',
         "words.yaml:34: streams[0].to: `read` is a spout, which has no inputs"),
        ('from: "split"', 'from: "splt"',
         ("words.yaml:36: streams[1].from: there is no spout or bolt `splt` (did you mean "
          "`split`?)")),
        ('from: "split"', 'from: "left over"',
         ("words.yaml:36: streams[1].from: no stream reaches the bolt `left over`, so Flux does "
          "not")),
        ('      args: ["word", "language"]\n', "",
         "words.yaml:38: streams[1].grouping: a FIELDS grouping needs `args`"),
        ("{type: SHUFFLE}", "{type: SHUFLE}",
         "words.yaml:35: streams[0].grouping.type: 'SHUFLE' is not one of SHUFFLE, FIELDS, ALL"),
        ("{type: SHUFFLE}", "{}",
         "words.yaml:35: streams[0].grouping.type: `type` is needed and missing"),
        ('id: "count"', 'id: "split"', "words.yaml:25: bolts[1].id: `split` is given twice"),
        ('id: "count"', 'id: "read"',
         "words.yaml:25: bolts[1].id: `read` is a spout as well; ids must differ"),
        ("parallelism: 4", "parallelism: 0",
         "words.yaml:16: spouts[0].parallelism: is 0; it must be at least 1"),
        ("topology.workers: 3", "topology.workers: 0",
         "words.yaml:3: config.topology.workers: is 0; it must be at least 1"),
        ("topology.workers: 3", "topology.workers: many",
         "words.yaml:3: config.topology.workers: is 'many'; a whole number is needed"),
        ("heap.size.mb: 1024.0", "heap.size.mb: -1",
         "words.yaml:5: config.topology.worker.max.heap.size.mb: is -1; it must be more than 0"),
        ("spouts:", "sprouts:", "words.yaml: has no spouts; a Flux file is YAML with `name`"),
        ("bolts:", "bolts: [", "words.yaml:21: "),
        ("bolts:\n", "includes: [{file: gone.yaml}]\nbolts:\n",
         "words.yaml:20: includes[0].file: the included file `gone.yaml` is not there"),
        ("bolts:\n", "includes: [{file: /gone.yaml, resource: true}]\nbolts:\n",
         "words.yaml:20: includes[0].file: the jar's resource"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_flux_file_is_named_with_its_place(
    tmp_path: Path, old: str, new: str, message: str
):
    assert old in WORDS
    assert refusal(tmp_path, WORDS.replace(old, new, 1)).startswith(message)


def test_a_mistake_in_an_included_file_is_named_there(tmp_path: Path):
    text = WORDS + 'includes: [{file: "more.yaml"}]'
    assert refusal(tmp_path, text, more=MORE.replace("count", "cuont")).startswith(
        "more.yaml:5: streams[0].from: there is no spout or bolt `cuont`"
    )


def test_what_is_no_flux_file_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match="no such file"):
        flux(tmp_path / "gone.yaml")
    assert refusal(tmp_path, "- a\n- b\n").startswith(
        "words.yaml: is not a mapping; a Flux file is YAML with"
    )
    assert refusal(tmp_path, "x" * 5_000_000).startswith(
        "words.yaml: has 5,000,000 characters, more than anybody writes"
    )

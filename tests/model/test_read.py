"""Reading and merging files."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from headrace.errors import InvalidInput
from headrace.model.mistakes import known_keys
from headrace.model.nearest import nearest
from headrace.model.read import parse, read

from .conftest import Build, Refusal, Write

APP = (
    "topology: {name: words, components: {say: {spout: true, rate: 20, bytes: 8}, split: {tasks: "
    "2, inputs: {say: shuffle}}}}\n"
)
MACHINES = "cluster: {nodes: {n1: {cpu: 100}, n2: {cpu: 200}}}\n"


def test_yaml_and_json_say_the_same(write: Write):
    as_yaml = write(APP + MACHINES)
    content: dict[str, Any] = {"format": "headrace/1", **yaml.safe_load(APP + MACHINES)}
    as_json = write(json.dumps(content), "app.json")
    assert read([as_yaml]).document == read([as_json]).document


def test_a_byte_order_mark_does_no_harm(write: Write):
    assert read([write("\ufeffformat: headrace/1\n" + APP)]).document.topology is not None
    assert read([write('\ufeff{"format": "headrace/1", "seed": 7}')]).document.seed == 7


def test_sections_of_several_files_are_merged(built: Build):
    problem = built(APP, MACHINES)
    assert problem.components == ("say", "split")
    assert problem.nodes == ("n1", "n2")


def test_a_section_knows_the_file_it_came_from(refusal: Refusal):
    assert refusal(APP, MACHINES.replace("cpu: 200", "cpu: -1")).startswith(
        "1-app.yaml:2: cluster.nodes.n2.cpu: "
    )


def test_keys_of_yaml_merges_give_way_to_own_ones(built: Build):
    machines = (
        "cluster: {nodes: {n1: &m {cpu: 100, slots: 2}, n2: {<<: *m, slots: 3}, n3: {slots: 5, <<: "
        "*m}}}\n"
    )
    problem = built(APP + machines)
    assert problem.slots.tolist() == [2, 3, 5]
    assert problem.capacity[:, 0].tolist() == [100, 100, 100]


def test_an_anchor_may_stand_deeper_than_its_merge_and_have_merged_itself(built: Build):
    text = """
options: {x: {deep: 1}}
topology:
  components:
    a: &spout {spout: true, rate: 5}
    b: &faster {<<: *spout, rate: 7}
    c: {<<: *faster, tasks: 3}
"""
    problem = built(text + MACHINES)
    assert problem.rate.tolist() == [5, 7, 7]
    assert problem.tasks.tolist() == [1, 1, 3]


def test_words_that_yaml_takes_for_values_are_names_where_names_stand(built: Build):
    nodes = "cluster: {nodes: {yes: {}, on: {}, 1: {}, 1.0: {}, null: {}}}\n"
    assert built(APP + nodes).nodes == ("yes", "on", "1", "1.0", "null")


def test_numbers_may_be_written_with_an_exponent(built: Build):
    assert built(APP.replace("rate: 20", "rate: 2e3") + MACHINES).rate.tolist() == [2000, 2000]


def test_a_plan_alone_brings_the_sections_it_was_made_from(built: Build):
    made_from = yaml.safe_load(APP + MACHINES)
    places = {
        "say.1": {"node": "n1"},
        "split.1": {"node": "n1"},
        "split.2": {"node": "n2", "worker": 3},
    }
    plan = json.dumps(
        {"format": "headrace/1", "plan": {"assignment": places}, "made_from": made_from}
    )
    current = built(plan).current
    assert current is not None
    assert current.node.tolist() == [0, 0, 1]
    assert current.worker.tolist() == [0, 0, 3]


def test_a_plan_beside_its_inputs_does_not_bring_them_again(built: Build):
    plan = {
        "assignment": {
            "say.1": {"node": "n1"},
            "split.1": {"node": "n1"},
            "split.2": {"node": "n1"},
        }
    }
    old = {"cluster": {"nodes": {"gone": {}}}}
    text = json.dumps({"format": "headrace/1", "plan": plan, "made_from": old})
    assert built(APP, MACHINES, text).nodes == ("n1", "n2")


def test_the_nearest_known_word_is_named_and_only_if_it_is_near():
    assert nearest("shufle", ["shuffle", "fields"]) == " (did you mean `shuffle`?)"
    assert nearest("zebra", ["shuffle", "fields"]) == ""


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ([], "topology"),
        (["topology"], "workers"),
        (["topologies", 3, "components", "x"], "selectivity"),
        (["topology", "components", "x", "inputs", "y", 0], "grouping"),
        (["cluster", "nodes", "n", "taken"], "slots"),
        (["streams", 0], "from"),
        (["profile", "a", "*", "threads", "1"], "memory"),
    ],
)
def test_the_keys_known_at_a_place_are_those_of_the_format(path: list[str | int], key: str):
    assert key in known_keys(path)


def test_json_that_is_nested_without_end_is_refused_and_yaml_too():
    for text in ('{"a":' * 100_000, "a: " + "[" * 100_000, "- " * 100_000, "? " * 100_000):
        with pytest.raises(InvalidInput, match="is nested too deeply"):
            parse("x", text)
    assert parse("x", "a: " + "[" * 900 + "]" * 900) is not None

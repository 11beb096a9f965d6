"""The JSON Schema says what the reader does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given

from headrace.errors import InvalidInput
from headrace.model.document import schema
from headrace.model.read import parse, read_file, validated
from headrace.model.starter import STARTER

from .documents import documents

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(
    path
    for path in (ROOT / "examples").rglob("*")
    if path.suffix in (".yaml", ".json") and path.parent.name != "storm"  # what Storm answers
)
VALIDATOR = jsonschema.Draft202012Validator(schema())
APP: dict[str, Any] = {
    "format": "headrace/1",
    "topology": {
        "components": {"a": {"spout": True, "rate": 5}, "b": {"inputs": {"a": "shuffle"}}}
    },
    "cluster": {"nodes": {"n": {"cpu": 100}}},
}


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize(
    "path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT / "examples"))
)
def test_every_example_follows_the_schema(path: Path):
    content = read_file(path).content
    VALIDATOR.validate(content)
    validated(content, {})


def test_there_are_examples():
    assert len(EXAMPLES) > 1


def test_the_starter_follows_the_schema():
    VALIDATOR.validate(parse("starter", STARTER))


@given(documents())
def test_what_the_reader_takes_the_schema_takes(document: dict[str, Any]):
    validated(document, {})
    VALIDATOR.validate(json.loads(json.dumps(document)))


@pytest.mark.parametrize(
    "change",
    [
        "format: headrace/2",
        "topolgy: {}",
        "cluster: {}",
        "cluster: {nodes: {n: {cpu: -1}}}",
        "cluster: {nodes: {n: {slots: -1}}}",
        "cluster: {nodes: {n: {bandwidth_mbps: 0}}}",
        "cluster: {nodes: {n: {cpus: 1}}}",
        "topology: {components: {a: {tasks: 0}}}",
        "topology: {components: {a: {tasks: 1.5}}}",
        "topology: {components: {a: {rate: -1}}}",
        "topology: {components: {a: {rate: true}}}",
        "topology: {components: {a: {join: both}}}",
        "topology: {components: {b: {inputs: {a: shufle}}}}",
        "topology: {components: {b: {inputs: {a: {gruping: all}}}}}",
        "topology: {components: {b: {inputs: {a: [{stream: 7}]}}}}",
        "topology: {name: a/b}",
        "topology: {fanout: half}",
        "streams: [{from: a}]",
        "streams: [{source: a, target: b}]",
        "traffic: [[a.1, b.1]]",
        "traffic: [[a.1, b.1, 1, 2, 3]]",
        "traffic: [[a.1, b.1, -1]]",
        "catalog: {t: {cpu: 1}}",
        "plan: {placement: {a: [[n, 0, 1]]}}",
        "plan: {placement: {a: [[n, 0, 0, 1]]}}",
        "options: {optimal: {phi: []}}",
        "machine_per_task: 7",
    ],
)
def test_what_the_schema_refuses_the_reader_refuses(change: str):
    broken = {**APP, **yaml.safe_load(change)}
    assert VALIDATOR.is_valid(APP)
    assert not VALIDATOR.is_valid(broken)
    with pytest.raises(InvalidInput):
        validated(broken, {})

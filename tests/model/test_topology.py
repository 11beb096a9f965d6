"""Topologies in Python that have no code: they can be planned, and not run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import InvalidInput
from headrace.model.build import build
from headrace.model.document import Topology as Section
from headrace.model.read import validated
from headrace.model.topology import FACTS, Topology
from headrace.run.batches import Batches, Settings
from headrace.run.placement import PlanInForce


def word_count(**facts: Any) -> Topology:
    return (
        Topology("word-count", **facts)
        .spout("sentence", tasks=5, rate=2000)
        .bolt("split", inputs={"sentence": "shuffle"}, tasks=8, selectivity=7)
        .bolt("count", inputs={"split": "fields"}, tasks=12)
    )


def test_a_topology_without_code_can_be_planned() -> None:
    cluster = {"nodes": {"n{1..3}": {"cpu": 400}}}
    problem = build(validated({**word_count().document(), "cluster": cluster}, {}))
    assert problem.components == ("sentence", "split", "count")
    assert problem.tasks.tolist() == [5, 8, 12]
    assert problem.rate.tolist() == [2000, 2000, 14000]  # in, for a spout out


def test_a_topology_without_code_is_not_run(tmp_path: Path) -> None:
    topology = word_count()
    topology.check()
    with pytest.raises(InvalidInput, match="`sentence` has no source, so the topology") as refusal:
        Batches(topology, PlanInForce(topology), Settings(tmp_path))
    assert refusal.value.fix == "give the source of `sentence`"
    half = Topology("half").spout("a", lambda spark: None).bolt("b", inputs={"a": "shuffle"})  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="`b` has no function"):
        half.check_runnable()


def test_the_keys_of_a_topology_are_those_of_the_file_format() -> None:
    assert {*FACTS, "name", "components"} == set(Section.model_fields)
    facts = {"workers": 4, "priority": 3, "bound_by": "memory", "worker_max_heap_mb": 2048.0}
    facts |= {"fanout": "divide", "isolated_machines": 2, "core_per_task": True, "ackers": 2}
    section = word_count(**facts).section()
    assert {key: section[key] for key in FACTS} == facts
    assert next(iter(section)) == "name"
    assert set(word_count().section()) == {"name", "components"}
    # Keys stay when the topology changes.
    assert word_count(workers=4).with_tasks({"split": 2}).section()["workers"] == 4


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"workers": 0}, "topology `word-count`: workers: Input should be greater than"),
        ({"fanout": "half"}, "topology `word-count`: fanout: "),
    ],
)
def test_a_wrong_key_is_named(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        word_count(**facts)
    assert message in refusal.value.message
    with pytest.raises(InvalidInput, match="topology `a/b`: name"):
        Topology("a/b")

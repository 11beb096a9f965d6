"""How far components are from the spouts; cycles are in tests/run/test_stages.py."""

from __future__ import annotations

from headrace.model.build import build
from headrace.model.document import FORMAT
from headrace.model.levels import levels
from headrace.model.read import validated


def test_a_bolt_that_nothing_reaches_is_not_beside_the_spouts() -> None:
    assert levels({"spout": ["a"], "a": [], "alone": ["b"], "b": []}, {"spout"}) == (
        {"spout": 0, "a": 1, "alone": 1, "b": 2},
        set(),
    )


def test_stages_are_numbered_topology_by_topology() -> None:
    spout, bolt = {"spout": True, "rate": 1}, {"inputs": {"s": "shuffle"}}
    diamond = {
        "s": spout,
        "a": bolt,
        "b": bolt,
        "end": {"inputs": {"a": "shuffle", "b": "shuffle"}},
    }
    topologies = [
        {"name": "one", "components": diamond},
        {"name": "two", "components": {"s": spout, "a": bolt}},
    ]
    problem = build(
        validated(
            {"format": FORMAT, "topologies": topologies, "cluster": {"nodes": {"n": {"cpu": 100}}}},
            {},
        )
    )
    assert dict(zip(problem.components, problem.stage.tolist(), strict=True)) == {
        "one/s": 0, "one/a": 1, "one/b": 1, "one/end": 2, "two/s": 3, "two/a": 4,
    }  # fmt: skip

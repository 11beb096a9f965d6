"""The order of components within a batch."""

from __future__ import annotations

from headrace.model.document import Component
from headrace.run.stages import stages


def graph(**inputs: list[str]) -> dict[str, Component]:
    return {
        name: Component.model_validate(
            {"spout": not sources, "inputs": dict.fromkeys(sources, "shuffle")}
        )
        for name, sources in inputs.items()
    }


def test_levels_follow_the_longest_way() -> None:
    order = stages(graph(a=[], b=["a"], c=["b", "a"], d=["a"]))
    assert order.levels == (("a",), ("b", "d"), ("c",))
    assert order.waiting == ((), ("c",), ())
    assert not order.back_edges


def test_a_cycle_has_one_back_edge_and_its_source_replays() -> None:
    order = stages(graph(spout=[], a=["spout", "b"], b=["a"], end=["b"]))
    assert order.back_edges == {("b", "a")}
    assert order.replaying == ("b",)
    assert order.levels == (("spout",), ("a",), ("b",), ("end",))


def test_a_component_that_feeds_itself_does_so_in_the_next_batch() -> None:
    order = stages(graph(spout=[], a=["spout", "a"]))
    assert order.back_edges == {("a", "a")}


def test_what_comes_over_a_back_edge_waits_for_a_deep_component() -> None:
    order = stages(graph(spout=[], a=["spout"], b=["a", "c"], c=["b"]))
    assert order.back_edges == {("c", "b")}
    assert order.waiting == ((), ("b",), (), ())

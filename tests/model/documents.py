"""Small documents of every kind, for generated tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from headrace.model.build import build
from headrace.model.problem import Problem
from headrace.model.read import validated

GROUPINGS = ("shuffle", "fields", "global", "all", "direct", "local-or-shuffle", "none", "custom")


def problem_of(document: dict[str, Any]) -> Problem:
    """The problem a document describes, without a file."""
    return build(validated(document, {}))


@st.composite
def topologies(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """A topology without cycles, with every grouping and several streams between two components."""
    components: dict[str, Any] = {
        "c0": {"spout": True, "tasks": draw(st.integers(1, 3)), "rate": draw(st.integers(0, 50))}
    }
    for c in range(1, draw(st.integers(1, 4))):
        sources = draw(st.lists(st.integers(0, c - 1), max_size=2, unique=True))
        groupings = st.lists(st.sampled_from(GROUPINGS), min_size=1, max_size=2)
        inputs = {
            f"c{s}": [{"stream": f"s{i}", "grouping": g} for i, g in enumerate(draw(groupings))]
            for s in sources
        }
        components[f"c{c}"] = {
            "tasks": draw(st.integers(1, 3)),
            "selectivity": draw(st.sampled_from([0, 0.5, 1, 3])),
            "inputs": inputs,
        }
    return {
        "name": name,
        "components": components,
        "priority": draw(st.integers(0, 3)),
        "workers": draw(st.integers(1, 4)),
    }


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Up to three topologies on a few nodes, with some shares and some task pairs measured."""
    apps = [draw(topologies(f"t{i}")) for i in range(draw(st.integers(1, 3)))]
    streams: list[dict[str, Any]] = []
    traffic: list[list[Any]] = []
    for app in apps:
        for target, component in app["components"].items():
            for source in component.get("inputs", {}):
                ends = {"from": f"{app['name']}/{source}", "to": f"{app['name']}/{target}"}
                kind = draw(st.sampled_from(["derived", "shares", "pairs"]))
                if kind == "shares":
                    weights = st.lists(
                        st.integers(1, 5), min_size=component["tasks"], max_size=component["tasks"]
                    )
                    streams.append({**ends, "shares": draw(weights)})
                elif kind == "pairs":
                    number = draw(st.integers(1, component["tasks"]))
                    traffic.append(
                        [f"{ends['from']}.1", f"{ends['to']}.{number}", draw(st.integers(0, 9))]
                    )
    cluster = {"nodes": {f"n{i}": {"slots": 4} for i in range(draw(st.integers(1, 3)))}}
    return {
        "format": "headrace/1",
        "topologies": apps,
        "cluster": cluster,
        "streams": streams,
        "traffic": traffic,
    }

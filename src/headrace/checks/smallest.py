"""The smallest problems there are, and a topology with cycles: every scheduler answers them."""

from __future__ import annotations

from typing import Any

from headrace.checks.problems import Content

ROOM: Content = {"nodes": {"n{1..2}": {"cpu": 800, "memory_mb": 8192, "slots": 4}}}
ONLY: Content = {"cpu": 400, "memory_mb": 4096}


def _two(first: Content, second: Content, **topology: Any) -> Content:
    """A spout and a bolt that reads it."""
    bolt = {"inputs": {"a": "shuffle"}, **second}
    return {"topology": {**topology, "components": {"a": {"spout": True, **first}, "b": bolt}}}


SMALLEST: dict[str, Content] = {
    "one task": {
        "topology": {"components": {"a": {"spout": True, "rate": 5, "cpu": 10}}},
        "cluster": ROOM,
    },
    "one bare task": {"tasks": {"a": {"cpu": 10}}, "cluster": ROOM},
    "one node": {
        **_two({"tasks": 2, "rate": 5, "cpu": 10}, {"tasks": 3}),
        "cluster": {"nodes": {"only": {**ONLY, "slots": 2}}},
    },
    "one node with one slot": {
        **_two({"rate": 5, "cpu": 10}, {"tasks": 3}, workers=1),
        "cluster": {"nodes": {"only": {**ONLY, "slots": 1}}},
    },
    "no traffic at all": {
        "topology": {
            "components": {"a": {"spout": True, "tasks": 3, "cpu": 10}, "b": {"tasks": 2, "cpu": 5}}
        },
        "cluster": ROOM,
    },
    "streams without tuples": {
        **_two({"tasks": 2, "rate": 0, "cpu": 10}, {"tasks": 2}),
        "cluster": ROOM,
    },
    "no demands at all": {
        **_two({"tasks": 2, "rate": 9}, {"tasks": 2}),
        "cluster": {"nodes": {"n1": {}, "n2": {}}},
    },
    "a graph in two pieces": {
        "tasks": {name: {"cpu": 10, "memory_mb": 10} for name in "abcdef"},
        "traffic": [["a", "b", 5], ["b", "c", 4], ["d", "e", 3], ["e", "f", 2]],
        "cluster": ROOM,
    },
    "only bolts": {
        "topology": {
            "components": {
                "a": {"tasks": 2, "cpu": 10},
                "b": {"tasks": 2, "inputs": {"a": "shuffle"}},
            }
        },
        "cluster": ROOM,
    },
}

LOOP: Content = {
    "components": {
        "a": {"spout": True, "rate": 10, "cpu": 10},
        "b": {
            "tasks": 2,
            "inputs": {"a": "shuffle", "c": "shuffle"},
            "selectivity": 0.5,
            "cpu": 10,
        },
        "c": {"tasks": 2, "inputs": {"b": "shuffle"}, "selectivity": 0.5, "cpu": 10},
        "d": {"inputs": {"c": "shuffle", "d": "shuffle"}, "selectivity": 0.1, "cpu": 10},
    }
}

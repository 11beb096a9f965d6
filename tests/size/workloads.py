"""Small workloads for the tests of sizing and provisioning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.model.document import FORMAT
from headrace.model.read import validated
from headrace.model.workload import Workload


def workload_of(content: dict[str, Any]) -> Workload:
    """The workload a document describes."""
    return Workload(validated({"format": FORMAT, **content}, {}))


def chain(
    costs_ms: Sequence[float], *, rate: float = 10, fixed: float = 0.0, nodes: int = 2, **node: Any
) -> dict[str, Any]:
    """A source that costs nothing and bolts b1, b2, .. in a row, on alike nodes of one core."""
    components: dict[str, Any] = {"source": {"spout": True, "rate": rate}}
    before = "source"
    for i in range(1, len(costs_ms) + 1):
        components[f"b{i}"] = {"inputs": {before: "shuffle"}}
        before = f"b{i}"
    profile = {
        f"b{i}": {"*": {"cpu_ms": ms, "cpu_fixed": fixed}} for i, ms in enumerate(costs_ms, 1)
    }
    cluster = {"nodes": {f"n{i}": {"type": "x", "cpu": 100, **node} for i in range(1, nodes + 1)}}
    return {"topology": {"components": components}, "profile": profile, "cluster": cluster}


def rolling_count() -> dict[str, Any]:
    """Words are counted by key, and a tick beside every word goes to all tasks; four nodes."""
    keyed = {"grouping": "fields", "fields": ["word"]}
    components = {
        "sentences": {"spout": True, "rate": 10},
        "split": {"inputs": {"sentences": "shuffle"}},
        "roll": {"inputs": {"split": [keyed, {"stream": "tick", "grouping": "all"}]}},
    }
    return {
        "topology": {"components": components},
        "profile": {"split": {"*": {"cpu_ms": 1}}, "roll": {"*": {"cpu_ms": 1}}},
        "cluster": {"nodes": {f"n{i}": {"cpu": 100} for i in range(1, 5)}},
    }


def at_rate(topology: dict[str, Any], factor: float) -> dict[str, Any]:
    """The same topology with all spout rates times a factor."""
    components = {
        name: {**spec, "rate": spec.get("rate", 1) * factor} if spec.get("spout") else spec
        for name, spec in topology["components"].items()
    }
    return {**topology, "components": components}


def two_bolts(**catalog: dict[str, Any]) -> dict[str, Any]:
    """s is free; on small machines a takes 10 ms and b 20 ms per tuple, on large ones half."""
    components = {
        "s": {"spout": True, "rate": 1},
        "a": {"inputs": {"s": "shuffle"}},
        "b": {"inputs": {"a": "shuffle"}},
    }
    small, large = (
        {"price": 1, "cpu": 100, "memory_mb": 1000},
        {"price": 3, "cpu": 100, "memory_mb": 4000},
    )
    return {
        "topology": {"components": components},
        "profile": {
            "a": {"small": {"cpu_ms": 10}, "large": {"cpu_ms": 5}},
            "b": {"small": {"cpu_ms": 20}, "large": {"cpu_ms": 10}},
        },
        "catalog": {
            "small": small | catalog.get("small", {}),
            "large": large | catalog.get("large", {}),
        },
        "machine_per_task": True,
    }

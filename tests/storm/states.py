"""States of a Storm cluster as Nimbus sends them."""

from __future__ import annotations

from typing import Any

PORTS = (6700, 6701)


def supervisor(node: str, **other: Any) -> dict[str, Any]:
    return {
        "id": f"id-{node}",
        "node": node,
        "host": f"host-{node}",
        "rack": "r1",
        "cpu": 200.0,
        "memory_mb": 2048.0,
        "ports": list(PORTS),
        "used_ports": [],
        "blacklisted": False,
        **other,
    }


def executor(name: str, task: int, place: tuple[str, int] | None = None) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "first": task, "last": task, "cpu": 10.0}
    row["memory_mb"] = 128.0
    if place is not None:
        row |= {"supervisor": f"id-{place[0]}", "port": place[1]}
    return row


def word_count(name: str = "wc", place: tuple[str, int] | None = None) -> dict[str, Any]:
    """Two sentences, two splits, two counts, an acker; tasks in Storm's order."""
    names = ["__acker.1", "count.1", "count.2", "sentence.1", "sentence.2", "split.1", "split.2"]
    return {
        "id": f"{name}-1-100",
        "name": name,
        "workers": 2,
        "conf": {"topology.acker.executors": 1},
        "components": {
            "sentence": {"kind": "spout", "streams": ["default"], "inputs": []},
            "split": {
                "kind": "bolt",
                "streams": ["default"],
                "inputs": [{"from": "sentence", "stream": "default", "grouping": "shuffle"}],
            },
            "count": {
                "kind": "bolt",
                "streams": ["default"],
                "inputs": [
                    {
                        "from": "split",
                        "stream": "default",
                        "grouping": "fields",
                        "fields": ["word"],
                    }
                ],
            },
        },
        "executors": [executor(one, i, place) for i, one in enumerate(names, 1)],
    }


def cluster(
    *topologies: dict[str, Any], nodes: tuple[str, ...] = ("n1", "n2"), at_s: float = 1000.0
) -> dict[str, Any]:
    return {
        "protocol": "headrace-storm/1",
        "storm": "2.8.3",
        "at_ms": at_s * 1000,
        "supervisors": [supervisor(node) for node in nodes],
        "topologies": list(topologies),
    }

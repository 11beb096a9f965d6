"""The same file with other names, to check that no scheduler decides by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.checks.problems import Content


def prefix_names(content: Content, prefix: str) -> Content:
    """The sections of a file with a prefix before every name, so that names sort as before."""
    return {
        section: RENAME[section](value, prefix) if section in RENAME else value
        for section, value in content.items()
    }


def _name(old: str, prefix: str) -> str:
    return "/".join(prefix + part for part in old.split("/"))


def _cluster(cluster: Content, prefix: str) -> Content:
    return {
        "nodes": {_name(n, prefix): _node(node, prefix) for n, node in cluster["nodes"].items()}
    }


def _node(node: Content, prefix: str) -> Content:
    return node | {key: _name(node[key], prefix) for key in ("type", "rack") if key in node}


def _topology(topology: Content, prefix: str) -> Content:
    new = dict(topology)
    if "name" in topology:
        new["name"] = _name(topology["name"], prefix)
    if "components" in topology:
        new["components"] = _components(topology["components"], prefix)
    return new


def _topologies(topologies: list[Content], prefix: str) -> list[Content]:
    return [_topology(topology, prefix) for topology in topologies]


def _components(components: Content, prefix: str) -> Content:
    return {_name(name, prefix): _component(spec, prefix) for name, spec in components.items()}


def _component(spec: Content, prefix: str) -> Content:
    new = dict(spec)
    if "nodes" in spec:
        new["nodes"] = [_name(node, prefix) for node in spec["nodes"]]
    if "component" in spec:
        new["component"] = _name(spec["component"], prefix)
    if "inputs" in spec:
        new["inputs"] = {_name(source, prefix): s for source, s in spec["inputs"].items()}
    return new


def _profile(profile: Content, prefix: str) -> Content:
    return {_name(name, prefix): _types(costs, prefix) for name, costs in profile.items()}


def _types(by_type: Content, prefix: str) -> Content:
    """A mapping from machine types; "*" is any type, not a name."""
    return {t if t == "*" else _name(t, prefix): value for t, value in by_type.items()}


def _streams(rows: list[Content], prefix: str) -> list[Content]:
    return [row | {end: _name(row[end], prefix) for end in ("from", "to")} for row in rows]


def _traffic(rows: list[list[Any]], prefix: str) -> list[list[Any]]:
    return [[_name(row[0], prefix), _name(row[1], prefix), *row[2:]] for row in rows]


RENAME: dict[str, Callable[[Any, str], Any]] = {  # section -> how names in it get a prefix
    "cluster": _cluster,
    "topology": _topology,
    "topologies": _topologies,
    "tasks": _components,
    "profile": _profile,
    "catalog": _types,
    "streams": _streams,
    "traffic": _traffic,
}

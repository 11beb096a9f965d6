"""What was measured of a running topology, as files to plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.model.document import FORMAT, Node
from headrace.model.read import Inputs, validated


def measured_inputs(
    section: dict[str, Any],
    nodes: Mapping[str, Node],
    measured: Mapping[str, Any],
    rates: Mapping[str, float] | None = None,
) -> Inputs:
    """The same from a topology's section; it gets the measured rates."""
    components: dict[str, Any] = section["components"]
    streams: list[dict[str, Any]] = []
    for stream in measured.get("streams", ()):
        # Averages of single streams are not of quite the same time; one rate and the selectivities
        # are, and they agree.
        streams.append({key: value for key, value in stream.items() if key != "tuples_per_s"})
        source = components[stream["from"]]
        if source.get("spout") and stream.get("selectivity"):
            source["rate"] = (rates or {}).get(
                stream["from"], stream["tuples_per_s"] / stream["selectivity"]
            )
    described = {
        name: node.model_dump(mode="json", by_alias=True, exclude_unset=True)
        for name, node in nodes.items()
    }
    content: dict[str, Any] = {
        "format": FORMAT,
        "topology": section,
        "cluster": {"nodes": described},
    }
    if "profile" in measured:
        content["profile"] = measured["profile"]
    if streams:
        content["streams"] = streams
    return validated(content, {})

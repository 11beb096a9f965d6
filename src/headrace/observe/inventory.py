"""What the nodes are: the contract's `inventory`, with the computing power of Muhammad's thesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headrace.model.build import build
from headrace.model.document import FORMAT
from headrace.model.read import validated
from headrace.model.telemetry import NODE_FACTS
from headrace.place.building_blocks.node_power import computation_power, gflops, node_power

FACTS = ("machine_type", *NODE_FACTS)
ALPHA = 0.8  # of eq. 3.2, as the thesis found best (3.1.1)
BOUND_WEIGHT, OTHER_WEIGHT = 0.5, 0.25  # of eq. 3.3


def latest_facts(nodes: DataFrame) -> DataFrame:
    """One row per node: what it last said it is."""
    newest = F.max_by(F.struct(*FACTS), "event_time").alias("facts")
    return nodes.groupBy("node").agg(newest).select("node", "facts.*").orderBy("node")


def inventory(nodes: DataFrame) -> dict[str, dict[str, Any]]:
    """The contract's `inventory`."""
    return inventory_of([row.asDict() for row in latest_facts(nodes).collect()])


def inventory_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The same, from what each node last said."""
    facts: dict[str, dict[str, Any]] = {}
    for row in rows:
        # 0 sockets or GHz is how a machine says that it does not know.
        known = {name: row[name] for name in FACTS if row[name]}
        if machine_type := known.pop("machine_type", None):
            known = {"type": machine_type, **known}
        if "cores" in known:
            known["cpu"] = 100 * known["cores"] * known.get("sockets", 1)
        facts[row["node"]] = known
    return with_power(facts)


def with_power(facts: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Facts with the power that TOP-, A3- and BAN-Storm see in each node (eq. 3.1 to 3.3).

    For a topology that is bound by CPU.
    """
    if not facts:
        return {}
    # The schedulers rank the nodes of a problem, so the smallest problem with these nodes gives
    # their very figures.
    document = {
        "format": FORMAT,
        "topology": {"components": {"any": {"spout": True, "rate": 1}}},
        "inventory": facts,
    }
    problem = build(validated(document, {}))
    powers = zip(
        problem.nodes,
        gflops(problem).tolist(),
        computation_power(problem, ALPHA).tolist(),
        node_power(problem, BOUND_WEIGHT, OTHER_WEIGHT).tolist(),
        strict=True,
    )
    return {
        node: {
            **facts[node],
            "power": {
                "gflops": round(flops, 3),
                "computation": round(computed, 3),
                "node": round(whole, 3),
            },
        }
        for node, flops, computed, whole in powers
    }

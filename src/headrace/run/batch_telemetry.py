"""What tasks report, as telemetry: one row per task and per pair of tasks, once for every batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headrace.model.document import Node
from headrace.model.telemetry import NODE_FACTS, Writer
from headrace.model.topology import Topology, task_name
from headrace.run.crossing import Whereabouts
from headrace.run.placement import Placement
from headrace.run.seats import TaskReport


def record_batch(
    folder: Path,
    topology: Topology,
    batch: int,
    reports: Sequence[TaskReport],
    where: Whereabouts,
    placement: Placement | None,
) -> None:
    """Write the telemetry of a batch; a batch that runs again replaces its own."""
    nodes = placement.nodes if placement is not None else {}
    with Writer(folder, name=f"{topology.name}-{batch:08d}") as writer:
        writer.write("tasks", _task_rows(topology, reports, where, nodes))
        writer.write("edges", _edge_rows(topology, reports))
        if batch == 0 and nodes:
            writer.write("nodes", _node_rows(nodes))


def _task_rows(
    topology: Topology,
    reports: Sequence[TaskReport],
    where: Whereabouts,
    nodes: Mapping[str, Node],
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for r in reports:
        if r.role != "work":
            continue
        node, _ = where.process[r.component, r.number]
        rows.append(
            {
                "event_time": datetime.fromtimestamp(r.ended, UTC),
                "topology": topology.name,
                "task": r.task,
                "component": r.component,
                "node": node,
                "machine_type": nodes[node].type if node in nodes else "",
                # A spout's tuples come from outside.
                "tuples_in": 0 if topology.components[r.component].spout else r.tuples_in,
                "tuples_out": r.tuples_out,
                "cpu_ms": r.cpu_ms,
                "queue_length": 0,  # between two batches nothing waits inside the topology
                "memory_mb": r.memory_mb,
                "worker": where.worker((r.component, r.number)),
            }
        )
    return rows


def _edge_rows(topology: Topology, reports: Sequence[TaskReport]) -> list[dict[str, Any]]:
    tuples: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    ended: dict[str, float] = {}
    for r in reports:
        ended[r.task] = max(r.ended, ended.get(r.task, 0.0))
        for component, number, rows, size in r.edges:
            pair = (r.task, task_name(component, number + 1))
            tuples[pair] += rows
            sizes[pair] += size
    return [
        {
            "event_time": datetime.fromtimestamp(ended[source], UTC),
            "topology": topology.name,
            "from_task": source,
            "to_task": target,
            "tuples": tuples[source, target],
            "bytes": sizes[source, target],
        }
        for source, target in tuples
    ]


def _node_rows(nodes: Mapping[str, Node]) -> list[dict[str, Any]]:
    now = datetime.now(UTC)
    return [
        {
            "event_time": now,
            "node": name,
            "machine_type": node.type,
            **{fact: getattr(node, fact) for fact in NODE_FACTS},
        }
        for name, node in nodes.items()
    ]

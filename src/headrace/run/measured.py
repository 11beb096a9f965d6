"""What tasks report, as telemetry: one row per task and per pair of tasks, once for every batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from headrace.model.telemetry import Writer
from headrace.model.topology import Topology, task_name
from headrace.run.placement import Placement
from headrace.run.task import Report


def record(
    folder: Path,
    topology: Topology,
    batch: int,
    reports: Sequence[tuple[Report, str]],
    placement: Placement | None,
) -> None:
    """Write the telemetry of a batch, from reports and the nodes they come from; a batch that runs again replaces its own."""
    nodes = placement.nodes if placement is not None else {}
    tasks = [
        {
            "event_time": datetime.fromtimestamp(r.ended, UTC),
            "topology": topology.name,
            "task": r.task,
            "component": r.component,
            "node": node,
            "machine_type": nodes[node].type if node in nodes else "",
            "tuples_in": 0
            if topology.components[r.component].spout
            else r.tuples_in,  # a spout's tuples come from outside
            "tuples_out": r.tuples_out,
            "cpu_ms": r.cpu_ms,
            "queue_length": 0,  # between two batches nothing waits inside the topology
            "memory_mb": r.memory_mb,
        }
        for r, node in reports
        if r.role == "work"
    ]
    tuples: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    ended: dict[str, float] = {}
    for r, _ in reports:
        ended[r.task] = max(r.ended, ended.get(r.task, 0.0))
        for component, number, rows, size in r.edges:
            pair = (r.task, task_name(component, number + 1))
            tuples[pair] += rows
            sizes[pair] += size
    edges = [
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
    with Writer(folder, name=f"{topology.name}-{batch:08d}") as writer:
        writer.write("tasks", tasks)
        writer.write("edges", edges)
        if batch == 0 and nodes:
            now = datetime.now(UTC)
            facts = (
                "sockets",
                "cores",
                "ghz",
                "flops_per_cycle",
                "memory_mb",
                "bandwidth_mbps",
                "slots",
            )
            writer.write(
                "nodes",
                [
                    {
                        "event_time": now,
                        "node": name,
                        "machine_type": node.type,
                        **{f: getattr(node, f) for f in facts},
                    }
                    for name, node in nodes.items()
                ],
            )

"""The workers that stand for a cluster's nodes when a fleet runs on one machine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import Infeasible, Unsupported
from headrace.model.cluster import nodes_of
from headrace.model.document import Node
from headrace.model.read import read
from headrace.model.stage_cores import cores_of

LEAST_MEMORY_MB = 512  # Spark's executors do not start with less
DEFAULT_MEMORY_MB = 1024
MOST_MACHINES = 250  # addresses 127.0.0.2 to 127.0.0.251


@dataclass(frozen=True, slots=True)
class Machine:
    """A worker of the fleet, in the place of a node; it keeps to limits the fleet has."""

    name: str
    host: str
    cores: int
    memory_mb: int
    bandwidth_mbps: float | None = None  # in and out separately
    cpu: float | None = None  # 100 = one core
    slots: int = 1  # processes for workers of plans, as far as its memory allows

    @property
    def worker_mb(self) -> int:
        """Memory of one of these processes."""
        return self.memory_mb // self.slots


def machines_of(files: Sequence[str | os.PathLike[str]]) -> tuple[Machine, ...]:
    """The nodes of cluster files as workers on 127.0.0.2, 127.0.0.3, .."""
    return machines_for(nodes_of(read([Path(file) for file in files])))


def machines_for(nodes: Mapping[str, Node]) -> tuple[Machine, ...]:
    """Nodes as workers on 127.0.0.2, 127.0.0.3, .."""
    if len(nodes) > MOST_MACHINES:
        raise Unsupported(
            f"the cluster has {len(nodes)} nodes; a fleet on one machine has "
            f"{MOST_MACHINES} at most",
            resource="nodes",
        )
    return tuple(
        _machine(name, node, f"127.0.0.{i}") for i, (name, node) in enumerate(nodes.items(), 2)
    )


def _machine(name: str, node: Node, host: str) -> Machine:
    memory_mb = DEFAULT_MEMORY_MB if node.memory_mb is None else int(node.memory_mb)
    if memory_mb < LEAST_MEMORY_MB:
        raise Infeasible(
            f"node {name} has {memory_mb} MB; a Spark executor needs {LEAST_MEMORY_MB}",
            resource="memory_mb",
            needed=LEAST_MEMORY_MB,
            available=memory_mb,
        )
    cores = cores_of(node)
    cpu = 100.0 * cores if node.cpu is None else node.cpu
    slots = max(1, min(node.slots, memory_mb // LEAST_MEMORY_MB))
    return Machine(name, host, cores, memory_mb, node.bandwidth_mbps, cpu, slots)

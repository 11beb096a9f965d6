"""A plan in the words of those who start executors: spark-submit settings, and Kubernetes pods.

For jobs that are not ours: executors of the plan's number and shape on the plan's nodes. Which task
runs in which executor is then up to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.errors import InvalidInput, Unsupported
from headrace.model.build import build
from headrace.model.cluster import nodes_of
from headrace.model.document import FORMAT
from headrace.model.problem import CPU, UNPLACED
from headrace.model.read import Inputs

MEMORY = 1
# What Spark adds by default outside the heap: a share of the executor's memory, and at least so
# many MB.
# What `import spark-log` calls nodes and their types.
FROM_A_LOG = re.compile(r"driver|executor-.+")
LOG_TYPE = re.compile(r"\d+-core-[\d.e+]+-mb")
JVM_OVERHEAD = 0.1
OVERHEAD_MB = 384


@dataclass(frozen=True, slots=True)
class Executor:
    """What one node gets: all the plan's tasks there in one executor."""

    node: str
    cores: int
    memory_mb: int
    tasks: int


def executors(inputs: Inputs) -> list[Executor]:
    """One executor per node in use, with a core per 100 points and the memory of its tasks."""
    problem = build(inputs)
    if problem.current is None:
        raise InvalidInput(
            "no plan to export: give a file with `plan`, as headrace place .. --out writes it"
        )
    found: list[Executor] = []
    for n, node in enumerate(problem.nodes):
        here = (problem.current.node == n) & (problem.current.node != UNPLACED)
        if not here.any():
            continue
        components = problem.component_of[here]
        kind = problem.node_type[n]
        points = problem.demand[components, CPU] + problem.cpu_fixed[components, kind]
        points = points + problem.cpu_rate[components, kind] * problem.share[here]
        memory_mb = float(problem.demand[components, MEMORY].sum())
        tasks = int(here.sum())
        # Where no CPU is known, a core for each task.
        cores = -(-float(points.sum()) // 100) if points.sum() > 0 else tasks
        found.append(Executor(node, max(1, int(cores)), max(1024, int(-(-memory_mb // 1))), tasks))
    return found


def were_executors(inputs: Inputs) -> bool:
    """Whether the nodes are executors of an imported event log: their names are no hosts."""
    nodes = nodes_of(inputs)
    return bool(nodes) and all(
        FROM_A_LOG.fullmatch(name) and LOG_TYPE.fullmatch(node.type or "")
        for name, node in nodes.items()
    )


def shapes(found: list[Executor]) -> dict[tuple[int, int], list[Executor]]:
    """Executors of the same cores and memory."""
    groups: dict[tuple[int, int], list[Executor]] = {}
    for executor in found:
        groups.setdefault((executor.cores, executor.memory_mb), []).append(executor)
    return groups


def spark(inputs: Inputs) -> dict[str, Any]:
    """Settings for spark-submit; all executors get the largest shape, since Spark has but one."""
    if were_executors(inputs):
        raise Unsupported(
            "this plan is of an imported event log: what its executors need cannot be known from "
            "the CPU and memory of stages, since a task of Spark holds a slot while it waits",
            resource="spark",
            fix="headrace export spark LOG, with the event log itself",
        )
    found = executors(inputs)
    cores, memory_mb = max(e.cores for e in found), max(e.memory_mb for e in found)
    tasks = sum(e.tasks for e in found)
    conf = {
        "spark.executor.instances": len(found),
        "spark.executor.cores": cores,
        "spark.executor.memory": f"{memory_mb}m",
        "spark.cores.max": len(found) * cores,
        "spark.default.parallelism": tasks,
        "spark.sql.shuffle.partitions": tasks,
        "spark.dynamicAllocation.enabled": "false",
        "spark.locality.wait": "30s",
    }
    notes = [f"on {', '.join(e.node for e in found)}"]
    if len(shapes(found)) > 1:
        notes.append(
            "the plan's executors differ in shape and Spark's may not: all get the largest; "
            "`export kubernetes` keeps the shapes apart"
        )
    submit = " ".join(["spark-submit", *(f"--conf {key}={value}" for key, value in conf.items())])
    return {
        "format": FORMAT,
        "executors": [
            {"node": e.node, "cores": e.cores, "memory_mb": e.memory_mb, "tasks": e.tasks}
            for e in found
        ],
        "conf": {key: str(value) for key, value in conf.items()},
        "spark_submit": submit,
        "notes": notes,
    }


def kubernetes(inputs: Inputs, *, label: str = "kubernetes.io/hostname") -> list[dict[str, Any]]:
    """One pod template per shape, for `spark.kubernetes.executor.podTemplateFile`."""
    pinned = not were_executors(inputs)  # an executor's name is no host to stand on
    return [
        _pod(number, cores, memory_mb, alike, label if pinned else None)
        for number, ((cores, memory_mb), alike) in enumerate(shapes(executors(inputs)).items(), 1)
    ]


def _pod(
    number: int, cores: int, memory_mb: int, alike: list[Executor], label: str | None
) -> dict[str, Any]:
    whole_mb = memory_mb + max(OVERHEAD_MB, int(memory_mb * JVM_OVERHEAD))
    size: Mapping[str, str] = {"cpu": str(cores), "memory": f"{whole_mb}Mi"}
    nodes = [e.node for e in alike]
    apart = {
        "labelSelector": {"matchLabels": {"headrace-shape": str(number)}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": {"headrace-shape": str(number)},
            "annotations": {
                "headrace/executors": str(len(nodes)),
                "headrace/conf": f"spark.executor.instances={len(nodes)} "
                f"spark.executor.cores={cores} spark.executor.memory={memory_mb}m",
            },
        },
        "spec": {
            "containers": [
                {"name": "executor", "resources": {"requests": dict(size), "limits": dict(size)}}
            ],
            **({} if label is None else {"affinity": _affinity(label, nodes, apart)}),
        },
    }


def _affinity(label: str, nodes: list[str], apart: Mapping[str, Any]) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": label, "operator": "In", "values": nodes}]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {
        "nodeAffinity": {required: {"nodeSelectorTerms": [term]}},
        "podAntiAffinity": {required: [dict(apart)]},
    }

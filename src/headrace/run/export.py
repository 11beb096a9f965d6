"""A plan in the words of those who start executors: spark-submit settings, and Kubernetes pods.

For jobs that are not ours: executors of the plan's number and shape on the plan's nodes. Which task
runs in which executor is then up to Spark. A topology is one Spark application, and all executors
of an application have one shape, so all get the largest; what a node cannot hold is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.errors import Infeasible, InvalidInput, Unsupported
from headrace.model.build import build
from headrace.model.cluster import nodes_of
from headrace.model.document import FORMAT
from headrace.model.problem import CPU, MEMORY, UNPLACED, Problem
from headrace.model.read import Inputs

# What `import spark-log` calls nodes and their types.
FROM_A_LOG = re.compile(r"driver|executor-.+")
LOG_TYPE = re.compile(r"\d+-core-[\d.e+]+-mb")
# What Spark adds by default outside the heap: a share of the executor's memory, and at least so
# many MB.
JVM_OVERHEAD = 0.1
OVERHEAD_MB = 384
LEAST_HEAP_MB = 1024
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NO_DNS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Executor:
    """What one node gets: all tasks that an application has there, in one executor."""

    node: str
    cores: int
    memory_mb: int  # of the heap
    tasks: int


@dataclass(frozen=True, slots=True)
class Application:
    """A topology as a Spark application: its executors, and the one shape that all of them get."""

    name: str
    executors: tuple[Executor, ...]

    @property
    def cores(self) -> int:
        return max(e.cores for e in self.executors)

    @property
    def memory_mb(self) -> int:
        return max(e.memory_mb for e in self.executors)

    @property
    def overhead_mb(self) -> int:
        """What a pod or a worker needs beside the heap."""
        return max(OVERHEAD_MB, int(self.memory_mb * JVM_OVERHEAD))

    @property
    def whole_mb(self) -> int:
        return self.memory_mb + self.overhead_mb

    @property
    def nodes(self) -> list[str]:
        return [e.node for e in self.executors]

    @property
    def alike(self) -> bool:
        """Whether the plan itself has one shape."""
        return len({(e.cores, e.memory_mb) for e in self.executors}) == 1


def applications(inputs: Inputs) -> list[Application]:
    """One application per topology that is placed; refused where a node cannot hold its share."""
    problem = build(inputs)
    if problem.current is None:
        raise InvalidInput(
            "no plan to export: give a file with `plan`, as headrace place .. --out writes it"
        )
    found = [
        Application(name, placed)
        for g, name in enumerate(problem.topologies)
        if (placed := tuple(_executors(problem, g)))
    ]
    if not found:
        raise InvalidInput("no plan to export: it places no task")
    _check_room(problem, found)
    return found


def _executors(problem: Problem, topology: int) -> list[Executor]:
    """An executor per node in use: a core per 100 points, and the memory of its tasks."""
    assert problem.current is not None
    ours = problem.topology[problem.component_of] == topology
    found: list[Executor] = []
    for n, node in enumerate(problem.nodes):
        here = ours & (problem.current.node == n) & (problem.current.node != UNPLACED)
        if not here.any():
            continue
        components = problem.component_of[here]
        kind = problem.node_type[n]
        points = problem.demand[components, CPU] + problem.cpu_fixed[components, kind]
        points = points + problem.cpu_rate[components, kind] * problem.share[here]
        memory_mb = float(problem.demand[components, MEMORY].sum())
        tasks = int(here.sum())
        # Where no CPU is known, a core for each task, as far as the node has them.
        unknown = min(float(tasks), problem.free[n, CPU] // 100)
        cores = -(-float(points.sum()) // 100) if points.sum() > 0 else unknown
        heap_mb = max(LEAST_HEAP_MB, int(-(-memory_mb // 1)))
        found.append(Executor(node, max(1, int(cores)), heap_mb, tasks))
    return found


def _check_room(problem: Problem, found: Sequence[Application]) -> None:
    """Refuse what a node cannot hold: executors of all applications, overhead included."""
    for n, node in enumerate(problem.nodes):
        here = [app for app in found if node in app.nodes]
        asked = {
            "cpu": (100.0 * sum(app.cores for app in here), float(problem.free[n, CPU])),
            "memory_mb": (float(sum(app.whole_mb for app in here)), float(problem.free[n, MEMORY])),
        }
        for resource, (needed, free) in asked.items():
            if needed <= free:
                continue
            who = " and ".join(
                f"`{a.name}` ({a.cores} cores, {a.memory_mb} MB of heap and {a.overhead_mb} beside)"
                for a in here
            )
            unequal = any(not app.alike for app in here)
            why = "; all executors of an application are as large as its largest" if unequal else ""
            raise Infeasible(
                f"node {node} cannot hold the executor of {who}: "
                f"{resource} needed {needed:g}, free {free:g}{why}",
                resource=resource,
                needed=needed,
                available=free,
                fix="leave more headroom (headrace place --headroom 0.3), or plan nodes that are "
                "alike (--objective balance)",
            )


def were_executors(inputs: Inputs) -> bool:
    """Whether the nodes are executors of an imported event log: their names are no hosts."""
    nodes = nodes_of(inputs)
    return bool(nodes) and all(
        FROM_A_LOG.fullmatch(name) and LOG_TYPE.fullmatch(node.type or "")
        for name, node in nodes.items()
    )


def settings_of(app: Application) -> dict[str, str]:
    """What spark-submit is told of an application."""
    tasks = sum(e.tasks for e in app.executors)
    count = len(app.executors)
    conf = {
        "spark.executor.instances": count,
        "spark.executor.cores": app.cores,
        "spark.executor.memory": f"{app.memory_mb}m",
        "spark.executor.memoryOverhead": f"{app.overhead_mb}m",
        "spark.cores.max": count * app.cores,
        "spark.default.parallelism": tasks,
        "spark.sql.shuffle.partitions": tasks,
        "spark.dynamicAllocation.enabled": "false",
        "spark.locality.wait": "30s",
    }
    return {key: str(value) for key, value in conf.items()}


def spark(inputs: Inputs) -> dict[str, Any]:
    """Settings for spark-submit, of the one application or of each."""
    if were_executors(inputs):
        raise Unsupported(
            "this plan is of an imported event log: what its executors need cannot be known from "
            "the CPU and memory of stages, since a task of Spark holds a slot while it waits",
            resource="spark",
            fix="headrace export spark LOG, with the event log itself",
        )
    found = applications(inputs)
    if len(found) == 1:
        return {"format": FORMAT, **_submission(found[0])}
    return {"format": FORMAT, "applications": {app.name: _submission(app) for app in found}}


def _submission(app: Application) -> dict[str, Any]:
    conf = settings_of(app)
    notes = [f"on {', '.join(app.nodes)}"]
    if not app.alike:
        notes.append(
            "the plan's executors differ in shape and Spark's may not: all get the largest"
        )
    return {
        "executors": [
            {"node": e.node, "cores": e.cores, "memory_mb": e.memory_mb, "tasks": e.tasks}
            for e in app.executors
        ],
        "conf": conf,
        "spark_submit": " ".join(["spark-submit", *(f"--conf {k}={v}" for k, v in conf.items())]),
        "notes": notes,
    }


def kubernetes(inputs: Inputs, *, label: str = "kubernetes.io/hostname") -> list[dict[str, Any]]:
    """One pod template per application, for `spark.kubernetes.executor.podTemplateFile`."""
    pinned = not were_executors(inputs)  # an executor's name is no host to stand on
    return [_pod(app, label if pinned else None) for app in applications(inputs)]


def operator(
    inputs: Inputs,
    *,
    label: str = "kubernetes.io/hostname",
    image: str = "spark:4.0.0",
    main: str = "local:///opt/spark/work-dir/app.py",
) -> list[dict[str, Any]]:
    """One SparkApplication per application, for the Spark operator."""
    pinned = not were_executors(inputs)
    return [
        _spark_application(app, label if pinned else None, image, main)
        for app in applications(inputs)
    ]


def _pod(app: Application, label: str | None) -> dict[str, Any]:
    size = {"cpu": str(app.cores), "memory": f"{app.whole_mb}Mi"}
    conf = " ".join(f"{key}={value}" for key, value in settings_of(app).items())
    container = {"name": "executor", "resources": {"requests": dict(size), "limits": dict(size)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": dns_name(app.name),
            "labels": {"headrace-application": dns_name(app.name)},
            "annotations": {
                "headrace/executors": str(len(app.executors)),
                "headrace/conf": conf,
            },
        },
        "spec": {"containers": [container], **_affinity(app, label)},
    }


def _spark_application(
    app: Application, label: str | None, image: str, main: str
) -> dict[str, Any]:
    tag = image.rpartition(":")[2]
    own = (
        "spark.executor.",
        "spark.cores.max",
        "spark.dynamicAllocation",
    )  # said by the form itself
    conf = {key: v for key, v in settings_of(app).items() if not key.startswith(own)}
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": dns_name(app.name)},
        "spec": {
            "type": "Python" if main.endswith(".py") else "Scala",
            "mode": "cluster",
            "image": image,
            "mainApplicationFile": main,
            "sparkVersion": tag if re.fullmatch(r"\d+(\.\d+)+", tag) else "4.0.0",
            "restartPolicy": {"type": "Never"},
            "sparkConf": conf,
            "driver": {"cores": 1, "memory": f"{LEAST_HEAP_MB}m", "serviceAccount": "spark"},
            "executor": {
                "instances": len(app.executors),
                "cores": app.cores,
                "memory": f"{app.memory_mb}m",
                "memoryOverhead": f"{app.overhead_mb}m",
                "labels": {"headrace-application": dns_name(app.name)},
                **_affinity(app, label),
            },
        },
    }


def _affinity(app: Application, label: str | None) -> dict[str, Any]:
    """To the plan's nodes, one executor on each; nothing where names are no hosts."""
    if label is None:
        return {}
    term = {"matchExpressions": [{"key": label, "operator": "In", "values": app.nodes}]}
    apart = {
        "labelSelector": {"matchLabels": {"headrace-application": dns_name(app.name)}},
        "topologyKey": label,
    }
    return {
        "affinity": {
            "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}},
            "podAntiAffinity": {REQUIRED: [apart]},
        }
    }


def dns_name(name: str) -> str:
    """A name as Kubernetes takes it: small letters, digits and dashes, at most 63."""
    return NO_DNS.sub("-", name.lower()).strip("-")[:63].strip("-") or "topology"

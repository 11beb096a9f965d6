"""A STORM_HOME from the jars, and the storm.yaml of each daemon of a local cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from headrace.errors import InvalidInput
from headrace.model.cluster import nodes_of
from headrace.model.document import Node
from headrace.model.files import write_whole
from headrace.model.read import read
from headrace.storm.jars import Jars
from headrace.storm.plugin import find_plugin

SCHEDULER = "org.headrace.storm.HeadraceScheduler"
HOOK = "org.headrace.storm.telemetry.TaskHook"
FIRST_PORT = 16700  # of the slots; supervisors with addresses of their own share the numbers
WORKER_MB = 256
DAEMON_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LOG4J = """<?xml version="1.0" encoding="UTF-8"?>
<configuration monitorInterval="60">
  <appenders>
    <Console name="out"><PatternLayout pattern="%d %c{1.} [%t] %p %m%n"/></Console>
  </appenders>
  <loggers>
    <Logger name="org.apache.storm.shade" level="warn"/>
    <root level="info"><appender-ref ref="out"/></root>
  </loggers>
</configuration>
"""
# A local cluster shares a few cores: idle threads sleep soon, and nobody is given up on early.
PATIENT: Mapping[str, Any] = {
    "topology.spout.wait.progressive.level1.count": 1,
    "topology.spout.wait.progressive.level2.count": 1,
    "topology.spout.wait.progressive.level3.sleep.millis": 5,
    "topology.bolt.wait.progressive.level1.count": 1,
    "topology.bolt.wait.progressive.level2.count": 1,
    "topology.bolt.wait.progressive.level3.sleep.millis": 5,
    "executor.metrics.frequency.secs": 10,  # of figures; the default of 60 is long for a trial
    "nimbus.task.launch.secs": 240,
    "supervisor.worker.start.timeout.secs": 240,
    "supervisor.worker.timeout.secs": 60,
    "nimbus.task.timeout.secs": 60,
    "nimbus.supervisor.timeout.secs": 60,
    "storm.zookeeper.session.timeout": 40000,
    "storm.zookeeper.connection.timeout": 30000,
}


@dataclass(frozen=True, slots=True)
class StormNode:
    """A node of the cluster file, as a supervisor stands in for it."""

    name: str
    cpu: float
    memory_mb: float
    slots: int
    bandwidth_mbps: float | None
    type: str


def storm_nodes(files: list[Path]) -> tuple[StormNode, ...]:
    """The nodes of cluster files."""
    return tuple(_node(name, node) for name, node in nodes_of(read(files)).items())


def _node(name: str, node: Node) -> StormNode:
    slots = node.slots
    if slots < 1:
        raise InvalidInput(f"node {name} has no slot; a supervisor needs one")
    memory_mb = float(WORKER_MB * slots) if node.memory_mb is None else float(node.memory_mb)
    cpu = 100.0 * (node.cores or 1) if node.cpu is None else float(node.cpu)
    return StormNode(name, cpu, memory_mb, slots, node.bandwidth_mbps, node.type or "")


def make_home(jars: Jars, folder: Path) -> Path:
    """A STORM_HOME of symbolic links to the jars, with the plug-in where Storm looks for it."""
    plugin = find_plugin(jars)
    for part in ("lib", "lib-worker", "extlib", "extlib-daemon", "log4j2", "bin", "conf"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for part in ("lib", "lib-worker"):
        for jar in jars.class_path:
            link(jar, folder / part / jar.name)
    for part in ("extlib", "extlib-daemon"):
        link(plugin, folder / part / "headrace-storm.jar")
    for name in ("worker.xml", "cluster.xml"):
        write_whole(folder / "log4j2" / name, LOG4J)
    # The standard output of programs is for what they answer.
    quiet = LOG4J.replace("info", "error").replace("<Console", '<Console target="SYSTEM_ERR"')
    write_whole(folder / "log4j2" / "client.xml", quiet)
    return folder


def link(target: Path, name: Path) -> None:
    if name.is_symlink() and name.resolve() == target.resolve():
        return
    name.unlink(missing_ok=True)
    name.symlink_to(target.resolve())


def shared_settings(nimbus: str, ports: Mapping[str, int]) -> dict[str, Any]:
    """What all daemons of a cluster have in common."""
    return {
        "storm.zookeeper.servers": [nimbus],
        "storm.zookeeper.port": ports["zookeeper"],
        "nimbus.seeds": [nimbus],
        "nimbus.thrift.port": ports["nimbus"],
        "storm.metricstore.class": "org.apache.storm.metricstore.NoOpMetricStore",
        "storm.log4j2.conf.dir": "log4j2",
        **PATIENT,
    }


def nimbus_settings(
    shared: Mapping[str, Any], host: str, folder: Path, source: Mapping[str, Any]
) -> dict[str, Any]:
    """Nimbus' storm.yaml: our scheduler, and where its plans come from."""
    return {
        **shared,
        "storm.local.hostname": host,
        "storm.local.dir": str(folder / "nimbus"),
        "storm.scheduler": SCHEDULER,
        "nimbus.monitor.freq.secs": 5,
        "headrace.timeout.secs": 20,
        **source,
    }


def supervisor_settings(
    shared: Mapping[str, Any], node: StormNode, host: str, folder: Path, port: int, hook: bool
) -> dict[str, Any]:
    """A supervisor's storm.yaml: the node it stands in for, and telemetry."""
    options = " ".join((*DAEMON_OPTIONS, f"-Xmx{WORKER_MB}m"))
    found: dict[str, Any] = {
        **shared,
        "storm.local.hostname": host,
        "storm.local.dir": str(folder / node.name),
        "supervisor.thrift.port": port + node.slots,
        "supervisor.slots.ports": [port + i for i in range(node.slots)],
        "supervisor.cpu.capacity": node.cpu,
        "supervisor.memory.capacity.mb": node.memory_mb,
        "supervisor.scheduler.meta": {"headrace.node": node.name},
        "worker.childopts": options,
        "headrace.node": node.name,
        "headrace.machine.type": node.type,
        "storm.workers.artifacts.dir": str(folder / node.name / "workers-artifacts"),
    }
    if hook:
        found["topology.auto.task.hooks"] = [HOOK]
        found["headrace.telemetry.folder"] = str(folder / "telemetry")
    return found


def write_settings(folder: Path, settings: Mapping[str, Any]) -> Path:
    """A storm.yaml in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "storm.yaml", yaml.safe_dump(json.loads(json.dumps(dict(settings)))))
    return folder


def class_path(home: Path, conf: Path, *more: str) -> str:
    """The class path of a daemon."""
    parts = [str(conf), *(f"{home}/{part}/*" for part in ("lib", "extlib", *more))]
    return os.pathsep.join(parts)

"""A Storm cluster of processes on this machine: ZooKeeper, Nimbus, a supervisor per node.

Storm's daemons listen on every address of their machine. Where it is possible (Linux, root), every
node and Nimbus get a network namespace of their own, joined by a bridge that leads nowhere else;
with limits these have bandwidth and CPU as well (`run/limits.py`). Elsewhere supervisors share the
machine's network at 127.0.0.2, 127.0.0.3, ..
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.errors import InvalidInput, Unsupported
from headrace.run.addresses import LOOPBACK, check_address, free_port
from headrace.run.fleet import enter_room
from headrace.run.limits import TOOLS, Bounds, Ground, Limit, Room, check_bounds, make_rooms
from headrace.spark import find_java
from headrace.storm.home import (
    DAEMON_OPTIONS,
    FIRST_PORT,
    StormNode,
    class_path,
    make_home,
    nimbus_settings,
    shared_settings,
    supervisor_settings,
    write_settings,
)
from headrace.storm.jars import Jars

STARTS_WITHIN_S = 240
ZOOKEEPER = "org.apache.storm.shade.org.apache.zookeeper.server.ZooKeeperServerMain"
NIMBUS = "org.apache.storm.daemon.nimbus.Nimbus"
SUPERVISOR = "org.apache.storm.daemon.supervisor.Supervisor"
MEMORY_MB = {ZOOKEEPER: 64, NIMBUS: 256, SUPERVISOR: 96}


@dataclass(frozen=True, slots=True)
class StormCluster:
    """A cluster that is up."""

    version: str
    home: str
    folder: str
    nimbus: str  # its address
    port: int  # of Nimbus' Thrift
    host: str  # where a service is reached from Nimbus
    nodes: tuple[StormNode, ...]
    hosts: Mapping[str, str]  # node -> address
    limits: tuple[Limit, ...] = ()
    pid: int = 0  # of the process that all daemons end with
    namespaces: Mapping[str, str] = field(default_factory=dict[str, str])  # node -> path

    @property
    def conf(self) -> Path:
        """The folder of Nimbus' storm.yaml, which clients use as well."""
        return Path(self.folder) / "conf" / "nimbus"

    @property
    def telemetry(self) -> Path:
        return Path(self.folder) / "telemetry"


def has_namespaces() -> bool:
    """Whether this machine lets us make network namespaces."""
    tools = all(shutil.which(tool, path=TOOLS) for tool in ("ip", "tc"))
    return sys.platform == "linux" and os.geteuid() == 0 and tools


@contextmanager
def local_storm(
    jars: Jars,
    nodes: Sequence[StormNode],
    folder: Path,
    *,
    source: Mapping[str, Any] | None = None,
    limits: Collection[Limit] = (),
    hook: bool = True,
    settings: Mapping[str, Any] | None = None,
    port: int = 7274,
) -> Generator[tuple[StormCluster, Daemons]]:
    """A cluster that is up inside the `with` and gone after it; logs are in the folder.

    `source` says where Nimbus gets plans from (`headrace.address` or `headrace.plans`); without it,
    from a service at `port` of the cluster's own address. `settings` are added to every storm.yaml.
    """
    check_bounds([n.name for n in nodes], [Bounds(n.bandwidth_mbps) for n in nodes], limits)
    folder = folder.resolve()
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    home = make_home(jars, folder / "home")
    with ExitStack() as ending:
        ground, room = ending.enter_context(make_ground(nodes, limits))
        hosts = place_nodes(nodes, ground)
        nimbus = room.host or LOOPBACK
        alone = room.namespace is not None  # with a network of its own
        ports = {name: free_port() for name in ("zookeeper", "nimbus")}
        given = source or {"headrace.address": f"http://{ground.host}:{port}"}
        shared, more = shared_settings(nimbus, ports), settings or {}
        cluster = StormCluster(
            jars.version, str(home), str(folder), nimbus, ports["nimbus"], ground.host,
            tuple(nodes), hosts, tuple(limits), os.getpid(),
            {n.name: str(r.namespace) for n, r in zip(nodes, ground.rooms, strict=False) if alone},
        )  # fmt: skip
        daemons = Daemons(folder, home, ending)
        daemons.start_zookeeper(room, nimbus, ports["zookeeper"])
        options = {**nimbus_settings(shared, nimbus, folder, given), **more}
        daemons.add("nimbus", NIMBUS, room, options)
        daemons.wait(lambda: answers(nimbus, ports["nimbus"]), "Nimbus did not answer")
        for i, (node, own) in enumerate(zip(nodes, ground.rooms, strict=False)):
            first = FIRST_PORT + (0 if alone else 20 * i)
            options = supervisor_settings(shared, node, hosts[node.name], folder, first, hook)
            daemons.add(node.name, SUPERVISOR, own, {**options, **more})
        for node in nodes:
            log = folder / "logs" / f"{node.name}.log"
            daemons.wait(lambda log=log: b"Starting supervisor with id" in log.read_bytes(),
                         f"the supervisor of {node.name} did not start")  # fmt: skip
        yield cluster, daemons


@contextmanager
def make_ground(
    nodes: Sequence[StormNode], limits: Collection[Limit]
) -> Generator[tuple[Ground, Room]]:
    """Rooms for the nodes, and one for Nimbus and ZooKeeper that has no limits."""
    if not has_namespaces():
        with make_rooms([Bounds()] * len(nodes), limits) as ground:  # refuses limits in words
            yield ground, Room()
        return
    bounds = [
        Bounds(
            node.bandwidth_mbps if "bandwidth" in limits else None,
            node.cpu if "cpu" in limits else None,
        )
        for node in nodes
    ]
    with make_rooms([*bounds, Bounds()], {"bandwidth", *limits}) as ground:
        yield ground, ground.rooms[-1]


def place_nodes(nodes: Sequence[StormNode], ground: Ground) -> dict[str, str]:
    """The address of every node: its room's, else one of this machine's own."""
    found: dict[str, str] = {}
    for i, (node, room) in enumerate(zip(nodes, ground.rooms, strict=False), 2):
        found[node.name] = room.host or f"127.0.0.{i}"
        if room.host is None:
            check_address(found[node.name])
    return found


class Daemons:
    """The processes of a cluster, each with a log file; they end when the stack does."""

    def __init__(self, folder: Path, home: Path, ending: ExitStack) -> None:
        self.folder, self.home, self._ending = folder, home, ending
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, tuple[Room, list[str], dict[str, str]]] = {}
        ending.callback(self.end_workers)

    def start_zookeeper(self, room: Room, host: str, port: int) -> None:
        data = self.folder / "zookeeper"
        shutil.rmtree(data, ignore_errors=True)  # what a cluster before had is of no use
        data.mkdir()
        config = self.folder / "conf" / "zoo.cfg"
        config.parent.mkdir(exist_ok=True)
        config.write_text(
            f"tickTime=2000\ndataDir={data}\nclientPort={port}\nclientPortAddress={host}\n"
            "maxClientCnxns=0\nadmin.enableServer=false\nmaxSessionTimeout=120000\n"
        )
        path = class_path(self.home, config.parent)
        self._launch("zookeeper", room, [*java(ZOOKEEPER, path), str(config)], {})
        self.wait(lambda: answers(host, port), "ZooKeeper did not answer")

    def add(self, name: str, main: str, room: Room, settings: Mapping[str, Any]) -> None:
        """Start a daemon of Storm's with its own storm.yaml."""
        conf = write_settings(self.folder / "conf" / name, settings)
        shutil.rmtree(self.folder / name, ignore_errors=True)
        path = class_path(self.home, conf, "extlib-daemon")
        logs = self.folder / "logs"
        options = [f"-Dstorm.home={self.home}", f"-Dstorm.log.dir={logs}", f"-Dlogfile.name={name}"]
        options.append(f"-Dlog4j.configurationFile={self.home / 'log4j2' / 'cluster.xml'}")
        home = str(find_java().home)
        variables = {"STORM_CONF_DIR": str(conf), "JAVA_HOME": home}
        variables["PATH"] = f"{home}/bin:{os.environ.get('PATH', os.defpath)}"
        self._launch(name, room, java(main, path, *options), variables)

    def _launch(self, name: str, room: Room, command: list[str], variables: dict[str, str]) -> None:
        self._commands[name] = (room, command, variables)
        with (self.folder / "logs" / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*enter_room(room), *command],
                env={**os.environ, **variables},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._processes[name] = process
        self._ending.callback(end, process)

    def check(self, name: str) -> None:
        if name not in self._processes:
            known = ", ".join(self._processes)
            raise InvalidInput(f"the cluster has no daemon {name}; there are: {known}")

    def kill(self, name: str) -> None:
        """Kill a daemon without warning; workers of a supervisor live on, as in Storm."""
        self.check(name)
        self._processes[name].kill()
        self._processes[name].wait()

    def restart(self, name: str) -> None:
        """Start a daemon again that was killed."""
        self.check(name)
        self._launch(name, *self._commands[name])

    def lose(self, name: str) -> None:
        """Lose a node: its supervisor and everything on it."""
        self.kill(name)
        for pid in worker_processes(self.folder / name):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def end_workers(self) -> None:
        """End the workers that supervisors leave behind when they end."""
        for name in self._processes:
            for pid in worker_processes(self.folder / name):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def ended(self) -> list[str]:
        return [name for name, process in self._processes.items() if process.poll() is not None]

    def wait(self, done: Callable[[], bool], otherwise: str) -> None:
        """Wait until something is done; refuse if a process ends or it takes too long."""
        deadline, logs = time.monotonic() + STARTS_WITHIN_S, self.folder / "logs"
        while not done():
            for name in self.ended():
                lines = (logs / f"{name}.log").read_text(errors="replace").strip().splitlines()
                last = next((x for x in reversed(lines) if not x.startswith("\t")), "")
                raise Unsupported(f"Storm's {name} ended at once: {last} (see {logs})")
            if time.monotonic() > deadline:
                raise Unsupported(f"{otherwise} within {STARTS_WITHIN_S} s; see {logs}")
            time.sleep(0.1)


def worker_processes(folder: Path) -> list[int]:
    """The processes of a supervisor's workers, by the files in which Storm keeps their numbers."""
    found: list[int] = []
    for file in folder.glob("workers/*/pids/*"):
        with suppress(OSError):
            command = Path(f"/proc/{file.name}/cmdline").read_bytes()
            if str(folder.parent).encode() in command:  # and no other with its number
                found.append(int(file.name))
    return found


def java(main: str, path: str, *options: str) -> list[str]:
    """The command of a Java program with little memory and a quick start."""
    program = str(find_java().home / "bin" / "java")
    memory = f"-Xmx{MEMORY_MB.get(main, 128)}m"
    return [program, memory, *DAEMON_OPTIONS, *options, "-cp", path, main]


def answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
        return True
    except OSError:
        return False


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

"""A fleet on one machine: a standalone Spark cluster from the pip package, one worker per loopback address.

Workers have the names, cores and memory of a cluster file's nodes; with limits (`limits.py`) also
their bandwidth and CPU. Every daemon asks the kernel to be ended with its parent, so none outlives
the process that started it. `python -m headrace.run.fleet` is the process behind `headrace fleet
up`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError, Infeasible, InvalidInput, Unsupported
from headrace.model.cluster import nodes_of
from headrace.model.document import Node
from headrace.model.read import read
from headrace.run.limits import LIMITS, Bounds, Limit, Room, check, check_bounds, limited, sweep
from headrace.run.state import write_whole
from headrace.spark import environment

FOLDER = Path(".headrace-fleet")
STARTS_WITHIN_S = 180
LEAST_MEMORY_MB = 512  # Spark's executors do not start with less
DEFAULT_MEMORY_MB = 1024
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # less compiling at the start; a fleet is not there for peak speed
# Enters a node's network namespace and control group, asks the kernel (Linux) to kill the process
# when its parent ends, however that happens, and then becomes the command that follows. All in one
# process: one in between would end with the parent and leave the command alive.
SHIM = """
import ctypes, os, signal, sys
namespace, group, *command = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
if group:
    with open(group, "w") as file:
        file.write(str(os.getpid()))
if namespace:
    with open(namespace) as file:
        if libc.setns(file.fileno(), 0x40000000):  # CLONE_NEWNET
            sys.exit(f"cannot enter {namespace}: {os.strerror(ctypes.get_errno())}")
if sys.platform == "linux":
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
os.execv(command[0], command)
"""
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Machine:
    """A worker of the fleet, which stands for a node of the cluster."""

    name: str
    host: str
    cores: int
    memory_mb: int
    bandwidth_mbps: float | None = (
        None  # of the node, in and out separately; held to where the fleet has that limit
    )
    cpu: float | None = None  # of the node, 100 = one core; held to where the fleet has that limit


@dataclass(frozen=True, slots=True)
class Fleet:
    """A fleet that is up."""

    master: str  # spark://127.0.0.1:port
    page: str  # where the master tells about its workers
    machines: tuple[Machine, ...]
    pid: int  # of the process that all daemons end with
    limits: tuple[Limit, ...] = ()  # in force
    host: str = LOOPBACK  # of the master, and of drivers

    @property
    def hosts(self) -> dict[str, str]:
        return {machine.name: machine.host for machine in self.machines}

    @property
    def cores(self) -> dict[str, int]:
        return {machine.name: machine.cores for machine in self.machines}

    def settings(self) -> dict[str, str]:
        """What a session needs to use all of the fleet: one executor per worker, with all its cores."""
        return {
            "spark.executor.memory": f"{min(machine.memory_mb for machine in self.machines)}m",
            "spark.cores.max": str(sum(machine.cores for machine in self.machines)),
            "spark.executor.extraJavaOptions": QUICK_START,
            "spark.driver.extraJavaOptions": QUICK_START,
            "spark.driver.host": self.host,
            "spark.driver.bindAddress": self.host,
        }

    def stands_for(self, machines: Sequence[Machine]) -> bool:
        """Whether these are its machines, at whatever addresses."""
        return [replace(machine, host="") for machine in self.machines] == [
            replace(machine, host="") for machine in machines
        ]


def machines_of(files: Sequence[str | os.PathLike[str]]) -> tuple[Machine, ...]:
    """The nodes of a cluster file as workers on 127.0.0.2, 127.0.0.3, .."""
    nodes = nodes_of(read([Path(file) for file in files]))
    if len(nodes) > 250:
        raise Unsupported(
            f"the cluster has {len(nodes)} nodes; a fleet on one machine has 250 at most",
            resource="nodes",
        )
    return tuple(
        _machine(name, node, f"127.0.0.{i + 2}") for i, (name, node) in enumerate(nodes.items())
    )


def _machine(name: str, node: Node, host: str) -> Machine:
    cores = (
        int(node.cpu // 100) if node.cpu is not None else (node.cores or 1) * (node.sockets or 1)
    )
    memory_mb = DEFAULT_MEMORY_MB if node.memory_mb is None else int(node.memory_mb)
    if memory_mb < LEAST_MEMORY_MB:
        raise Infeasible(
            f"node {name} has {memory_mb} MB; a Spark executor needs {LEAST_MEMORY_MB}",
            resource="memory_mb",
            needed=LEAST_MEMORY_MB,
            available=memory_mb,
        )
    return Machine(
        name, host, max(1, cores), memory_mb, node.bandwidth_mbps, node.cpu or 100.0 * cores
    )


@contextmanager
def local_fleet(
    machines: Sequence[Machine],
    folder: Path,
    *,
    port: int | None = None,
    limits: Collection[Limit] = (),
) -> Generator[Fleet]:
    """A fleet that is up inside the `with` and gone after it; logs lie in the folder.

    With limits on bandwidth the workers stand at addresses of their own, and the fleet's machines
    tell them.
    """
    bounds = [Bounds(machine.bandwidth_mbps, machine.cpu) for machine in machines]
    check_bounds([machine.name for machine in machines], bounds, limits)
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    with ExitStack() as ending:
        ground = ending.enter_context(limited(bounds, limits))
        places = list(zip(machines, ground.rooms, strict=True))
        machines = tuple(
            m if room.host is None else replace(m, host=room.host) for m, room in places
        )
        for machine, room in places:
            if room.host is None:
                _check_address(machine.host)
        chosen = free_port(ground.host) if port is None else port
        _check_port(ground.host, chosen)
        master, page_port = f"spark://{ground.host}:{chosen}", free_port(ground.host)
        daemon = {
            **os.environ,
            **environment(master, os.environ),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
        }
        spark_class = str(Path(daemon["SPARK_HOME"]) / "bin" / "spark-class")

        def start(
            name: str, room: Room, command: Sequence[str], **variables: str
        ) -> subprocess.Popen[bytes]:
            log = ending.enter_context((folder / "logs" / f"{name}.log").open("wb"))
            process = subprocess.Popen(
                [*through(room), spark_class, *command],
                env={**daemon, **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            ending.callback(_end, process)
            return process

        options = ["--host", ground.host, "--port", str(chosen), "--webui-port", str(page_port)]
        at_master = ["org.apache.spark.deploy.master.Master", *options]
        daemons = {"master": start("master", Room(), at_master, SPARK_LOCAL_IP=ground.host)}
        page = f"http://{ground.host}:{page_port}/json/"
        fleet = Fleet(master, page, machines, os.getpid(), tuple(limits), ground.host)
        _wait(lambda: asked(fleet) is not None, daemons, folder, "the master did not answer")
        for m, room in zip(machines, ground.rooms, strict=True):
            shape = [
                "--host",
                m.host,
                "--cores",
                str(m.cores),
                "--memory",
                f"{m.memory_mb}m",
                "--webui-port",
                "0",
            ]
            work = ["--work-dir", str((folder / "work" / m.name).resolve())]
            daemons[m.name] = start(
                m.name,
                room,
                ["org.apache.spark.deploy.worker.Worker", *shape, *work, master],
                SPARK_LOCAL_IP=m.host,
                HEADRACE_NODE=m.name,
            )
        _wait(
            lambda: len(alive(fleet)) == len(machines),
            daemons,
            folder,
            f"not all {len(machines)} workers came up",
        )
        yield fleet


def through(room: Room) -> list[str]:
    """The beginning of a command whose process lives in a room and ends with its parent."""
    return [sys.executable, "-S", "-c", SHIM, str(room.namespace or ""), str(room.group or "")]


def asked(fleet: Fleet) -> dict[str, Any] | None:
    """What the master tells about itself; None if it does not answer."""
    try:
        with urllib.request.urlopen(fleet.page, timeout=5) as answer:
            return json.load(answer)
    except (OSError, urllib.error.URLError, ValueError):
        return None


def alive(fleet: Fleet) -> list[str]:
    """The nodes whose workers are registered."""
    told = asked(fleet) or {}
    hosts = {worker["host"] for worker in told.get("workers", ()) if worker.get("state") == "ALIVE"}
    return [machine.name for machine in fleet.machines if machine.host in hosts]


def up(
    files: Sequence[str],
    folder: Path = FOLDER,
    *,
    port: int | None = None,
    limits: Collection[Limit] = (),
) -> Fleet:
    """Start a fleet that stays up until `down`."""
    if (running := found(folder)) is not None:
        raise InvalidInput(
            f"a fleet is up already ({running.master}, in {folder}); end it with headrace fleet down"
        )
    machines_of(files)  # a wrong file is refused here, in words
    check(limits)
    sweep()
    folder.mkdir(parents=True, exist_ok=True)
    told = folder / "refusal.json"
    told.unlink(missing_ok=True)
    options = ["-" if port is None else str(port), ",".join(limits) or "-"]
    command = [sys.executable, "-m", "headrace.run.fleet", str(folder), *options, *files]
    with (folder / "supervisor.log").open("wb") as log:
        supervisor = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    while supervisor.poll() is None:
        if (fleet := found(folder)) is not None:
            return fleet
        time.sleep(0.1)
    if told.exists():
        refusal: dict[str, Any] = json.loads(told.read_text())
        raise Unsupported(refusal["message"], resource=refusal["resource"], fix=refusal["fix"])
    raise Unsupported(f"the fleet did not start; see {folder / 'supervisor.log'}")


def found(folder: Path = FOLDER) -> Fleet | None:
    """The fleet that is up, if any; what one that has crashed left behind does not count."""
    try:
        content: dict[str, Any] = json.loads((folder / "fleet.json").read_text())
    except (OSError, ValueError):
        return None
    machines = tuple(Machine(**machine) for machine in content.pop("machines"))
    fleet = Fleet(machines=machines, limits=tuple(content.pop("limits")), **content)
    return fleet if _is_supervisor(fleet.pid) else None


def down(folder: Path = FOLDER) -> bool:
    """End the fleet, and remove what fleets that crashed left behind; False if none was up."""
    fleet = found(folder)
    if fleet is not None:
        _stop(fleet.pid)
    sweep()
    return fleet is not None


def _stop(supervisor: int) -> None:
    os.kill(supervisor, signal.SIGTERM)
    for _ in range(300):
        if not _is_supervisor(supervisor):
            return
        time.sleep(0.1)
    os.kill(supervisor, signal.SIGKILL)  # its daemons end with it


def supervise(
    files: Sequence[str], folder: Path, port: int | None, limits: Collection[Limit]
) -> None:
    """Keep a fleet up until a signal comes or a daemon ends."""
    ended = threading.Event()

    def end(*_: object) -> None:
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    state = folder / "fleet.json"
    with local_fleet(machines_of(files), folder, port=port, limits=limits) as fleet:
        write_whole(state, json.dumps(asdict(fleet)).encode())
        try:
            while not ended.wait(1.0):
                if asked(fleet) is None:
                    break
        finally:
            state.unlink(missing_ok=True)


def check_reachable(master: str) -> None:
    """Refuse a master that nobody listens at: Spark itself would try for a minute and then tell a stack trace."""
    if not master.startswith("spark://"):
        return
    refusals: list[str] = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise InvalidInput(f"`{master}` is no master; one looks like spark://host:7077")
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
            return
        except OSError as error:
            refusals.append(f"{address}: {error.strerror or error}")
    raise Unsupported(
        f"the master {master} cannot be reached ({'; '.join(refusals)})",
        fix="start one, such as with headrace fleet up, or name another",
    )


def free_port(host: str = LOOPBACK) -> int:
    """A port that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _check_port(host: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise Unsupported(
                f"port {port} of {host} cannot be used: {error.strerror}",
                resource="port",
                fix="name another, or none for a free one",
            ) from None


def _check_address(host: str) -> None:
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            raise Unsupported(
                f"this machine does not answer at {host}; Linux does by itself, macOS after: sudo ifconfig lo0 alias {host}",
                resource="address",
            ) from None


def _wait(
    done: Callable[[], bool],
    daemons: Mapping[str, subprocess.Popen[bytes]],
    folder: Path,
    otherwise: str,
) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while not done():
        for name, process in daemons.items():
            if process.poll() is not None:
                log = folder / "logs" / f"{name}.log"
                lines = log.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
                raise Unsupported(f"the fleet's {name} ended at once: {lines[-1]} (see {log})")
        if time.monotonic() > deadline:
            raise Unsupported(f"{otherwise} within {STARTS_WITHIN_S} s; see {folder / 'logs'}")
        time.sleep(0.2)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _is_supervisor(pid: int) -> bool:
    """Whether a process is the one behind `headrace fleet up`, and not another that got its number."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/cmdline")
        return not status.parent.parent.exists() or b"headrace.run.fleet" in status.read_bytes()
    except OSError:
        return False


def main(arguments: Sequence[str]) -> int:
    folder, port, limits, *files = arguments
    try:
        supervise(
            files,
            Path(folder),
            None if port == "-" else int(port),
            [limit for limit in LIMITS if limit in limits.split(",")],
        )
    except HeadraceError as refusal:
        write_whole(Path(folder) / "refusal.json", json.dumps(refusal.fields()).encode())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A fleet on one machine: a standalone Spark cluster, one worker per loopback address.

Its Spark is that of the pip package. Workers have the names, cores and memory of a cluster file's
nodes; with limits (`limits.py`) also their bandwidth and CPU. Every daemon asks the kernel to be
ended with its parent, so none outlives the process that started it.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headrace.errors import Unsupported
from headrace.run.addresses import LOOPBACK, check_address, check_port, free_port
from headrace.run.limits import Bounds, Ground, Limit, Room, check_bounds, make_rooms
from headrace.run.machines import Machine
from headrace.spark import environment

STARTS_WITHIN_S = 180
# Less compiling at the start: a fleet is not there for peak speed.
SECRET = "spark.authenticate.secret"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
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


@dataclass(frozen=True, slots=True)
class Fleet:
    """A fleet that is up."""

    master: str  # spark://127.0.0.1:port
    page: str  # where the master lists its workers
    machines: tuple[Machine, ...]
    pid: int  # of the process that all daemons end with
    limits: tuple[Limit, ...] = ()  # in force
    host: str = LOOPBACK  # of the master, and of drivers
    secret: str = ""  # without it no program of this machine can give the fleet anything to run

    @property
    def hosts(self) -> dict[str, str]:
        return {machine.name: machine.host for machine in self.machines}

    def settings(self) -> dict[str, str]:
        """What a session needs to use all of the fleet: one executor per worker, all its cores."""
        return {
            "spark.executor.memory": f"{min(machine.memory_mb for machine in self.machines)}m",
            "spark.cores.max": str(sum(machine.cores for machine in self.machines)),
            "spark.executor.extraJavaOptions": QUICK_START,
            "spark.driver.extraJavaOptions": QUICK_START,
            "spark.driver.host": self.host,
            "spark.driver.bindAddress": self.host,
            **({"spark.authenticate": "true", SECRET: self.secret} if self.secret else {}),
        }

    def has_machines(self, machines: Sequence[Machine]) -> bool:
        """Whether these are its machines, at whatever addresses."""
        return [replace(machine, host="") for machine in self.machines] == [
            replace(machine, host="") for machine in machines
        ]


@contextmanager
def local_fleet(
    machines: Sequence[Machine],
    folder: Path,
    *,
    port: int | None = None,
    limits: Collection[Limit] = (),
) -> Generator[Fleet]:
    """A fleet that is up inside the `with` and gone after it; logs are in the folder.

    With limits on bandwidth the workers get addresses of their own, which the fleet's machines
    have.
    """
    bounds = [Bounds(machine.bandwidth_mbps, machine.cpu) for machine in machines]
    check_bounds([machine.name for machine in machines], bounds, limits)
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    with ExitStack() as ending:
        ground = ending.enter_context(make_rooms(bounds, limits))
        housed = tuple(
            m if room.host is None else replace(m, host=room.host)
            for m, room in zip(machines, ground.rooms, strict=True)
        )
        for machine, room in zip(housed, ground.rooms, strict=True):
            if room.host is None:
                check_address(machine.host)
        chosen = free_port(ground.host) if port is None else port
        check_port(ground.host, chosen)
        page_port = free_port(ground.host)
        master = f"spark://{ground.host}:{chosen}"
        page = f"http://{ground.host}:{page_port}/json/"
        secret = secrets.token_hex(32)
        fleet = Fleet(master, page, housed, os.getpid(), tuple(limits), ground.host, secret)
        _start_daemons(fleet, ground, Daemons(folder, fleet, ending), chosen, page_port)
        yield fleet


def _start_daemons(
    fleet: Fleet, ground: Ground, daemons: Daemons, port: int, page_port: int
) -> None:
    """Start the master, then the workers, and wait until all of them are registered."""
    at = ["--host", ground.host, "--port", str(port), "--webui-port", str(page_port)]
    command = ["org.apache.spark.deploy.master.Master", *at]
    daemons.start("master", Room(), command, SPARK_LOCAL_IP=ground.host)
    daemons.wait(lambda: ask_master(fleet) is not None, "the master did not answer")
    for m, room in zip(fleet.machines, ground.rooms, strict=True):
        shape = ["--host", m.host, "--cores", str(m.cores), "--memory", f"{m.memory_mb}m"]
        work = ["--work-dir", str((daemons.folder / "work" / m.name).resolve())]
        command = ["org.apache.spark.deploy.worker.Worker", *shape, "--webui-port", "0", *work]
        variables = {"SPARK_LOCAL_IP": m.host, "HEADRACE_NODE": m.name}
        daemons.start(m.name, room, [*command, fleet.master], **variables)
    count = len(fleet.machines)
    daemons.wait(lambda: len(nodes_alive(fleet)) == count, f"not all {count} workers came up")


class Daemons:
    """Spark's processes of a fleet, each with a log file; they end when the stack does."""

    def __init__(self, folder: Path, fleet: Fleet, ending: ExitStack) -> None:
        self.folder, self._ending = folder, ending
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._variables = {
            **os.environ,
            **environment(fleet.master, os.environ),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{QUICK_START} -Dspark.authenticate=true",
            "_SPARK_AUTH_SECRET": fleet.secret,  # not among the arguments, which all can see
        }

    def start(self, name: str, room: Room, command: Sequence[str], **variables: str) -> None:
        """Start a class of Spark's in a room."""
        log = self._ending.enter_context((self.folder / "logs" / f"{name}.log").open("wb"))
        spark_class = str(Path(self._variables["SPARK_HOME"]) / "bin" / "spark-class")
        process = subprocess.Popen(
            [*enter_room(room), spark_class, *command],
            env={**self._variables, **variables},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        self._ending.callback(_end, process)
        self._processes[name] = process

    def wait(self, done: Callable[[], bool], otherwise: str) -> None:
        """Wait until something is done; refuse if a process ends or it takes too long."""
        deadline, logs = time.monotonic() + STARTS_WITHIN_S, self.folder / "logs"
        while not done():
            for name, process in self._processes.items():
                if process.poll() is not None:
                    log = logs / f"{name}.log"
                    lines = log.read_text(errors="replace").strip().splitlines()
                    last = lines[-1] if lines else "it said nothing"
                    raise Unsupported(f"the fleet's {name} ended at once: {last} (see {log})")
            if time.monotonic() > deadline:
                raise Unsupported(f"{otherwise} within {STARTS_WITHIN_S} s; see {logs}")
            time.sleep(0.2)


def enter_room(room: Room) -> list[str]:
    """The beginning of a command whose process lives in a room and ends with its parent."""
    return [sys.executable, "-S", "-c", SHIM, str(room.namespace or ""), str(room.group or "")]


def ask_master(fleet: Fleet) -> dict[str, Any] | None:
    """What the master says about itself; None if it does not answer."""
    try:
        with urllib.request.urlopen(fleet.page, timeout=5) as answer:
            return json.load(answer)
    except (OSError, urllib.error.URLError, ValueError):
        return None


def nodes_alive(fleet: Fleet) -> list[str]:
    """The nodes whose workers are registered."""
    workers = (ask_master(fleet) or {}).get("workers", ())
    hosts = {worker["host"] for worker in workers if worker.get("state") == "ALIVE"}
    return [machine.name for machine in fleet.machines if machine.host in hosts]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

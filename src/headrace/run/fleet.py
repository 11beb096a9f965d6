"""A fleet on one machine: a standalone Spark cluster, one loopback address per node.

Its Spark is that of the pip package. Nodes have the names, cores and memory of a cluster file's;
with limits (`limits.py`) also their bandwidth and CPU. A node begins with one of Spark's workers,
whose executor is the first worker of plans there; it gets another for every further worker that a
plan wants (`grow`), up to its slots. Every daemon asks the kernel to be ended with its parent, so
none outlives the process that started it.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from headrace.errors import InvalidInput, Unsupported
from headrace.run.addresses import LOOPBACK, check_address, check_port, free_port
from headrace.run.limits import Bounds, Ground, Limit, Room, add_room, check_bounds, make_rooms
from headrace.run.machines import Machine
from headrace.spark import environment

STARTS_WITHIN_S = 180
AGENTS = "agents"  # the folder of what nodes say about themselves
WORK, LOCAL = "work", "local"  # the folders of what runs on the nodes, and of what Spark puts aside
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


Grow = Callable[[Mapping[str, int]], None]  # node -> processes that its workers need


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
    nodes: Mapping[str, Mapping[str, Any]] = field(  # that joined later, as their file says
        default_factory=dict[str, Mapping[str, Any]]
    )
    local: str = ""  # the folder of what Spark puts aside on all nodes
    grow: Grow | None = field(default=None, compare=False, repr=False)

    @property
    def hosts(self) -> dict[str, str]:
        return {machine.name: machine.host for machine in self.machines}

    def settings(self) -> dict[str, str]:
        """What a session needs to use all of the fleet: an executor in every process it has."""
        return {
            "spark.executor.memory": f"{min(machine.worker_mb for machine in self.machines)}m",
            "spark.executor.extraJavaOptions": f"{QUICK_START} {temporary(self.local)}".strip(),
            "spark.driver.extraJavaOptions": QUICK_START,
            "spark.driver.host": self.host,
            "spark.driver.bindAddress": self.host,
            **({"spark.authenticate": "true", SECRET: self.secret} if self.secret else {}),
        }

    def has_machines(self, machines: Sequence[Machine]) -> bool:
        """Whether these are its machines, at whatever addresses, beside those that joined."""
        own = [machine for machine in self.machines if machine.name not in self.nodes]
        return [replace(machine, host="") for machine in own] == [
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
    with changing_fleet(machines, folder, port=port, limits=limits) as running:
        yield running.fleet


@contextmanager
def changing_fleet(
    machines: Sequence[Machine],
    folder: Path,
    *,
    port: int | None = None,
    limits: Collection[Limit] = (),
    agents: bool = False,
) -> Generator[ChangingFleet]:
    """The same, with a handle to add and remove workers; and with an agent on every node.

    Agents write into `agents/` of the folder.
    """
    bounds = [Bounds(machine.bandwidth_mbps, machine.cpu) for machine in machines]
    check_bounds([machine.name for machine in machines], bounds, limits)
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    with ExitStack() as ending:
        ground = ending.enter_context(make_rooms(bounds, limits))
        housed = tuple(_house(m, room) for m, room in zip(machines, ground.rooms, strict=True))
        chosen = free_port(ground.host) if port is None else port
        check_port(ground.host, chosen)
        page_port = free_port(ground.host)
        master = f"spark://{ground.host}:{chosen}"
        page = f"http://{ground.host}:{page_port}/json/"
        secret = secrets.token_hex(32)
        local = folder.resolve() / LOCAL
        local.mkdir(exist_ok=True)
        fleet = Fleet(
            master, page, housed, os.getpid(), tuple(limits), ground.host, secret, local=str(local)
        )
        running = ChangingFleet(fleet, ground, Daemons(folder, fleet, ending), agents)
        running.fleet = replace(fleet, grow=running.grow)
        running.start(chosen, page_port)
        yield running


def _house(machine: Machine, room: Room) -> Machine:
    """The machine at its room's address, or at its own if that is free."""
    if room.host is not None:
        return replace(machine, host=room.host)
    check_address(machine.host)
    return machine


class ChangingFleet:
    """A fleet whose workers may come and go."""

    def __init__(self, fleet: Fleet, ground: Ground, daemons: Daemons, agents: bool) -> None:
        self.fleet, self._ground, self._daemons, self._with_agents = fleet, ground, daemons, agents
        self._agents: dict[str, subprocess.Popen[bytes]] = {}
        self._numbers = count(len(fleet.machines) + 2)  # of rooms; 1 is the master's
        self._rooms = dict(zip(fleet.hosts, ground.rooms, strict=True))
        self._growing = threading.Lock()  # a plan may come from any thread

    def start(self, port: int, page_port: int) -> None:
        """Start the master, then the workers, and wait until all of them are registered."""
        host, daemons = self._ground.host, self._daemons
        at = ["--host", host, "--port", str(port), "--webui-port", str(page_port)]
        command = ["org.apache.spark.deploy.master.Master", *at]
        daemons.start("master", Room(), command, SPARK_LOCAL_IP=host)
        daemons.wait(lambda: ask_master(self.fleet) is not None, "the master did not answer")
        for machine in self.fleet.machines:
            self._start_worker(machine)
            self._start_agent(machine)
        self._wait_for_workers(dict.fromkeys(self.fleet.hosts, 1))

    def add(self, machine: Machine, facts: Mapping[str, Any]) -> Fleet:
        """Start a worker more, and wait until it is registered."""
        fleet, number = self.fleet, next(self._numbers)
        if machine.name in fleet.hosts:
            raise InvalidInput(f"the fleet has a node {machine.name} already")
        least = min(m.worker_mb for m in fleet.machines)
        if machine.memory_mb < least:
            raise InvalidInput(
                f"node {machine.name} has {machine.memory_mb} MB; executors of this fleet have "
                f"{least} MB"
            )
        machine = replace(machine, slots=min(machine.slots, machine.memory_mb // least))
        bounds = Bounds(machine.bandwidth_mbps, machine.cpu)
        room = add_room(self._ground, bounds, number, fleet.limits)
        housed = _house(replace(machine, host=f"127.0.0.{number}"), room)
        self._daemons.forget_lost()
        self._rooms[machine.name] = room
        self._start_worker(housed)
        self._start_agent(housed)
        nodes = {**fleet.nodes, machine.name: dict(facts)}
        self.fleet = replace(fleet, machines=(*fleet.machines, housed), nodes=nodes)
        self._wait_for_workers({machine.name: 1})
        return self.fleet

    def grow(self, wanted: Mapping[str, int]) -> None:
        """Start what is missing of the processes that nodes need, up to their slots; wait."""
        with self._growing:
            self._daemons.forget_lost()
            known = {machine.name: machine for machine in self.fleet.machines}
            counts = {  # a node that is lost stays so
                name: min(processes, known[name].slots)
                for name, processes in wanted.items()
                if name in known and self._daemons.is_up(_daemon(name, 0))
            }
            for name, processes in counts.items():
                for slot in range(processes):
                    if not self._daemons.is_up(_daemon(name, slot)):
                        self._start_worker(known[name], slot)
            self._wait_for_workers(counts)

    def remove(self, name: str) -> Fleet:
        """End a worker, and what runs on it."""
        fleet = self.fleet
        if name not in fleet.hosts:
            known = ", ".join(fleet.hosts)
            raise InvalidInput(f"the fleet has no node {name}; there are: {known}")
        if len(fleet.machines) == 1:
            raise InvalidInput(f"{name} is the fleet's only node; end the fleet instead")
        for slot in range(next(m.slots for m in fleet.machines if m.name == name)):
            self._daemons.end(_daemon(name, slot))
        if name in self._agents:
            _end(self._agents.pop(name))
        self.fleet = replace(
            fleet,
            machines=tuple(m for m in fleet.machines if m.name != name),
            nodes={node: facts for node, facts in fleet.nodes.items() if node != name},
        )
        return self.fleet

    def _start_worker(self, m: Machine, slot: int = 0) -> None:
        shape = ["--host", m.host, "--cores", str(m.cores), "--memory", f"{m.worker_mb}m"]
        place = self._daemons.folder / WORK / m.name / str(slot)
        work = ["--work-dir", str(place.resolve())]
        command = ["org.apache.spark.deploy.worker.Worker", *shape, "--webui-port", "0", *work]
        variables = {
            "SPARK_LOCAL_IP": m.host,
            "SPARK_LOCAL_DIRS": self.fleet.local,
            "HEADRACE_NODE": m.name,
        }
        command.append(self.fleet.master)
        self._daemons.start(_daemon(m.name, slot), self._rooms[m.name], command, **variables)

    def _start_agent(self, m: Machine) -> None:
        if self._with_agents:
            # An agent that ends is no reason for the fleet to end: what it would say is unknown.
            told = [str((self._daemons.folder / AGENTS).resolve()), "--node", m.name]
            agent = [sys.executable, "-m", "headrace.observe.node_agent", *told, "--every", "10"]
            room = self._rooms[m.name]
            self._agents[m.name] = self._daemons.launch(f"{m.name}-agent", room, agent)

    def _wait_for_workers(self, wanted: Mapping[str, int]) -> None:
        """Wait until nodes have so many of Spark's workers."""
        late = f"not all {sum(wanted.values())} workers came up"

        def done() -> bool:
            alive = workers_alive(self.fleet)
            return all(alive[name] >= count for name, count in wanted.items())

        self._daemons.wait(done, late)


def temporary(folder: str) -> str:
    """Java's option to put its own files into a folder, which goes away with it."""
    return f'"-Djava.io.tmpdir={folder}"' if folder else ""


def _daemon(node: str, slot: int) -> str:
    """The name of one of Spark's workers on a node."""
    return node if slot == 0 else f"{node}:{slot}"


class Daemons:
    """Spark's processes of a fleet, each with a log file; they end when the stack does."""

    def __init__(self, folder: Path, fleet: Fleet, ending: ExitStack) -> None:
        self.folder, self._ending = folder, ending
        # The kernel ends a process with the thread that started it: this one ends with the fleet.
        self._thread = ending.enter_context(ThreadPoolExecutor(1))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._variables = {
            **os.environ,
            **environment(fleet.master, os.environ),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{QUICK_START} -Dspark.authenticate=true "
            f"{temporary(fleet.local)}".strip(),
            "_SPARK_AUTH_SECRET": fleet.secret,  # not among the arguments, which all can see
        }

    def start(self, name: str, room: Room, command: Sequence[str], **variables: str) -> None:
        """Start a class of Spark's in a room."""
        spark_class = str(Path(self._variables["SPARK_HOME"]) / "bin" / "spark-class")
        self._processes[name] = self.launch(name, room, [spark_class, *command], **variables)

    def launch(
        self, name: str, room: Room, command: Sequence[str], **variables: str
    ) -> subprocess.Popen[bytes]:
        """Start a process in a room."""
        log = self._ending.enter_context((self.folder / "logs" / f"{name}.log").open("wb"))
        process = self._thread.submit(
            subprocess.Popen,
            [*enter_room(room), *command],
            env={**self._variables, **variables},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        ).result()
        self._ending.callback(_end, process)
        return process

    def is_up(self, name: str) -> bool:
        """Whether one of them runs."""
        return name in self._processes and self._processes[name].poll() is None

    def end(self, name: str) -> None:
        """End one of them."""
        if name in self._processes:  # else it was lost before
            _end(self._processes.pop(name))

    def forget_lost(self) -> None:
        """Leave out those that have ended: a worker may be lost long before another joins."""
        ended = [name for name, process in self._processes.items() if process.poll() is not None]
        for name in ended:
            del self._processes[name]

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


def workers_alive(fleet: Fleet) -> Counter[str]:
    """How many of Spark's workers each node has registered."""
    workers = (ask_master(fleet) or {}).get("workers", ())
    hosts = Counter(worker["host"] for worker in workers if worker.get("state") == "ALIVE")
    return Counter({m.name: hosts[m.host] for m in fleet.machines if hosts[m.host]})


def nodes_alive(fleet: Fleet) -> list[str]:
    """The nodes with a worker that is registered."""
    alive = workers_alive(fleet)
    return [machine.name for machine in fleet.machines if machine.name in alive]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

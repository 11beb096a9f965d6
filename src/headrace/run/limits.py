"""Limits that make the nodes of a local fleet really unequal, in bandwidth and in CPU.

Bandwidth is limited by network namespaces and `tc`, CPU by cgroup quotas. Each node gets a network
namespace with one address, joined to a bridge; both ends of its cable are shaped, so that what it
sends and what it receives are limited separately. The addresses are of the range reserved for
tests of network devices (198.18.0.0/15), and there is no way out of a namespace but the bridge.
Everything made is called `headrace`, the number of the fleet and the number of the node.

A fleet's number is a locked file: the kernel lets go of the lock when the process ends, however
that happens, and then anybody may remove what the fleet left behind (`sweep`).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Literal, get_args

from headrace.errors import InvalidInput, Unsupported
from headrace.run.addresses import LOOPBACK
from headrace.run.quotas import find_quotas

Limit = Literal["bandwidth", "cpu"]
LIMITS: tuple[Limit, ...] = get_args(Limit)

LOCKS = Path("/run/headrace")
NAMESPACES = Path("/run/netns")  # where `ip netns` keeps them
DEVICES = Path("/sys/class/net")
RESERVED = IPv4Network("198.18.0.0/15")
TOOLS = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
BURST_S = 0.02  # so much may pass at once after a pause; the kernel's clock needs some
LEAST_BURST_BYTES = 64 * 1024  # a packet as the kernel passes it on
QUEUE_MS = 50  # what waits longer is dropped, as at a switch
GONE_WITHIN_S = 10
LOOKS = 10  # at a lock: a process that was killed lets go of it a moment after it is gone


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a node may use; None: as much as there is."""

    bandwidth_mbps: float | None = None  # 10^6 bit/s, in and out separately
    cpu: float | None = None  # 100 = one core


@dataclass(frozen=True, slots=True)
class Room:
    """Where a node's processes live."""

    host: str | None = None  # its address; None: any of this machine's own
    namespace: Path | None = None  # to be entered before a process starts
    group: Path | None = None  # the file that takes the process id


@dataclass(frozen=True, slots=True)
class Ground:
    """What a fleet stands on: the address of the master and the driver, and a room per node."""

    host: str
    rooms: tuple[Room, ...]
    fleet: int | None = None  # its number, where there are limits


def check_limits(limits: Iterable[Limit]) -> None:
    """Refuse limits that this machine, or these rights, cannot give."""
    wanted = set(limits)
    if not wanted:
        return
    if sys.platform != "linux":
        raise Unsupported(
            f"limits of a fleet need Linux, and this is {sys.platform}",
            resource="limits",
            fix="leave them out",
        )
    if os.geteuid() != 0:
        raise Unsupported(
            f"limits of a fleet need root, and this is user {os.geteuid()}",
            resource="limits",
            fix="leave them out, or run as root",
        )
    if "bandwidth" in wanted:
        for tool in ("ip", "tc"):
            if shutil.which(tool, path=TOOLS) is None:
                raise Unsupported(
                    f"a limited bandwidth needs `{tool}`, which is not there",
                    resource=tool,
                    fix="install iproute2, or leave it out",
                )
    if "cpu" in wanted:
        find_quotas()


@contextmanager
def make_rooms(nodes: Sequence[Bounds], limits: Iterable[Limit]) -> Generator[Ground]:
    """Rooms for nodes, gone after the `with`."""
    wanted = set(limits)
    check_limits(wanted)
    if not wanted:
        yield Ground(LOOPBACK, (Room(),) * len(nodes))
        return
    sweep()
    with claim_number() as fleet:
        try:
            host, rooms = LOOPBACK, [Room()] * len(nodes)
            if "bandwidth" in wanted:
                host, rooms = _make_network(fleet, nodes)
            if "cpu" in wanted:
                rooms = [
                    Room(r.host, r.namespace, _quota(fleet, i, n.cpu))
                    for i, (r, n) in enumerate(zip(rooms, nodes, strict=True), 2)
                ]
            yield Ground(host, tuple(rooms), fleet)
        finally:
            remove(fleet)


def check_bounds(names: Sequence[str], nodes: Sequence[Bounds], limits: Collection[Limit]) -> None:
    """Refuse a cluster that does not say what to limit."""
    if "bandwidth" in limits and all(node.bandwidth_mbps is None for node in nodes):
        raise InvalidInput(
            "no node has `bandwidth_mbps`, so no bandwidth can be limited; "
            f"the nodes are {', '.join(names)}"
        )


def _make_network(fleet: int, nodes: Sequence[Bounds]) -> tuple[str, list[Room]]:
    """A namespace with one address per node, and the bridge between them."""
    network, bridge = network_of(fleet), f"headrace{fleet}"
    _ip("link", "add", bridge, "type", "bridge")
    _ip("address", "add", f"{network[1]}/{network.prefixlen}", "dev", bridge)
    _ip("link", "set", bridge, "up")
    return str(network[1]), [_join_network(fleet, i, node) for i, node in enumerate(nodes, 2)]


def _join_network(fleet: int, number: int, node: Bounds) -> Room:
    """A namespace with one address, on the bridge of its fleet."""
    network, bridge = network_of(fleet), f"headrace{fleet}"
    name, outside = f"headrace-{fleet}-{number}", f"headrace{fleet}-{number}"
    address = str(network[number])
    _ip("netns", "add", name)
    _ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
    _ip("link", "set", outside, "master", bridge, "up")
    _ip("-n", name, "address", "add", f"{address}/{network.prefixlen}", "dev", "eth0")
    for device in ("lo", "eth0"):
        _ip("-n", name, "link", "set", device, "up")
    if node.bandwidth_mbps is not None:
        _shape(["-n", name], "eth0", node.bandwidth_mbps)  # what the node sends
        _shape([], outside, node.bandwidth_mbps)  # what it receives
    return Room(address, NAMESPACES / name)


def add_room(ground: Ground, node: Bounds, number: int, limits: Collection[Limit]) -> Room:
    """A room more, on the same ground; it is gone with the others."""
    if ground.fleet is None:
        return Room()
    room = Room()
    if "bandwidth" in limits:
        room = _join_network(ground.fleet, number, node)
    if "cpu" in limits:
        room = Room(room.host, room.namespace, _quota(ground.fleet, number, node.cpu))
    return room


def _shape(where: Sequence[str], device: str, mbps: float) -> None:
    bytes_per_s = mbps * 1e6 / 8
    burst = max(LEAST_BURST_BYTES, round(bytes_per_s * BURST_S))
    rate = ["rate", f"{round(mbps * 1e6)}bit", "burst", str(burst), "latency", f"{QUEUE_MS}ms"]
    _run("tc", *where, "qdisc", "add", "dev", device, "root", "tbf", *rate)


def _quota(fleet: int, number: int, cpu: float | None) -> Path | None:
    return None if cpu is None else find_quotas().make(f"headrace-{fleet}-{number}", cpu)


def network_of(fleet: int) -> IPv4Network:
    """The addresses of a fleet: 256 of the reserved range."""
    return list(RESERVED.subnets(new_prefix=24))[fleet]


@contextmanager
def claim_number() -> Generator[int]:
    """A number that no other fleet of this machine has, with addresses that nobody uses."""
    taken = _routes()
    for fleet in range(RESERVED.num_addresses // 256):
        if any(network.overlaps(network_of(fleet)) for network in taken):
            continue
        with _lock(fleet) as ours:
            if ours:
                yield fleet
                return
    raise Unsupported(
        f"all addresses of {RESERVED} are in use; a fleet with limits needs 256 of them",
        resource="addresses",
    )


@contextmanager
def _lock(fleet: int) -> Generator[bool]:
    """Whether the fleet's number is ours while the `with` lasts."""
    LOCKS.mkdir(exist_ok=True)
    file = LOCKS / str(fleet)
    with file.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Who had it before may have removed the file after we opened it, and a third may hold a
            # new one of that name.
            ours = file.exists() and os.path.samestat(os.fstat(lock.fileno()), file.stat())
        except OSError:
            ours = False
        yield ours
        if ours:  # not after an error: something may be left, and the file is how it is found
            file.unlink()


def sweep() -> tuple[int, ...]:
    """Remove what crashed fleets left behind, and nothing of those that are up; their numbers."""
    if sys.platform != "linux" or os.geteuid() != 0 or not LOCKS.exists():
        return ()
    found: list[int] = []
    for fleet in sorted(int(file.name) for file in LOCKS.iterdir() if file.name.isdecimal()):
        for _ in range(LOOKS):
            with _lock(fleet) as ours:
                if ours:
                    remove(fleet)
                    found.append(fleet)
                    break
            time.sleep(0.05)
    return tuple(found)


def remove(fleet: int) -> None:
    """Remove all that a fleet made, and end what still runs in it."""
    namespaces, groups = sorted(NAMESPACES.glob(f"headrace-{fleet}-*")), _groups(fleet)
    _end_inside(namespaces, groups)
    for namespace in namespaces:
        _ip("netns", "delete", namespace.name)
    for device in sorted([*DEVICES.glob(f"headrace{fleet}-*"), *DEVICES.glob(f"headrace{fleet}")]):
        with suppress(Unsupported):  # it goes with its other end, which may be just now
            _ip("link", "delete", device.name)
    for group in groups:
        group.rmdir()


def _groups(fleet: int) -> list[Path]:
    try:
        return find_quotas().groups(f"headrace-{fleet}-")
    except Unsupported:
        return []


def _end_inside(namespaces: Sequence[Path], groups: Sequence[Path]) -> None:
    """End all processes in some rooms: executors notice late that their fleet is gone."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while inside := {*_in_namespaces(namespaces), *_in_groups(groups)}:
        for pid in inside:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise Unsupported(
                f"processes {', '.join(map(str, sorted(inside)))} of an ended fleet do not end"
            )
        time.sleep(0.05)


def _in_namespaces(namespaces: Iterable[Path]) -> Iterator[int]:
    for namespace in namespaces:
        yield from map(int, _ip("netns", "pids", namespace.name).split())


def _in_groups(groups: Iterable[Path]) -> Iterator[int]:
    for group in groups:
        yield from map(int, (group / "cgroup.procs").read_text().split())


def _routes() -> list[IPv4Network]:
    """The networks that this machine has a way to."""
    if shutil.which("ip", path=TOOLS) is None:
        return []
    first = (line.split()[0] for line in _ip("-4", "route", "show").splitlines() if line.strip())
    return [IPv4Network(word) for word in first if word[0].isdigit()]


def _ip(*words: str) -> str:
    return _run("ip", *words)


def _run(tool: str, *words: str) -> str:
    done = subprocess.run(
        [shutil.which(tool, path=TOOLS) or tool, *words],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[0]
        raise Unsupported(
            f"`{tool} {' '.join(words)}` did not work: {said}",
            resource=tool,
            fix="leave the limits out",
        )
    return done.stdout

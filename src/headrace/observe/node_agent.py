"""The node agent: what this machine is and what of it is in use, from the machine itself.

Run on each node: headrace agent DIR, or python -m headrace.observe.node_agent DIR.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError
from headrace.spark import require_spark

# Double-precision operations per cycle and core: two fused multiply-adds on vectors of so many
# bits, where the CPU has them.
FLOPS_PER_CYCLE = (("avx512f", 32.0), ("avx2", 16.0), ("avx", 8.0), ("asimd", 8.0), ("sse2", 4.0))
SLOTS = 4  # as Storm's supervisors have


def node_facts(
    *,
    node: str | None = None,
    machine_type: str | None = None,
    slots: int = SLOTS,
    proc: Path = Path("/proc"),
    net: Path = Path("/sys/class/net"),
) -> dict[str, Any]:
    """A row of node telemetry about this machine; what the machine does not say is absent."""
    cpu = cpu_facts(read(proc / "cpuinfo"))
    return {
        "event_time": datetime.now(UTC),
        "node": node or socket.gethostname(),
        "machine_type": machine_type or cpu.pop("model") or platform.machine(),
        "memory_mb": memory_mb(read(proc / "meminfo")),
        "bandwidth_mbps": bandwidth_mbps(net),
        "slots": slots,
        **{name: value for name, value in cpu.items() if name != "model"},
    }


def cpu_facts(cpuinfo: str) -> dict[str, Any]:
    """Sockets, cores per socket, GHz and flops per cycle, from what Linux says of them."""
    processors = [
        dict(re.findall(r"^([^\t:]+?)\s*: ?(.*)$", block, re.MULTILINE))
        for block in cpuinfo.split("\n\n")
        if block.strip()
    ]
    first = processors[0] if processors else {}
    sockets = {p.get("physical id", "0") for p in processors} or {"0"}
    cores = {(p.get("physical id", "0"), p["core id"]) for p in processors if "core id" in p}
    count = len(cores) or len(processors) or os.cpu_count() or 1
    model = first.get("model name", "")
    # The name states the frequency the machine was sold with; "cpu MHz" is whatever it runs at just
    # now.
    named = re.search(r"@ ([0-9.]+)GHz", model)
    now = first.get("cpu MHz")
    flags = set((first.get("flags") or first.get("Features") or "").split())
    return {
        "model": model.strip() or None,
        "sockets": len(sockets),
        "cores": max(1, count // len(sockets)),
        "ghz": float(named[1]) if named else float(now) / 1000 if now else None,
        "flops_per_cycle": next((flops for flag, flops in FLOPS_PER_CYCLE if flag in flags), None),
    }


def memory_mb(meminfo: str) -> float | None:
    """Installed memory."""
    total = re.search(r"^MemTotal:\s+(\d+) kB", meminfo, re.MULTILINE)
    return int(total[1]) / 1024 if total else None


def bandwidth_mbps(net: Path) -> float | None:
    """The fastest network interface that is up and says how fast it is."""
    speeds = [
        int(said)
        for interface in net.glob("*")
        if (said := read(interface / "speed").strip()).isdecimal()
    ]
    return float(max(speeds)) if speeds and max(speeds) > 0 else None


def read(file: Path) -> str:
    """A file of the system; empty if this system has no such file, or does not want to say."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class Counters:
    """What the machine has counted since it was started."""

    at_s: float
    cpu_s: float | None
    sent_bytes: float | None
    received_bytes: float | None


def read_counters(proc: Path = Path("/proc"), clock: Callable[[], float] = time.time) -> Counters:
    """CPU seconds of all cores, and bytes over all interfaces but the loopback."""
    busy = re.search(r"^cpu +(.+)$", read(proc / "stat"), re.MULTILINE)
    cpu_s = None
    if busy:
        ticks = [int(value) for value in busy[1].split()[:8]]
        idle = sum(ticks[3:5])  # idle, and waiting for a disk
        cpu_s = (sum(ticks) - idle) / os.sysconf("SC_CLK_TCK")
    cards = [
        [int(value) for value in line.partition(":")[2].split()]
        for line in read(proc / "net" / "dev").splitlines()[2:]
        if not line.strip().startswith("lo:")
    ]
    known = [card for card in cards if len(card) > 8]
    return Counters(
        clock(),
        cpu_s,
        float(sum(card[8] for card in known)) if known else None,
        float(sum(card[0] for card in known)) if known else None,
    )


def use_between(before: Counters, after: Counters, meminfo: str) -> dict[str, float]:
    """What was in use between two readings; what the machine does not say is absent."""
    seconds = after.at_s - before.at_s
    found: dict[str, float] = {}
    if seconds > 0:
        for name, factor, a, b in (
            ("cpu_used", 100.0, before.cpu_s, after.cpu_s),
            ("sent_mbps", 8e-6, before.sent_bytes, after.sent_bytes),
            ("received_mbps", 8e-6, before.received_bytes, after.received_bytes),
        ):
            if a is not None and b is not None and b >= a:
                found[name] = factor * (b - a) / seconds
    total = memory_mb(meminfo)
    free = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo, re.MULTILINE)
    if total is not None and free:
        found["memory_used_mb"] = total - int(free[1]) / 1024
    return found


def follow(
    folder: str | os.PathLike[str],
    facts: Mapping[str, Any],
    *,
    every_s: float,
    samples: int | None = None,
    sleep: Callable[[float], None] = time.sleep,
    proc: Path = Path("/proc"),
) -> None:
    """Write what this machine is and what of it is in use, every so often; None: for ever."""
    from headrace.model.telemetry import Writer

    name = f"agent-{facts['node']}-{time.time_ns():x}"
    with Writer(folder, name=name) as writer:
        writer.write("nodes", [{**facts, "event_time": datetime.now(UTC)}])
        writer.flush()
        before = read_counters(proc)
        for _ in count() if samples is None else range(samples):
            sleep(every_s)
            after = read_counters(proc)
            use = use_between(before, after, read(proc / "meminfo"))
            writer.write("nodes", [{**facts, **use, "event_time": datetime.now(UTC)}])
            writer.flush()
            before = after


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m headrace.observe.node_agent",
        description="Write this machine's facts as telemetry.",
    )
    parser.add_argument("folder", help="the telemetry folder")
    parser.add_argument("--node", help="name of the node; absent: of the machine")
    parser.add_argument("--type", help="machine type; absent: the processor's name")
    parser.add_argument("--slots", type=int, default=SLOTS, help="worker slots")
    parser.add_argument("--every", type=float, help="seconds between samples of what is in use")
    given = parser.parse_args()
    try:
        require_spark("node_agent")  # telemetry is written with pyarrow
    except HeadraceError as refusal:
        print(f"{refusal.message}; {refusal.fix}", file=sys.stderr)
        return 1
    facts = node_facts(node=given.node, machine_type=given.type, slots=given.slots)
    follow(given.folder, facts, every_s=given.every or 0.0, samples=None if given.every else 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())

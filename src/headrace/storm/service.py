"""`headrace storm serve`: a process that answers Nimbus, and beside it the loop that plans."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.control.history import Entry
from headrace.control.loop import step
from headrace.control.planning import LoopSettings
from headrace.errors import Unsupported
from headrace.model.cluster import nodes_of
from headrace.model.document import Node
from headrace.model.read import read
from headrace.registry import By
from headrace.run.addresses import check_port
from headrace.run.fleet import enter_room
from headrace.run.limits import Room
from headrace.storm.local import StormCluster
from headrace.storm.state import NO_CYCLES
from headrace.storm.world import OnStorm

PORT = 7274
STARTS_WITHIN_S = 30
FIRST_LOOK_S = 0.5
SECTIONS = ("headroom", "options")  # of files beside the cluster that plans are made with

Report = Callable[[Entry], None]


def serve(world: OnStorm, settings: LoopSettings, report: Report, port: int, host: str) -> None:
    """Answer Nimbus and keep its topologies where they should be, until the world ends."""
    with answering(world.store, host, port) as server:
        world.gather()
        # At the start nothing is decided: a state that is on disk may be of another time.
        interval_s = FIRST_LOOK_S
        while world.wait(interval_s):
            if server.poll() is not None:
                raise Unsupported(
                    f"the process that answers Nimbus ended; see {log_of(world.store)}"
                )
            interval_s = FIRST_LOOK_S
            state = world.state()
            if state is not None and state.topologies and world.now() - state.at_s < 30:
                report(decide(world, settings))
                interval_s = settings.interval_s


def decide(world: OnStorm, settings: LoopSettings) -> Entry:
    """One decision of the loop; a topology that stays without a plan learns why."""
    world.gather()
    entry = step(world, settings)
    if settings.advise:
        world.refuse("Headrace only advises")
    elif not entry.applied:
        state = world.state()
        if state is not None and world.needs_plan(state):
            world.refuse(entry.reason)
    return world.history()[-1]


@contextmanager
def answering(store: Path, host: str, port: int) -> Generator[subprocess.Popen[bytes]]:
    """The process that answers, up inside the `with`; it ends with this one, however that ends."""
    store.mkdir(parents=True, exist_ok=True)
    check_port(host, port)
    command = [sys.executable, "-m", "headrace.storm.answering", str(store), host, str(port)]
    with log_of(store).open("ab") as log:
        process = subprocess.Popen([*enter_room(Room()), *command], stdout=log, stderr=log)
    try:
        wait_for(host, port, process, store)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def wait_for(host: str, port: int, process: subprocess.Popen[bytes], store: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while True:
        try:
            socket.create_connection((host, port), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise Unsupported(
                    f"the service does not answer at {host}:{port}; see {log_of(store)}"
                ) from None
            time.sleep(0.05)


def log_of(store: Path) -> Path:
    return store / "answering.log"


def make_world(
    store: Path,
    files: Sequence[str],
    cluster: StormCluster | None,
    source: Path | None,
    by: By = "headrace",
) -> OnStorm:
    """The world of a service; files say what Storm does not know of its nodes."""
    known: dict[str, Node] = {}
    rest: dict[str, Any] = {}
    if files:
        inputs = read([Path(file) for file in files])
        known = dict(nodes_of(inputs)) if inputs.document.cluster is not None else {}
        dumped = inputs.document.model_dump(mode="json", by_alias=True, exclude_unset=True)
        rest = {key: dumped[key] for key in SECTIONS if key in dumped}
    elif cluster is not None:
        for n in cluster.nodes:
            facts = {"bandwidth_mbps": n.bandwidth_mbps, "type": n.type or None}
            known[n.name] = Node.model_validate({k: v for k, v in facts.items() if v is not None})
    return OnStorm(store, known, rest, source, acks=by not in NO_CYCLES)


def serve_until_signal(
    world: OnStorm, settings: LoopSettings, report: Report, port: int, host: str
) -> None:
    """Serve until the process is asked to end."""

    def end(*_: object) -> None:
        world.stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    serve(world, settings, report, port, host)

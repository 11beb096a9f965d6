"""What the tests of Storm share: a cluster in one process, and a service that obeys a test."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from headrace.errors import HeadraceError
from headrace.run.fleet import enter_room
from headrace.run.limits import Bounds, Limit, make_rooms
from headrace.spark import find_java
from headrace.storm.home import HOOK, PATIENT, SCHEDULER
from headrace.storm.jars import Jars, find_jars
from headrace.storm.local import has_namespaces
from headrace.storm.plugin import compile_jar, find_plugin
from headrace.storm.state import PROTOCOL, State, read_state

JAVA = Path(__file__).parent / "storm_java"
WITHIN_S = 120.0


def storm_jars() -> Jars:
    """Storm's jars; skips the test where there is no Java or no Maven Central."""
    try:
        find_java()
        return find_jars()
    except HeadraceError as refusal:
        pytest.skip(refusal.message)


def wait_until(done: Callable[[], Any], what: str, within_s: float = WITHIN_S) -> Any:
    """The first true answer; fails in words when it takes too long."""
    deadline = time.monotonic() + within_s
    while True:
        if found := done():
            return found
        if time.monotonic() > deadline:
            pytest.fail(f"{what} did not happen within {within_s:g} s")
        time.sleep(0.3)


@dataclass
class Fake:
    """A service in the place of Headrace: it keeps the state and answers what the test wants."""

    plans: dict[str, Any] = field(default_factory=dict[str, Any])
    refusals: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None  # instead of plans
    delay_s: float = 0.0
    state: State | None = None
    asked: int = 0

    def answer(self) -> bytes:
        if self.body is not None:
            return self.body
        content = {"protocol": PROTOCOL, "plans": self.plans, "refusals": self.refusals}
        return json.dumps(content).encode()


@contextmanager
def serve_fake(fake: Fake, host: str, port: int) -> Generator[None]:
    """The fake service, up inside the `with`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            fake.state = read_state(json.loads(body))
            fake.asked += 1
            time.sleep(fake.delay_s)
            data = fake.answer()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        allow_reuse_address = True
        daemon_threads = True
        block_on_close = False

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that gave up is no news here."""

    with Server((host, port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


class Local:
    """A Storm cluster in one process."""

    def __init__(self, process: subprocess.Popen[str], folder: Path, host: str) -> None:
        self.process, self.folder, self.host = process, folder, host
        self.lines: Queue[str | None] = Queue()
        threading.Thread(target=self.drain, daemon=True).start()

    def drain(self) -> None:
        """Keep answers, and put the rest, which is Storm's log, into a file."""
        assert self.process.stdout is not None
        with (self.folder / "local.log").open("a") as log:
            for line in self.process.stdout:
                if line.startswith(("ready", "answer ")):
                    self.lines.put(line)
                else:
                    log.write(line)
                    log.flush()
        self.lines.put(None)

    def read(self) -> str:
        line = self.lines.get(timeout=WITHIN_S)
        if line is None:
            pytest.fail(f"the local cluster ended; see {self.folder / 'local.log'}")
        return line

    def ask(self, do: str, **other: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **other}) + "\n")
        self.process.stdin.flush()
        found = json.loads(self.read().removeprefix("answer "))
        assert not isinstance(found, dict) or "error" not in found, found
        return found

    def topology(self, name: str) -> dict[str, Any] | None:
        found = self.ask("look")["topologies"]
        return next((one for one in found if one["name"] == name), None)

    def status(self, name: str) -> str:
        found = self.topology(name)
        return "" if found is None else found["scheduler_status"] or ""


def java_for_trials(folder: Path) -> list[str]:
    """A command that runs a class of `storm_java`, compiled into a folder; its name is missing."""
    jars = storm_jars()
    plugin, trials = find_plugin(jars), folder / "trial.jar"
    files = sorted(JAVA.glob("*.java"))
    compile_jar(files, [*jars.class_path, plugin], jars.compiler, trials)
    path = os.pathsep.join(map(str, [trials, plugin, *jars.class_path]))
    small = ["-Xmx700m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    # A local cluster that is killed leaves its files behind.
    options = [*small, f"-Djava.io.tmpdir={folder}", "-cp", path]
    return [str(find_java().home / "bin" / "java"), *options]


@contextmanager
def local_cluster(
    folder: Path, port: int, conf: Mapping[str, Any], nodes: tuple[str, ...] = ("n1", "n2", "n3")
) -> Generator[Local]:
    """A local cluster that asks a service at `port`; its ports are in a namespace if possible."""
    java = java_for_trials(folder)
    with ExitStack() as ending:
        limits: list[Limit] = ["bandwidth"] if has_namespaces() else []
        ground = ending.enter_context(make_rooms([Bounds()], limits))
        settings = {
            **PATIENT,
            "storm.scheduler": SCHEDULER,
            "storm.metricstore.class": "org.apache.storm.metricstore.NoOpMetricStore",
            "headrace.address": f"http://{ground.host}:{port}",
            "headrace.folder": str(folder / "kept"),
            "headrace.telemetry.folder": str(folder / "telemetry"),
            "headrace.telemetry.secs": 1,
            "topology.auto.task.hooks": [HOOK],
            "topology.stats.sample.rate": 1.0,
            "executor.metrics.frequency.secs": 1,
            "nimbus.monitor.freq.secs": 1,
            **conf,
        }
        setup = {"conf": settings, "nodes": list(nodes), "slots": 2}
        process = subprocess.Popen(
            [*enter_room(ground.rooms[0]), *java, "LocalTrial", json.dumps(setup)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, cwd=folder,
        )  # fmt: skip
        ending.callback(process.wait)
        ending.callback(process.kill)
        local = Local(process, folder, ground.host)
        local.read()
        yield local

"""A Storm cluster of processes: from nothing to a running topology, and through failures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import HeadraceError
from headrace.storm.java import read_nimbus, submit_example
from headrace.storm.keeper import change_storm, start_storm, stop_storm
from headrace.storm.local import StormCluster
from headrace.storm.state import misplaced
from headrace.storm.world import OnStorm
from tests.integration.storm_trial import storm_jars, wait_until

FILE = """
format: headrace/1
cluster:
  nodes:
    n{1..3}: {cpu: 200, memory_mb: 2048, slots: 2, bandwidth_mbps: 100}
"""
QUICK = {
    "nimbus.monitor.freq.secs": 2,
    "nimbus.supervisor.timeout.secs": 15,
    "nimbus.task.timeout.secs": 15,
    "headrace.telemetry.secs": 5,
}
PARAMETERS = {"rate": 100, "topology.workers": 3, "topology.acker.executors": 1}


@dataclass
class Trial:
    """A cluster and `headrace storm serve`, which may be away."""

    cluster: StormCluster
    folder: Path
    world: OnStorm
    begun_s: float
    service: subprocess.Popen[bytes] | None = None

    def serve(self, by: str) -> None:
        command = [sys.executable, "-m", "headrace.cli", "storm", "serve", "cluster.yaml"]
        command += ["--by", by, "--every", "1h", "--folder", "cluster", "--store", "store"]
        with (self.folder / "serve.log").open("ab") as log:
            self.service = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)

    def kill_service(self) -> None:
        assert self.service is not None
        self.service.send_signal(signal.SIGKILL)
        self.service.wait()

    def topology(self) -> dict[str, Any]:
        return read_nimbus(self.cluster)["topologies"][0]

    def await_places(self, what: str) -> None:
        """Wait until every executor is where the plan in force says, as Nimbus tells."""

        def look() -> bool:
            state, plans = self.world.state(), self.world.plans()
            if state is None or not state.topologies or not plans:
                return False
            fresh = time.time() - state.at_s < 10
            return fresh and not self.world.needs_plan(state) and not misplaced(state, plans)

        wait_until(look, what, 150)

    def await_tuples(self, what: str) -> None:
        """Wait until tuples are acknowledged that were emitted from now on."""
        before = self.acked()
        wait_until(lambda: self.acked() > before + 50, what, 150)

    def acked(self) -> int:
        files = (self.folder / "measures").glob("[!.]*.json")
        return sum(json.loads(file.read_text())["acked"] for file in files)

    def await_status(self, *words: str) -> str:
        def look() -> str | None:
            status = self.topology()["scheduler_status"] or ""  # none yet after a start
            return status if all(word in status for word in words) else None

        return wait_until(look, f"status with {words}", 120)


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    storm_jars()
    folder, begun_s = tmp_path_factory.mktemp("storm"), time.monotonic()
    (folder / "cluster.yaml").write_text(FILE)
    cluster = start_storm(
        [folder / "cluster.yaml"], folder / "cluster", options={"settings": QUICK}
    )
    found = Trial(cluster, folder, OnStorm(folder / "store"), begun_s)
    try:
        found.serve("storm-even")
        yield found
    finally:
        if found.service is not None and found.service.poll() is None:
            found.service.terminate()
            found.service.wait()
        stop_storm(folder / "cluster")


def test_from_nothing_to_a_running_word_count_in_three_minutes(trial: Trial) -> None:
    parameters = {**PARAMETERS, "measures": str(trial.folder / "measures")}
    submit_example(trial.cluster, "word-count", "wc", parameters)
    trial.await_places("the first plan in force")
    trial.await_tuples("a running word count")
    assert time.monotonic() - trial.begun_s < 180
    assert trial.world.history()[-1].reason.startswith("wc has no place yet")
    assert "plan-1 is in force" in trial.topology()["scheduler_status"]


def test_telemetry_of_workers_reaches_the_store(trial: Trial) -> None:
    def kept(kind: str) -> list[dict[str, Any]]:
        import pyarrow.parquet as pq

        files = (trial.folder / "store" / "telemetry" / kind).glob("*.parquet")
        return [row for file in files for row in pq.read_table(file).to_pylist()]

    # Load-aware shuffle may leave a task without tuples, so no single one is looked for.
    def joined() -> set[tuple[str, str]]:
        pairs = ((row["from_task"], row["to_task"]) for row in kept("edges"))
        return {(a.partition(".")[0], b.partition(".")[0]) for a, b in pairs}

    wanted = {("sentence", "split"), ("split", "count"), ("sentence", "__acker")}
    wanted |= {("split", "__acker"), ("count", "__acker"), ("__acker", "sentence")}
    wait_until(lambda: joined() >= wanted, "telemetry of all streams in the store")

    # An executor takes CPU while it waits, also one that never got a tuple.
    def all_spent() -> bool:
        spent: dict[str, float] = {}
        for row in kept("tasks"):
            spent[row["task"]] = spent.get(row["task"], 0.0) + row["cpu_ms"]
        return min(spent.values()) > 0

    wait_until(all_spent, "CPU of every executor")


def test_a_running_topology_is_imported_from_nimbus_and_planned(trial: Trial) -> None:
    def headrace(*arguments: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "headrace.cli", *arguments, "--json"]
        done = subprocess.run(command, cwd=trial.folder, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    address = f"nimbus://{trial.cluster.nimbus}:{trial.cluster.port}"
    topology = headrace("import", "storm", address, "--out", "wc.yaml")["document"]["topology"]
    executors = Counter(executor["component"] for executor in trial.topology()["executors"])
    assert executors.pop("__acker") == 1
    assert {name: c["tasks"] for name, c in topology["components"].items()} == executors
    planned = headrace("place", "wc.yaml", "--by", "storm-even")["plan"]
    assert len(planned["assignment"]) == executors.total() + 1


def test_headrace_and_nimbus_killed_lose_nothing(trial: Trial) -> None:
    before = {(e["first"], e["host"], e["port"]) for e in trial.topology()["executors"]}
    trial.kill_service()
    change_storm(trial.folder / "cluster", "kill", "nimbus")
    trial.await_tuples("tuples without Nimbus and Headrace")
    change_storm(trial.folder / "cluster", "restart", "nimbus")
    wait_until(lambda: nimbus_answers(trial.cluster), "Nimbus again", 120)
    trial.await_status("plan-1 is in force", "nobody answers there")
    after = {(e["first"], e["host"], e["port"]) for e in trial.topology()["executors"]}
    assert after == before
    trial.serve("storm-even")
    wait_until(lambda: "nobody" not in trial.topology()["scheduler_status"], "Headrace again", 120)
    assert len(trial.world.plans()) == 1
    trial.await_places("the same plan after both came back")


def test_a_node_that_is_lost_is_planned_around(trial: Trial) -> None:
    change_storm(trial.folder / "cluster", "lose", "n3")
    wait_until(
        lambda: (state := trial.world.state()) is not None and "n3" not in state.nodes,
        "the loss of n3",
        120,
    )
    trial.await_places("a plan for two nodes")
    [plan] = trial.world.plans().values()
    assert {place["node"] for place in plan["assignment"].values()} == {"n1", "n2"}
    trial.await_tuples("tuples on two nodes")
    assert any(entry.cause == "lost" for entry in trial.world.history())


def test_nothing_is_left_when_a_cluster_is_down(trial: Trial) -> None:
    pids = [int(p) for p in os.listdir("/proc") if p.isdecimal()]
    ours = str(trial.folder).encode()
    assert stop_storm(trial.folder / "cluster")
    wait_until(lambda: not [p for p in pids if ours in command_of(p) and b"java" in command_of(p)],
               "the end of all daemons", 30)  # fmt: skip
    assert not stop_storm(trial.folder / "cluster")


def nimbus_answers(cluster: StormCluster) -> bool:
    try:
        return bool(read_nimbus(cluster)["topologies"])
    except (HeadraceError, StopIteration):
        return False


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""

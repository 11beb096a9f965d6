"""Plans on a real Storm cluster: predicted against measured, what the hook costs, what is gained.

A cluster of processes on this machine (`headrace storm up`), three nodes in network namespaces.
Storm's settings are its defaults, unless a row says `shuffle even`: then load-aware shuffle is off.

- Traffic and CPU: word count at a fixed rate under storm-even's plan is measured; from that, the
  traffic and the CPU of headrace's plan for the rate are predicted, put into force, and measured;
  then, from both, those of its plan for balance.
- Hook: word count as fast as it goes, on one node; the share of the CPU that goes into the hook, as
  Java's flight recorder sees it, and throughput with and without it, in turns. Here the worker's
  Java compiles as it does by default; elsewhere a local cluster's Java does so less well
  (`TieredStopAtLevel=1`), which makes counting far more expensive than it is on real clusters.
- Throughput: word count with 500 bytes a tuple as fast as it goes, under Storm's default scheduler
  and under headrace's plan for the rate, in turns; at 100 Mbit/s a node, and at 8, where two cores
  are not what limits it. `exclamation` without a payload is the case where nothing is to be gained:
  its tuples are small, and CPU is what it needs.

Run it on a quiet machine: where other processes take the CPU, throughput says nothing of plans.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from measure import Row

from headrace.errors import HeadraceError
from headrace.judge.report import judge
from headrace.model.build import build
from headrace.model.cluster import nodes_of
from headrace.model.problem import Assignment, Problem
from headrace.model.read import read, validated
from headrace.planner import place
from headrace.run.addresses import free_port
from headrace.run.limits import Limit
from headrace.storm.costs import learn_costs
from headrace.storm.home import storm_nodes
from headrace.storm.jars import find_jars
from headrace.storm.java import kill_topology, submit_example
from headrace.storm.local import StormCluster, has_namespaces, local_storm
from headrace.storm.service import answering
from headrace.storm.spent import executor_points, messaging_by_worker
from headrace.storm.state import (
    State,
    current_plan,
    describe,
    misplaced,
    named_executors,
    plans_for_nimbus,
)
from headrace.storm.world import OnStorm

CLUSTER = """
format: headrace/1
cluster:
  nodes:
    n{1..3}: {cpu: 200, memory_mb: 2048, slots: 2, bandwidth_mbps: MBPS}
"""
# What a service would go through: Storm's default, then plans of its own.
PLANS = (("storm-even", "traffic"), ("headrace", "rate"), ("headrace", "balance"))
RATES = (300, 3000)  # sentences/s: executors mostly wait; they have some work
STEADY_S = 45  # from the last worker's start to the first window that counts
WINDOWS_S = 60
TURNS = 3
TURN_S = 30
RECORDED_S = 60  # of the flight recorder, which takes about 120 samples a second
WORKER = b"org.apache.storm.daemon.worker.Worker"
HOOK = ("org.headrace.storm.telemetry.", "org.apache.storm.hooks.")
BUSY = {"rate": 0, "topology.workers": 1, "topology.acker.executors": 1,
        "topology.max.spout.pending": 500,
        "topology.worker.childopts": "-XX:TieredStopAtLevel=4"}  # fmt: skip
EVEN = {"topology.disable.loadaware.messaging": True}
SETTINGS = {
    "nimbus.monitor.freq.secs": 2,
    "headrace.calm.secs": 5,
    "headrace.timeout.secs": 600,  # the benchmark gives every topology a plan
    "headrace.telemetry.secs": 5,
}


@dataclass
class Ground:
    """A cluster whose plans this program writes."""

    cluster: StormCluster
    world: OnStorm
    measures: Path
    number: int = 0

    def submit(self, kind: str, parameters: Mapping[str, Any]) -> str:
        self.number += 1
        name = f"{kind}-{self.number}"
        measures = str(self.measures / name)
        submit_example(self.cluster, kind, name, {"measures": measures, **parameters})
        wait(lambda: any(t.name == name for t in self.state().topologies), f"{name} in the state")
        return name

    def end(self, name: str) -> None:
        kill_topology(self.cluster, name)
        wait(lambda: not self.state().topologies, f"the end of {name}")

    def state(self) -> State:
        return wait(self.world.state, "a state")

    def problem(self, measured: Mapping[str, Any]) -> Problem:
        state = self.state()
        content = describe(state, self.world.known, measured, {})
        problem = build(validated(content, {}))
        return replace(problem, current=current_plan(state, problem))

    def put_in_force(self, by: str, objective: str, measured: Mapping[str, Any]) -> Assignment:
        """A scheduler's plan, and every executor where it says."""
        problem = replace(self.problem(measured), current=None)
        plan = place(problem, by, objective=objective, bounded=False)
        plans = plans_for_nimbus(self.state(), problem, plan.assignment, f"{by} for {objective}")
        self.world.write_plans(plans, {})
        wait(lambda: not misplaced(self.state(), plans), f"{by}'s plan in force")
        return plan.assignment

    def measure(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """What telemetry says of the windows from now on, and costs that fit all plans so far."""
        from headrace.observe.pipeline import Question
        from headrace.observe.small import observe_small

        time.sleep(STEADY_S)
        self.world.gather()
        folder = Path(tempfile.mkdtemp(dir=self.measures))
        world = replace(self.world, store=folder)
        (folder / "state.json").write_text((self.world.store / "state.json").read_text())
        time.sleep(WINDOWS_S)
        world.gather()
        state = self.state()
        question = Question(10, "average", tuple(t.name for t in state.topologies), prefixed=False)
        found = dict(observe_small(folder / "telemetry", question).sections)
        learnt = learn_costs(folder / "telemetry", state, found, known)
        executors, workers = cpu_by_node(folder / "telemetry", state)
        return {**learnt, "executors": executors, "workers": workers}

    def acked(self, name: str) -> int:
        files = (self.measures / name).glob("[!.]*.json")
        return sum(json.loads(file.read_text())["acked"] for file in files)

    def throughput(self, name: str, warm_up_s: float = 10) -> float:
        """Tuples of the spouts per second that were acknowledged, over a turn."""
        wait(lambda: self.acked(name) > 1000, "the first thousand tuples")
        time.sleep(warm_up_s)
        begun, before = time.monotonic(), self.acked(name)
        time.sleep(TURN_S)
        return (self.acked(name) - before) / (time.monotonic() - begun)


def wait(done: Any, what: str, within_s: float = 240) -> Any:
    deadline = time.monotonic() + within_s
    while not (found := done()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not happen within {within_s:g} s")
        time.sleep(0.5)
    return found


@contextmanager
def ground(mbps: float, limits: tuple[Limit, ...]) -> Generator[Ground]:
    """A cluster that is up inside the `with`."""
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="on-storm-")))
        file = folder / "cluster.yaml"
        file.write_text(CLUSTER.replace("MBPS", f"{mbps:g}"))
        port = free_port()
        running = local_storm(
            find_jars(), storm_nodes([file]), folder / "cluster", limits=limits, port=port,
            settings=SETTINGS,
        )  # fmt: skip
        cluster, _ = ending.enter_context(running)
        ending.enter_context(answering(folder / "store", cluster.host, port))
        known = dict(nodes_of(read([file])))
        world = OnStorm(folder / "store", known, {}, cluster.telemetry)
        yield Ground(cluster, world, folder / "measures")


def crossing(measured: Mapping[str, Any], problem: Problem, plan: Assignment) -> float:
    """Tuples/s between nodes, as measured between single tasks."""
    node = {problem.task_name(t): int(plan.node[t]) for t in range(problem.task_count)}
    return sum(row[2] for row in measured["traffic"] if node[row[0]] != node[row[1]])


def cpu_by_node(folder: Path, state: State) -> tuple[dict[str, float], dict[str, float]]:
    """CPU points of every node's executors as their threads were measured; with its workers'."""
    node = {name: (state.place_of(one) or ("",))[0] for name, one in named_executors(state)}
    executors = dict.fromkeys(state.nodes, 0.0)
    for name, (_, points) in executor_points(folder, state).items():
        executors[node[name]] += points
    workers = dict(executors)
    for (where, _), ms_per_s in messaging_by_worker(folder, state).items():
        workers[where] += ms_per_s / 10
    return executors, workers


def predicted_and_measured(
    on: Ground, rate: int, settings: Mapping[str, Any], words: str
) -> Iterator[Row]:
    """Traffic and CPU of plans, predicted from what was seen of the plans before."""
    words = f"{words}, {rate:,} sentences/s"
    base = {"rate": rate, "topology.workers": 3, "topology.acker.executors": 3, "words": 5}
    name = on.submit("word-count", {**base, **settings})
    known: dict[str, Any] = {}
    for number, (by, objective) in enumerate(PLANS):
        plan = on.put_in_force(by, objective, known)
        problem = on.problem(known)
        # From the profile and the serialising alone: what the executors' threads are to take.
        own = on.problem({**known, "carry_cpu_ms": 0.0} if known else {})
        now = on.measure(known)
        what = f"{by} for {objective}, {words}" if number else f"{by}, {words}"
        # Of the first plan nothing is known before: its own measurements predict it.
        yield compare(what, problem if number else on.problem(now), plan, now)
        if number:
            what += f", from {number} plan{'s' * (number > 1)} before"
            yield cpu_row(f"executors, {what}", own, plan, now["executors"])
            fixed = known.get("worker_cpu", 0.0)
            yield cpu_row(f"executors and messages, {what}", problem, plan, now["workers"], fixed)
        known = now
    on.end(name)


def cpu_row(
    words: str,
    problem: Problem,
    plan: Assignment,
    measured: Mapping[str, float],
    worker_cpu: float = 0.0,
) -> Row:
    """CPU points of the busiest node, predicted and measured; others too."""
    table = judge(problem, plan).nodes
    both: list[tuple[float, float]] = []
    for i, node in enumerate(problem.nodes):
        workers = len(set(plan.worker[plan.node == i].tolist()))
        points = (table[node]["cpu"] or 0.0) if node in table else 0.0
        both.append((points + workers * worker_cpu, measured.get(node, 0.0)))
    busiest, *others = (f"{x:.1f} / {y:.1f}" for x, y in sorted(both, reverse=True))
    first, second = max(both)
    off = abs(first - second) / max(second, 1e-9)
    what = f"CPU points of the busiest node, predicted / measured: {words}"
    return Row(f"{what} (others: {', '.join(others)})", busiest, "15 %", off <= 0.15)


def compare(what: str, problem: Problem, plan: Assignment, measured: Mapping[str, Any]) -> Row:
    predicted = judge(problem, plan).inter_node_traffic
    return row(what, predicted, crossing(measured, problem, plan))


def row(what: str, predicted: float, measured: float) -> Row:
    off = abs(predicted - measured) / max(measured, 1e-9)
    value = f"{predicted:,.0f} / {measured:,.0f}"
    return Row(f"tuples/s between nodes, predicted / measured: {what}", value, "5 %", off <= 0.05)


def hook_cost(on: Ground) -> Row:
    """The hook's share of the worker's CPU, which is what limits throughput here.

    Samples of running threads that are inside the hook, or inside what Storm does to call one.
    Throughput with and without it tells less: starts of the same worker differ by a tenth.
    """
    shares = [profile_hook(on) for _ in range(TURNS)]
    turns = ", ".join(f"{inside} of {samples}" for inside, samples in shares)
    share = statistics.median(inside / samples for inside, samples in shares)
    return Row(f"the hook's share of CPU, word count as fast as it goes (samples: {turns})",
               f"{share:.1%}", "3 %", share < 0.03)  # fmt: skip


def hook_throughput(on: Ground) -> Row:
    """The share of throughput that the hook takes: word count with and without it, in turns."""
    found: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(TURNS):
        for hook in (True, False):
            off = {} if hook else {"topology.auto.task.hooks": []}
            name = on.submit("word-count", {**BUSY, **off})
            on.put_in_force("headrace", "nodes", {})
            found[hook].append(on.throughput(name, warm_up_s=30))
            on.end(name)
    with_hook, without = (statistics.median(found[hook]) for hook in (True, False))
    share = 1 - with_hook / without
    turns = " ".join(f"{x:,.0f}/{y:,.0f}" for x, y in zip(found[True], found[False], strict=True))
    return Row(f"the hook's share of throughput (turns: {turns})", f"{share:.1%}", "3 %",
               share < 0.03)  # fmt: skip


def profile_hook(on: Ground) -> tuple[int, int]:
    """Samples of Java's flight recorder inside the hook, and all of them, of the busiest worker."""
    options = "-XX:TieredStopAtLevel=4 -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints"
    name = on.submit("word-count", {**BUSY, "topology.worker.childopts": options})
    on.put_in_force("headrace", "nodes", {})
    on.throughput(name)
    file = on.measures / f"{name}.jfr"
    ask = ["jcmd", busiest_worker()]
    subprocess.run([*ask, "JFR.start", "name=hook", "settings=profile"], check=True)
    time.sleep(RECORDED_S)
    subprocess.run([*ask, "JFR.dump", "name=hook", f"filename={file}"], check=True)
    on.end(name)
    show = ["jfr", "print", "--json", "--events", "ExecutionSample", "--stack-depth", "64"]
    read = subprocess.run([*show, str(file)], check=True, capture_output=True)
    stacks = [e["values"]["stackTrace"] for e in json.loads(read.stdout)["recording"]["events"]]
    return sum(map(is_in_hook, stacks)), len(stacks)


def busiest_worker() -> str:
    """The process of the worker that has taken the most CPU."""

    def spent(process: Path) -> int:
        return sum(map(int, (process / "stat").read_text().rpartition(")")[2].split()[11:13]))

    found = [p for p in Path("/proc").glob("[0-9]*") if WORKER in (p / "cmdline").read_bytes()]
    return max(found, key=spent).name


def is_in_hook(stack: Mapping[str, Any]) -> bool:
    types = [frame["method"]["type"]["name"].replace("/", ".") for frame in stack["frames"]]
    return any(name.startswith(HOOK) for name in types)


def gain(on: Ground, kind: str, payload: int, mbps: float, target: float | None) -> Row:
    """Throughput under headrace's plan for the rate, against Storm's default, in turns."""
    base = {"rate": 0, "payload_bytes": payload, "topology.workers": 3,
            "topology.acker.executors": 3, "topology.max.spout.pending": 100}  # fmt: skip
    name = on.submit(kind, {**base, "rate": 100})
    on.put_in_force("storm-even", "traffic", {})
    measured = on.measure({})
    on.end(name)
    found: dict[str, list[float]] = {"storm-even": [], "headrace": []}
    for _ in range(TURNS):
        for by, turns in found.items():
            name = on.submit(kind, base)
            on.put_in_force(by, "rate", measured)
            turns.append(on.throughput(name))
            on.end(name)
    ratios = [h / e for h, e in zip(found["headrace"], found["storm-even"], strict=True)]
    low, high = min(ratios), max(ratios)
    pairs = zip(found["storm-even"], found["headrace"], strict=True)
    said = " ".join(f"{e:,.0f}/{h:,.0f}" for e, h in pairs)
    case = f"{kind}, {payload} bytes, {mbps:g} Mbit/s"
    what = f"{case}: headrace for the rate against Storm's default"
    middle = statistics.median(ratios)
    return Row(f"{what} (tuples/s {said})", f"{middle:.2f} x ({low:.2f} to {high:.2f})",
               "" if target is None else f"{target:g} x",
               None if target is None else middle >= target)  # fmt: skip


def rows(quick: bool) -> Iterator[Row]:
    """All rows; what this machine cannot do is said instead."""
    if not has_namespaces():
        yield Row("Storm: needs Linux, root and iproute2", "not run")
        return
    try:
        find_jars()
    except HeadraceError as refusal:
        yield Row(f"Storm: {refusal.message}", "not run")
        return
    with ground(100, ()) as on:
        yield from predicted_and_measured(on, RATES[0], EVEN, "shuffle even")
        if quick:
            return
        for rate in RATES:
            yield from predicted_and_measured(on, rate, {}, "load-aware shuffle")
        yield hook_cost(on)
        yield hook_throughput(on)
    for mbps in (100.0, 8.0):
        with ground(mbps, ("bandwidth",)) as on:
            yield gain(on, "word-count", 500, mbps, 1.5 if mbps == 100 else None)
            if mbps == 100:
                yield gain(on, "exclamation", 0, mbps, None)


if __name__ == "__main__":
    for line in rows("--quick" in sys.argv):
        print(line, flush=True)

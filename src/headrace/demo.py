"""The demo: a busy word count planned on nine nodes by every scheduler, and word count run for real on a small fleet, measured and improved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from headrace.control.loop import Entry, decide
from headrace.control.loop import Settings as Loop
from headrace.model.document import FORMAT
from headrace.model.examples import example
from headrace.model.read import Inputs, validated

if TYPE_CHECKING:
    from headrace.control.prediction import Batch
    from headrace.run.batches import BatchDone
    from headrace.run.placement import Placement

NODES = {"large": 400, "small-1": 200, "small-2": 200}  # points: cores of the fleet times 100
OPTIONS = {"sentences": 40_000, "tasks": 6}  # of word count, per batch
BATCHES = 8  # under each plan; the later half makes the figures, since Java and Python take some batches to warm up


def demo_files() -> tuple[str, ...]:
    """A busy word count on the nine-node cluster of Muhammad, tables 4.1 and 4.2."""
    return tuple(
        str(example("muhammad", name)) for name in ("word-count-busy.yaml", "cluster.yaml")
    )


def fleet_cluster() -> Inputs:
    """The nodes of the small fleet."""
    nodes = {
        name: {"cpu": cpu, "memory_mb": 1024, "slots": 2, "bandwidth_mbps": 100}
        for name, cpu in NODES.items()
    }
    return validated({"format": FORMAT, "cluster": {"nodes": nodes}}, {})


@dataclass(frozen=True, slots=True)
class Live:
    """What happened: a batch before and after the new plan, and what was foretold of it before it ran."""

    plans: tuple[str, str]
    before: Batch
    foretold: Batch
    after: Batch
    total_bytes: float  # of a batch, on any node
    decision: Entry
    batches: int
    misplaced: int


def live(folder: Path, say: Callable[[str], None]) -> Live:
    """Start a fleet, run word count under storm-even, measure, plan again, and go on under the new plan without stopping."""
    from headrace.control.on_spark import OnSpark, assignment_of, placement_of, problem_of
    from headrace.control.prediction import measured, predicted
    from headrace.model.cluster import nodes_of
    from headrace.planner import place
    from headrace.run.apps import load, topology_of
    from headrace.run.batches import Settings
    from headrace.run.cluster import executor_cores, wait_for_hosts
    from headrace.run.engine import run
    from headrace.run.fleet import Machine, local_fleet
    from headrace.run.located import SETTINGS
    from headrace.run.placement import PlanInForce
    from headrace.spark import session

    cluster = fleet_cluster()
    nodes = nodes_of(cluster)
    topology = topology_of(load("word-count"), {**OPTIONS, "out": str(folder / "counts")})
    first = placement_of(
        place(problem_of(topology, nodes, {}, None), "storm-even"), "storm-even", nodes
    )
    machines = [
        Machine(name, f"127.0.0.{i + 2}", cpu // 100, 1024)
        for i, (name, cpu) in enumerate(NODES.items())
    ]
    say(f"starting a fleet of {len(machines)} workers on this machine ..")
    seen: list[BatchDone] = []
    decided: list[tuple[Entry, Placement, Batch]] = []
    with local_fleet(machines, folder / "fleet") as fleet:
        spark = session(app="headrace-demo", master=fleet.master, conf=SETTINGS | fleet.settings())
        try:
            wait_for_hosts(spark, fleet.hosts.values())
            plan = PlanInForce(topology, first)
            telemetry = folder / "telemetry"

            def there() -> set[str]:
                up = executor_cores(spark)
                return {name for name, host in fleet.hosts.items() if host in up}

            world = OnSpark(
                spark, topology, cluster, plan, telemetry, folder / "decisions", there, window_s=1
            )

            def listen(done: BatchDone) -> None:
                seen.append(done)
                world.seen(done)
                remote = done.remote_bytes / max(1, done.total_bytes)
                say(
                    f"batch {done.batch} under {done.plan}: {done.tuples:,} sentences in {done.seconds:.2f} s, {remote:.0%} of the bytes between nodes"
                )
                if len(seen) == BATCHES:
                    problem = world.problem()
                    entry, planned = decide(
                        problem, (), world.now(), Loop(objective="traffic", dwell_s=0)
                    )
                    say(f"decision: {entry.reason}")
                    if planned is not None:
                        world.apply(planned)
                    now = plan.current()
                    assert now is not None
                    decided.append((entry, now, predicted(problem, assignment_of(problem, now))))

            settings = Settings(
                folder / "run",
                hosts=fleet.hosts,
                batches=2 * BATCHES,
                telemetry=telemetry,
                listen=listen,
            )
            run(spark, topology, plan, settings)
        finally:
            spark.sparkContext.setLogLevel("OFF")
            spark.stop()
    (entry, second, foretold), known, rest = (
        decided[0],
        seen[BATCHES // 2 : BATCHES],
        seen[-BATCHES // 2 :],
    )
    return Live(
        plans=(first.name, second.name),
        before=measured(known, first),
        foretold=foretold,
        after=measured(rest, second),
        total_bytes=median(done.total_bytes for done in known),
        decision=entry,
        batches=len(seen),
        misplaced=sum(len(done.misplaced) for done in seen),
    )

"""The demo: word count planned by every scheduler, then run on a small fleet and improved there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from headrace.control.history import Entry
from headrace.control.loop import decide, describe, step
from headrace.control.planning import LoopSettings
from headrace.model.document import FORMAT
from headrace.model.examples import example
from headrace.model.read import Inputs, validated

if TYPE_CHECKING:
    from headrace.control.on_spark import OnSpark
    from headrace.control.prediction import BatchFigures
    from headrace.run.batches import BatchDone
    from headrace.run.placement import Placement, PlanInForce

HEADROOM = 0.2  # of every node: nobody fills machines to the last point
NODES = {"large": 400, "small-1": 200, "small-2": 200}  # points: cores of the fleet times 100
OPTIONS = {"sentences": 40_000, "tasks": 6}  # of word count, per batch
# Java and Python take some batches to warm up. They count as warm once so many batches are about as
# quick as so many before them, between the fewest and the most that are waited for.
ALIKE, ABOUT, LEAST_COLD, MOST_COLD = 15, 0.97, 45, 75
MEASURED = 8  # batches under each plan that make its figures
AFTER = 12  # batches under the new plan, at least; the first ones have yet to settle
SETTINGS = LoopSettings(objective="traffic", rule_options={"dwell_s": 0})

Say = Callable[[str], None]


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
class DemoRun:
    """A batch before the new plan, one under it as predicted before it ran, and as it was."""

    plans: tuple[str, str]
    before: BatchFigures
    predicted: BatchFigures
    after: BatchFigures
    total_bytes: float  # of a batch, on any node
    decision: Entry
    batches: int
    misplaced: int


@dataclass(slots=True)
class Improvement:
    """Listens to a run, and plans again from what was measured once it is warm."""

    world: OnSpark
    plan: PlanInForce
    say: Say
    batches: list[BatchDone] = field(default_factory=list[Any])
    known: list[BatchDone] = field(default_factory=list[Any])  # what the decision rests on
    made: tuple[Entry, Placement, BatchFigures] | None = None  # decision, plan, what it will do
    since: int = 0  # the first batch after the decision

    def listen(self, done: BatchDone) -> None:
        """Count a batch; decide when batches get no quicker any more."""
        self.batches.append(done)
        self.world.add_batch(done)
        remote = done.remote_bytes / max(1, done.total_bytes)
        self.say(
            f"batch {done.batch} under {done.plan}: {done.tuples:,} sentences in "
            f"{done.seconds:.2f} s, {remote:.0%} of the bytes between nodes"
        )
        if self.made is None and self.is_warm():
            self.decide()
        elif len(self.under_new_plan()) == MEASURED:
            # What came of the decision is kept with the next one.
            step(self.world, replace(SETTINGS, rule="never", rule_options={}))

    def under_new_plan(self) -> list[BatchDone]:
        """The batches since the decision, under the plan that it ended with."""
        if self.made is None:
            return []
        name = self.made[1].name
        return [done for done in self.batches[self.since :] if done.plan == name]

    def is_warm(self) -> bool:
        """Whether batches get no quicker any more; says so."""
        count, seconds = len(self.batches), [done.seconds for done in self.batches]
        if count < LEAST_COLD:
            return False
        before, now = median(seconds[-2 * ALIKE : -ALIKE]), median(seconds[-ALIKE:])
        if now < ABOUT * before and count < MOST_COLD:
            return False
        state = "is warm" if now >= ABOUT * before else "may not be warm yet"
        self.say(
            f"Java {state} after {count} batches: the last {ALIKE} took {now:.2f} s each, "
            f"those before them {before:.2f} s"
        )
        self.known = self.batches[-MEASURED:]
        return True

    def decide(self) -> None:
        """Plan again, and put the new plan in force if it is worth it."""
        from headrace.control.on_spark import assignment_from_placement
        from headrace.control.prediction import predict_batch

        view = self.world.look()
        problem = view.problem
        entry, planned = decide(view, describe(view, (), self.world.now()), (), SETTINGS)
        self.say(f"decision: {entry.reason}")
        if planned is not None:
            self.world.apply(planned)
            entry = replace(entry, applied=True)
        self.world.keep(replace(entry, by="headrace", rule="gain"))
        now = self.plan.current()
        if now is None:
            raise RuntimeError("the demo runs without a plan")
        self.since = len(self.batches)
        self.made = entry, now, predict_batch(problem, assignment_from_placement(problem, now))


def run_demo(folder: Path, say: Say) -> DemoRun:
    """Run word count under storm-even's plan, and go on under a better one without stopping.

    The folder is the run's: it keeps the batches, the telemetry and the decision.
    """
    from headrace.control.live import on_fleet
    from headrace.control.on_spark import plan_first
    from headrace.control.prediction import median_figures
    from headrace.model.cluster import nodes_of
    from headrace.run.apps import load, topology_of
    from headrace.run.batches import Settings
    from headrace.run.fleet import local_fleet
    from headrace.run.machines import machines_for

    folder = folder.resolve()  # workers have a folder of their own
    cluster, telemetry = fleet_cluster(), folder / "telemetry"
    nodes = nodes_of(cluster)
    topology = topology_of(load("word-count"), {**OPTIONS, "out": str(folder / "counts")})
    first = plan_first(topology, nodes, "storm-even")
    say(f"starting a fleet of {len(nodes)} workers on this machine ..")
    with (
        tempfile.TemporaryDirectory(prefix="headrace-demo-") as scratch,
        local_fleet(machines_for(nodes), Path(scratch)) as fleet,
        on_fleet(fleet, "headrace-demo") as site,
    ):
        plan = site.put_in_force(topology, first)
        world = site.watch(topology, plan, cluster, telemetry, folder, window_s=1)
        halves = Improvement(world, plan, say)
        settings = Settings(
            folder, batches=MOST_COLD + AFTER, telemetry=telemetry, listen=halves.listen
        )
        say("waiting until Java is warm, that is until batches get no quicker ..")
        site.run(topology, plan, settings)
    if halves.made is None:
        raise RuntimeError(f"the demo ended after {len(halves.batches)} batches, before a decision")
    entry, second, prediction = halves.made
    known = halves.known
    return DemoRun(
        plans=(first.name, second.name),
        before=median_figures(known, first),
        predicted=prediction,
        after=median_figures(halves.under_new_plan()[AFTER - MEASURED : AFTER], second),
        total_bytes=median(done.total_bytes for done in known),
        decision=entry,
        batches=len(halves.batches),
        misplaced=sum(len(done.misplaced) for done in halves.batches),
    )

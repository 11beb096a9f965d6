"""Every scheduler of the theses drives the loop, on a fleet with real limits.

Word count and exclamation run under a first plan; then the loop plans with the scheduler, by the
rule of its thesis, and puts the plan in force. The loop's time is counted in batches. Shares of all
tuples that cross between nodes and between workers are shown as judged, and as measured under the
plan: workers are processes, so what a scheduler's second level gains is to be seen.

    python benchmarks/driving.py a3-storm headrace    # some of them
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from measure import Row

from headrace.control.beside import decide_after_batches
from headrace.control.history import Entry, entries, find_plan
from headrace.control.live import Site, on_fleet
from headrace.control.on_spark import assignment_from_placement, plan_first
from headrace.control.planning import LoopSettings
from headrace.errors import HeadraceError
from headrace.judge.report import Report, judge
from headrace.model.cluster import nodes_of
from headrace.model.document import FORMAT, PlanSection
from headrace.model.read import Inputs, validated
from headrace.run.apps import load, topology_of
from headrace.run.batches import BatchDone, Settings
from headrace.run.fleet import local_fleet
from headrace.run.machines import machines_for
from headrace.run.placement import placement_from_section

# Scheduler -> the rule of its source.
RULES = {
    "storm-even": "once",
    "a3-storm": "muhammad",
    "ban-storm": "muhammad",
    "p-scheduler": "once",
    "t3-scheduler": "once",
    "i-scheduler": "once",
    "aniello-online": "aniello",
    "headrace": "gain",
}
OPTIONS = {"aniello-online": {"beta": 0.0}}  # with its default it uses every node, as Storm does
APPS = {"word-count": {"sentences": 2000, "tasks": 4}, "exclamation": {"per_batch": 5000}}
NODES = 3
BATCHES, DECIDE_AFTER = 12, 3
PLAN = "plan-1"  # the first of the scheduler's
ABOUT = 0.02  # of all tuples, by which judged and measured shares may differ


def rows(quick: bool) -> Iterator[Row]:
    """Run them all; only ours where it is to be quick."""
    yield from drive(["headrace"] if quick else list(RULES))


def drive(schedulers: Sequence[str]) -> Iterator[Row]:
    """Each scheduler on each application, one after another on one fleet."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            with (
                local_fleet(
                    machines_for(nodes_of(cluster())), folder / "fleet", limits=("bandwidth", "cpu")
                ) as fleet,
                on_fleet(fleet, "headrace-driving") as site,
            ):
                for app in APPS:
                    for by in schedulers:
                        yield from run_one(site, app, by, folder / f"{app}-{by}")
        except HeadraceError as refusal:
            yield Row("schedulers drive the loop", f"SKIPPED: {refusal.message}", "", False)


def cluster() -> Inputs:
    """Nodes with a core for every task of the largest stage, and a narrow link.

    A scheduler that knows nothing of stages may put all tasks of one on a node.
    """
    node = {"cpu": 1000, "cores": 10, "memory_mb": 1024, "slots": 2, "bandwidth_mbps": 100,
            "sockets": 1, "ghz": 2.0, "flops_per_cycle": 16}  # fmt: skip
    nodes = {f"n{i}": node for i in range(1, NODES + 1)}
    return validated({"format": FORMAT, "cluster": {"nodes": nodes}}, {})


def run_one(site: Site, app: str, by: str, folder: Path) -> Iterator[Row]:
    """One run; holds if a plan of the scheduler came into force."""
    topology = topology_of(load(app), {**APPS[app], "out": str(folder / "out")})
    first = "headrace" if by == "storm-even" else "storm-even"
    watch = Watch()
    plan = site.put_in_force(topology, plan_first(topology, nodes_of(cluster()), first))
    telemetry = folder / "telemetry"
    world = site.watch(
        topology, plan, cluster(), telemetry, folder / "store", window_s=1, by=by,
        clock=lambda: watch.now,
    )  # fmt: skip
    rule = RULES[by]
    loop = LoopSettings(
        objective="traffic", by=by, options=OPTIONS.get(by, {}), rule=rule,
        rule_options={"after_s": DECIDE_AFTER} if rule == "once" else {},
        interval_s=DECIDE_AFTER,
    )  # fmt: skip
    # Batches wait for decisions here: on a busy machine a run would be over before one.
    decide = decide_after_batches(world, loop, watch.decisions.append)

    def listen(done: BatchDone) -> None:
        watch.count(done)
        decide(done)

    settings = Settings(
        folder / "run", batches=BATCHES, interval_s=1.0, telemetry=telemetry, listen=listen
    )
    site.run(topology, plan, settings)
    kept = entries(folder / "store")
    moved = next((e for e in kept if e.applied), None)
    said = moved or (kept[-1] if kept else None)
    under = [done for done in watch.batches if done.plan == PLAN]
    yield Row(
        f"{app}, {by}, {rule}: {'no decision' if said is None else said.reason}",
        "in force" if moved is not None and under else "not in force",
        "in force",
        moved is not None and bool(under),
    )
    if moved is not None and under:
        # A plan that does worse than predicted is left: at the end another may be in force.
        section = PlanSection.model_validate(find_plan(kept, moved.plan))
        placed = placement_from_section(section, topology, name=PLAN, nodes=nodes_of(cluster()))
        problem = world.look().problem
        report = judge(problem, assignment_from_placement(problem, placed), bounded=False)
        yield compare_shares(f"{app}, {by}", report, under)


def compare_shares(what: str, report: Report, batches: Sequence[BatchDone]) -> Row:
    """Shares of all tuples that cross nodes and workers, as judged and as measured."""
    total = sum(done.crossed.tuples for done in batches)
    measured = [
        sum(done.crossed.node_tuples for done in batches) / total,
        sum(done.crossed.worker_tuples for done in batches) / total,
    ]
    judged = [
        report.inter_node_traffic / report.total_traffic,
        report.inter_worker_traffic / report.total_traffic,
    ]
    seconds = median(done.seconds for done in batches)
    shared = sorted({name for done in batches for name in done.shared})
    beside = f"; shared {', '.join(shared)}" if shared else ""
    return Row(
        f"{what}: {report.workers_used} workers on {report.nodes_used} nodes, "
        f"{seconds:.2f} s a batch: between nodes, workers{beside}",
        ", ".join(f"{share:.3f}" for share in measured),
        ", ".join(f"{share:.3f}" for share in judged),
        all(abs(a - b) <= ABOUT for a, b in zip(measured, judged, strict=True)) and not shared,
    )


@dataclass(slots=True)
class Watch:
    """Counts batches, and keeps what was decided."""

    now: float = 0.0
    batches: list[BatchDone] = field(default_factory=list[BatchDone])
    decisions: list[Entry] = field(default_factory=list[Entry])

    def count(self, done: BatchDone) -> None:
        self.now += 1
        self.batches.append(done)


if __name__ == "__main__":
    for row in drive(sys.argv[1:] or list(RULES)):
        print(row, flush=True)

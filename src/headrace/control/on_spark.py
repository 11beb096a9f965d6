"""The loop's world on Spark: telemetry of a running topology in, plans for its next batch out."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.control import history
from headrace.control.loop import Entry, LoopSettings, step
from headrace.control.prediction import emission_rates, with_batch_times
from headrace.errors import InvalidInput
from headrace.model.build import build
from headrace.model.cluster import nodes_of
from headrace.model.document import FORMAT, Node
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.read import Inputs, validated
from headrace.model.topology import Topology
from headrace.observe.pipeline import Observed, Question, observe_folder
from headrace.observe.small import is_small, observe_small
from headrace.observe.source import check_folder
from headrace.planner import Plan, place
from headrace.run.batches import BatchDone
from headrace.run.placement import Placement, PlanInForce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECENT = 12  # batches that are looked at: enough for a fit, few enough that what has changed shows
# Batches after a start that are left out of the costs: Python workers start and load their modules.
COLD = 2


def problem_on_spark(
    topology: Topology,
    nodes: Mapping[str, Node],
    measured: Mapping[str, Any],
    running: Placement | None,
    rates: Mapping[str, float] | None = None,
) -> Problem:
    """A topology on nodes as Spark runs it, with the running plan as `current`.

    Tasks of nodes that are not there are unplaced. `rates` are those of the spouts, where they are
    known better than from the measured streams.
    """
    tasks = dict(running.tasks) if running is not None else {}
    planned = replace(topology.with_tasks(tasks) if tasks else topology, core_per_task=True)
    section = planned.section()
    components: dict[str, Any] = section["components"]
    streams: list[dict[str, Any]] = []
    for stream in measured.get("streams", ()):
        # Averages of single streams are not of quite the same time; one rate and the selectivities
        # are, and they agree.
        streams.append({key: value for key, value in stream.items() if key != "tuples_per_s"})
        source = components[stream["from"]]
        if source.get("spout") and stream.get("selectivity"):
            source["rate"] = (rates or {}).get(
                stream["from"], stream["tuples_per_s"] / stream["selectivity"]
            )
    described = {
        name: node.model_dump(mode="json", by_alias=True, exclude_unset=True)
        for name, node in nodes.items()
    }
    content: dict[str, Any] = {
        "format": FORMAT,
        "topology": section,
        "cluster": {"nodes": described},
    }
    if "profile" in measured:
        content["profile"] = measured["profile"]
    if streams:
        content["streams"] = streams
    problem = build(validated(content, {}))
    if running is None:
        return problem
    return replace(problem, current=assignment_from_placement(problem, running))


def assignment_from_placement(problem: Problem, running: Placement) -> Assignment:
    """A running plan in the problem's terms."""
    number = {name: i for i, name in enumerate(problem.nodes)}
    node = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    worker = np.full(problem.task_count, UNPLACED, dtype=np.int64)
    for c, component in enumerate(problem.components):
        for k in range(int(problem.tasks[c])):
            where, slot = running.places[component, k]
            if where in number:
                node[problem.first[c] + k], worker[problem.first[c] + k] = number[where], slot
    return Assignment(node, worker)


def placement_from_plan(planned: Plan, name: str, nodes: Mapping[str, Node]) -> Placement:
    """A plan as the engine takes it."""
    problem, assignment = planned.problem, planned.assignment
    if (assignment.node == UNPLACED).any():
        raise InvalidInput(f"{name} does not place every task")
    places = {
        (component, k): (
            problem.nodes[assignment.node[problem.first[c] + k]],
            int(assignment.worker[problem.first[c] + k]),
        )
        for c, component in enumerate(problem.components)
        for k in range(int(problem.tasks[c]))
    }
    tasks = {c: int(n) for c, n in zip(problem.components, problem.tasks, strict=True)}
    return Placement(name, tasks, places, nodes)


def plan_first(topology: Topology, nodes: Mapping[str, Node], by: str) -> Placement:
    """A scheduler's plan of a topology of which nothing was measured yet; it bears its name."""
    return placement_from_plan(place(problem_on_spark(topology, nodes, {}, None), by), by, nodes)


def observe(spark: SparkSession, folder: Path, question: Question, *, newest: int) -> Observed:
    """What telemetry says; a decision on little of it does not wait for Spark."""
    if is_small(check_folder(folder, newest)):
        return observe_small(folder, question, newest=newest)
    return observe_folder(spark, folder, question, newest=newest)


@dataclass(slots=True)
class OnSpark:
    """A topology that runs, as the loop sees it."""

    spark: SparkSession
    topology: Topology
    cluster: Inputs
    plan: PlanInForce
    telemetry: Path
    store: Path
    nodes_up: Callable[[], set[str]]  # names of the nodes that have an executor
    window_s: int = 5
    clock: Callable[[], float] = time.time
    batches: tuple[BatchDone, ...] = ()
    warm: int = -COLD  # batches since everything was warm

    def add_batch(self, done: BatchDone) -> None:
        """Count a batch among those that decisions look at."""
        self.batches = (*self.batches, done)[-RECENT:]
        self.warm += 1

    def now(self) -> float:
        return self.clock()

    def nodes(self) -> dict[str, Node]:
        """The cluster's nodes that have an executor."""
        up = self.nodes_up()
        return {name: node for name, node in nodes_of(self.cluster).items() if name in up}

    def problem(self) -> Problem:
        question = Question(self.window_s, "average", (self.topology.name,), prefixed=False)
        batches = self.batches  # more may come while this is at work
        newest = min(RECENT, max(1, self.warm)) if batches else RECENT  # one file a batch
        observed = observe(self.spark, self.telemetry, question, newest=newest)
        running = self.plan.current()
        rates = emission_rates(batches[-newest:])
        problem = problem_on_spark(self.topology, self.nodes(), observed.sections, running, rates)
        under_plan = [
            done
            for done in batches
            if running is not None and done.plan == running.name and done.failure is None
        ]
        return with_batch_times(problem, under_plan[-newest:], self.window_s)

    def history(self) -> Sequence[Entry]:
        return history.entries(self.store)

    def keep(self, entry: Entry) -> None:
        history.keep(self.store, entry)

    def apply(self, planned: Plan) -> None:
        number = 1 + sum(entry.applied for entry in self.history())
        self.plan.set(placement_from_plan(planned, f"plan-{number}", self.nodes()))

    def wait(self, seconds: float) -> bool:
        time.sleep(seconds)
        return True


Action = Callable[[], None]


def do_at_once(action: Action) -> bool:
    """Do it while the caller waits."""
    action()
    return True


@contextmanager
def background() -> Generator[Callable[[Action], bool]]:
    """Do things one at a time while the caller goes on; False: the one before is not over yet.

    What one of them raises is raised at the next, or at the end.
    """
    last: list[Future[None]] = []
    with ThreadPoolExecutor(1) as thread:

        def start(action: Action) -> bool:
            if last and not last[0].done():
                return False
            while last:
                last.pop().result()
            last.append(thread.submit(action))
            return True

        yield start
        while last:
            last.pop().result()


def decide_after_batches(
    world: OnSpark,
    settings: LoopSettings,
    report: Callable[[Entry], None],
    do: Callable[[Action], bool] = do_at_once,
) -> Callable[[BatchDone], None]:
    """A listener that decides after the first batch of every interval.

    A new plan holds from the next batch on; if decided in the `background`, from the one after.
    """
    due = world.now() + settings.interval_s

    def listen(done: BatchDone) -> None:
        nonlocal due
        world.add_batch(done)
        if world.now() >= due and do(lambda: report(step(world, settings))):
            due = world.now() + settings.interval_s

    return listen

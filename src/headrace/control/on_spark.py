"""The loop's world on Spark: a running topology's telemetry in, plans that take effect at the next batch out."""

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
from headrace.control.loop import Entry, Settings, step
from headrace.control.prediction import emitted_per_s, with_batch_times
from headrace.errors import InvalidInput
from headrace.model.build import build
from headrace.model.cluster import nodes_of
from headrace.model.document import FORMAT, Node
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.read import Inputs, validated
from headrace.observe.pipeline import Question, observe_folder
from headrace.planner import Plan
from headrace.run.batches import BatchDone
from headrace.run.placement import Placement, PlanInForce
from headrace.run.stages import stages
from headrace.run.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECENT = 12  # batches that are looked at: enough for a fit, few enough that what has changed shows
COLD = 2  # batches after a start that are left out of the costs: Python workers start and load their modules


def problem_of(
    topology: Topology,
    nodes: Mapping[str, Node],
    measured: Mapping[str, Any],
    running: Placement | None,
    rates: Mapping[str, float] | None = None,
) -> Problem:
    """A topology on nodes as Spark runs it, with the running plan as `current`; tasks on nodes that are not there stand nowhere.

    `rates` are those of the spouts, where they are known better than from the measured streams. A
    stage's tasks run at once, each on a core of its own: so a node has as many places of each stage
    as cores.
    """
    tasks = dict(running.tasks) if running is not None else {}
    section = topology.with_tasks(tasks).section() if tasks else topology.section()
    levels = {
        name: f"cores of stage {i + 1}"
        for i, level in enumerate(stages(topology.components).levels)
        for name in level
    }
    components = {
        name: {**spec, "resources": {**spec.get("resources", {}), levels[name]: 1}}
        for name, spec in section["components"].items()
    }
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
    for name, facts in described.items():
        facts["resources"] = {
            **facts.get("resources", {}),
            **dict.fromkeys(levels.values(), cores_of(nodes[name])),
        }
    sections = {"topology": {**section, "components": components}, "cluster": {"nodes": described}}
    profile = {"profile": measured["profile"]} if "profile" in measured else {}
    problem = build(
        validated(
            {"format": FORMAT, **sections, **profile, **({"streams": streams} if streams else {})},
            {},
        )
    )
    return problem if running is None else replace(problem, current=assignment_of(problem, running))


def cores_of(node: Node) -> int:
    """Cores that Spark counts on a node."""
    return (
        max(1, int(node.cpu // 100))
        if node.cpu is not None
        else (node.cores or 1) * (node.sockets or 1)
    )


def assignment_of(problem: Problem, running: Placement) -> Assignment:
    """A plan in the problem's terms."""
    number = {name: i for i, name in enumerate(problem.nodes)}
    node, worker = (
        np.full(problem.task_count, UNPLACED, dtype=np.int64),
        np.full(problem.task_count, UNPLACED, dtype=np.int64),
    )
    for c, component in enumerate(problem.components):
        for k in range(int(problem.tasks[c])):
            where, slot = running.places[component, k]
            if where in number:
                node[problem.first[c] + k], worker[problem.first[c] + k] = number[where], slot
    return Assignment(node, worker)


def placement_of(planned: Plan, name: str, nodes: Mapping[str, Node]) -> Placement:
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
    return Placement(
        name,
        {c: int(n) for c, n in zip(problem.components, problem.tasks, strict=True)},
        places,
        nodes,
    )


@dataclass(slots=True)
class OnSpark:
    """A topology that runs, as the loop sees it."""

    spark: SparkSession
    topology: Topology
    cluster: Inputs
    plan: PlanInForce
    telemetry: Path
    store: Path
    there: Callable[[], set[str]]  # names of the nodes that have an executor
    window_s: int = 5
    clock: Callable[[], float] = time.time
    batches: tuple[BatchDone, ...] = ()
    warm: int = -COLD  # batches since everything was warm

    def seen(self, done: BatchDone) -> None:
        """Take note of a batch."""
        self.batches = (*self.batches, done)[-RECENT:]
        self.warm += 1

    def now(self) -> float:
        return self.clock()

    def nodes(self) -> dict[str, Node]:
        """The cluster's nodes that are there."""
        alive = self.there()
        return {name: node for name, node in nodes_of(self.cluster).items() if name in alive}

    def problem(self) -> Problem:
        question = Question(self.window_s, "average", (self.topology.name,), prefixed=False)
        batches = self.batches  # more may come while this is at work
        newest = min(RECENT, max(1, self.warm)) if batches else RECENT  # one file a batch
        observed = observe_folder(self.spark, self.telemetry, question, newest=newest)
        running = self.plan.current()
        problem = problem_of(
            self.topology,
            self.nodes(),
            observed.sections,
            running,
            emitted_per_s(batches[-newest:]),
        )
        under = [
            done
            for done in batches
            if running is not None and done.plan == running.name and done.failure is None
        ]
        return with_batch_times(problem, under[-newest:], self.window_s)

    def history(self) -> Sequence[Entry]:
        return history.entries(self.store)

    def keep(self, entry: Entry) -> None:
        history.keep(self.store, entry)

    def apply(self, planned: Plan) -> None:
        number = 1 + sum(entry.applied for entry in self.history())
        self.plan.set(placement_of(planned, f"plan-{number}", self.nodes()))

    def wait(self, seconds: float) -> bool:
        time.sleep(seconds)
        return True


Work = Callable[[], None]


def at_once(work: Work) -> bool:
    """Do it while the caller waits."""
    work()
    return True


@contextmanager
def aside() -> Generator[Callable[[Work], bool]]:
    """Do things one at a time while the caller goes on; False says that one is still being done. A failure is raised at the next, or at the end."""
    last: list[Future[None]] = []
    with ThreadPoolExecutor(1) as thread:

        def start(work: Work) -> bool:
            if last and not last[0].done():
                return False
            while last:
                last.pop().result()
            last.append(thread.submit(work))
            return True

        yield start
        while last:
            last.pop().result()


def after_batches(
    world: OnSpark,
    settings: Settings,
    say: Callable[[Entry], None],
    do: Callable[[Work], bool] = at_once,
) -> Callable[[BatchDone], None]:
    """Decides once an interval has passed and a batch is over: a new plan holds from the next batch on, or if decided `aside`, from the one after."""
    due = world.now() + settings.interval_s

    def listen(done: BatchDone) -> None:
        nonlocal due
        world.seen(done)
        if world.now() >= due and do(lambda: say(step(world, settings))):
            due = world.now() + settings.interval_s

    return listen

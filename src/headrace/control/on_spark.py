"""The loop's world on Spark: telemetry of a running topology in, plans for its next batch out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.control import history
from headrace.control.draining import drained_nodes
from headrace.control.history import Entry
from headrace.control.measured_inputs import measured_inputs
from headrace.control.planning import View
from headrace.control.prediction import crossing_rates, emission_rates, with_batch_times
from headrace.errors import InvalidInput
from headrace.model.build import build
from headrace.model.cluster import nodes_of
from headrace.model.document import Node, PlanSection
from headrace.model.problem import UNPLACED, Assignment, Pairs, Problem, Stream
from headrace.model.read import Inputs
from headrace.model.topology import Topology
from headrace.model.workload import Workload
from headrace.observe.pipeline import Observed, Question, observe_folder
from headrace.observe.small import is_small, observe_small, read_inventory
from headrace.observe.source import check_folder
from headrace.planner import Plan, place
from headrace.run.batches import BatchDone
from headrace.run.placement import Placement, PlanInForce, placement_from_section

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
    problem = build(inputs_on_spark(topology, nodes, measured, running, rates))
    if running is None:
        return problem
    return replace(problem, current=assignment_from_placement(problem, running))


def inputs_on_spark(
    topology: Topology,
    nodes: Mapping[str, Node],
    measured: Mapping[str, Any],
    running: Placement | None,
    rates: Mapping[str, float] | None = None,
) -> Inputs:
    """The same as files."""
    tasks = dict(running.tasks) if running is not None else {}
    planned = replace(topology.with_tasks(tasks) if tasks else topology, core_per_task=True)
    return measured_inputs(planned.section(), nodes, measured, rates)


def with_measured_pairs(problem: Problem, rows: Sequence[Sequence[Any]]) -> Problem:
    """The problem with the traffic of single task pairs, where it was measured.

    Pairs say how a stream is divided; how much flows in all is what the problem says of the stream,
    since averages of pairs are not of quite the same time.
    """
    number = {problem.task_name(t): t for t in range(problem.task_count)}
    known = [row for row in rows if row[0] in number and row[1] in number and row[2] > 0]
    if not known:
        return problem
    source = np.array([number[row[0]] for row in known], dtype=np.int64)
    target = np.array([number[row[1]] for row in known], dtype=np.int64)
    tuples = np.array([float(row[2]) for row in known])
    c = problem.component_of
    joined = c[source] * len(problem.tasks) + c[target]
    kept: list[Stream] = []
    wanted: dict[int, tuple[float, float]] = {}
    for stream in problem.streams:
        edge = stream.source * len(problem.tasks) + stream.target
        copies = float(stream.received(int(problem.tasks[stream.target])).sum())
        if not (joined == edge).any():
            kept.append(stream)
            continue
        sent, data = wanted.get(edge, (0.0, 0.0))
        new = stream.tuples_per_s * copies
        wanted[edge] = (sent + new, data + new * stream.bytes)
    rate, data_rate = np.zeros(len(known)), np.zeros(len(known))
    for edge, (sent, data) in wanted.items():
        here = joined == edge
        rate[here] = tuples[here] * (sent / tuples[here].sum())
        data_rate[here] = rate[here] * (data / sent if sent > 0 else 0.0)
    used = np.isin(joined, list(wanted)) & (rate > 0)
    pairs = Pairs(source[used], target[used], rate[used], data_rate[used])
    return replace(problem, streams=tuple(kept), pairs=pairs)


def with_inventory(
    nodes: Mapping[str, Node], inventory: Mapping[str, Mapping[str, Any]]
) -> dict[str, Node]:
    """Nodes with what their agents say of them where the cluster file says nothing."""
    found: dict[str, Node] = {}
    for name, node in nodes.items():
        facts = {k: v for k, v in inventory.get(name, {}).items() if k != "power"}
        unknown = {k: v for k, v in facts.items() if k not in node.model_fields_set}
        found[name] = node.model_copy(update=unknown)
    return found


def with_judge_options(inputs: Inputs, problem: Problem) -> Inputs:
    """The files with the problem's batch times and fixed costs, for other counts."""
    document = inputs.document
    options = {**(document.options or {}), "judge": problem.options.get("judge", {})}
    stated = float(build(inputs).cpu_fixed.sum())
    share = float(problem.cpu_fixed.sum()) / stated if stated > 0 else 1.0
    profile = {
        name: {
            kind: cost.model_copy(update={"cpu_fixed": cost.cpu_fixed * share})
            for kind, cost in costs.items()
        }
        for name, costs in (document.profile or {}).items()
    }
    update: dict[str, Any] = {"options": options}
    if profile:
        update["profile"] = profile
    return replace(inputs, document=document.model_copy(update=update))


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


@dataclass(frozen=True, slots=True)
class Measured:
    """What a running topology showed of itself."""

    inputs: Inputs  # as files have it
    timed: Problem  # with the running plan, and the times of batches
    running: Placement | None
    traffic: Sequence[Sequence[Any]]  # of single pairs of tasks
    measured: Mapping[str, float]  # of the plan in force

    @property
    def rate_per_s(self) -> float:
        """Tuples/s that come in at all spouts."""
        return float(self.timed.rate[self.timed.spout].sum())


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
    joined: Callable[[], Mapping[str, Node]] = dict[str, Node]  # nodes beside the cluster file's
    agents: Path | None = None  # the folder of what nodes say about themselves
    pairs: bool = False  # plan on the traffic of single pairs of tasks, for schedulers that do

    def add_batch(self, done: BatchDone) -> None:
        """Count a batch among those that decisions look at."""
        self.batches = (*self.batches, done)[-RECENT:]
        self.warm += 1

    def now(self) -> float:
        return self.clock()

    def nodes(self) -> dict[str, Node]:
        """The nodes that have an executor: the cluster's, and those that joined."""
        up = self.nodes_up()
        known = {**nodes_of(self.cluster), **self.joined()}
        return {name: node for name, node in known.items() if name in up}

    def problem(self) -> Problem:
        """The problem as measured, with the running plan as `current`."""
        return self.look().problem

    def look(self) -> View:
        seen = self.measure()
        workload = Workload(with_judge_options(seen.inputs, seen.timed))
        problem = seen.timed
        if self.pairs:
            problem = with_measured_pairs(problem, seen.traffic)
        return View(problem, workload, seen.measured, drained=drained_nodes(self.store))

    def measure(self) -> Measured:
        """What the newest batches show."""
        question = Question(self.window_s, "average", (self.topology.name,), prefixed=False)
        batches = self.batches  # more may come while this is at work
        newest = min(RECENT, max(1, self.warm)) if batches else RECENT  # one file a batch
        observed = observe(self.spark, self.telemetry, question, newest=newest).sections
        running = self.plan.current()
        rates = emission_rates(batches[-newest:])
        nodes = self.nodes()
        for folder in (self.telemetry, self.agents):
            if folder is not None:
                nodes = with_inventory(nodes, read_inventory(folder))
        inputs = inputs_on_spark(self.topology, nodes, observed, running, rates)
        problem = build(inputs)
        if running is not None:
            problem = replace(problem, current=assignment_from_placement(problem, running))
        under_plan = [
            done
            for done in batches
            if running is not None and done.plan == running.name and done.failure is None
        ][-newest:]
        timed = with_batch_times(problem, under_plan, self.window_s)
        measured: dict[str, float] = {}
        if under_plan:
            measured = {"batch_seconds": median(done.seconds for done in under_plan)}
            measured |= crossing_rates(under_plan)
        return Measured(inputs, timed, running, observed.get("traffic", ()), measured)

    def history(self) -> Sequence[Entry]:
        return history.entries(self.store)

    def keep(self, entry: Entry) -> None:
        history.keep(self.store, entry)

    def apply(self, planned: Plan) -> None:
        number = 1 + sum(entry.applied for entry in self.history())
        self.plan.set(placement_from_plan(planned, f"plan-{number}", self.nodes()))

    def put_in_force(self, section: Mapping[str, Any]) -> None:
        """Put a plan that is given by its counts and places into force."""
        number = 1 + sum(entry.applied for entry in self.history())
        plan = PlanSection.model_validate(section)
        placed = placement_from_section(
            plan, self.topology, name=f"plan-{number}", nodes=self.nodes()
        )
        self.plan.set(placed)

    def wait(self, seconds: float) -> bool:
        time.sleep(seconds)
        return True

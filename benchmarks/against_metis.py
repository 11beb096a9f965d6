"""headrace's search against METIS and Mt-KaHyPar on operator graphs, side by side in one run.

The problems are clusters full of streaming components. A component reads one or two earlier ones,
mostly near ones; its tasks read all tasks of those (all-to-all: a pair's rate is the stream's
divided by p * q); streams' rates are log-normal, a few carry most of the traffic; sizes of
components and loads of tasks (5..50) differ; nodes have capacities 3:2:1 and together hold 1.2
times the load.

How many tasks a component has decides what can be won. The strictest target is for components of 10
tasks on average, 100 tasks to a node; the production cluster that `placing` measures has 2 tasks to
a component. The other rows have larger components, which leave less to choose: of 33 tasks, a
quarter of a node, and of 250, larger than any node, where most traffic crosses in any plan. The
bound says how much less there could be at all.

What METIS gets: the graph of tasks, weights as integers, a target weight per part; once for all
nodes (targets by capacity) and once for the largest nodes that together hold 1.05 times the load.
METIS keeps its targets only roughly, so both results get our own capacity repair and a local
search: a descent on counts, 1,000 proposals per component and at least a million; five times as
many gain about a hundredth. The better one counts. METIS's time is both runs with repair and local
search; both runs alone are a row of their own. Building its graph is not counted. Where the graph
would have more than 20 million pairs, tasks of one component are joined into super-tasks until it
has not.

Mt-KaHyPar gets the same graph, its preset for quality, the nodes' capacities as limits of its
blocks, both sets of nodes, and the same repair and local search; the better result counts. It runs
on one thread, on 10,000 tasks only: with more, a run takes many minutes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import mtkahypar
import numpy as np
import pymetis
from measure import Row

from headrace.model.arrays import Floats, Ints
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.feasible import feasible
from headrace.solve.least_traffic.search import least_crossing_search, polish
from headrace.solve.proof.by_topology import crossing_bound_by_topology

MOST_PAIRS = 20_000_000  # of tasks, in METIS's graph
MOST_FOR_KAHYPAR = 10_000  # tasks
MOST_TO_BOUND = 400  # components; with more, nothing says that any traffic must cross
BOUND_WORK = 1e9  # visits, some seconds

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Case:
    """A size to compare at."""

    tasks: int
    nodes: int
    components: int
    target: float | None = None  # share of METIS's traffic
    timed: bool = False  # within METIS's processor time


SMALL = (
    Case(10_000, 100, 1_000, target=0.90, timed=True),
    Case(10_000, 100, 300, target=0.95),
    Case(10_000, 100, 40, target=0.95),
)
LARGE = (
    Case(100_000, 1_000, 10_000, target=0.90, timed=True),
    Case(100_000, 1_000, 3_000),
    Case(100_000, 1_000, 400),
)


def operator_graph(case: Case, seed: int) -> Instance:
    """Components in a DAG, as the module's docstring describes them."""
    rng = np.random.default_rng([seed, case.components])
    share = rng.uniform(0.5, 2.0, case.components)
    count = np.maximum(1, np.round(case.tasks * share / share.sum())).astype(np.int64)
    streams: dict[tuple[int, int], float] = {}
    for reader in range(1, case.components):
        for _ in range(1 + int(rng.random() < 0.5)):
            writer = (
                max(0, reader - int(rng.geometric(0.4)))
                if rng.random() < 0.9
                else int(rng.integers(reader))
            )
            streams[writer, reader] = streams.get((writer, reader), 0.0) + 1000.0 * float(
                rng.lognormal(0.0, 1.0)
            )
    pairs = sorted(streams)
    a, b = np.array(pairs, np.int64).T
    load = rng.integers(5, 51, case.components).astype(np.float64)
    capacity = np.array([(3.0, 2.0, 1.0)[n % 3] for n in range(case.nodes)])
    capacity *= 1.2 * float(load @ count) / capacity.sum()
    return Instance(
        count=count,
        edge_a=a,
        edge_b=b,
        edge_weight=np.array([streams[pair] for pair in pairs]) / (count[a] * count[b]),
        demand=load[None, :, None],
        node_type=np.zeros(case.nodes, np.int64),
        capacity=capacity[:, None],
        allowed=np.ones((case.components, case.nodes), np.bool_),
        apart=np.zeros(case.components, np.bool_),
        group=np.zeros(case.components, np.int64),
        slots=np.ones(case.nodes, np.int64),
        heap=np.array([np.inf]),
        memory=np.zeros(case.components),
    )


@dataclass(frozen=True)
class Cost:
    """Seconds of something."""

    cpu_s: float
    wall_s: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.cpu_s + other.cpu_s, self.wall_s + other.wall_s)


def time_work(work: Callable[[], _Result]) -> tuple[_Result, Cost]:
    """What work gives, and what it took."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return result, Cost(time.process_time() - cpu, time.perf_counter() - wall)


@dataclass(frozen=True)
class TaskGraph:
    """What METIS sees: vertices of one or more tasks of a component, and their neighbours."""

    owner: Ints  # component of a vertex
    tasks: Ints  # tasks in a vertex
    first: Ints  # neighbours of vertex v are neighbour[first[v]:first[v + 1]]
    neighbour: Ints
    weight: Ints
    joined: int  # tasks in a full vertex


def task_graph(instance: Instance) -> TaskGraph:
    """The graph of tasks, or of super-tasks if there were too many pairs."""
    a, b = instance.edge_a, instance.edge_b
    joined = 1
    while True:
        vertices = -(-instance.count // joined)
        if int((vertices[a] * vertices[b]).sum()) <= MOST_PAIRS:
            break
        joined += 1
    owner = np.repeat(np.arange(len(vertices)), vertices)
    start: list[int] = [0, *np.cumsum(vertices).tolist()]
    # Tasks of a component are spread evenly over its vertices.
    tasks = np.concatenate(
        [np.diff(np.arange(v + 1) * c // v) for c, v in zip(instance.count, vertices, strict=True)]
    )
    sources: list[Ints] = []
    targets: list[Ints] = []
    weights: list[Floats] = []
    for p, q, w in zip(a.tolist(), b.tolist(), instance.edge_weight.tolist(), strict=True):
        left = np.arange(start[p], start[p + 1])
        right = np.arange(start[q], start[q + 1])
        weight = w * np.outer(tasks[left], tasks[right]).ravel()
        one, two = np.repeat(left, len(right)), np.tile(right, len(left))
        sources += [one, two]
        targets += [two, one]
        weights += [weight, weight]
    source, target, weight = (
        np.concatenate(sources),
        np.concatenate(targets),
        np.concatenate(weights),
    )
    order = np.argsort(source, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=len(owner)))])
    scaled = np.maximum(1, np.round(weight[order] * (1e9 / weight.sum()))).astype(np.int64)
    return TaskGraph(owner, tasks, first, target[order], scaled, joined)


def metis(instance: Instance, graph: TaskGraph, nodes: Ints) -> tuple[Ints, Cost]:
    """Counts x[C, N] of METIS's partition onto `nodes`, and what it took."""
    share = instance.capacity[nodes, 0] / instance.capacity[nodes, 0].sum()
    load = np.round(instance.demand[0, graph.owner, 0] * graph.tasks).astype(np.int32)
    pairs = pymetis.CSRAdjacency(graph.first.astype(np.int32), graph.neighbour.astype(np.int32))
    weight = graph.weight.astype(np.int32)
    partition, cost = time_work(
        lambda: pymetis.part_graph(
            len(nodes), pairs, vweights=load, eweights=weight, tpwgts=share.tolist()
        )
    )
    x = np.zeros((len(instance.count), len(instance.slots)), np.int64)
    np.add.at(x, (graph.owner, nodes[np.array(partition.vertex_part)]), graph.tasks)
    return x, cost


@cache
def start_kahypar() -> Any:
    """Mt-KaHyPar with one thread; it may be started once."""
    library: Any = mtkahypar
    return library.initialize(1)


def kahypar(instance: Instance, graph: TaskGraph, nodes: Ints, seed: int) -> tuple[Ints, Cost]:
    """The same by Mt-KaHyPar, whose blocks keep within the nodes' capacities."""
    library: Any = mtkahypar
    library.set_seed(seed)
    started = start_kahypar()
    context = started.context_from_preset(library.PresetType.QUALITY)
    context.logging = False
    context.set_partitioning_parameters(len(nodes), 0.03, library.Objective.CUT)
    limits = np.floor(instance.capacity[nodes, 0]).astype(np.int64)
    context.set_individual_target_block_weights(limits.tolist())
    load = np.round(instance.demand[0, graph.owner, 0] * graph.tasks).astype(np.int64)
    source = np.repeat(np.arange(len(graph.owner)), np.diff(graph.first))
    once = source < graph.neighbour
    pairs = list(zip(source[once].tolist(), graph.neighbour[once].tolist(), strict=True))
    built = started.create_graph(
        context, len(load), len(pairs), pairs, load.tolist(), graph.weight[once].tolist()
    )
    partition, cost = time_work(lambda: built.partition(context))
    block = np.array([partition.block_id(v) for v in range(len(load))])
    x = np.zeros((len(instance.count), len(instance.slots)), np.int64)
    np.add.at(x, (graph.owner, nodes[block]), graph.tasks)
    return x, cost


def largest_nodes(instance: Instance) -> Ints:
    """The fewest largest nodes that hold 1.05 times the load."""
    order = np.argsort(-instance.capacity[:, 0], kind="stable")
    load = float(instance.demand[0, :, 0] @ instance.count)
    return order[: int(np.searchsorted(np.cumsum(instance.capacity[order, 0]), 1.05 * load)) + 1]


@dataclass(frozen=True)
class Outcome:
    """One instance, both ways: share of all traffic that crosses, and what it took."""

    ours: float
    theirs: float
    bound: float  # no plan is below; 0 where it was not asked for
    joined: int  # tasks in a vertex of METIS's graph
    our_cost: Cost
    runs: Cost  # METIS alone, both runs
    their_cost: Cost  # with repair and local search
    kahypar: float  # inf where it was not asked
    kahypar_cost: Cost  # both runs alone


def compare(case: Case, seed: int) -> Outcome:
    """Run all on one instance."""
    instance = operator_graph(case, seed)
    graph = task_graph(instance)
    best, runs, their_cost = np.inf, Cost(0, 0), Cost(0, 0)
    rival, rival_cost = np.inf, Cost(0, 0)
    steps = max(1_000_000, 1_000 * case.components)
    for nodes in (np.arange(case.nodes), largest_nodes(instance)):
        x, cost = metis(instance, graph, nodes)
        polished, more = time_work(lambda x=x: polish(instance, x, steps=steps, seed=seed))
        runs, their_cost = runs + cost, their_cost + cost + more
        if polished is not None:
            best = min(best, polished.crossing)
        if case.tasks <= MOST_FOR_KAHYPAR:
            x, cost = kahypar(instance, graph, nodes, seed)
            polished = polish(instance, x, steps=steps, seed=seed)
            rival_cost = rival_cost + cost
            if polished is not None:
                rival = min(rival, polished.crossing)
    found, our_cost = time_work(lambda: least_crossing_search(instance, seed=seed))
    if found is None or not feasible(instance, found.x):
        raise SystemExit(f"no feasible plan for {case}, seed {seed}")
    total = instance.total_weight
    some = case.components <= MOST_TO_BOUND
    bound = crossing_bound_by_topology(instance, work=BOUND_WORK)[0] if some else 0.0
    return Outcome(
        found.crossing / total,
        best / total,
        bound / total,
        graph.joined,
        our_cost,
        runs,
        their_cost,
        rival / total,
        rival_cost,
    )


def rows(quick: bool) -> Iterator[Row]:
    """Medians over the seeds."""
    compile_kernels()
    seeds = 3 if quick else 5
    for case in SMALL if quick else (*SMALL, *LARGE):
        outcomes = [compare(case, seed) for seed in range(seeds)]
        name = f"{case.tasks:,} tasks, {case.nodes:,} nodes, {case.components:,} components"
        ratio = statistics.median(o.ours / o.theirs for o in outcomes)
        ours, theirs = (
            statistics.median(values)
            for values in zip(*((o.ours, o.theirs) for o in outcomes), strict=True)
        )
        wanted = case.target
        promise = ("", None) if wanted is None else (f"<= {wanted:.2f}", ratio <= wanted)
        yield Row(f"headrace's traffic / METIS's: {name}", f"{ratio:.3f}", *promise)
        yield Row(
            "  share of all traffic that crosses, headrace and METIS", f"{ours:.3f}, {theirs:.3f}"
        )
        least = statistics.median(o.bound / o.theirs for o in outcomes)
        if least > 0:
            yield Row("  a bound that no plan can be below / METIS's", f"{least:.3f}")
        if outcomes[0].joined > 1:
            yield Row("  tasks in a super-task of METIS's graph", f"{outcomes[0].joined}")
        if case.tasks <= MOST_FOR_KAHYPAR:
            yield from beside_kahypar(outcomes)
        yield from times(outcomes, case.timed)


def beside_kahypar(outcomes: list[Outcome]) -> Iterator[Row]:
    """Traffic beside Mt-KaHyPar's, of each seed: it is never above."""
    ratios = [o.ours / o.kahypar for o in outcomes]
    middle, most = statistics.median(ratios), max(ratios)
    name = "  headrace's traffic / Mt-KaHyPar's, median and most"
    yield Row(name, f"{middle:.3f}, {most:.3f}", "<= 1.00", most <= 1)
    seconds = statistics.median(o.kahypar_cost.cpu_s for o in outcomes)
    yield Row("    Mt-KaHyPar's two runs alone, processor", f"{seconds:.2f} s")


def times(outcomes: list[Outcome], timed: bool) -> Iterator[Row]:
    """What both took: processor seconds decide, since they depend least on what else runs."""
    ours, runs, theirs = (
        (
            statistics.median(cost.cpu_s for cost in costs),
            statistics.median(cost.wall_s for cost in costs),
        )
        for costs in zip(*((o.our_cost, o.runs, o.their_cost) for o in outcomes), strict=True)
    )
    ratio = statistics.median(o.our_cost.cpu_s / o.their_cost.cpu_s for o in outcomes)
    yield Row(
        "  its processor time / METIS's",
        f"{ratio:.2f}",
        *(("< 1", ratio < 1) if timed else ("", None)),
    )
    yield Row("    headrace, processor and wall", f"{ours[0]:.2f} s, {ours[1]:.2f} s")
    yield Row("    METIS with repair and local search", f"{theirs[0]:.2f} s, {theirs[1]:.2f} s")
    yield Row("    METIS's two runs alone", f"{runs[0]:.2f} s, {runs[1]:.2f} s")


def compile_kernels() -> None:
    """Run everything once where it is quick, both with and without clusters."""
    for case in (Case(50, 4, 5), Case(1_000, 60, 400), Case(2_000, 60, 40)):
        instance = operator_graph(case, 0)
        found = least_crossing_search(instance, steps=10_000)
        assert found is not None
        polish(instance, found.x, steps=1)
        crossing_bound_by_topology(instance, work=1.0)

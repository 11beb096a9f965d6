"""Our search against METIS on operator graphs, side by side in one run: `python benchmarks/against_metis.py [--quick]`.

Streams are all-to-all between adjacent components (a pair's rate is the stream's divided by p * q), nodes have capacities 3:2:1, all
nodes together 1.2 times the load.

What METIS gets: the graph of tasks, weights as integers, a target weight per part; once for all nodes (targets by capacity) and once
for the largest nodes that together hold 1.05 times the load; the better of the two counts. METIS keeps its targets only roughly, so
our own capacity repair and then a descent without heat run on its result. METIS's time is its two runs alone; the last column adds
repair and descent. Building its graph is not counted. Where the graph would have more than 20 million pairs, equal neighbours of one
component are joined into super-tasks until it has not; the table says how many tasks stand in one.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass

import numpy as np
import pymetis

from headrace.solve.fit import feasible
from headrace.solve.instance import Floats, Instance, Ints
from headrace.solve.search import least_crossing_search, polish

MOST_PAIRS = 20_000_000


@dataclass(frozen=True)
class Case:
    """A size to compare at."""

    tasks: int
    nodes: int
    components: int


CASES = (
    Case(10_000, 100, 1_000),
    Case(10_000, 100, 300),
    Case(10_000, 100, 40),
    Case(100_000, 1_000, 3_000),
    Case(100_000, 1_000, 400),
)
QUICK = (Case(10_000, 100, 1_000), Case(10_000, 100, 300), Case(10_000, 100, 40))


def operator_graph(case: Case, seed: int) -> Instance:
    """Components in a DAG: each reads one or two earlier ones, mostly near ones; sizes, loads and rates differ."""
    rng = np.random.default_rng([seed, case.components])
    share = rng.uniform(0.5, 2.0, case.components)
    count = np.maximum(1, np.round(case.tasks * share / share.sum())).astype(np.int64)
    streams: dict[tuple[int, int], float] = {}
    for reader in range(1, case.components):
        for _ in range(1 + int(rng.random() < 0.5)):
            writer = max(0, reader - int(rng.geometric(0.4))) if rng.random() < 0.9 else int(rng.integers(reader))
            streams[writer, reader] = streams.get((writer, reader), 0.0) + 1000.0 * float(rng.lognormal(0.0, 1.0))
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
    tasks = np.concatenate([np.diff(np.arange(v + 1) * c // v) for c, v in zip(instance.count, vertices, strict=True)])
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
    source, target, weight = np.concatenate(sources), np.concatenate(targets), np.concatenate(weights)
    order = np.argsort(source, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=len(owner)))])
    scaled = np.maximum(1, np.round(weight[order] * (1e9 / weight.sum()))).astype(np.int64)
    return TaskGraph(owner, tasks, first, target[order], scaled, joined)


def metis(instance: Instance, graph: TaskGraph, nodes: Ints) -> tuple[Ints, float]:
    """Counts x[C, N] of METIS's partition onto `nodes`, and its seconds."""
    share = instance.capacity[nodes, 0] / instance.capacity[nodes, 0].sum()
    load = np.round(instance.demand[0, graph.owner, 0] * graph.tasks).astype(np.int64)
    before = time.perf_counter()
    partition = pymetis.part_graph(
        len(nodes),
        pymetis.CSRAdjacency(graph.first.astype(np.int32), graph.neighbour.astype(np.int32)),
        vweights=load.astype(np.int32),
        eweights=graph.weight.astype(np.int32),
        tpwgts=share.tolist(),
    )
    seconds = time.perf_counter() - before
    x = np.zeros((len(instance.count), len(instance.slots)), np.int64)
    np.add.at(x, (graph.owner, nodes[np.array(partition.vertex_part)]), graph.tasks)
    return x, seconds


def largest_nodes(instance: Instance) -> Ints:
    """The fewest largest nodes that hold 1.05 times the load."""
    order = np.argsort(-instance.capacity[:, 0], kind="stable")
    load = float(instance.demand[0, :, 0] @ instance.count)
    return order[: int(np.searchsorted(np.cumsum(instance.capacity[order, 0]), 1.05 * load)) + 1]


@dataclass(frozen=True)
class Outcome:
    """One instance, both ways: share of all traffic that crosses, and seconds."""

    ours: float
    ours_s: float
    metis: float
    metis_s: float
    repaired_s: float  # with repair and descent
    joined: int


def compare(case: Case, seed: int) -> Outcome:
    """Run both on one instance."""
    instance = operator_graph(case, seed)
    graph = task_graph(instance)
    best, metis_s = np.inf, 0.0
    repaired_s = 0.0
    for nodes in (np.arange(case.nodes), largest_nodes(instance)):
        x, seconds = metis(instance, graph, nodes)
        metis_s += seconds
        before = time.perf_counter()
        repaired = polish(instance, x, seed=seed)
        repaired_s += seconds + time.perf_counter() - before
        if repaired is not None:
            best = min(best, repaired.crossing)
    before = time.perf_counter()
    found = least_crossing_search(instance, seed=seed)
    seconds = time.perf_counter() - before
    if found is None or not feasible(instance, found.x):
        raise SystemExit(f"no feasible plan for {case}, seed {seed}")
    total = instance.total_weight
    return Outcome(found.crossing / total, seconds, best / total, metis_s, repaired_s, graph.joined)


def main() -> None:
    """Print one line per size: medians over the seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10,000 tasks only")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    least_crossing_search(operator_graph(Case(50, 4, 5), 0))  # compile
    print(
        "  tasks  nodes  components  tasks/vertex  crossing ours  METIS  ratio   seconds ours  METIS  ratio  METIS+repair  ratio"
    )
    for case in QUICK if options.quick else CASES:
        outcomes = [compare(case, seed) for seed in range(options.seeds)]
        ours, ours_s, theirs, theirs_s, repaired_s = (
            statistics.median(values)
            for values in zip(*((o.ours, o.ours_s, o.metis, o.metis_s, o.repaired_s) for o in outcomes), strict=True)
        )
        ratio = statistics.median(o.ours / o.metis for o in outcomes)
        print(
            f"{case.tasks:7d}  {case.nodes:5d}  {case.components:10d}  {outcomes[0].joined:12d}  {ours:13.3f}  {theirs:5.3f}  "
            f"{ratio:5.3f}  {ours_s:13.2f}  {theirs_s:5.2f}  {ours_s / theirs_s:5.2f}  {repaired_s:12.2f}  {ours_s / repaired_s:5.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

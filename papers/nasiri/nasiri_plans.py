"""The plans that the experiment compares, and what the judge says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from random import Random
from statistics import fmean, median
from typing import Any

import numpy as np

from headrace.judge.report import Report, judge
from headrace.model.cluster import nodes_of
from headrace.model.document import FORMAT, Cluster, Node
from headrace.model.examples import example
from headrace.model.generate import NASIRI_MS
from headrace.model.problem import Assignment, Problem
from headrace.model.read import read, validated
from headrace.model.workload import Workload
from headrace.planner import Plan, place

FIRST_RATE = 8.0  # tuples/s, where the paper's measurements start
ORDERS = 25  # of nodes, tried for Storm's default scheduler


@dataclass(frozen=True, slots=True)
class Outcome:
    """A plan at the largest rate it sustains."""

    rate: float  # tuples/s over all spouts
    cpu: Mapping[str, float]  # % in use of every node that has tasks
    weighted: float  # eq. 7-8, divided by the number of kinds: 1 where all machines are full

    @property
    def total(self) -> float:
        """The sum of all nodes' percentages, as fig. 17 has it."""
        return sum(self.cpu.values())


def workload(layout: str, cluster: str) -> Workload:
    """A micro-benchmark on one of the paper's clusters."""
    return Workload(
        read([example("nasiri", f"{layout}.yaml"), example("nasiri", f"cluster-{cluster}.yaml")])
    )


def outcome(plan: Plan) -> Outcome:
    """The plan of a sizing algorithm, which is judged at its largest rate."""
    assert plan.report.max_rate is not None
    return judged_outcome(plan.report.max_rate, plan.report)


def at_its_best(problem: Problem, assignment: Assignment) -> Outcome:
    """Places for given counts, judged at the largest rate they sustain."""
    factor = judge(problem, assignment, bounded=False).max_rate
    assert factor is not None
    report = judge(problem.scaled(factor), assignment, bounded=False)
    return judged_outcome(factor * float(problem.rate[problem.spout].sum()), report)


def judged_outcome(rate: float, report: Report) -> Outcome:
    """What a report says; every node has 100 points."""
    assert report.weighted_utilisation is not None
    return Outcome(
        rate,
        {name: float(row["cpu"] or 0) for name, row in report.nodes.items()},
        report.weighted_utilisation,
    )


def default(work: Workload, tasks: Mapping[str, int]) -> list[Outcome]:
    """Storm's default scheduler under several orders of the nodes, slowest first.

    Storm's own order follows node ids, which are random.
    """
    nodes = nodes_of(work.inputs)
    orders = node_orders(list(nodes))
    found = [
        in_file_order(on_nodes(work, {name: nodes[name] for name in order}), tasks)
        for order in orders
    ]
    return sorted(found, key=lambda one: one.rate)


def in_file_order(work: Workload, tasks: Mapping[str, int]) -> Outcome:
    """Storm's default scheduler, where the ids of the nodes follow the file."""
    problem = work.problem(tasks)
    plan = place(problem, "storm-even", objective="balance")
    return at_its_best(problem, plan.assignment)


def on_nodes(work: Workload, nodes: dict[str, Node]) -> Workload:
    """The workload on another cluster."""
    document = work.inputs.document.model_copy(update={"cluster": Cluster(nodes=nodes)})
    return Workload(replace(work.inputs, document=document))


def node_orders(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """All orders of three nodes; of more, some by chance."""
    if len(names) <= 3:
        yield from permutations(names)
        return
    random = Random(f"nasiri {len(names)}")
    for _ in range(ORDERS):
        yield random.sample(names, len(names))


def typical(outcomes: Sequence[Outcome]) -> Outcome:
    """The median rate, and what the nodes use on average."""
    cpu = {
        name: fmean(one.cpu.get(name, 0.0) for one in outcomes)
        for name in sorted({n for one in outcomes for n in one.cpu})
    }
    return Outcome(
        median(one.rate for one in outcomes), cpu, fmean(one.weighted for one in outcomes)
    )


def tasks_of(plan: Plan) -> dict[str, int]:
    """Instances by component."""
    return {
        name: int(n) for name, n in zip(plan.problem.components, plan.problem.tasks, strict=True)
    }


def by_kind(tasks: Mapping[str, int]) -> list[int]:
    """Instances of low, mid and high compute bolts; the diamond's sink is a low one."""
    return [tasks["low"] + tasks.get("sink", 0), tasks["mid"], tasks["high"]]


def percent(value: float, of: float) -> float:
    """How much more, in percent."""
    return 100 * (value / of - 1)


def span(values: Sequence[float]) -> list[float]:
    """The least and the largest."""
    return [min(values), max(values)]


def alike(layout: str, machines: int) -> Workload:
    """A micro-benchmark on machines of one type."""
    work = workload(layout, "testbed")
    first = next(iter(nodes_of(work.inputs).values()))
    return on_nodes(work, {f"m1-{i}": first for i in range(1, machines + 1)})


def chain(kinds: Sequence[str]) -> Workload:
    """A source and bolts of these kinds one after the other, on the test bed."""
    components: dict[str, Any] = {"source": {"spout": True, "rate": FIRST_RATE}}
    profile: dict[str, Any] = {}
    for i, kind in enumerate(kinds, 1):
        components[f"bolt{i}"] = {"inputs": {f"bolt{i - 1}" if i > 1 else "source": "shuffle"}}
        profile[f"bolt{i}"] = {f"m{m}": {"cpu_ms": ms} for m, ms in enumerate(NASIRI_MS[kind], 1)}
    cluster = workload("linear", "testbed").inputs.document.cluster
    content = {
        "format": FORMAT,
        "topology": {"name": "chain", "components": components},
        "profile": profile,
        "cluster": cluster,
    }
    return Workload(validated(content, {}))


def best_places(problem: Problem) -> Outcome:
    """The best of all placements of these counts on three machines, one by one."""
    types, bolts = problem.node_type, np.flatnonzero(~problem.spout)
    ways = [
        [(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)]
        for n in problem.tasks[bolts].tolist()
    ]
    # Points of one instance, [bolt, machine].
    each = problem.cpu_rate[np.ix_(bolts, types)] / problem.tasks[bolts][:, None]
    best = min(product(*ways), key=lambda way: (np.array(way) * each).sum(axis=0).max())
    node = np.zeros(problem.task_count, dtype=np.int64)
    for bolt, way in zip(bolts.tolist(), best, strict=True):
        node[problem.tasks_of(bolt)] = np.repeat(np.arange(len(types)), way)
    return at_its_best(problem, Assignment(node, np.zeros_like(node)))

"""Placement: proofs, ratios to every other scheduler, large clusters; seconds are of processor."""

from __future__ import annotations

import inspect
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from instances import CLUSTERS, microbenchmark, unsymmetric
from measure import Row, median_seconds, within
from problems import large_cluster, production_problem, suite

from headrace.errors import HeadraceError
from headrace.judge.bounds import bound
from headrace.judge.report import Report, judge
from headrace.model.problem import Problem
from headrace.place.headrace import headrace
from headrace.planner import place
from headrace.registry import entries
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.search import least_crossing_search
from headrace.solve.proof.exact import least_crossing

PUBLISHED = {  # optima of the micro-benchmarks
    ("diamond", 10, "HOM"): 10,
    ("star", 18, "HOM"): 44,
    ("star", 28, "HOM"): 84,
    ("diamond", 30, "HET"): 146,
    ("star", 30, "HET"): 86,
}


def rows(quick: bool) -> Iterator[Row]:
    """Measure."""
    yield from proofs(quick)
    yield from unsymmetric_proofs(quick)
    yield from against_the_others(quick)
    yield from at_scale(quick)
    yield from clusters()


def deadline(seconds: float) -> Callable[[], bool]:
    """Says whether so many seconds are over."""
    end = time.process_time() + seconds
    return lambda: time.process_time() >= end


def proofs(quick: bool) -> Iterator[Row]:
    """The 72 micro-benchmarks of Eskandari, section 6.2."""
    cases = [
        (layout, tasks, cluster)
        for layout in ("linear", "diamond", "star")
        for tasks in range(10, 34, 2)
        for cluster in CLUSTERS
    ]
    least_crossing(microbenchmark(*cases[0]))  # warm-up
    start = time.process_time()
    proven = {case: least_crossing(microbenchmark(*case)) for case in cases}
    seconds = time.process_time() - start
    done = sum(p.proven for p in proven.values())
    yield Row("micro-benchmarks proven optimal, of 72", f"{done}", "72", done == 72)
    yield Row("  all of them together", *within(seconds, 10, "s"))
    wrong = [case for case, value in PUBLISHED.items() if abs(proven[case].bound - value) > 1e-6]
    yield Row("  published optima matched, of 5", f"{5 - len(wrong)}", "5", not wrong)
    equal = sum(
        (f := least_crossing_search(microbenchmark(*case))) is not None
        and f.crossing <= p.bound + 1e-6
        for case, p in proven.items()
    )
    yield Row(
        "  of them reached by headrace's search", f"{equal} of 72", ">= 95 %", equal >= 0.95 * 72
    )


def unsymmetric_proofs(quick: bool) -> Iterator[Row]:
    """50 unequal tasks on 8 unequal nodes."""
    seeds = range(1 if quick else 10)
    proven = reached = 0
    times: list[float] = []
    for shape in ("sparse", "operators"):
        for seed in seeds:
            instance = unsymmetric(seed, shape)
            start = time.process_time()
            found = least_crossing_search(instance)
            proof = least_crossing(
                instance, start=None if found is None else found.x, deadline=deadline(60)
            )
            times.append(time.process_time() - start)
            proven += proof.proven
            reached += (
                proof.proven and found is not None and found.crossing <= proof.bound * (1 + 1e-9)
            )
    total = 2 * len(seeds)
    yield Row(
        f"50 unequal tasks on 8 unequal nodes, proven in 60 s, of {total}",
        f"{proven}",
        f">= {0.9 * total:g}",
        proven >= 0.9 * total,
    )
    yield Row("  median and longest", f"{statistics.median(times):.1f} s, {max(times):.1f} s")
    yield Row("  of the proven ones reached by headrace's search", f"{reached} of {proven}")


@dataclass
class Tally:
    """headrace beside the other schedulers, over all problems of the suite."""

    problems: int = 0
    feasible: int = 0  # of them, for headrace
    proven: int = 0  # by `optimal`
    equal: int = 0  # of these, headrace's traffic is as low
    missed: list[str] = field(default_factory=list[str])  # feasible for another only
    ratios: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    infeasible: dict[str, int] = field(default_factory=lambda: defaultdict(int))


def compare_on_suite(others: list[str], quick: bool) -> Tally:
    """Every problem of the suite with every scheduler, one second each."""
    tally = Tally()
    for _, name, problem in suite(quick):
        tally.problems += 1
        ours = _report(problem, "headrace")
        tally.feasible += ours is not None and ours.feasible
        for other in others:
            report = _report(problem, other)
            if report is None or not report.feasible:
                (tally.refused if report is None else tally.infeasible)[other] += 1
                continue
            if ours is None or not ours.feasible:
                tally.missed.append(f"{name} ({other} is feasible)")
                continue
            traffic = ours.inter_node_traffic, report.inter_node_traffic
            ratio = _ratio(*traffic)
            if ratio > 1 + 1e-9:
                print(f"headrace {traffic[0]:g} above {other} {traffic[1]:g}: {name}")
            if other == "optimal" and report.stopped == "done":
                tally.proven += 1
                tally.equal += ratio <= 1 + 1e-9
            tally.ratios[other].append(ratio)
    return tally


def against_the_others(quick: bool) -> Iterator[Row]:
    """headrace's traffic over each other scheduler's, where both are feasible."""
    others = [e.name for e in entries("place") if e.name != "headrace"]
    tally = compare_on_suite(others, quick)
    counts = f"{tally.problems}; {tally.feasible}"
    yield Row("problems in the suite; headrace feasible on", counts)
    yield Row(
        "  feasible for another and not for headrace",
        "; ".join(tally.missed) or "none",
        "none",
        not tally.missed,
    )
    for other in others:
        if other == "optimal":
            continue
        r = np.array(tally.ratios[other])
        figure = f"mean {r.mean():.2f}, most {r.max():.2f}" if len(r) else "never feasible"
        left = f"{len(r)} feasible, {tally.infeasible[other]} not, {tally.refused[other]} refused"
        yield Row(
            f"headrace's traffic / {other}'s ({left})",
            figure,
            "<= 1.00",
            bool(len(r) == 0 or r.max() <= 1 + 1e-9),
        )
    yield Row(
        "optimal proven in 1 s; of them equalled by headrace",
        f"{tally.proven}; {tally.equal}",
        ">= 95 %",
        tally.equal >= 0.95 * tally.proven,
    )
    own = inspect.getsource(sys.modules[headrace.__module__])
    starts = [other for other in others if f"place.{other.replace('-', '_')} import" in own]
    yield Row("  other schedulers whose plans headrace starts from", ", ".join(starts) or "none")


def _report(problem: Problem, by: str) -> Report | None:
    """The judged plan of a scheduler given one second; None if it refuses."""
    try:
        return place(problem, by, seconds=1.0, clock=time.process_time).report
    except HeadraceError:
        return None


def _ratio(ours: float, theirs: float) -> float:
    if theirs <= 1e-9:
        return 1.0 if ours <= 1e-9 else np.inf
    return ours / theirs


def operator_instance(tasks: int, nodes: int, components: int = 40, seed: int = 0) -> Instance:
    """A layered topology with all-to-all streams on heterogeneous nodes with a fifth to spare."""
    rng = np.random.default_rng(seed)
    count = np.maximum(1, np.round(rng.dirichlet(np.full(components, 3.0)) * tasks)).astype(
        np.int64
    )
    edges = [(int(rng.integers(max(0, b - 4), b)), b) for b in range(1, components)]
    edges += [
        (a, b)
        for a, b in (
            sorted(rng.choice(components, 2, replace=False).tolist())
            for _ in range(components // 3)
        )
        if (a, b) not in edges
    ]
    rate = rng.uniform(1e3, 1e5, len(edges))
    a, b = np.array([e[0] for e in edges]), np.array([e[1] for e in edges])
    load = rng.uniform(5, 50, components)
    capacity = rng.choice([1.0, 2.0, 3.0], nodes)
    capacity *= 1.2 * (load * count).sum() / capacity.sum()
    return Instance(
        count=count,
        edge_a=a,
        edge_b=b,
        edge_weight=rate / (count[a] * count[b]),
        demand=load[None, :, None],
        node_type=np.zeros(nodes, np.int64),
        capacity=capacity[:, None],
        allowed=np.ones((components, nodes), bool),
        apart=np.zeros(components, bool),
        group=np.zeros(components, np.int64),
        slots=np.full(nodes, 4),
        heap=np.array([np.inf]),
        memory=np.zeros(components),
    )


def at_scale(quick: bool) -> Iterator[Row]:
    """The search alone, on a loaded problem."""
    for tasks, limit in ((1_000_000, 2), (10_000_000, 3)):
        instance = operator_instance(tasks, 1_000)
        seconds = median_seconds(
            lambda instance=instance: least_crossing_search(instance), 1 if quick else 5
        )
        yield Row(
            f"headrace's search, {tasks:,} tasks on 1,000 nodes", *within(seconds, limit, "s")
        )


def clusters() -> Iterator[Row]:
    """Whole clusters with many topologies."""
    problem = production_problem()
    seconds = median_seconds(lambda: headrace(problem))
    report, ras = judge(problem, headrace(problem)), place(problem, "storm-ras").report
    yield Row("production cluster, all 50 topologies placed by headrace", *within(seconds, 2, "s"))
    yield Row(
        "  nothing overloaded, none refused",
        "yes" if report.feasible else "no",
        "yes",
        report.feasible,
    )
    ratio = report.inter_node_traffic / ras.inter_node_traffic
    yield Row(
        "  its traffic / storm-ras's (wished for: 0.85)", f"{ratio:.3f}", "<= 1.00", ratio <= 1
    )
    limit = bound(problem, "inter_node_traffic")
    yield Row("  its gap to the bound", f"{report.gap:.1%} ({limit.kind})")
    problem = large_cluster()
    seconds = median_seconds(lambda: headrace(problem), 3)
    report = judge(problem, headrace(problem))
    yield Row("11 topologies of 4,710 tasks on 1,000 nodes in 25 racks", *within(seconds, 5, "s"))
    yield Row(
        "  nothing overloaded, none refused",
        "yes" if report.feasible else "no",
        "yes",
        report.feasible,
    )

"""The simulator: right by theory and by ciw, fast, and its use for plans of low latency."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from measure import Row
from problems import EXAMPLES, problem_of
from queueing import LOADS, Known, Network, ciw_figures, closed, formulas, random_network

import headrace as hr
from headrace import planner
from headrace.errors import HeadraceError
from headrace.lab.families import random_sections
from headrace.model.problem import Assignment, Problem
from headrace.simulate import simulate
from headrace.simulate.result import Simulation

MEAN, P99 = 0.02, 0.05  # how far a figure may be from what is known
TUPLES = {0.3: 1e6, 0.6: 2e6, 0.9: 2e7}  # in each of the runs, enough for that
RUNS = 5
# Customers in each run of ciw, and its runs: chance is then well below what is asked.
CUSTOMERS = {0.3: (40_000, 5), 0.6: (100_000, 5), 0.9: (400_000, 12)}
NOISE = 0.05  # of a simulated p99, beside its own spread over runs
HOP_RATE = 2_000_000


def rows(quick: bool) -> Iterator[Row]:
    """All of it."""
    yield from against_formulas(quick)
    yield from against_ciw(quick)
    yield from speed(quick)
    yield from as_fluid(quick)
    yield from low_latency(10 if quick else 200)


def off(value: float | None, known: float) -> float:
    """How far a figure is from the known one, as a share of it."""
    return math.inf if value is None else abs(value / known - 1)


def against_formulas(quick: bool) -> Iterator[Row]:
    """Means and the 99 % of every closed form, with the intervals of the means."""
    for load in LOADS:
        for known in formulas(load):
            yield from compare_known(known, TUPLES[load] / (10 if quick else 1))
        plain = replace(random_network(load, 7), cv=1.0)
        tuples = TUPLES[load] / (20 if quick else 2)
        found = run_network(plain, tuples)
        yield mean_row(f"Jackson network with feedback at {load:.0%}", found, plain.jackson_ms)
    for customers in (2, 5, 20):
        known = closed(customers)
        found = known.simulate(1e6 / (10 if quick else 1), RUNS)
        rate, expected = found.throughput_per_s, known.throughput_per_s or math.nan
        words = f"{rate.mean:.2f} ± {rate.half:.2f} of {expected:.2f} tuples/s"
        far = off(rate.mean, expected)
        yield Row(f"{known.name}, by MVA: throughput", words, f"{MEAN:.0%}", far <= MEAN)


def compare_known(known: Known, tuples: float) -> Iterator[Row]:
    """The rows of one closed form."""
    found = known.simulate(tuples, RUNS)
    yield mean_row(known.name, found, known.mean_ms or math.nan)
    if known.p99_ms is not None:
        tail = found.p99_latency_ms
        words = f"{tail.mean:.4g} ± {tail.half:.2g} of {known.p99_ms:.4g} ms"
        yield Row(f"{known.name}: 99 %", words, f"{P99:.0%}", off(tail.mean, known.p99_ms) <= P99)


def mean_row(name: str, found: Simulation, expected: float) -> Row:
    """A mean, its interval and what it should be."""
    mean = found.mean_latency_ms
    words = f"{mean.mean:.4g} ± {mean.half:.2g} of {expected:.4g} ms"
    return Row(f"{name}: mean", words, f"{MEAN:.0%}", off(mean.mean, expected) <= MEAN)


def run_network(network: Network, tuples: float, runs: int = RUNS) -> Simulation:
    """Our simulation of a network."""
    seconds = tuples / network.rate
    return hr.simulate(network.plan(), seconds=seconds, warm_up=seconds / 10, runs=runs, seed=1)


def against_ciw(quick: bool) -> Iterator[Row]:
    """Random small networks, with any service law; both simulators' chance is printed."""
    for load in LOADS:
        for seed in (1, 2):
            yield from compare_ciw(random_network(load, seed), load, quick)


def compare_ciw(network: Network, load: float, quick: bool) -> Iterator[Row]:
    """The rows of one network."""
    customers, runs = CUSTOMERS[load]
    count = customers // (10 if quick else 1)
    their_mean, their_tail = ciw_figures(network, count, runs)
    ours = run_network(network, 2 * count * runs)
    tail = ours.p99_latency_ms
    name = f"ciw: {len(network.shares)} stations, cv {network.cv:g}, at {load:.0%}"
    for what, mine, theirs, most in (
        ("mean", ours.mean_latency_ms, their_mean, MEAN),
        ("99 %", tail, their_tail, P99),
    ):
        words = f"{mine.mean:.4g} ± {mine.half:.2g} of {theirs.mean:.4g} ± {theirs.half:.2g} ms"
        far = off(mine.mean, theirs.mean or math.nan)
        yield Row(f"{name}: {what}", words, f"{most:.0%}", far <= most)


def cpu_seconds(work: Callable[[], Simulation]) -> tuple[float, Simulation]:
    """CPU seconds of a simulation: others may use the machine too."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def word_count(rate: float) -> hr.Plan:
    """Word count with 26 tasks on four nodes, at 60 % of what it sustains for 3,000 sentences/s."""
    case = hr.case(
        {
            "topology": {
                "components": {
                    "sentence": {"spout": True, "tasks": 4, "rate": rate, "bytes": 60},
                    "split": {"tasks": 8, "inputs": {"sentence": "shuffle"}, "selectivity": 7,
                              "bytes": 12},
                    "count": {"tasks": 12, "bytes": 20, "selectivity": 0.01,
                              "inputs": {"split": {"grouping": "fields", "fields": ["word"]}}},
                    "report": {"tasks": 2, "inputs": {"count": "shuffle"}},
                }
            },
            "cluster": {"nodes": {"n{1..4}": {"cpu": 400, "bandwidth_mbps": 1000, "slots": 4}}},
            "profile": {
                "sentence": {"*": {"cpu_ms": 0.1}}, "split": {"*": {"cpu_ms": 0.5}},
                "count": {"*": {"cpu_ms": 0.2}}, "report": {"*": {"cpu_ms": 0.1}},
            },
        }
    )  # fmt: skip
    return hr.place(case, by="storm-even")


def speed(quick: bool) -> Iterator[Row]:
    """Hops per second of a core, and the fifty minutes of Muhammad's word count."""
    plan = word_count(3000)
    hr.simulate(plan, seconds=1)
    took, found = cpu_seconds(lambda: hr.simulate(plan, seconds=20 if quick else 100))
    rate = found.total("hops") / took
    target = f">= {HOP_RATE:,}"
    yield Row("word count, 26 tasks: hops/s of a core", f"{rate:,.0f}", target, rate >= HOP_RATE)
    files = [EXAMPLES / "muhammad" / f"{name}.yaml" for name in ("word-count", "cluster")]
    plan = hr.place(hr.load(*files), by="a3-storm")
    took, found = cpu_seconds(lambda: hr.simulate(plan, seconds=3000))
    what = f"50 minutes of Muhammad's word count, {found.total('hops'):,} hops"
    yield Row(what, f"{took:.2f} s", "60 s", took < 60)


def million_tasks() -> tuple[Problem, Assignment]:
    """Five components with a million tasks, dealt over a thousand nodes."""
    counts = {"in": 100_000, "a": 300_000, "b": 300_000, "c": 200_000, "d": 100_000}
    inputs = {"a": "in", "b": "a", "c": "b", "d": "b"}
    components = {
        name: {"tasks": tasks, "bytes": 100, "spout": name == "in"}
        | ({"rate": 1e7} if name == "in" else {"inputs": {inputs[name]: "shuffle"}})
        for name, tasks in counts.items()
    }
    problem = problem_of(
        {
            "topology": {"components": components},
            "cluster": {"nodes": {"n{1..1000}": {"cpu": 6400, "bandwidth_mbps": 25000}}},
            "profile": {name: {"*": {"cpu_ms": 1.0}} for name in counts},
            "arrivals": {"kind": "daily", "peak_s": 1800},
        }
    )
    number = np.arange(problem.task_count)
    return problem, Assignment(number % 1000, np.zeros(len(number), np.int64))


def as_fluid(quick: bool) -> Iterator[Row]:
    """A million tasks for an hour, and small cases beside the tuples."""
    problem, assignment = million_tasks()
    simulate(problem, assignment, seconds=1, detail="fluid")
    hour = 3600.0
    took, _ = cpu_seconds(lambda: simulate(problem, assignment, seconds=hour, detail="fluid"))
    yield Row("fluid: 1,000,000 tasks on 1,000 nodes, one hour", f"{took:.1f} s", "60 s", took < 60)
    cases = 4 if quick else 20
    held = [far for seed in range(cases) for factor in (0.5, 0.9) for far in apart(seed, factor)]
    over = [apart(seed, 1.5) for seed in range(cases)]
    yield worst("fluid beside tuples at 50 and 90 %: served and completed", held)
    yield worst("fluid beside tuples at 150 %: tuples served", [served for served, _ in over])
    yield worst("fluid beside tuples at 150 %: trees completed", [trees for _, trees in over])


def worst(what: str, shares: list[float]) -> Row:
    """The largest difference."""
    return Row(
        f"{what}, the worst of {len(shares)}", f"{max(shares):.1%}", "5%", max(shares) <= 0.05
    )


def apart(seed: int, factor: float) -> tuple[float, float]:
    """How far a fluid is from the tuples: tuples served by all tasks, and trees completed."""
    problem = problem_of(random_sections(seed))
    plan = planner.place(problem, "storm-even", bounded=False)
    scaled = problem.scaled(factor * (plan.report.max_rate or 1.0))
    seconds = 2e6 / float(scaled.rate.sum())
    tuples, fluid = (
        simulate(scaled, plan.assignment, seconds=seconds, warm_up=seconds / 5, detail=detail)
        for detail in ("tuple", "fluid")
    )
    completed = off(fluid.throughput_per_s.mean, tuples.throughput_per_s.mean or math.nan)
    return off(fluid.total("hops"), tuples.total("hops")), completed


@dataclass(frozen=True, slots=True)
class Tails:
    """Simulated p99 of three plans of a problem, with the spread over runs; inf: unstable."""

    latency: tuple[float, float]
    traffic: tuple[float, float]
    rate: tuple[float, float]

    def worse(self) -> bool:
        """Whether the plan for latency is worse than another by more than chance."""
        mine, spread = self.latency
        return any(
            mine > other * (1 + NOISE) + spread + width
            for other, width in (self.traffic, self.rate)
        )


def tail(problem: Problem, plan: planner.Plan, factor: float) -> tuple[float, float]:
    """The simulated p99 at a factor of the given rates, and twice its standard error."""
    scaled = problem.scaled(factor)
    seconds = 3e5 / float(scaled.rate.sum())
    values: list[float] = []
    for seed in range(4):
        found = simulate(
            scaled, plan.assignment, seconds=seconds, warm_up=seconds / 10, seed=1000 + seed
        )
        value = found.latency_ms["p99"]
        values.append(value if value is not None and found.stable else math.inf)
    if not all(map(math.isfinite, values)):
        return math.inf, 0.0
    return float(np.mean(values)), 2 * float(np.std(values, ddof=1)) / 2


def tails_of(seed: int, own: bool) -> Tails | None:
    """The three plans of a random problem at 70 % of a largest rate.

    That of the plan for latency for all three, or with `own` each plan's.
    """
    problem = problem_of(random_sections(seed))
    try:
        plans = [
            planner.place(problem, objective=objective, bounded=False)
            for objective in ("latency", "traffic", "rate")
        ]
    except HeadraceError:
        return None
    first = plans[0].report.max_rate or 1.0
    found = [tail(problem, p, 0.7 * ((p.report.max_rate or 1.0) if own else first)) for p in plans]
    return Tails(*found)


def low_latency(count: int, say: Callable[[str], None] = lambda _: None) -> Iterator[Row]:
    """`place --objective latency` beside the plans for traffic and for rate."""
    worse: list[int] = []
    ratios: dict[str, list[float]] = {"traffic": [], "rate": []}
    done = 0
    for seed in range(count):
        found = tails_of(seed, own=False)
        if found is None:
            continue
        done += 1
        if found.worse():
            worse.append(seed)
        for name, other in (("traffic", found.traffic[0]), ("rate", found.rate[0])):
            ratios[name].append(found.latency[0] / other if math.isfinite(other) else 0.0)
        say(f"{seed} {found} {'WORSE' if found.worse() else ''}")
    what = f"plans for latency that are worse than for traffic or rate, of {done} random problems"
    yield Row(what, f"{len(worse)}", "0", not worse)
    for name, values in ratios.items():
        better = sum(v < 1 / (1 + NOISE) for v in values)
        words = f"{float(np.median(values)):.2f}, better in {better}"
        yield Row(f"their p99 over that of the plans for {name}: median", words)


if __name__ == "__main__":
    for row in low_latency(int(sys.argv[1]), lambda words: print(words, flush=True)):
        print(row, flush=True)

"""Theorem 1 and default Storm of tables 5 and 9, tuple by tuple."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from headrace.lab.claims import Measured
from headrace.lab.papers import Table
from headrace.model.build import build
from headrace.model.document import FORMAT
from headrace.model.problem import Assignment, Problem
from headrace.model.read import read, validated
from headrace.planner import place
from headrace.simulate import simulate

WORKFLOWS = 40  # of the random ones
NEAR = 0.02  # of the closed form
PENDING = 400  # trees that a task of the spout may have open: the source never runs dry
FEWER = 100  # of them, tried first: queues of unequal tasks run empty now and then
TUPLES = 4000  # that pass in a run


def saturated(
    problem: Problem, assignment: Assignment, factor: float, pending: int = PENDING
) -> float:
    """Tuples/s that are complete when three times as many arrive as the plan sustains."""
    rate = float(problem.rate[problem.spout].sum())
    seconds = TUPLES / (rate * factor)
    dynamics = replace(problem.dynamics, max_spout_pending=pending, cv=0.0)
    flooded = replace(problem.scaled(3 * factor), dynamics=dynamics)
    found = simulate(flooded, assignment, seconds=seconds, warm_up=seconds / 5)
    return found.throughput_per_s.mean or 0.0


def theorem_1() -> Measured:
    """Random workflows without joins: the slowest module sets the throughput."""
    far: dict[int, list[float]] = {PENDING: [], FEWER: []}
    for seed in range(WORKFLOWS):
        random = Random(f"simulated {seed}")
        count = random.randint(2, 6)
        dop = [random.randint(1, 4) for _ in range(count)]
        ms = [random.randint(1, 12) for _ in range(count)]
        components: dict[str, Any] = {"source": {"spout": True, "rate": 1.0}}
        for v in range(count):
            before = f"w{random.randrange(v)}" if v else "source"
            components[f"w{v}"] = {"tasks": dop[v], "inputs": {before: "shuffle"}}
        content = {
            "format": FORMAT,
            "topology": {"components": components},
            "cluster": {"nodes": {"n": {"cpu": 100 * (sum(dop) + 1)}}},
            "profile": {f"w{v}": {"*": {"cpu_ms": ms[v]}} for v in range(count)}
            | {"source": {"*": {"cpu_ms": 0}}},
        }
        problem = build(validated(content, {}))
        expected = 1000 * min(d / t for d, t in zip(dop, ms, strict=True))
        plan = place(problem, "storm-even", bounded=False)
        for pending, found in far.items():
            rate = saturated(problem, plan.assignment, expected, pending)
            found.append(abs(rate / expected - 1))
    near = {pending: sum(one <= NEAR for one in found) for pending, found in far.items()}
    note = (
        f"The farthest is {100 * max(far[PENDING]):.1f} % off. "
        f"With {FEWER} open trees, which were tried first, {near[FEWER]} of {WORKFLOWS} are near, "
        f"the farthest {100 * max(far[FEWER]):.1f} % off."
    )
    return Measured(100 * near[PENDING] / WORKFLOWS, note=note)


def rates_on(files: Sequence[Any], dops: int, unit_s: float) -> list[float]:
    """Default Storm with DoP 1, 2, .. on a cluster, in tuples per minute or hour."""
    inputs = read(files)
    assert inputs.document.topology is not None
    found: list[float] = []
    for dop in range(1, dops + 1):
        counts = dict.fromkeys(inputs.document.topology.components, dop)
        plan = place(build(inputs, tasks=counts), "storm-even", objective="rate", bounded=False)
        most = saturated(plan.problem, plan.assignment, plan.report.max_rate or 1.0)
        found.append(most * unit_s)
    return found


def simulated_storm(
    averages: Mapping[tuple[str, str], Sequence[float]],
    files: Mapping[tuple[str, str], Sequence[Any]],
    unit_s: Mapping[str, float],
) -> tuple[dict[str, Measured], Table]:
    """Tables 5 and 9; shape: the order of the DoPs."""
    measured: dict[str, Measured] = {}
    rows: list[list[object]] = []
    for (workflow, cluster), printed in averages.items():
        rates = rates_on(files[workflow, cluster], len(printed), unit_s[workflow])
        measured[f"storm-{cluster.lower()}-simulated"] = Measured(
            [round(x, 1) for x in rates],
            shape=len(rates) > 1 and _ranks(rates) == _ranks(printed),
        )
        for n, rate in enumerate(rates):
            rows.append([workflow, cluster, n + 1, printed[n], rate])
    columns = ["workflow", "cluster", "DoP", "printed average", "storm-even, simulated"]
    return measured, Table("Default Storm on the same clusters, simulated", columns, rows)


def _ranks(values: Sequence[float]) -> list[int]:
    return sorted(range(len(values)), key=lambda i: values[i])

"""Figures 14 to 16 and 18 to 20 tuple by tuple: what a plan completes when its source is full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from nasiri_plans import node_orders, on_nodes, percent, span, tasks_of

from headrace.judge.report import judge
from headrace.lab.claims import Measured
from headrace.lab.papers import Table
from headrace.model.cluster import nodes_of
from headrace.model.problem import Assignment, Problem
from headrace.model.workload import Workload
from headrace.planner import place, size
from headrace.simulate import simulate

PENDING = 200  # trees that a task of the spout may have open
HOPS = 100_000.0  # tuples that are served in a run
ORDERS = 6  # of nodes, tried for Storm's default


def saturated(problem: Problem, assignment: Assignment) -> tuple[float, float]:
    """Source tuples/s that are complete when thrice as many arrive as the judge allows; and his."""
    factor = judge(problem, assignment, bounded=False).max_rate
    assert factor is not None
    given = float(problem.rate[problem.spout].sum())
    dynamics = replace(problem.dynamics, max_spout_pending=PENDING)
    flooded = replace(problem.scaled(3 * factor), dynamics=dynamics)
    seconds = HOPS / (factor * float(problem.rate.sum()))
    found = simulate(flooded, assignment, seconds=seconds, warm_up=seconds / 4)
    return found.throughput_per_s.mean or 0.0, factor * given


def gain_on(work: Workload) -> tuple[float, float, float]:
    """Percent over Storm's default, and the largest difference to the judge, in percent.

    Storm's default is the median over orders of the nodes, as in the model.
    """
    plan = size(work, "nasiri")
    ours, modelled = saturated(plan.problem, plan.assignment)
    apart = [abs(percent(ours, modelled))]
    nodes, tasks = nodes_of(work.inputs), tasks_of(plan)
    theirs: list[float] = []
    for order, _ in zip(node_orders(list(nodes)), range(ORDERS), strict=False):
        problem = on_nodes(work, {name: nodes[name] for name in order}).problem(tasks)
        placed = place(problem, "storm-even", bounded=False)
        rate, allowed = saturated(problem, placed.assignment)
        theirs.append(rate)
        apart.append(abs(percent(rate, allowed)))
    return percent(ours, median(theirs)), max(apart), ours


def simulated_claims(
    workloads: Mapping[str, Mapping[str, Workload]],
) -> tuple[dict[str, Measured], Table]:
    """`workloads`: cluster (test-bed, small, ..) -> layout -> workload."""
    rows: list[Sequence[object]] = []
    gains: dict[str, list[float]] = {}
    far: list[float] = []
    for cluster, layouts in workloads.items():
        for layout, work in layouts.items():
            gain, apart, rate = gain_on(work)
            gains.setdefault(cluster, []).append(gain)
            far.append(apart)
            rows.append((cluster, layout, rate, gain, apart))
    measured = {
        f"gain-{cluster}-simulated": Measured(span(of), shape=min(of) > 0)
        for cluster, of in gains.items()
    }
    note = f"Our simulator and the judge's largest rate are at most {max(far):.1f} % apart."
    measured["simulator-error"] = Measured(max(far), note=note, testable=False)
    columns = ("cluster", "layout", "nasiri, tuples/s", "over the default, %", "off the judge, %")
    return measured, Table("Throughput, simulated", columns, rows)

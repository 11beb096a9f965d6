"""Figures 14 to 20 tuple by tuple: what a plan completes and uses when its source is full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import NamedTuple

from nasiri_plans import node_orders, on_nodes, percent, span, tasks_of
from nasiri_text import eq_8

from headrace.judge.report import judge
from headrace.lab.claims import Measured
from headrace.lab.papers import Table
from headrace.model.cluster import nodes_of
from headrace.model.problem import Assignment, Problem
from headrace.model.workload import Workload
from headrace.planner import Plan, place, size
from headrace.simulate import simulate

PENDING = 50  # open trees per task: fewer, and queues run empty before the judge's rate is reached
HOPS = 6000.0  # tuples that are served in a run, per task: many times those of open trees
LEAST_HOPS = 200_000.0
ORDERS = 6  # of nodes, tried for Storm's default
EXHAUSTIVE_PER_MACHINE = 6


class Seen(NamedTuple):
    """A plan whose source never runs dry."""

    rate: float  # tuples/s of the sources that are complete
    allowed: float  # the same by the judge
    cpu: Mapping[str, float]  # % in use of every node that has tasks
    weighted: float  # eq. 7-8, as the judge has it

    @property
    def total(self) -> float:
        """The sum of all nodes' percentages, as fig. 17 has it."""
        return sum(self.cpu.values())


def saturated(problem: Problem, assignment: Assignment) -> Seen:
    """What a plan does when three times as many tuples arrive as the judge allows."""
    factor = judge(problem, assignment, bounded=False).max_rate
    assert factor is not None
    spouts = int(problem.tasks[problem.spout].sum())
    pending = PENDING * problem.task_count // spouts
    flooded = replace(
        problem.scaled(3 * factor), dynamics=replace(problem.dynamics, max_spout_pending=pending)
    )
    hops = max(HOPS * problem.task_count, LEAST_HOPS)
    seconds = hops / (factor * float(problem.rate.sum()))
    found = simulate(flooded, assignment, seconds=seconds, warm_up=seconds / 4)
    cpu = {name: 100 * (row["cpu"] or 0.0) for name, row in found.nodes.items()}
    return Seen(
        found.throughput_per_s.mean or 0.0,
        factor * float(problem.rate[problem.spout].sum()),
        cpu,
        weighted_use(problem, cpu),
    )


def weighted_use(problem: Problem, cpu: Mapping[str, float]) -> float:
    """Eq. 7-8: the mean of each machine type by its weight, divided by the number of kinds."""
    weights = eq_8()
    total = 0.0
    for kind, name in enumerate(problem.types):
        use = [
            cpu.get(node, 0.0)
            for node, of in zip(problem.nodes, problem.node_type.tolist(), strict=True)
            if of == kind
        ]
        total += float(weights[:, int(name.removeprefix("m")) - 1].sum()) * fmean(use)
    return total / len(weights)


def default_orders(work: Workload, plan: Plan) -> Iterator[Seen]:
    """Storm's default with the counts of a plan, under several orders of the nodes."""
    nodes, tasks = nodes_of(work.inputs), tasks_of(plan)
    for order, _ in zip(node_orders(list(nodes)), range(ORDERS), strict=False):
        problem = on_nodes(work, {name: nodes[name] for name in order}).problem(tasks)
        yield saturated(problem, place(problem, "storm-even", bounded=False).assignment)


class Compared(NamedTuple):
    """One layout on one cluster; Storm's default is the median rate and the mean use."""

    proposed: Seen
    default: Sequence[Seen]

    @property
    def gain(self) -> float:
        """Percent of throughput over Storm's default."""
        return percent(self.proposed.rate, median(one.rate for one in self.default))

    @property
    def more_use(self) -> float:
        """Percent of weighted utilisation over Storm's default."""
        return percent(self.proposed.weighted, fmean(one.weighted for one in self.default))

    @property
    def apart(self) -> float:
        """The largest difference to the judge, in percent."""
        return max(abs(percent(one.rate, one.allowed)) for one in (self.proposed, *self.default))


def simulated_claims(
    workloads: Mapping[str, Mapping[str, Workload]],
) -> tuple[dict[str, Measured], Table]:
    """`workloads`: cluster (testbed, small, ..) -> layout -> workload."""
    rows: list[Sequence[object]] = []
    measured: dict[str, Measured] = {}
    far: list[float] = []
    for cluster, layouts in workloads.items():
        found: dict[str, Compared] = {}
        for layout, work in layouts.items():
            plan = size(work, "nasiri")
            one = found[layout] = Compared(
                saturated(plan.problem, plan.assignment), list(default_orders(work, plan))
            )
            far.append(one.apart)
            rows.append((cluster, layout, one.proposed.rate, one.gain, one.more_use, one.apart))
        gains = [one.gain for one in found.values()]
        measured[f"gain-{cluster}-simulated"] = Measured(span(gains), shape=min(gains) > 0)
        if cluster == "testbed":
            measured |= figure_17(layouts, found)
        else:
            uses = [one.more_use for one in found.values()]
            measured[f"utilisation-{cluster}-simulated"] = Measured(span(uses), shape=min(uses) > 0)
    note = f"Our simulator and the judge's largest rate are at most {max(far):.1f} % apart."
    measured["simulator-error"] = Measured(max(far), note=note, testable=False)
    columns = ("cluster", "layout", "nasiri, tuples/s", "over the default, %",
               "more utilisation, %", "off the judge, %")  # fmt: skip
    return measured, Table("Throughput and utilisation, simulated", columns, rows)


def figure_17(
    layouts: Mapping[str, Workload], found: Mapping[str, Compared]
) -> dict[str, Measured]:
    """CPU of the three machines, added up: default, proposed, optimum."""
    most = {"most_per_machine": EXHAUSTIVE_PER_MACHINE}
    totals: dict[str, tuple[float, float, float]] = {}
    for layout, work in layouts.items():
        optimum = size(work, "nasiri-optimal", options=most)
        totals[layout] = (
            fmean(one.total for one in found[layout].default),
            found[layout].proposed.total,
            saturated(optimum.problem, optimum.assignment).total,
        )
    each = "; ".join(f"{k} {a:.0f}, {b:.0f}, {c:.0f}" for k, (a, b, c) in totals.items())
    more = [layout for layout, (default, proposed, _) in totals.items() if proposed > default]
    return {
        "optimum-uses-most-simulated": Measured(
            all(t[2] == max(t) for t in totals.values()),
            note=f"Default, proposed, optimum: {each}.",
        ),
        "uses-more-simulated": Measured(more),
    }

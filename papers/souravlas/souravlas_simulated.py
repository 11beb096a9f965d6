"""Figures 1 to 3 tuple by tuple: load, throughput and latency of the five schemes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, pstdev

import numpy as np

from headrace.lab.chart import lines
from headrace.lab.claims import Measured
from headrace.lab.papers import Table
from headrace.model.problem import Problem
from headrace.model.simulation_sections import Event
from headrace.planner import Plan
from headrace.simulate import simulate
from headrace.simulate.result import Simulation

SECONDS = 5.0  # between two measurements (section 4.1); one change in it
PENDING = 50  # trees that a task of the spout may have open, where throughput is asked for
LOADS = (0.5, 0.7, 0.9)  # of what Storm's plan sustains; not published, so varied
VARIATIONS = (0.0, 1.0)  # of service times; not published, so varied
CONTEXTS = (1, 10, 100)  # groups of tuples that a task takes along; not published, so varied
AT_S, UNTIL_S = 10.0, 20.0  # when the sixth node joins, and the end
DRAWN = 3  # one of so many moments is drawn


@dataclass(frozen=True, slots=True)
class Scheme:
    """A scheme's plans of one graph, with four and five tasks, and the stop of the change."""

    plans: Sequence[Plan]
    stop_s: float


def spread(plan: Plan, load: float) -> float:
    """Standard deviation of the busy cores over the nodes."""
    found = simulate(plan.problem.scaled(load), plan.assignment, seconds=SECONDS)
    return pstdev(found.nodes[n]["cores"] or 0.0 if n in found.nodes else 0.0
                  for n in plan.problem.nodes)  # fmt: skip


def throughput(plan: Plan) -> float:
    """Tuples/s of the spout that are complete when it never runs dry."""
    dynamics = replace(plan.problem.dynamics, max_spout_pending=PENDING)
    flooded = replace(plan.problem.scaled(3 * (plan.report.max_rate or 1.0)), dynamics=dynamics)
    return simulate(flooded, plan.assignment, seconds=SECONDS).throughput_per_s.mean or 0.0


def latency(plan: Plan, load: float, cv: float) -> float:
    """Mean milliseconds from arrival to the end, at a load."""
    dynamics = replace(plan.problem.dynamics, cv=cv)
    problem = replace(plan.problem.scaled(load), dynamics=dynamics)
    return simulate(problem, plan.assignment, seconds=SECONDS).mean_latency_ms.mean or 0.0


def wait_ms(stop_s: float) -> float:
    """What arrives while a scheme stops waits for half of that; in the mean over the interval."""
    return 1000 * stop_s**2 / (2 * SECONDS)


def with_context(problem: Problem, groups: int) -> Problem:
    """The problem whose tasks take so many groups of tuples along when they move."""
    return replace(problem, state_mb=problem.state_mb * groups)


def sixth_node(before: Plan, after: Plan, load: float, groups: int) -> Simulation:
    """The linear topology over time, while it goes from five nodes to six.

    The nodes of both plans are in the same order, so the first is a plan of all six too.
    """
    return simulate(
        with_context(after.problem, groups).scaled(load),
        before.assignment,
        seconds=UNTIL_S,
        events=[Event(at=AT_S, plan="after")],
        plans={"after": after.assignment},
    )


def five_to_six(schemes: Mapping[str, tuple[Plan, Plan]]) -> tuple[Table, str]:
    """A case of ours: what the schemes do when a node joins; a table, and latency over time."""
    load = 0.7 * min(before.report.max_rate or 1.0 for before, _ in schemes.values())
    rows: list[list[object]] = []
    drawn: dict[str, list[tuple[float, float]]] = {}
    for name, (before, after) in schemes.items():
        for groups in CONTEXTS:
            found = sixth_node(before, after, load, groups)
            at = np.array(found.series["at_s"])
            late = np.array(found.series["latency_ms"]["mean"], dtype=float)
            calm = [
                float(np.nanmean(late[keep])) for keep in (at <= AT_S, at > (AT_S + UNTIL_S) / 2)
            ]
            moved = int((before.assignment.node != after.assignment.node).sum())
            rows.append([name, groups, moved, *calm, float(np.nanmax(late)), found.total("lost")])
            if groups == CONTEXTS[1]:
                known = np.flatnonzero(np.isfinite(late))[::DRAWN]
                drawn[name] = list(zip(at[known].tolist(), late[known].tolist(), strict=True))
    columns = ["scheme", "groups of context", "tasks that move", "latency on five nodes, ms",
               "on six, ms", "at its worst, ms", "lost"]  # fmt: skip
    svg = lines(
        f"Five nodes become six at {AT_S:.0f} s, {CONTEXTS[1]} groups of context per task",
        drawn,
        x="seconds",
        y="mean latency, ms",
        log_y=True,
    )
    return Table("Nodes from five to six, simulated: a case of ours", columns, rows), svg


def simulated_claims(
    linear: Mapping[str, Scheme], random: Mapping[str, Sequence[Scheme]]
) -> tuple[dict[str, Measured], Table]:
    """All three figures; `random` has several graphs for each scheme."""
    every = {name: [linear[name], *random[name]] for name in linear}
    sustained = [min(p.report.max_rate or 1.0 for p in s.plans) for s in every["Storm"]]
    least = sustained[0]
    rows: list[list[object]] = []
    even: dict[str, list[float]] = {}
    fast: dict[str, list[float]] = {}
    for name, schemes in every.items():
        for layout, graphs in (("linear", [0]), ("random", range(1, len(schemes)))):
            of = [(schemes[i], plan, sustained[i]) for i in graphs for plan in schemes[i].plans]
            load = mean(spread(plan, 0.7 * most) for _, plan, most in of)
            rate = mean(throughput(plan) * (1 - one.stop_s / SECONDS) for one, plan, _ in of)
            late = mean(
                latency(plan, 0.7 * most, 1.0) + wait_ms(one.stop_s) for one, plan, most in of
            )
            even.setdefault(name, []).append(load)
            fast.setdefault(name, []).append(rate)
            rows.append([layout, name, load, rate, late])
    orders = {
        (load, cv): sorted(
            ("RO-MOD", "Shukla", "MT"),
            key=lambda name: mean(
                latency(p, load * least, cv) + wait_ms(linear[name].stop_s)
                for p in linear[name].plans
            ),
        )
        for load in LOADS
        for cv in VARIATIONS
    }
    same = sum(order == orders[0.7, 1.0] for order in orders.values())
    columns = ["layout", "scheme", "spread, cores", "tuples/s", "latency at 70 %, ms"]
    by_rate = [sorted(fast, key=lambda n: -fast[n][i]) for i in (0, 1)]
    return {
        "fig-1-simulated": Measured(
            all(min(even, key=lambda n: even[n][i]) == "RO-MOD" for i in (0, 1)),
            note="Most even first, linear: " + ", ".join(sorted(even, key=lambda n: even[n][0])),
        ),
        "fig-2-simulated": Measured(
            all(order[0] == "RO-MOD" for order in by_rate),
            note="Highest first, linear: {}; random: {}.".format(*map(", ".join, by_rate)),
        ),
        "fig-3-simulated": Measured(
            orders[0.7, 1.0],
            note=f"The same order in {same} of {len(orders)} loads and service laws.",
        ),
    }, Table("Section 4, simulated", columns, rows)

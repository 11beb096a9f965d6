"""Figures 1 to 3 tuple by tuple: load, throughput and latency of the five schemes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, pstdev

from headrace.lab.claims import Measured
from headrace.lab.papers import Table
from headrace.planner import Plan
from headrace.simulate import simulate

SECONDS = 5.0  # between two measurements (section 4.1); one change in it
PENDING = 50  # trees that a task of the spout may have open, where throughput is asked for
LOADS = (0.5, 0.7, 0.9)  # of what Storm's plan sustains; not published, so varied
VARIATIONS = (0.0, 1.0)  # of service times; not published, so varied


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

"""The thesis' curves of 20 minutes, simulated at the load of the listings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from headrace.lab.claims import Measured
from headrace.lab.papers import Table
from headrace.model.problem import Assignment, Problem
from headrace.simulate import simulate

SECONDS = 1200.0  # figures 4.4 to 4.9 and 4.13 to 4.18
AHEAD = 1.01  # a throughput that is higher by more than chance
SEND_MS = 20.0  # CPU of a tuple to another node, from which on the best of the four is ahead


class Placed(Protocol):
    """A plan of the experiment."""

    @property
    def problem(self) -> Problem: ...
    @property
    def assignment(self) -> Assignment: ...


def processed_per_s(plan: Placed, last: str, send_ms: float = 0.0) -> tuple[float, float]:
    """Tuples/s at the last bolt over 20 minutes, and the mean latency in ms."""
    options = {**plan.problem.options, "judge": {"send_node_cpu_ms": send_ms}}
    problem = replace(plan.problem, options=options)
    found = simulate(problem, plan.assignment, seconds=SECONDS, warm_up=60.0)
    return found.sinks[last]["throughput_per_s"], found.latency_ms["mean"] or 0.0


def best_gains(
    rates: Mapping[str, Sequence[tuple[float, float]]], proposed: Sequence[str], default: str
) -> list[float]:
    """Percent by which the best of the four is above the default, scenario by scenario."""
    return [
        100 * (max(rates[by][s][0] for by in proposed) / rates[default][s][0] - 1)
        for s in range(len(rates[default]))
    ]


def simulated_claims(
    plans: Mapping[str, Mapping[str, Sequence[Placed]]],
    last: Mapping[str, str],
    proposed: Sequence[str],
    default: str,
) -> tuple[dict[str, Measured], Table]:
    """Throughput of the four and of the default in all six scenarios."""
    measured: dict[str, Measured] = {}
    rows: list[list[object]] = []
    for app, sink in last.items():
        found = {
            by: [processed_per_s(plan, sink) for plan in plans[app][by]]
            for by in (*proposed, default)
        }
        costly = {
            by: [processed_per_s(plan, sink, SEND_MS) for plan in plans[app][by]] for by in found
        }
        ratios = [
            found[by][s][0] / found[default][s][0] for by in proposed for s in range(len(found[by]))
        ]
        gains, costly_gains = (best_gains(rates, proposed, default) for rates in (found, costly))
        with_cost = ", ".join(f"{gain:.1f}" for gain in costly_gains)
        measured[f"{app}-gains-simulated"] = Measured(
            gains,
            shape=min(gains) > 100 * (AHEAD - 1),
            note=f"With {SEND_MS:g} ms of CPU for a tuple to another node: {with_cost} %.",
        )
        best = max(rate for by in proposed for rate, _ in found[by])
        spread = f"{min(ratios):.3f} to {max(ratios):.3f} times the default's"
        measured[f"{app}-curves"] = Measured(
            min(ratios) > AHEAD, note=f"The four process {spread} tuples/s."
        )
        measured[f"{app}-simulated-rate"] = Measured(best)
        for by, of in found.items():
            for s, (rate, late) in enumerate(of):
                rows.append([app, by, s + 1, rate, late])
    columns = ["application", "scheduler", "scenario", "tuples/s at the last bolt", "latency, ms"]
    return measured, Table("Twenty minutes, simulated", columns, rows)

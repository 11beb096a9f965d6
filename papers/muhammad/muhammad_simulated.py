"""The thesis' curves of 20 minutes, simulated at the load of the listings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from headrace.lab.claims import Measured
from headrace.lab.papers import Table
from headrace.model.problem import Assignment, Problem
from headrace.simulate import simulate

SECONDS = 1200.0  # figures 4.4 to 4.9 and 4.13 to 4.18
AHEAD = 1.01  # a throughput that is higher by more than chance


class Placed(Protocol):
    """A plan of the experiment."""

    @property
    def problem(self) -> Problem: ...
    @property
    def assignment(self) -> Assignment: ...


def processed_per_s(plan: Placed, last: str) -> tuple[float, float]:
    """Tuples/s at the last bolt over 20 minutes, and the mean latency in ms."""
    found = simulate(plan.problem, plan.assignment, seconds=SECONDS, warm_up=60.0)
    return found.sinks[last]["throughput_per_s"], found.latency_ms["mean"] or 0.0


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
        ratios = [
            found[by][s][0] / found[default][s][0] for by in proposed for s in range(len(found[by]))
        ]
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

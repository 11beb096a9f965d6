"""The throughput and latency figures on Storm (7.10-7.13, 8.12-8.20, 9.9-9.17), tuple by tuple."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from eskandari_storm import OLS, OLS_FEW, T3, I, P, R, Run, Runs

from headrace.lab.claims import Measured
from headrace.lab.papers import Table
from headrace.model.problem import Problem
from headrace.simulate import simulate

HOPS = 300_000.0  # tuples that the plan would serve in a run at its largest rate
LOAD = 0.7  # of what the weakest plan of a figure sustains, where latency is asked for


class Limit(NamedTuple):
    """What limits a source that never runs dry; none of it is published, so three are tried."""

    pending: int  # trees that a task of the spout may have open
    send_ms: float  # CPU for each tuple to another node
    hop_ms: float  # latency between nodes


LIMITS = {
    "open trees": Limit(10, 0.0, 5.0),  # the one that the claims are judged by
    "cores": Limit(200, 0.0, 0.1),
    "sending": Limit(200, 0.3, 0.1),
}
SHAPES = ("linear", "diamond", "star")
OTHERS = (R, OLS)  # what the thesis compares with
# Figure -> experiment and scheduler.
FIGURES = {
    "fig-7-10": ("smart", P),
    "fig-7-12": ("taxi", P),
    "fig-8-13": ("smart", T3),
    "fig-8-14": ("smart-het", T3),
    "fig-8-17": ("taxi", T3),
    "fig-8-18": ("taxi-het", T3),
    "fig-9-10": ("smart", I),
    "fig-9-11": ("smart-het", I),
    "fig-9-14": ("taxi", I),
    "fig-9-15": ("taxi-het", I),
}
WITHOUT_NUMBERS = ("fig-8-14", "fig-9-11")
MICRO = {
    "fig-8-12a": ("io", T3),
    "fig-8-12b": ("cpu", T3),
    "fig-9-9a": ("io", I),
    "fig-9-9b": ("cpu", I),
}
LATENCY = {"fig-7-11": P, "fig-8-15": T3, "fig-9-12": I}  # and those that follow in the chapter
Rates = Mapping[str, Mapping[str, float]]  # experiment -> scheduler -> tuples/s


def limited(problem: Problem, by: Limit) -> Problem:
    """The problem with these costs."""
    judged = {**problem.options.get("judge", {}), "send_node_cpu_ms": by.send_ms}
    return replace(
        problem,
        options={**problem.options, "judge": judged},
        dynamics=replace(problem.dynamics, latency_ms=(0.0, by.hop_ms, by.hop_ms)),
    )


def throughput(run: Run, by: Limit) -> float:
    """Tuples/s of a source that never runs dry."""
    factor = run.report.max_rate or 1.0
    problem = limited(run.problem, by)
    dynamics = replace(problem.dynamics, max_spout_pending=by.pending)
    flooded = replace(problem.scaled(3 * factor), dynamics=dynamics)
    seconds = HOPS / (factor * float(problem.rate.sum()))
    found = simulate(flooded, run.assignment, seconds=seconds, warm_up=seconds / 4)
    return found.throughput_per_s.mean or 0.0


def latency(run: Run, factor: float) -> float:
    """Mean milliseconds at a factor of the given rates, without a limit on open trees."""
    problem = limited(run.problem, LIMITS["open trees"]).scaled(factor)
    seconds = HOPS / float(problem.rate.sum())
    found = simulate(problem, run.assignment, seconds=seconds, warm_up=seconds / 4)
    return found.mean_latency_ms.mean or 0.0


def gains(rates: Mapping[str, float], by: str, over: Sequence[str]) -> list[float]:
    """Percent above each of the others."""
    return [100 * (rates[by] / rates[other] - 1) for other in over]


def simulated_claims(found: Runs) -> tuple[dict[str, Measured], Table]:
    """All figures, under three assumptions about what limits the source."""
    rates = {
        name: {case: {by: throughput(one, limit) for by, one in of.items()}
               for case, of in found.items()}
        for name, limit in LIMITS.items()
    }  # fmt: skip
    late = {case: latencies(of) for case, of in found.items()}
    first, *others = rates
    measured: dict[str, Measured] = {}
    found_gains = {
        **{figure: [gains(rates[name][case], by, OTHERS) for name in rates]
           for figure, (case, by) in FIGURES.items()},
        **{figure: [micro_gains(rates[name], kind, by) for name in rates]
           for figure, (kind, by) in MICRO.items()},
    }  # fmt: skip
    for figure, (mine, *other) in found_gains.items():
        note = "; by ".join(f"{n}: {percents(g)}" for n, g in zip(others, other, strict=True))
        value = min(mine) > 0 if figure in WITHOUT_NUMBERS else mine
        measured[f"{figure}-simulated"] = Measured(
            value, shape=min(mine) > 0, note=f"Limited by {note} %."
        )
    for figure, by in LATENCY.items():
        measured[f"{figure}-simulated"] = opposite_orders(rates[first], late, by)
    for case in ("smart", "taxi"):
        (gain,) = gains(rates[first][case], OLS_FEW, [OLS])
        measured[f"ols-{case}-fewer-simulated"] = Measured(gain, shape=gain > 0)
    columns = ("run", "scheduler", *(f"tuples/s, by {name}" for name in rates), "latency, ms")
    rows = [
        [case, by, *(round(rates[name][case][by]) for name in rates), late[case][by]]
        for case, of in found.items()
        for by in of
    ]
    return measured, Table("On Storm, simulated", columns, rows)


def latencies(of: Mapping[str, Run]) -> dict[str, float]:
    """The mean latency of every plan at the same rate."""
    least = min(run.report.max_rate or 1.0 for run in of.values())
    return {by: latency(run, LOAD * least) for by, run in of.items()}


def micro_gains(rates: Rates, kind: str, by: str) -> list[float]:
    """Least and largest percent above OLS, then percent above R-Storm on the diamond."""
    over_ols = [gains(rates[f"{kind}-{shape}"], by, [OLS])[0] for shape in SHAPES]
    return [min(over_ols), max(over_ols), *gains(rates[f"{kind}-diamond"], by, [R])]


def opposite_orders(rates: Rates, late: Rates, by: str) -> Measured:
    """Whether a lower latency comes with a higher throughput, in every application."""
    shown = [case for case in ("smart", "smart-het", "taxi", "taxi-het") if by in rates[case]]
    among = (by, *OTHERS)
    agree = [
        case
        for case in shown
        if sorted(among, key=lambda one: late[case][one])
        == sorted(among, key=lambda one: -rates[case][one])
    ]
    words = f"In {len(agree)} of {len(shown)} runs the orders of the three are opposite."
    return Measured(len(agree) == len(shown), shape=2 * len(agree) > len(shown), note=words)


def percents(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in values)

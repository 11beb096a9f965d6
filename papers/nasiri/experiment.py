"""Nasiri et al. 2023: their scheduler beside Storm's default, their exhaustive search and ours."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace.lab.chart import bars
from headrace.lab.claims import Measured
from headrace.lab.papers import Experiment, Table
from headrace.model.generate import NASIRI_MACHINES
from headrace.planner import place, size

sys.path.insert(0, str(Path(__file__).parent))  # the folder's other modules

from nasiri_plans import (
    FIRST_RATE,
    Outcome,
    best_places,
    by_kind,
    chain,
    default,
    in_file_order,
    outcome,
    percent,
    span,
    tasks_of,
    typical,
    workload,
)
from nasiri_simulated import simulated_claims
from nasiri_text import (
    KINDS,
    LAYOUTS,
    POINTS,
    SCENARIOS,
    TABLE_4,
    THROUGHPUT_GAIN,
    Found,
    cases,
    formulas,
    prediction,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How a new instance finds its machine -> what ids of claims about it end in. The text can be read
# in both ways.
WAYS = {"least-tcu": "", "least-utilised": "-utilised"}
NAMES = {"least-tcu": "machine of least TCU", "least-utilised": "least utilised machine"}
# What of the test bed is claimed of both ways.
BOTH_WAYS = (
    "gain-linear",
    "gain-range",
    "gain-positive",
    "linear-gains-most",
    "below-optimum-linear",
    "below-optimum-worst",
    "star-uses-less",
    "core-i5-better-used",
)
EXHAUSTIVE_PER_MACHINE = 6  # the largest that all three layouts finish in seconds
LARGEST_PAIR = 6  # instances of each bolt, fig. 13


def measure(quick: bool, spark: Callable[[], SparkSession]) -> Experiment:
    """All claims; the quick run leaves out what takes more than seconds."""
    parts = [formulas(), cases(), guarantees()]
    if not quick:
        parts += [test_bed(), two_bolts(), scenarios(), published_counts(), simulated()]
        parts.append(prediction(spark()))
    measured = {name: value for found, _, _ in parts for name, value in found.items()}
    plots = {name: svg for _, _, drawn in parts for name, svg in drawn.items()}
    return Experiment(measured, [table for _, tables, _ in parts for table in tables], plots)


def guarantees() -> Found:
    """What the algorithm promises, on all twelve cases."""
    plans = {
        (c, layout): size(workload(layout, c), "nasiri")
        for c in ("testbed", *SCENARIOS)
        for layout in LAYOUTS
    }
    found = {key: outcome(plan) for key, plan in plans.items()}
    fullest = max(max(one.cpu.values()) for one in found.values())
    idlest = {
        key: min(one.cpu.values()) if len(one.cpu) == len(plans[key].problem.nodes) else 0.0
        for key, one in found.items()
    }
    linear = [by_kind(tasks_of(plans[c, "linear"])) for c in ("testbed", *SCENARIOS)]
    added = [sum(counts) - len(counts) for counts in linear]
    capacity = [100 * sum(NASIRI_MACHINES[c]) for c in ("small", "large")]
    least = float((FIRST_RATE * POINTS.min(axis=1)).sum())
    formula = math.log(capacity[1] / least) / math.log(capacity[0] / least)
    falls = [
        counts
        for by_layout in TABLE_4.values()
        for counts in [by_layout["linear"]]
        if list(counts) != sorted(counts)
    ]
    measured = {
        "never-over-utilised": Measured(
            fullest <= 100 * (1 + 1e-6),
            note=f"The fullest machine of {len(found)} plans uses {fullest:.4g} %.",
        ),
        "almost-fully-utilised": Measured(
            min(idlest.values()) >= 90,
            note=f"The idlest machine uses {min(idlest.values()):.3g} %; "
            f"in {sum(v >= 90 for v in idlest.values())} of {len(idlest)} plans "
            "every machine uses 90 % or more.",
        ),
        "more-of-the-costly": Measured(
            all(counts == sorted(counts) for counts in linear),
            note="Linear, low, mid and high: "
            f"{'; '.join(', '.join(map(str, c)) for c in linear)}. Table 4 itself has "
            f"{' and '.join(', '.join(map(str, c)) for c in falls)}, "
            "which do not rise with the cost.",
        ),
        "complexity": Measured(
            added[3] / added[1],
            note=f"Instances added one by one: {added[1]} and {added[3]}. "
            f"The formula with R0 = 8 tuples/s gives a factor of {formula:.3g}.",
        ),
    }
    for scenario in SCENARIOS:
        counts = [n for layout in LAYOUTS for n in by_kind(tasks_of(plans[scenario, layout]))]
        measured[f"counts-{scenario}"] = Measured([float(n) for n in counts])
    return measured, [], {}


class Compared(NamedTuple):
    """One layout on the test bed: the plans that figures 14 to 17 compare."""

    tasks: Mapping[str, int]  # of the proposed scheduler
    orders: Sequence[Outcome]  # Storm's default with these counts, slowest node order first
    default: Outcome  # the typical one of them
    proposed: Outcome
    same_counts: Outcome  # the best places for the proposed counts
    optimum: Outcome  # the best counts and places
    ours: Outcome
    bound: float
    seconds: tuple[float, float]  # of the proposed scheduler and of the exhaustive search

    @property
    def gain(self) -> float:
        """Percent above Storm's default."""
        return percent(self.proposed.rate, self.default.rate)

    @property
    def totals(self) -> tuple[float, float, float]:
        """CPU of all machines: default, proposed, optimum."""
        return self.default.total, self.proposed.total, self.optimum.total


def compare_on_test_bed(layout: str, to: str) -> Compared:
    """Plan one layout for the three machines by everybody; `to` is where new instances go."""
    work = workload(layout, "testbed")
    plan = size(work, "nasiri", options={"to": to})
    most = {"most_per_machine": EXHAUSTIVE_PER_MACHINE}
    exhaustive = size(work, "nasiri-optimal", options=most)
    tasks, ours = tasks_of(plan), size(work, "headrace", options={"within": 0.0})
    orders = default(work, tasks)
    return Compared(
        tasks,
        orders,
        typical(orders),
        outcome(plan),
        best_places(work.problem(tasks)),
        outcome(exhaustive),
        outcome(ours),
        ours.report.bound.value or math.nan,
        (plan.seconds, exhaustive.seconds),
    )


def test_bed() -> Found:
    """Three machines: Storm's default, the proposed scheduler, optima, ours, and the bound."""
    measured: dict[str, Measured] = {}
    tables: list[Table] = []
    plots: dict[str, str] = {}
    for to, suffix in WAYS.items():
        found = {layout: compare_on_test_bed(layout, to) for layout in LAYOUTS}
        claims = test_bed_claims(found)
        measured |= {f"{name}{suffix}": claims[name] for name in (BOTH_WAYS if suffix else claims)}
        rows: list[Sequence[object]] = []
        drawn: dict[str, dict[str, float]] = {}
        for layout, one in found.items():
            drawn[layout] = {
                "Storm's default": one.default.rate,
                "nasiri": one.proposed.rate,
                "best places": one.same_counts.rate,
                "nasiri-optimal": one.optimum.rate,
                "headrace": one.ours.rate,
                "fluid bound": one.bound,
            }
            bolts = [n for name, n in one.tasks.items() if not name.startswith("source")]
            orders = f"{one.orders[0].rate:.1f} .. {one.orders[-1].rate:.1f}"
            rows.append((layout, ", ".join(map(str, bolts)), orders, *drawn[layout].values()))
        columns = ("layout", "instances", "default, any node order", *drawn["linear"])
        title = f"Figures 14 to 16, tuples/s over all spouts, new instances to the {NAMES[to]}"
        tables.append(Table(title, columns, rows))
        plots[f"throughput{suffix}.svg"] = bars(
            f"Test bed: rate sustained, {NAMES[to]}", drawn, y="tuples/s over all spouts"
        )
    return measured, tables, plots


def test_bed_claims(found: Mapping[str, Compared]) -> dict[str, Measured]:
    """What figures 14 to 17 and the text say of the test bed."""
    gains = {layout: one.gain for layout, one in found.items()}
    totals = {layout: one.totals for layout, one in found.items()}
    below = {k: -percent(one.proposed.rate, one.optimum.rate) for k, one in found.items()}
    below_same = {k: -percent(one.proposed.rate, one.same_counts.rate) for k, one in found.items()}
    core_i5 = {k: (one.default.cpu["m3-1"], one.proposed.cpu["m3-1"]) for k, one in found.items()}
    seconds = np.sum([one.seconds for one in found.values()], axis=0)
    linear = found["linear"]
    return {
        "optimum-linear": Measured(
            percent(linear.optimum.rate, linear.default.rate),
            shape=linear.optimum.rate > linear.default.rate,
        ),
        "gain-linear": Measured(gains["linear"], shape=gains["linear"] > 0),
        "gain-range": Measured(span(list(gains.values())), shape=min(gains.values()) > 0),
        "gain-positive": Measured(min(gains.values()) > 0),
        "linear-gains-most": Measured(
            max(gains, key=lambda layout: gains[layout]), note=f"Gains: {list_figures(gains)} %."
        ),
        "below-optimum-linear": Measured(
            below["linear"],
            note=f"Below the best places for the same counts: {below_same['linear']:.3g} %.",
        ),
        "below-optimum-worst": Measured(
            max(below.values()),
            note=f"Below the optimum: {list_figures(below)} %; "
            f"below the best places for the same counts: {list_figures(below_same)} %.",
        ),
        "optimum-uses-most": Measured(
            all(t[2] >= max(t) - 1e-6 for t in totals.values()),
            note=f"Default, proposed, optimum: {list_figures(totals)}.",
        ),
        "uses-more-than-default": Measured(
            all(totals[layout][1] > totals[layout][0] for layout in ("linear", "diamond"))
        ),
        "star-uses-less": Measured(totals["star"][1] < totals["star"][0] and gains["star"] > 0),
        "core-i5-better-used": Measured(
            all(b > a for a, b in core_i5.values()),
            note=f"Default and proposed, % of the Core i5: {list_figures(core_i5)}.",
        ),
        "faster-than-exhaustive": Measured(
            bool(seconds[0] < seconds[1]),
            note=f"All three layouts: {seconds[0]:.2g} s and {seconds[1]:.2g} s.",
        ),
    }


def list_figures(values: Mapping[str, float | tuple[float, ...]]) -> str:
    """Figures by layout, as a note has them."""
    rows = {name: v if isinstance(v, tuple) else (v,) for name, v in values.items()}
    return "; ".join(
        f"{name} {', '.join(f'{round(v, 6):.3g}' for v in row)}" for name, row in rows.items()
    )


def two_bolts() -> Found:
    """All chains of two bolts of table 3: RollingCount and UniqueVisitor are not published."""
    rows: list[Sequence[object]] = []
    lost: list[float] = []
    for kinds in product(KINDS, repeat=2):
        work = chain(kinds)
        tasks = tasks_of(size(work, "nasiri"))
        found = (tasks["bolt1"], tasks["bolt2"])
        pairs = {*product(range(1, LARGEST_PAIR + 1), repeat=2), found}
        rate = {
            pair: typical(default(work, {"source": 1, "bolt1": pair[0], "bolt2": pair[1]})).rate
            for pair in sorted(pairs)
        }
        best = max(rate, key=lambda pair: rate[pair])
        lost.append(-percent(rate[found], rate[best]))
        rows.append(
            (
                " then ".join(kinds),
                "<{}, {}>".format(*found),
                "<{}, {}>".format(*best),
                rate[found],
                rate[best],
                lost[-1],
            )
        )
    columns = ("bolts", "found", "best", "tuples/s found", "tuples/s best", "% lost")
    return (
        {
            "pairs-lose": Measured(
                max(lost),
                note=f"Over nine chains {min(lost):.3g} to {max(lost):.3g} %, "
                f"median {median(lost):.3g} %.",
            )
        },
        [
            Table(
                "Figure 13's question on chains of two bolts, placed by Storm's default",
                columns,
                rows,
            )
        ],
        {},
    )


class Gain(NamedTuple):
    """One layout in one scenario: the proposed scheduler beside Storm's default."""

    rates: tuple[float, float, float, float]  # default, proposed, ours, bound
    throughput: float  # % that the proposed scheduler gains over the default
    utilisation: float  # %
    lowest: float  # % over the best node order of the default
    highest: float  # % over the worst one
    in_order: float  # % with the machines in the order of table 4

    @property
    def ratio(self) -> float:
        """Table 5: gain in throughput over gain in utilisation."""
        return self.throughput / self.utilisation


def gain_in(scenario: str, layout: str, to: str) -> Gain:
    """The counts of the proposed scheduler, in its own places and in those of Storm's default."""
    work = workload(layout, scenario)
    plan, ours = (
        size(work, "nasiri", options={"to": to}),
        size(work, "headrace", options={"within": 0.0}),
    )
    proposed, bound = outcome(plan), ours.report.bound.value or math.nan
    orders = default(work, tasks_of(plan))
    even = typical(orders)
    return Gain(
        (even.rate, proposed.rate, outcome(ours).rate, bound),
        percent(proposed.rate, even.rate),
        percent(proposed.weighted, even.weighted),
        percent(proposed.rate, orders[-1].rate),
        percent(proposed.rate, orders[0].rate),
        percent(proposed.rate, in_file_order(work, tasks_of(plan)).rate),
    )


def scenarios() -> Found:
    """The three large clusters: what the proposed scheduler gains over Storm's default."""
    measured: dict[str, Measured] = {}
    tables: list[Table] = []
    plots: dict[str, str] = {}
    for to, suffix in WAYS.items():
        found = {(s, layout): gain_in(s, layout, to) for s in SCENARIOS for layout in LAYOUTS}
        claims = scenario_claims(found)
        both = [f"throughput-{scenario}" for scenario in SCENARIOS]
        measured |= {f"{name}{suffix}": claims[name] for name in (both if suffix else claims)}
        table, drawn = tabulate_scenarios(found, to)
        tables.append(table)
        plots[f"scenarios{suffix}.svg"] = bars(
            f"Scenarios 1 to 3: rate as a share of the fluid bound, {NAMES[to]}",
            drawn,
            y="share of the bound",
        )
    return measured, tables, plots


def simulated() -> Found:
    """The test bed and all scenarios, tuple by tuple."""
    works = {
        name: {layout: workload(layout, name) for layout in LAYOUTS}
        for name in ("testbed", *SCENARIOS)
    }
    measured, table = simulated_claims(works)
    return measured, [table], {}


def tabulate_scenarios(
    found: Mapping[tuple[str, str], Gain], to: str
) -> tuple[Table, dict[str, dict[str, float]]]:
    """The rows of all scenarios, and what is drawn of them."""
    rows: list[Sequence[object]] = []
    drawn: dict[str, dict[str, float]] = {}
    for (scenario, layout), one in found.items():
        even, proposed, ours, bound = one.rates
        drawn[f"{SCENARIOS.index(scenario) + 1} {layout}"] = {
            "Storm's default": even / bound,
            "nasiri": proposed / bound,
            "headrace": ours / bound,
        }
        orders = f"{one.lowest:.1f} .. {one.highest:.1f}"
        gains = (one.throughput, one.utilisation, orders, one.ratio)
        rows.append((scenario, layout, *one.rates, *gains))
    columns = (
        "scenario",
        "layout",
        "default",
        "nasiri",
        "headrace",
        "fluid bound",
        "gain %",
        "gain in utilisation %",
        "gain, any node order",
        "ratio",
    )
    title = (
        "Figures 18 to 20 and table 5: the proposed scheduler's own counts, "
        f"tuples/s over all spouts, new instances to the {NAMES[to]}"
    )
    return Table(title, columns, rows), drawn


def scenario_claims(found: Mapping[tuple[str, str], Gain]) -> dict[str, Measured]:
    """What figures 18 to 20 and table 5 say of the three scenarios."""
    measured: dict[str, Measured] = {}
    for scenario in SCENARIOS:
        by_layout = {layout: found[scenario, layout] for layout in LAYOUTS}
        throughput = [one.throughput for one in by_layout.values()]
        utilisation = [one.utilisation for one in by_layout.values()]
        in_order = list_figures({layout: one.in_order for layout, one in by_layout.items()})
        measured[f"throughput-{scenario}"] = Measured(
            span(throughput),
            shape=min(throughput) > 0,
            note=f"With the machines in the order of table 4: {in_order} %.",
        )
        measured[f"utilisation-{scenario}"] = Measured(
            span(utilisation), shape=min(utilisation) > 0
        )
    ratios = [one.ratio for one in found.values()]
    measured["table-5"] = Measured(ratios, shape=min(ratios) > 1)
    measured["table-5-above-1"] = Measured(min(ratios) > 1)
    return measured


def published_counts() -> Found:
    """Table 4's counts: Storm's default, and the most that any places could gain on it."""
    rows: list[Sequence[object]] = []
    linear: dict[str, float] = {}
    for scenario, by_layout in TABLE_4.items():
        for layout, (low, mid, high) in by_layout.items():
            work = workload(layout, scenario)
            tasks = {"low": low, "mid": mid, "high": high}
            # As the tuples: of four to low bolts, one passes the first, three the sink.
            if layout == "diamond":
                tasks |= {"low": round(low / 4), "sink": low - round(low / 4)}
            even = typical(default(work, tasks))
            problem = work.problem(tasks)
            factor = even.rate / float(problem.rate[problem.spout].sum())
            report = place(problem.scaled(factor), "headrace", objective="rate").report
            assert report.bound.value is not None
            possible, reached = (
                100 * (report.bound.value - 1),
                100 * ((report.max_rate or math.nan) - 1),
            )
            rows.append(
                (
                    scenario,
                    layout,
                    ", ".join(map(str, (low, mid, high))),
                    even.rate,
                    reached,
                    possible,
                )
            )
            if layout == "linear":
                linear[scenario] = possible
    allowed = sum(linear[scenario] >= THROUGHPUT_GAIN[scenario][0] for scenario in SCENARIOS)
    columns = (
        "scenario",
        "layout",
        "instances",
        "default, tuples/s",
        "headrace's places gain %",
        "no places gain more than %",
    )
    return (
        {
            "gains-possible": Measured(
                allowed, note=f"Most that any places gain, linear: {list_figures(linear)} %."
            )
        },
        [Table("Table 4's counts", columns, rows)],
        {},
    )

"""Nasiri et al. 2023: their scheduler, Storm's default and the exhaustive search, on the test bed and in the three large scenarios."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from headrace.lab.chart import bars
from headrace.lab.claims import Measured
from headrace.lab.papers import Experiment, Table
from headrace.model.generate import NASIRI_MACHINES
from headrace.planner import place, size

sys.path.insert(0, str(Path(__file__).parent))  # the folder's other modules

from nasiri_plans import (
    FIRST_RATE,
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

EXHAUSTIVE_PER_MACHINE = 6  # the largest that all three layouts finish in seconds
LARGEST_PAIR = 6  # instances of each bolt, fig. 13


def measure(quick: bool, spark: Callable[[], SparkSession]) -> Experiment:
    """All claims; the quick run leaves out what takes more than seconds."""
    parts = [formulas(), cases(), guarantees()]
    if not quick:
        parts += [test_bed(), two_bolts(), scenarios(), published_counts(), prediction(spark())]
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
            note=f"The idlest machine uses {min(idlest.values()):.3g} %; in {sum(v >= 90 for v in idlest.values())} of {len(idlest)} plans "
            "every machine uses 90 % or more.",
        ),
        "more-of-the-costly": Measured(
            all(counts == sorted(counts) for counts in linear),
            note=f"Linear, low, mid and high: {'; '.join(', '.join(map(str, c)) for c in linear)}. Table 4 itself has "
            f"{' and '.join(', '.join(map(str, c)) for c in falls)}, which do not rise with the cost.",
        ),
        "complexity": Measured(
            added[3] / added[1],
            note=f"Instances added one by one: {added[1]} and {added[3]}. The formula with R0 = 8 tuples/s gives a factor of {formula:.3g}.",
        ),
    }
    for scenario in SCENARIOS:
        counts = [n for layout in LAYOUTS for n in by_kind(tasks_of(plans[scenario, layout]))]
        measured[f"counts-{scenario}"] = Measured([float(n) for n in counts])
    return measured, [], {}


def test_bed() -> Found:
    """Three machines: default, proposed, the best places for the same counts, the best counts and places, ours, and the bound."""
    measured: dict[str, Measured] = {}
    rows: list[Sequence[object]] = []
    drawn: dict[str, dict[str, float]] = {}
    gains: dict[str, float] = {}
    below: dict[str, float] = {}
    below_same: dict[str, float] = {}
    totals: dict[str, tuple[float, float, float]] = {}
    core_i5: dict[str, tuple[float, float]] = {}
    seconds = np.zeros(2)
    for layout in LAYOUTS:
        work = workload(layout, "testbed")
        plan, exhaustive = (
            size(work, "nasiri"),
            size(work, "nasiri-optimal", options={"most_per_machine": EXHAUSTIVE_PER_MACHINE}),
        )
        seconds += (plan.seconds, exhaustive.seconds)
        proposed, optimum, tasks = outcome(plan), outcome(exhaustive), tasks_of(plan)
        evens = default(work, tasks)
        even, same = typical(evens), best_places(work.problem(tasks))
        own = size(work, "headrace")
        assert own.report is not None
        bound = own.report.bound.value or math.nan
        gains[layout] = percent(proposed.rate, even.rate)
        below[layout], below_same[layout] = (
            -percent(proposed.rate, optimum.rate),
            -percent(proposed.rate, same.rate),
        )
        totals[layout] = (even.total, proposed.total, optimum.total)
        core_i5[layout] = (even.cpu["m3-1"], proposed.cpu["m3-1"])
        if layout == "linear":
            measured["optimum-linear"] = Measured(
                percent(optimum.rate, even.rate), shape=optimum.rate > even.rate
            )
        drawn[layout] = {
            "Storm's default": even.rate, "nasiri": proposed.rate, "best places": same.rate,
            "nasiri-optimal": optimum.rate, "headrace": outcome(own).rate, "fluid bound": bound,
        }  # fmt: skip
        counts = ", ".join(str(tasks[name]) for name in tasks if not name.startswith("source"))
        rows.append(
            (
                layout,
                counts,
                f"{evens[0].rate:.1f} .. {evens[-1].rate:.1f}",
                *drawn[layout].values(),
            )
        )
    measured |= {
        "gain-linear": Measured(gains["linear"], shape=gains["linear"] > 0),
        "gain-range": Measured(span(list(gains.values())), shape=min(gains.values()) > 0),
        "gain-positive": Measured(min(gains.values()) > 0),
        "linear-gains-most": Measured(
            max(gains, key=lambda layout: gains[layout]), note=f"Gains: {said(gains)} %."
        ),
        "below-optimum-linear": Measured(
            below["linear"],
            note=f"Below the best places for the same counts: {below_same['linear']:.3g} %.",
        ),
        "below-optimum-worst": Measured(
            max(below.values()),
            note=f"Below the optimum: {said(below)} %; below the best places for the same counts: {said(below_same)} %.",
        ),
        "optimum-uses-most": Measured(
            all(t[2] >= max(t) - 1e-6 for t in totals.values()),
            note=f"Default, proposed, optimum: {said(totals)}.",
        ),
        "uses-more-than-default": Measured(
            all(totals[layout][1] > totals[layout][0] for layout in ("linear", "diamond"))
        ),
        "star-uses-less": Measured(totals["star"][1] < totals["star"][0] and gains["star"] > 0),
        "core-i5-better-used": Measured(
            all(b > a for a, b in core_i5.values()),
            note=f"Default and proposed, % of the Core i5: {said(core_i5)}.",
        ),
        "faster-than-exhaustive": Measured(
            bool(seconds[0] < seconds[1]),
            note=f"All three layouts: {seconds[0]:.2g} s and {seconds[1]:.2g} s.",
        ),
    }
    columns = ("layout", "instances", "default, any node order", *drawn["linear"])
    return (
        measured,
        [Table("Figures 14 to 16, tuples/s over all spouts", columns, rows)],
        {"throughput.svg": bars("Test bed: rate sustained", drawn, y="tuples/s over all spouts")},
    )


def said(values: Mapping[str, float | tuple[float, ...]]) -> str:
    """Figures by layout, as a note has them."""
    return "; ".join(
        f"{name} {', '.join(f'{round(v, 6):.3g}' for v in (value if isinstance(value, tuple) else (value,)))}"
        for name, value in values.items()
    )


def two_bolts() -> Found:
    """All chains of two bolts of table 3's kinds, in the place of the unpublished RollingCount and UniqueVisitor."""
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
                note=f"Over nine chains {min(lost):.3g} to {max(lost):.3g} %, median {median(lost):.3g} %.",
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


def scenarios() -> Found:
    """The paper's procedure: counts of the proposed scheduler, placed by itself and by Storm's default."""
    measured: dict[str, Measured] = {}
    rows: list[Sequence[object]] = []
    drawn: dict[str, dict[str, float]] = {}
    ratios: list[float] = []
    for scenario in SCENARIOS:
        gains: list[tuple[float, float]] = []
        in_order: dict[str, float] = {}
        for layout in LAYOUTS:
            work = workload(layout, scenario)
            plan, own = size(work, "nasiri"), size(work, "headrace")
            assert own.report is not None
            proposed, bound = outcome(plan), own.report.bound.value or math.nan
            evens = default(work, tasks_of(plan))
            even = typical(evens)
            in_order[layout] = percent(proposed.rate, in_file_order(work, tasks_of(plan)).rate)
            gains.append(
                (percent(proposed.rate, even.rate), percent(proposed.weighted, even.weighted))
            )
            ratios.append(gains[-1][0] / gains[-1][1])
            drawn[f"{SCENARIOS.index(scenario) + 1} {layout}"] = {
                "Storm's default": even.rate / bound, "nasiri": proposed.rate / bound, "headrace": outcome(own).rate / bound,
            }  # fmt: skip
            lowest, highest = (
                percent(proposed.rate, evens[-1].rate),
                percent(proposed.rate, evens[0].rate),
            )
            rates = (even.rate, proposed.rate, outcome(own).rate, bound)
            rows.append(
                (scenario, layout, *rates, *gains[-1], f"{lowest:.1f} .. {highest:.1f}", ratios[-1])
            )
        throughput, utilisation = zip(*gains, strict=True)
        measured[f"throughput-{scenario}"] = Measured(
            span(throughput),
            shape=min(throughput) > 0,
            note=f"With the machines in the order of table 4: {said(in_order)} %.",
        )
        measured[f"utilisation-{scenario}"] = Measured(
            span(utilisation), shape=min(utilisation) > 0
        )
    measured["table-5"] = Measured(ratios, shape=min(ratios) > 1)
    measured["table-5-above-1"] = Measured(min(ratios) > 1)
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
    return (
        measured,
        [
            Table(
                "Figures 18 to 20 and table 5: the proposed scheduler's own counts, tuples/s over all spouts",
                columns,
                rows,
            )
        ],
        {
            "scenarios.svg": bars(
                "Scenarios 1 to 3: rate as a share of the fluid bound",
                drawn,
                y="share of the bound",
            )
        },
    )


def published_counts() -> Found:
    """Table 4's counts: Storm's default, and the most that any places could gain on it."""
    rows: list[Sequence[object]] = []
    linear: dict[str, float] = {}
    for scenario, by_layout in TABLE_4.items():
        for layout, (low, mid, high) in by_layout.items():
            work = workload(layout, scenario)
            tasks = {"low": low, "mid": mid, "high": high}
            if (
                layout == "diamond"
            ):  # as the tuples: of four to low bolts, one passes the first, three the sink
                tasks |= {"low": round(low / 4), "sink": low - round(low / 4)}
            even = typical(default(work, tasks))
            problem = work.problem(tasks)
            factor = even.rate / float(problem.rate[problem.spout].sum())
            report = place(problem.scaled(factor), "headrace", objective="rate").report
            assert report is not None
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
                allowed, note=f"Most that any places gain, linear: {said(linear)} %."
            )
        },
        [Table("Table 4's counts", columns, rows)],
        {},
    )

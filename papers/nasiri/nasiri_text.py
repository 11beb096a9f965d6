"""The paper's text, tables and formulas checked without a plan, and its CPU prediction here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from statistics import mean, median
from typing import TYPE_CHECKING

import numpy as np
from nasiri_plans import FIRST_RATE, alike, outcome

from headrace.errors import Unsupported
from headrace.lab.chart import lines
from headrace.lab.claims import Measured
from headrace.lab.papers import Table
from headrace.model.arrays import Floats
from headrace.model.generate import NASIRI_MS
from headrace.planner import size

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAYOUTS = ("linear", "diamond", "star")
SCENARIOS = ("small", "medium", "large")
KINDS = ("low", "mid", "high")
# Table 3: CPU points per tuple/s, [kind, machine type].
POINTS = np.array([NASIRI_MS[kind] for kind in KINDS]) / 10
TUPLES = {  # by kind, for one of the sources
    "linear": (1, 1, 1),
    "diamond": (4 / 3, 1 / 3, 1 / 3),
    "star": (1 / 2, 1, 1 / 2),
}
TABLE_4 = {  # instances by scenario and layout: low, mid, high
    "small": {"linear": (3, 3, 7), "diamond": (12, 5, 7), "star": (9, 10, 5)},
    "medium": {"linear": (41, 42, 35), "diamond": (67, 15, 46), "star": (45, 34, 25)},
    "large": {"linear": (201, 156, 341), "diamond": (397, 208, 91), "star": (327, 156, 206)},
}
TABLE_5 = {  # by layout
    "small": (1.41, 2.67, 1.15),
    "medium": (1.15, 1.03, 1.17),
    "large": (2.68, 1.95, 1.52),
}
# %, least and largest of the three layouts.
THROUGHPUT_GAIN = {"small": (26, 49), "medium": (36, 48), "large": (27, 31)}
UTILISATION_GAIN = {"small": (10, 35), "medium": (31, 47), "large": (10, 21)}
BOLTS, MACHINES, PER_MACHINE = 4, 3, 10  # the example of the exhaustive search
LOADS, REPEATS, SECONDS = 10, 7, 0.3  # of the measured CPU prediction

Found = tuple[dict[str, Measured], list[Table], dict[str, str]]
Load = tuple[float, float, float]  # tuples/s, CPU points in use, points per tuple/s (e)


def formulas() -> Found:
    """Table 3's unit, the fastest machine, eq. 3, eq. 8, and table 5 beside the text."""
    in_seconds = FIRST_RATE * POINTS[2] * 100
    fastest = {f"m{int(row.argmin()) + 1}" for row in POINTS}
    unique = [
        len(set(eq_3(counts))) == sum(counts)
        for by_layout in TABLE_4.values()
        for counts in by_layout.values()
    ]
    weights = eq_8().sum(axis=0)
    agrees = [
        table_5_agrees(TABLE_5[s], THROUGHPUT_GAIN[s], UTILISATION_GAIN[s]) for s in SCENARIOS
    ]
    ratios = {
        (s, layout): possible_ratios(layout, THROUGHPUT_GAIN[s])
        for s in ("small", "medium")
        for layout in LAYOUTS
    }
    possible = [
        low <= TABLE_5[s][LAYOUTS.index(layout)] <= high
        for (s, layout), (low, high) in ratios.items()
    ]
    return (
        {
            "e-in-seconds": Measured(
                bool((in_seconds <= 100).all()),
                note=f"In seconds it would use {', '.join(f'{u:.0f}' for u in in_seconds)} % "
                "of the machines; as points per tuple/s "
                f"{', '.join(f'{u / 100:.2g}' for u in in_seconds)} %, and "
                f"{', '.join(f'{100 / e:.0f}' for e in POINTS[2])} tuples/s fill them.",
            ),
            "fastest-machine": Measured(
                fastest.pop() if len(fastest) == 1 else "not the same for every kind"
            ),
            "eq-3-unique": Measured(float(sum(unique))),
            "eq-8-weights": Measured(
                float(weights.sum()),
                note=f"The weights are {', '.join(f'{w:.3g}' for w in weights)}.",
            ),
            "table-5-text": Measured(all(agrees)),
            "table-5-possible": Measured(
                float(sum(possible)),
                note="Possible ratios: "
                + "; ".join(
                    f"{s} {layout} {low:.2f} to {high:.2f}"
                    for (s, layout), (low, high) in ratios.items()
                )
                + ".",
            ),
        },
        [],
        {},
    )


def eq_8() -> Floats:
    """The weights x_ij, [kind, machine type]."""
    return (1 / POINTS) / (1 / POINTS).sum(axis=1, keepdims=True)


def possible_ratios(layout: str, gains: tuple[int, int]) -> tuple[float, float]:
    """Least and largest ratio of the gains in throughput and in U that any two plans can have.

    It holds where there are equally many machines of each type. A tuple/s of a kind adds x_j e_ij
    to U on machine type j, nearly the same on every type: so U can only grow as the throughput
    does.
    """
    adds = eq_8().sum(axis=0) * POINTS
    least, most = (
        float((np.array(TUPLES[layout]) * edge).sum())
        for edge in (adds.min(axis=1), adds.max(axis=1))
    )
    low, high = gains[0] - 0.5, gains[1] + 0.5  # %, before they were rounded
    found = [
        gain / 100 / ((1 + gain / 100) * change - 1)
        for gain in (low, high)
        for change in (least / most, most / least)
    ]
    return min(found), max(found)


def eq_3(counts: Sequence[int]) -> list[int]:
    """The indexes of all tasks, as eq. 3 is printed."""
    return [sum(counts[: j + 1]) + k for j, count in enumerate(counts) for k in range(1, count + 1)]


def table_5_agrees(
    ratios: Sequence[float], throughput: tuple[int, int], utilisation: tuple[int, int]
) -> bool:
    """Whether three pairs of gains can have the printed ratios and the printed ranges, rounded."""
    tenths = [
        np.arange(10 * low - 5, 10 * high + 5) / 10 for low, high in (throughput, utilisation)
    ]
    choices: list[set[tuple[int, int]]] = []
    for ratio in ratios:
        close = np.abs(tenths[0][:, None] / tenths[1][None, :] - ratio) <= 0.005 + 0.05 / tenths[1][
            None, :
        ] * (1 + ratio)
        choices.append(
            {
                (round(float(tenths[0][a])), round(float(tenths[1][b])))
                for a, b in np.argwhere(close)
            }
        )
    return any(
        (min(t), max(t)) == throughput and (min(u), max(u)) == utilisation
        for t, u in (zip(*three, strict=True) for three in product(*choices))
    )


def cases() -> Found:
    """The number of cases of the exhaustive search, counted in several ways, and our time."""
    total = MACHINES * PER_MACHINE
    vectors = sum(1 for x in product(range(1, total - BOLTS + 2), repeat=BOLTS) if sum(x) <= total)
    # Matrices [bolt, machine] whose columns sum to at most 10 and of which no row is 0, by
    # inclusion and exclusion over empty rows.
    placements = sum(
        (-1) ** empty
        * math.comb(BOLTS, empty)
        * math.comb(PER_MACHINE + BOLTS - empty, BOLTS - empty) ** MACHINES
        for empty in range(BOLTS + 1)
    )
    work = alike("diamond", MACHINES)
    # Instances per machine: more cases than it accepts, so the refusal says how many there are.
    asked = 100
    try:
        size(work, "nasiri-optimal", options={"most_per_machine": asked})
        refused = 0.0
    except Unsupported as error:
        refused = error.needed or 0.0
    searched = size(work, "nasiri-optimal", options={"most_per_machine": PER_MACHINE})
    formula = {n: math.comb(n, BOLTS) for n in (total, MACHINES * asked)}
    return (
        {
            "cases": Measured(
                vectors,
                note=f"C({total}, {BOLTS}) = {formula[total]:,}. "
                f"`nasiri-optimal`, asked for {asked} instances per machine, counts "
                f"{refused:,.0f} cases and refuses; "
                f"C({MACHINES * asked}, {BOLTS}) = {formula[MACHINES * asked]:,}.",
            ),
            "placements": Measured(
                placements,
                note="Where all machines are alike, at most 3! = 6 of them differ only in names.",
            ),
            "hours": Measured(
                searched.seconds / 3600,
                note=f"{searched.seconds:.2g} s; it finds {outcome(searched).rate:.5g} tuples/s.",
            ),
        },
        [],
        {},
    )


def prediction(spark: SparkSession) -> Found:
    """Eq. 5 on this machine: a bolt in a Spark task, profiled at its largest rate."""

    def loads(_: int) -> list[list[Load]]:
        """Every load, repeated; nested, so that workers need not import this file."""
        import os
        import time

        waited = (
            os.open("/proc/thread-self/schedstat", os.O_RDONLY)
            if os.path.exists("/proc/thread-self/schedstat")
            else None
        )

        def clock_s() -> float:
            """Time less what this thread waited for a CPU, where the system counts that."""
            return time.perf_counter() - (
                0.0 if waited is None else int(os.pread(waited, 99, 0).split()[1]) / 1e9
            )

        def at(gap_s: float) -> Load:
            """A load with one tuple in so many seconds."""
            start, cpu, busy, done = clock_s(), time.process_time(), 0.0, 0
            while (now := clock_s() - start) < SECONDS:
                if now < done * gap_s:
                    time.sleep(min(done * gap_s, SECONDS) - now)
                    continue
                before = time.thread_time()
                sum(i * i for i in range(100_000))
                busy, done = busy + time.thread_time() - before, done + 1
            took = clock_s() - start
            return done / took, 100 * (time.process_time() - cpu) / took, 100 * busy / done

        most = max(at(0.0)[0] for _ in range(3))
        gaps = [0.0, *(gap for k in range(1, LOADS) for gap in (LOADS / (most * k), 0.0))]
        return [[at(gap) for gap in gaps] for _ in range(REPEATS)]

    repeats: list[list[Load]] = spark.sparkContext.parallelize([0], 1).map(loads).collect()[0]
    return compare_prediction(repeats)


def compare_prediction(repeats: list[list[Load]]) -> Found:
    """Points in use beside eq. 5's; every second load of a repeat is a full one, the profile."""
    rates: list[list[Load]] = []  # of each load: tuples/s, points in use, points predicted
    for k in range(1, 2 * LOADS - 1, 2):
        # How fast a shared machine is changes within seconds: the profile is taken just before and
        # just after what it predicts.
        found: list[Load] = []
        for repeat in repeats:
            most, full, e = (mean(two) for two in zip(repeat[k - 1], repeat[k + 1], strict=True))
            rate, used, _ = repeat[k]
            found.append((rate, used, e * rate + (full - e * most)))  # what is added is MET
        rates.append(found)
    single = max(abs(used - expected) for found in rates for _, used, expected in found)
    typical = max(abs(median(used - expected for _, used, expected in found)) for found in rates)
    middle = [tuple(median(values) for values in zip(*found, strict=True)) for found in rates]
    series = {
        "predicted": [(rate, expected) for rate, _, expected in middle],
        "median of the repeats": [(rate, used) for rate, used, _ in middle],
        "every repeat": sorted((rate, used) for found in rates for rate, used, _ in found),
    }
    note = (
        f"Largest difference in {len(rates)} rates of {REPEATS} repeats: "
        f"{single:.2g} points in a single repeat, "
        f"{typical:.2g} in the median of a rate's repeats."
    )
    return (
        {"prediction-error": Measured(single, shape=typical < 8, note=note)},
        [],
        {
            "prediction.svg": lines(
                "CPU use of one bolt on this machine", series, x="tuples/s", y="% of a CPU"
            )
        },
    )

"""Default Storm on the clusters of tables 3 and 7, and what table 5 counts."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from headrace.lab.claims import Measured
from headrace.lab.papers import Table
from headrace.model.build import build
from headrace.model.read import read
from headrace.planner import place

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "cao"
SECONDS = {"flight": 60, "flight-measured": 60, "wrf": 3600}  # of the unit that a table counts in
AVERAGES = {  # tables 5 (tuples/min) and 9 (tuples/hour): workflow, cluster -> DoP 1, 2, ..
    ("flight", "C1"): (1573, 1765),
    ("flight", "C2"): (68, 74, 74, 82),
    ("flight", "C3"): (1673, 1320, 236, 228),
    ("wrf", "C4"): (66,),
    ("wrf", "C5"): (36, 22, 24),
    ("wrf", "C6"): (28, 18, 48),
}
STORM_FILES = {
    (workflow, cluster): (
        EXAMPLES / f"{workflow}.yaml",
        EXAMPLES / f"cluster-{cluster.lower()}.yaml",
    )
    for workflow, cluster in AVERAGES
}
CLOSE = 0.02  # by how much a sum of counts may differ
# Table 5: tuples of w0 to w8 in ten minutes, one line per run.
TABLE_5 = """
    25180 24800 24760 24940 24060 49040 24700 23980 97660
    24640 24420 24360 24580 23640 48280 24300 23560 95900
    25620 24880 24820 25240 24240 49200 25000 24140 97880
    19340 19340 19360 19300 18860 38360 19100 18860 76160
    22660 22660 22620 22600 21920 44720 22360 21920 89020
    11460 11460 11440 11440 9680 22620 11320 9680 43580
    15940 15920 15900 15880 15100 31460 15720 15120 62300
    16700 16700 16660 16680 15900 32980 16500 15900 65380
    16680 16660 16660 16660 16180 32980 16480 16180 65520
    20200 18640 18600 18600 17700 36780 18400 17700 72880
    18140 18140 18140 18120 16860 35860 17940 16860 70640
    20300 20200 20160 20160 18380 39940 19960 18340 78260
    2140 1440 1420 1440 720 2860 1440 720 5000
    3480 1600 1540 1540 660 3020 1500 680 5220
    2740 1580 1560 1580 660 3120 1560 680 5320
    7160 2180 1480 1500 820 2880 1500 840 5200
    7380 1660 1260 1280 640 2440 1240 640 4300
    7540 1480 1460 1460 760 2880 1440 740 5020
    9640 2080 1360 1480 760 2720 1440 800 4860
    7980 2400 1380 1420 680 2660 1360 640 4700
    9760 2180 1380 1320 820 2700 1300 840 4760
    10280 2120 1340 1360 780 2640 1280 780 4720
    11700 1880 1360 1340 740 2620 1360 720 4660
    10960 2200 1360 1300 960 2600 2600 2600 2600
    20440 19560 19500 19500 18920 38620 19320 18920 76860
    16700 16720 16660 16660 15860 33040 16520 15860 65420
    16680 16120 16080 16080 15400 31840 15920 15420 63180
    22260 21040 21000 21000 19900 41580 20800 19880 82280
    19220 17160 17140 17140 16220 33940 16960 16200 67140
    7060 4440 4440 4440 3520 8800 4420 3540 16720
    5380 5140 5160 5160 2300 10260 5100 2300 17700
    5540 4860 4860 4860 2380 9580 4800 2420 16760
    5520 4880 4840 4840 2420 9600 4780 2400 16800
    6520 4160 4100 4120 2180 8200 4100 2160 14420
    7120 4960 4960 4960 2320 9800 4920 2340 17040
    6660 4360 4320 4320 2360 9560 4280 2380 15260
"""
Rates = Mapping[tuple[str, str], Sequence[float]]


def rate_on(workflow: str, cluster: str, dop: int) -> float:
    """What default Storm's plan sustains, in source tuples per minute (flight) or hour (WRF)."""
    files = [EXAMPLES / f"{workflow}.yaml", EXAMPLES / f"cluster-{cluster.lower()}.yaml"]
    inputs = read(files)
    assert inputs.document.topology is not None
    modules = inputs.document.topology.components
    plan = place(build(inputs, tasks=dict.fromkeys(modules, dop)), "storm-even", objective="rate")
    assert plan.report.max_rate is not None
    spout = sum(c.rate or 0.0 for c in modules.values() if c.spout)
    return plan.report.max_rate * spout * SECONDS[workflow]


def storm_rates() -> Rates:
    """Default Storm on every cluster, with every DoP that the paper ran."""
    found = {
        (workflow, cluster): [rate_on(workflow, cluster, n + 1) for n in range(len(printed))]
        for (workflow, cluster), printed in AVERAGES.items()
    }
    for cluster in ("C1", "C2", "C3"):
        runs = len(AVERAGES["flight", cluster])
        found["flight-measured", cluster] = [
            rate_on("flight-measured", cluster, n + 1) for n in range(runs)
        ]
    return found


def storm_claims(rates: Rates, botm: Mapping[str, tuple[float, float]]) -> dict[str, Measured]:
    """Tables 5 and 9 on fixed clusters; `botm`: workflow -> (algorithm's, printed mapping's)."""
    measured: dict[str, Measured] = {}
    for (workflow, cluster), printed in AVERAGES.items():
        found = rates[workflow, cluster]
        note = ""
        if workflow == "flight":
            counted = rates["flight-measured", cluster]
            note = f"With the rates of table 5: {', '.join(f'{x:.4g}' for x in counted)}."
        measured[f"storm-{cluster.lower()}"] = Measured(
            [round(x, 1) for x in found],
            shape=len(found) > 1 and ranks(found) == ranks(printed),
            note=note,
        )
    falls = [
        f"{cluster} of {workflow}, DoP {n + 1} to {n + 2}"
        for (workflow, cluster), found in rates.items()
        for n in range(len(found) - 1)
        if found[n + 1] < found[n]
    ]
    measured["dop-not-better"] = Measured(bool(falls), note=f"It falls on {'; '.join(falls)}.")
    runs = [(w, x) for (w, _), found in rates.items() if w in botm for x in found]
    ahead, printed_ahead = (sum(botm[w][i] > x for w, x in runs) for i in (0, 1))
    measured["botm-over-storm"] = Measured(
        ahead, note=f"The printed mappings are ahead of {printed_ahead}."
    )
    for workflow, cluster in (("flight", "C1"), ("wrf", "C4")):
        ratio = botm[workflow][1] / max(rates[workflow, cluster])
        measured[f"{workflow}-same-machines"] = Measured(ratio, shape=ratio > 1)
    return measured


def storm_table(rates: Rates) -> Table:
    """Modelled beside printed."""
    rows = [
        [
            workflow,
            cluster,
            n + 1,
            AVERAGES["flight" if workflow == "flight-measured" else workflow, cluster][n],
            rate,
        ]
        for (workflow, cluster), found in rates.items()
        for n, rate in enumerate(found)
    ]
    columns = ["workflow", "cluster", "DoP", "printed average", "storm-even in our model"]
    return Table("Default Storm on the clusters of tables 3 and 7", columns, rows)


def table_5_claims() -> dict[str, Measured]:
    """What table 5 says of the flight workflow's streams."""
    rows = [[int(x) for x in line.split()] for line in TABLE_5.strip().splitlines()]
    sums = [row[8] / (row[5] + row[6] + row[7]) for row in rows]
    summed = sum(abs(share - 1) <= CLOSE for share in sums)
    return {
        "flight-join": Measured(
            statistics.median(row[8] / row[5] for row in rows),
            note=f"w8 is w5 + w6 + w7 within {100 * CLOSE:g} % in {summed} of {len(rows)} rows.",
        ),
        "flight-one-tuple": Measured(statistics.median(row[5] / row[2] for row in rows)),
    }


def ranks(values: Sequence[float]) -> list[int]:
    """The positions of values from the least to the most."""
    return sorted(range(len(values)), key=lambda i: values[i])

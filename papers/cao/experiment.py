"""Cao et al. 2020: random workflows (section 5), two measured ones in its own model (section 6)."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace.lab.chart import bars, lines
from headrace.lab.claims import Measured
from headrace.lab.fan_out import fan_out
from headrace.lab.papers import Experiment, Table
from headrace.model.arrays import Floats, Ints
from headrace.model.generate import cao_budgets, cao_pipeline
from headrace.model.read import read, validated
from headrace.model.request import Request
from headrace.model.sized import Provisioned
from headrace.model.workload import Workload
from headrace.planner import provision
from headrace.provision.botm import bottleneck, select_vt
from headrace.provision.one_each import Shop, plan_one_each, rent_worst_everywhere, shop_of
from headrace.registry import find

sys.path.insert(0, str(Path(__file__).parent))  # the folder's other modules

from cao_simulated import simulated_storm, theorem_1
from cao_storm import (
    AVERAGES,
    EXAMPLES,
    SECONDS,
    STORM_FILES,
    storm_claims,
    storm_rates,
    storm_table,
    table_5_claims,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = {"BOTM": "botm", "VM-GREEDY": "vm-greedy", "STORM_DEFAULT": "uniform"}  # in the paper, here
BY = (*NAMES.values(), "vm-greedy-even", "optimal")
SMALL = ((3, 3, 2), (4, 4, 3), (4, 5, 4))  # fig. 8: modules, edges, machine types
SIZES, INSTANCES, LEVELS = 20, 20, 6  # fig. 7
SMALLEST = 3  # modules at index 1; every index has one more. The paper does not print its sizes
WORKFLOWS = 200  # simulated for theorem 1
BUDGET = 5 * 0.3712  # sections 6.1.3 and 6.2.2

Choice = Sequence[tuple[int, int]]  # (machine type, DoP) of w0, w1, ..
PRINTED: dict[str, dict[str, Choice]] = {  # tables 4 and 8
    "flight": {
        "BOTM": ((1, 1), (2, 1), (2, 1), (4, 2), (4, 1), (1, 1), (4, 1), (1, 1), (1, 1)),
        "VM-GREEDY": ((1, 1), (2, 1), (4, 4), (1, 1), (1, 1), (3, 1), (1, 1), (1, 1), (1, 1)),
    },
    "wrf": {
        "BOTM": ((1, 1), (1, 1), (1, 1), (1, 1), (2, 1), (4, 1), (4, 1), (2, 1)),
        "VM-GREEDY": ((1, 1), (2, 1), (4, 3), (1, 1), (1, 1), (3, 2), (2, 1), (1, 1)),
    },
}
# The modules that tables 4 and 8 give the best machines, in the order of what they got.
SERVED = {"flight": "w2,w5,w1", "wrf": "w2,w5,w1,w6"}
CLUSTERS = {  # tables 3 and 7, where the text has them; C2 is taken from table 4
    "C1": (4, 2, 0, 4),
    "C3": (4, 4, 3, 2),
    "C4": (4, 2, 0, 2),
    "C5": (4, 2, 1, 3),
    "C6": (0, 2, 3, 3),
}
RUNS = {  # throughput of three runs each, tables 5 (tuples/min) and 9 (tuples/hour)
    "flight": {
        "BOTM": (2398, 2356, 2414), "VM-GREEDY": (1886, 2192, 968),
        "C1, 1": (1510, 1590, 1618), "C1, 2": (1770, 1686, 1838),
        "C2, 1": (72, 66, 66), "C2, 2": (82, 64, 76),
        "C2, 3": (76, 64, 82), "C2, 4": (78, 72, 96),
        "C3, 1": (1892, 1586, 1540), "C3, 2": (1988, 1620, 352),
        "C3, 3": (230, 238, 240), "C3, 4": (216, 232, 236),
    },
    "wrf": {
        "BOTM": (240, 240, 240), "VM-GREEDY": (216, 216, 198), "C4, 1": (60, 120, 18),
        "C5, 1": (66, 18, 24), "C5, 2": (18, 12, 36), "C5, 3": (24, 30, 18),
        "C6, 1": (48, 18, 18), "C6, 2": (18, 18, 18), "C6, 3": (108, 6, 30),
    },
}  # fmt: skip

Found = tuple[dict[str, Measured], list[Table], dict[str, str]]


def measure(quick: bool, spark: Callable[[], SparkSession]) -> Experiment:
    """All claims; the quick run has the small problems and the tables only."""
    parts = [small_problems(), measured_workflows(), printed_numbers()]
    if not quick:
        parts += [gaps_repeat(), convergence(), grid(spark()), simulated()]
    measured = {name: value for found, _, _ in parts for name, value in found.items()}
    plots = {name: svg for _, _, drawn in parts for name, svg in drawn.items()}
    return Experiment(measured, [table for _, tables, _ in parts for table in tables], plots)


def small_problems() -> Found:
    """Fig. 8: of 50 instances each, how many are solved to the optimum."""
    counts: dict[str, dict[str, float]] = {}
    rows: list[Sequence[object]] = []
    for modules, edges, kinds in SMALL:
        share: dict[str, list[float]] = {name: [] for name in (*NAMES, "headrace")}
        for seed in range(10):
            content = cao_pipeline(modules, edges, kinds=kinds, seed=seed)
            workload = Workload(validated(content, {}))
            for budget in cao_budgets(content)[:5]:
                best = rate_of(workload, "optimal", budget)
                for name, shares in share.items():
                    shares.append(rate_of(workload, NAMES.get(name, name), budget) / best)
        size = f"({modules}, {edges}, {kinds})"
        counts[size] = {
            name: float(sum(s >= 1 - 1e-9 for s in shares))
            for name, shares in share.items()
            if name in NAMES
        }
        rows += [
            [size, name, sum(s >= 1 - 1e-9 for s in shares), statistics.mean(shares)]
            for name, shares in share.items()
        ]
    first = counts["(3, 3, 2)"]
    measured = {
        "fig-8-botm": Measured(
            sum(max(by, key=by.__getitem__) == "BOTM" for by in counts.values())
        ),
        "fig-8-storm": Measured(
            int(first["STORM_DEFAULT"]), shape=min(first, key=first.__getitem__) == "STORM_DEFAULT"
        ),
    }
    columns = ["(modules, edges, types)", "by", "optimal, of 50", "share of the optimum, mean"]
    table = Table(
        "Small problems; headrace may mix machine types in a module, "
        "so it can be above the optimum of one type",
        columns,
        rows,
    )
    return (
        measured,
        [table],
        {"fig-8.svg": bars("Optimal results of 50 (fig. 8)", counts, y="instances")},
    )


def rate_of(workload: Workload, by: str, budget: float) -> float:
    """Tuples/s that the judge gives the plan of an algorithm."""
    report = provision(workload, by, budget=budget).report
    assert report.max_rate is not None
    return report.max_rate


class Cells(NamedTuple):
    """Fig. 7's grid, [size, instance, budget level]."""

    rate: Mapping[str, Floats]  # tuples/s by algorithm
    steps: Ints  # of BOTM
    wall_s: float
    cpu_s: float


def grid(spark: SparkSession) -> Found:
    """Fig. 7: 20 sizes x 20 instances x 6 budgets, spread over Spark."""
    cells = run_grid(spark)
    return grid_claims(cells), grid_tables(cells), grid_plots(cells)


def run_grid(spark: SparkSession) -> Cells:
    """Every workflow of fig. 7 with every algorithm and budget."""

    def instance(item: tuple[int, int]) -> tuple[dict[str, list[float]], list[int], float]:
        """Rates by algorithm, one per budget; BOTM's steps; CPU seconds.

        Nested, so that workers need not import this file.
        """
        start = time.process_time()
        index, seed = item
        modules = SMALLEST - 1 + index
        content = cao_pipeline(modules, 2 * modules, seed=seed)
        workload = Workload(validated(content, {}))
        found: dict[str, list[Provisioned]] = {
            by: [
                find("provision", by)(workload, Request(budget=budget))
                for budget in cao_budgets(content)
            ]
            for by in BY
        }
        rates = {by: [plan.rate for plan in plans] for by, plans in found.items()}
        return rates, [plan.steps for plan in found["botm"]], time.process_time() - start

    items = [(index, seed) for index in range(1, SIZES + 1) for seed in range(INSTANCES)]
    begin = time.perf_counter()
    outcomes = fan_out(spark, instance, items)
    wall_s = time.perf_counter() - begin
    failed = [outcome.error for outcome in outcomes if outcome.result is None]
    assert not failed, failed[0]
    results = [outcome.result for outcome in outcomes if outcome.result is not None]
    rate = {
        by: np.array([rates[by] for rates, _, _ in results]).reshape(SIZES, INSTANCES, LEVELS)
        for by in BY
    }
    steps = np.array([taken for _, taken, _ in results]).reshape(SIZES, INSTANCES, LEVELS)
    return Cells(rate, steps, wall_s, sum(cpu for _, _, cpu in results))


def grid_claims(cells: Cells) -> dict[str, Measured]:
    """What section 5.2 says of fig. 7."""
    rate, steps = cells.rate, cells.steps
    mean = {by: values.mean() for by, values in rate.items()}
    level = {by: values.mean(axis=(0, 1)) for by, values in rate.items()}
    ratio = {by: float((rate["botm"] / values).mean()) for by, values in rate.items()}
    late = int(steps[9:].max())
    return {
        "fig-7-vm-greedy": Measured(
            float(mean["botm"] / mean["vm-greedy"]),
            shape=bool(mean["botm"] > mean["vm-greedy"]),
            note=f"Mean of the single ratios: {ratio['vm-greedy']:.2f}; `vm-greedy-even`: "
            f"{float(mean['botm'] / mean['vm-greedy-even']):.2f} and "
            f"{ratio['vm-greedy-even']:.2f}.",
        ),
        "fig-7-storm": Measured(
            float(mean["botm"] / mean["uniform"]),
            shape=bool(mean["botm"] > mean["uniform"]),
            note=f"Mean of the single ratios: {ratio['uniform']:.2f}.",
        ),
        "fig-7-levels-vm-greedy": Measured(int((level["botm"] > level["vm-greedy"]).sum())),
        "fig-7-levels-storm": Measured(int((level["botm"] > level["uniform"]).sum())),
        "fig-7-order": Measured(
            bool(mean["uniform"] > max(mean["vm-greedy"], mean["vm-greedy-even"]))
        ),
        "iterations-late": Measured(
            late <= 50,
            note=f"At most {late} iterations; {float(np.median(steps[9:])):.0f} in the median.",
        ),
    }


def grid_tables(cells: Cells) -> list[Table]:
    """Means by budget level, and what the grid took."""
    rate = cells.rate
    level = {by: values.mean(axis=(0, 1)) for by, values in rate.items()}
    by_level = [
        [
            n + 1,
            *(float(level[by][n]) for by in BY),
            float((rate["botm"] / rate["optimal"])[:, :, n].mean()),
        ]
        for n in range(LEVELS)
    ]
    count = SIZES * INSTANCES * LEVELS * len(BY)
    return [
        Table(
            "Mean tuples/s over 400 workflows by budget level",
            ["level", *BY, "botm / optimal, mean"],
            by_level,
        ),
        Table(
            "The grid",
            ["cells", "seconds", "CPU seconds", "BOTM's iterations at index 5, most"],
            [[count, round(cells.wall_s), round(cells.cpu_s), int(cells.steps[4].max())]],
        ),
    ]


def grid_plots(cells: Cells) -> dict[str, str]:
    """Fig. 7 for three of the six budget levels."""
    return {
        f"fig-7-level-{n}.svg": lines(
            f"Throughput at budget level {n} (fig. 7)",
            {
                by: [(i + 1.0, float(cells.rate[by][i, :, n - 1].mean())) for i in range(SIZES)]
                for by in BY
            },
            x="problem index",
            y="tuples/s, mean of 20",
        )
        for n in (1, 3, 5)
    }


def convergence() -> Found:
    """Fig. 9: BOTM step by step on workflows of index 5, under three budgets.

    The plot shows the first workflow.
    """
    modules = SMALLEST - 1 + 5
    curves: dict[str, list[tuple[float, float]]] = {}
    rows: list[Sequence[object]] = []
    longest_s, shares, cheaper, steps = 0.0, list[float](), 0, 0
    for seed in range(INSTANCES):
        shop = shop_of(
            Workload(validated(cao_pipeline(modules, 2 * modules, seed=seed), {})), "botm"
        )
        worst, best = (
            modules * float(shop.market.price.min()),
            modules * float(shop.market.price.max()),
        )
        for name, budget in (("low", 1.1 * worst), ("medium", 0.5 * best), ("high", 0.9 * best)):
            start = time.process_time()
            taken = trace(shop, budget)
            longest_s = max(longest_s, time.process_time() - start)
            reached = [shop.market.factor(machines) * shop.load.spout_rate for machines in taken]
            shares.append(reached[-1] / rate_of(shop.workload, "optimal", budget))
            cheaper += sum(b < a for a, b in pairwise(map(shop.market.cost, taken)))
            steps += len(taken) - 1
            rows.append([seed, name, len(taken) - 1, reached[-1], shares[-1]])
            if seed == 0:
                curves[name] = [(float(i), rate) for i, rate in enumerate(reached)]
    iterations = [len(curve) - 1 for curve in curves.values()]
    all_taken = f"all {INSTANCES} workflows: at most {max(int(str(row[2])) for row in rows)}"
    measured = {
        "fig-9-iterations": Measured(
            max(iterations),
            note=f"Low, medium, high: {', '.join(map(str, iterations))}; {all_taken}.",
        ),
        "fig-9-second": Measured(longest_s < 1, note=f"At most {longest_s:.2f} s."),
        "fig-9-maximum": Measured(
            min(shares[:3]), note=f"Mean of {len(shares)} runs: {statistics.mean(shares):.3f}."
        ),
        "cheaper-steps": Measured(cheaper > 0, note=f"{cheaper} of {steps:,} steps."),
    }
    columns = ["workflow", "budget", "iterations", "tuples/s", "share of the optimum"]
    plot = lines("BOTM's way to its throughput (fig. 9)", curves, x="iteration", y="tuples/s")
    return (
        measured,
        [Table(f"Convergence, {modules} modules", columns, rows[:15])],
        {"fig-9.svg": plot},
    )


def trace(shop: Shop, budget: float) -> list[Ints]:
    """The machines after every step of algorithm 1."""
    taken = [rent_worst_everywhere(shop, budget)]
    while (better := select_vt(shop, taken[-1], bottleneck(shop, taken[-1]), budget)) is not None:
        taken.append(better)
    return taken


def measured_workflows() -> Found:
    """Section 6: what the algorithms and the printed mappings give on tables 1, 2 and 6."""
    measured: dict[str, Measured] = {}
    rows: list[Sequence[object]] = []
    ahead = 0
    botm_rates: dict[str, tuple[float, float]] = {}
    for name, printed in PRINTED.items():
        shop, seconds = shop_for(name), SECONDS[name]
        plans = {by: rent(shop, by) for by in (*BY, "headrace")}
        rows += [
            [name, by, plan.rate * seconds, plan.cost, mapping_text(plan)]
            for by, plan in plans.items()
        ]
        theirs = {by: plan_one_each(shop, machines_of(of)) for by, of in printed.items()}
        rows += [
            [name, f"{by} as printed", plan.rate * seconds, plan.cost, mapping_text(plan)]
            for by, plan in theirs.items()
        ]
        measured |= mapping_claims(name, plans, rent(shop, "vm-greedy", first=SERVED[name]))
        measured |= rate_claims(name, plans, {by: plan.rate for by, plan in theirs.items()})
        botm_rates[name] = (plans["botm"].rate * seconds, theirs["BOTM"].rate * seconds)
        if name == "flight":
            slowest = bottleneck(shop, machines_of(printed["BOTM"]))
            measured["flight-bottleneck"] = Measured(f"w{slowest}")
        ahead += plans["botm"].rate > max(plans["vm-greedy"].rate, plans["uniform"].rate)
    measured["botm-ahead"] = Measured(ahead)
    counted = shop_for("flight-measured")
    rows += [
        ["flight-measured", by, plan.rate * 60, plan.cost, mapping_text(plan)]
        for by in (*BY, "headrace")
        for plan in [rent(counted, by)]
    ]
    rates = storm_rates()
    measured |= storm_claims(rates, botm_rates) | table_5_claims()
    columns = [
        "workflow",
        "by",
        "source tuples per min (flight), per hour (wrf)",
        "cost",
        "mapping (type, DoP)",
    ]
    modelled = Table(f"Section 6 in the paper's model, budget {BUDGET:g}", columns, rows)
    return measured, [modelled, storm_table(rates)], {}


def shop_for(name: str) -> Shop:
    """A workflow of section 6 and the machines of table 1."""
    return shop_of(Workload(read([EXAMPLES / f"{name}.yaml", EXAMPLES / "vm-types.yaml"])), "cao")


def rent(shop: Shop, by: str, **options: object) -> Provisioned:
    """An algorithm's plan for the budget of section 6."""
    return find("provision", by)(shop.workload, Request(budget=BUDGET), options)


def mapping_claims(
    name: str, plans: Mapping[str, Provisioned], served: Provisioned
) -> dict[str, Measured]:
    """Tables 4 and 8; `served`: VM-GREEDY in the order that they show."""
    greedy = plans["vm-greedy"]
    kinds = [greedy.machines.get(f"vt{k}", 0) for k in (1, 2, 3, 4)]
    return {
        f"{name}-botm": Measured(mapping_of(plans["botm"])),
        f"{name}-vm-greedy": Measured(mapping_of(served)),
        f"{name}-vm-greedy-machines": Measured(kinds, note=f"Cost {greedy.cost:.4f}."),
        f"{name}-dop": Measured(max(r.tasks for r in plans["botm"].components.values())),
    }


def rate_claims(
    name: str, plans: Mapping[str, Provisioned], printed: Mapping[str, float]
) -> dict[str, Measured]:
    """Tables 5 and 9: throughput of the printed mappings."""
    ratio = printed["BOTM"] / printed["VM-GREEDY"]
    own = plans["botm"].rate * SECONDS[name]
    return {
        f"{name}-rate": Measured(
            printed["BOTM"] * SECONDS[name], note=f"BOTM's own answer here: {own:.4g}."
        ),
        f"{name}-ratio": Measured(ratio, shape=ratio > 1),
    }


def machines_of(mapping: Choice) -> Ints:
    """Machines by module and type, [C, 4]."""
    machines = np.zeros((len(mapping), 4), dtype=np.int64)
    for module, (kind, dop) in enumerate(mapping):
        machines[module, kind - 1] = dop
    return machines


def mapping_of(plan: Provisioned) -> list[list[int]]:
    """(machine type, DoP) of every module."""
    return [
        [int(rented.type.removeprefix("vt")), rented.tasks] for rented in plan.components.values()
    ]


def mapping_text(plan: Provisioned) -> str:
    """The mapping in one line of a table."""
    return " ".join(f"({kind}, {dop})" for kind, dop in mapping_of(plan)) or "mixed"


def printed_numbers() -> Found:
    """Tables 3 to 9 against each other."""
    used = {
        (name, by): machines_of(m).sum(axis=0).tolist()
        for name, of in PRINTED.items()
        for by, m in of.items()
    }
    shop = shop_for("flight")
    cost = {name: float(np.dot(machines, shop.market.price)) for name, machines in CLUSTERS.items()}
    cost["C2"] = float(np.dot(used["flight", "VM-GREEDY"], shop.market.price))
    spread = {
        name: {by: statistics.stdev(runs) / statistics.mean(runs) for by, runs in of.items()}
        for name, of in RUNS.items()
    }
    steadier = {
        name: sum(of["BOTM"] < value for by, value in of.items() if by != "BOTM")
        for name, of in spread.items()
    }
    measured = {
        "c1": Measured(used["flight", "BOTM"]),
        "c2": Measured(sum(used["flight", "VM-GREEDY"])),
        "c4": Measured(used["wrf", "BOTM"]),
        "c5": Measured(
            sum(used["wrf", "VM-GREEDY"]),
            note=f"Table 8 has {used['wrf', 'VM-GREEDY']}, table 7 {list(CLUSTERS['C5'])}.",
        ),
        "within-budget": Measured(
            sum(c <= BUDGET for c in cost.values()),
            note=", ".join(f"{k} {c:.4f}" for k, c in sorted(cost.items())),
        ),
        "steady": Measured(
            sum(steadier.values()),
            shape=sum(steadier.values()) > 0.9 * sum(len(of) - 1 for of in RUNS.values()),
            note=f"Flight {steadier['flight']} of {len(RUNS['flight']) - 1}, "
            f"WRF {steadier['wrf']} of {len(RUNS['wrf']) - 1}.",
        ),
    }
    return measured, [], {}


def gaps_repeat() -> Found:
    """Theorem 1 and eq. 2, tuple by tuple through random workflows.

    The gaps between finish times repeat, at the rate of the closed form.
    """
    repeats = as_computed = 0
    for seed in range(WORKFLOWS):
        random = Random(f"gaps {seed}")
        modules, interval_ms = random.randint(2, 6), random.randint(1, 4)
        dop = [random.randint(1, 4) for _ in range(modules)]
        ms = [random.randint(1, 12) for _ in range(modules)]
        inputs = [
            random.sample(range(v), random.randint(1, min(v, 2))) if v else []
            for v in range(modules)
        ]
        cycle = math.lcm(*dop)
        times = finish_times(dop, ms, inputs, interval_ms, tuples=3000)
        gaps = np.diff(times, axis=1)[:, -4 * cycle :]
        repeats += bool((gaps[:, cycle:] == gaps[:, :-cycle]).all())
        rate: list[float] = []
        for v, before in enumerate(inputs):
            rate.append(
                min(
                    [dop[v] / ms[v], *(rate[u] for u in before)]
                    if before
                    else [dop[v] / ms[v], 1 / interval_ms]
                )
            )
        as_computed += np.allclose(cycle / gaps[:, -cycle:].sum(axis=1), rate)
    note = (
        "Throughput as computed, the least DoP / time of a module and those before it: "
        f"{as_computed} of {WORKFLOWS}."
    )
    return {"gaps": Measured(100 * repeats / WORKFLOWS, note=note)}, [], {}


def simulated() -> Found:
    """Theorem 1, and default Storm of tables 5 and 9, by the simulator."""
    measured, table = simulated_storm(AVERAGES, STORM_FILES, SECONDS)
    return measured | {"theorem-1-simulated": theorem_1()}, [table], {}


def finish_times(
    dop: list[int], ms: list[int], inputs: list[list[int]], interval_ms: int, *, tuples: int
) -> Ints:
    """When each module finishes each tuple, [modules, tuples].

    Tuple j goes to copy j mod DoP, and a join takes the j-th tuple of each input.
    """
    finish: list[list[int]] = []
    for v, before in enumerate(inputs):
        arrives = [
            max(finish[u][j] for u in before) if before else j * interval_ms for j in range(tuples)
        ]
        times: list[int] = []
        for j in range(tuples):
            times.append(max(arrives[j], times[j - dop[v]] if j >= dop[v] else 0) + ms[v])
        finish.append(times)
    return np.array(finish)

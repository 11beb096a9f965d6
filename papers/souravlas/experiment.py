"""Souravlas et al. 2023: the worked example, section 3 in general, section 4 in our model."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.judge.report import judge
from headrace.lab.chart import bars, lines
from headrace.lab.claims import Measured
from headrace.lab.papers import Experiment, Table
from headrace.model.arrays import Floats, totals
from headrace.model.build import build
from headrace.model.document import FORMAT
from headrace.model.problem import Problem
from headrace.model.read import validated
from headrace.move.blocks import Blocks, block_volumes, classes, segments, superclasses
from headrace.move.mod import mod
from headrace.move.optimal import optimal
from headrace.move.ro_mod import ro_mod
from headrace.move.steps import Moves, Name, Step
from headrace.planner import Plan, moving, place

sys.path.insert(0, str(Path(__file__).parent))  # the folder's other modules

from souravlas_simulated import Scheme, five_to_six, simulated_claims

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Blocks(16, 7, 16, 11)  # tables 2-4
LARGEST = 10  # nodes and tasks per node of the sweep
NODES, SLOTS = 5, 4  # section 4
MBPS, TUPLE_KBIT = 100, 16
TUPLES_PER_S = 1000.0  # not published; every figure here is in proportion to it
GRAPHS = 20  # random topologies
SIMULATED_GRAPHS = 5  # of them, simulated

# Node pairs as tables 3 and 4 print them: (class, pairs). The columns of classes 14 and 15 are not
# in the text.
PRINTED = (
    (7, "1,0 12,7 7,14 2,5 13,12 8,3 3,10 14,1 9,8 4,15 15,6 10,13 5,4 0,11 6,9 11,2"),
    (0, "0,0 11,7 6,14 1,5 12,12 7,3 2,10 13,1 8,8 3,15 14,6 9,13 4,4 15,11 5,9 10,2"),
    (6, "4,2 15,9 10,0 5,7 0,14 11,5 6,12 1,0 12,10 7,1 2,8 13,15 8,6 3,13 14,4 9,11"),
    (5, "7,4 2,11 13,2 8,9 3,0 14,7 9,13 4,5 15,12 10,3 5,10 0,1 11,8 6,15 1,6 12,13"),
    (4, "10,6 5,13 0,4 11,11 6,2 1,9 12,15 7,7 2,14 13,5 8,12 3,3 14,10 9,1 4,8 15,15"),
    (13, "9,6 4,13 15,4 10,11 5,2 0,9 11,15 6,7 1,14 12,5 7,12 2,3 13,10 8,1 3,8 14,15"),
    (10, "3,1 14,8 9,15 4,6 15,13 10,4 5,11 0,2 11,9 6,0 1,7 12,14 7,5 2,12 13,3 8,10"),
    (3, "2,1 13,8 8,15 3,6 14,13 9,4 4,11 15,2 10,9 5,0 0,7 11,14 6,5 1,12 13,3 7,10"),
    (12, "1,1 12,8 7,15 2,6 13,13 8,4 3,11 14,2 9,9 4,0 15,7 10,14 5,5 0,12 11,3 6,10"),
    (9, "6,3 1,10 12,1 7,8 2,15 13,6 8,12 3,4 14,11 9,2 4,9 15,0 10,7 5,14 0,5 11,12"),
    (2, "5,3 0,10 11,1 6,8 1,15 12,6 7,12 2,4 13,11 8,2 3,9 14,0 9,7 4,14 15,5 10,12"),
    (11, "4,3 15,10 10,1 5,8 0,15 11,6 6,12 1,4 12,11 7,2 2,9 13,0 8,7 3,14 14,5 9,12"),
    (8, "9,5 4,12 15,3 10,10 5,1 0,8 11,14 6,6 1,13 12,4 7,11 2,2 13,9 8,0 3,7 14,14"),
    (1, "8,5 3,12 14,3 9,10 4,1 15,8 10,14 5,6 0,13 11,4 6,11 1,2 12,9 7,0 2,7 13,14"),
    (10, "7,5 2,12 13,3 8,10 3,1 14,8 9,14 4,6 15,13 10,4 5,11 0,2 11,9 6,0 1,7 12,14 7,10"),
)

Found = tuple[dict[str, Measured], list[Table], dict[str, str]]


def measure(quick: bool, spark: Callable[[], SparkSession]) -> Experiment:
    """All claims; the quick run leaves the sweep out."""
    parts = [worked_example(), cluster()]
    if not quick:
        parts = [worked_example(), sweep(), cluster(), simulated()]
    measured = {name: value for found, _, _ in parts for name, value in found.items()}
    plots = {name: svg for _, _, drawn in parts for name, svg in drawn.items()}
    return Experiment(measured, [table for _, tables, _ in parts for table in tables], plots)


def worked_example() -> Found:
    """N = Q = 16, t = 7, s = 11: classes, superclasses, steps."""
    by_class, by_superclass = mod(EXAMPLE), ro_mod(EXAMPLE)
    curves = {
        name: [(float(a), a * len(m.steps) + m.makespan) for a in range(12)]
        for name, m in (("MOD", by_class), ("RO-MOD", by_superclass))
    }
    drawn = lines(
        "16 x 7 becomes 16 x 11: what superclasses save",
        curves,
        x="start-up of a step, in units",
        y="time, in units",
    )
    measured = example_claims(by_class, by_superclass)
    return measured, example_tables(by_class, by_superclass), {"steps.svg": drawn}


def example_claims(by_class: Moves, by_superclass: Moves) -> dict[str, Measured]:
    """What tables 2 to 4 and section 3.2 say of the example."""
    chains = superclasses(EXAMPLE)
    cost = [c.units for c in classes(EXAMPLE)]
    wrong = "; ".join(f"({n},{q}) under {k}, is of {own}" for k, n, q, own in wrong_pairs())
    printed = sum(len(column.split()) for _, column in PRINTED)
    chain = {s.number: dict(s.chain) for s in chains}
    sources = max(max(senders_per_target(step.transfers)) for step in by_superclass.steps)
    alone = max(max(senders_per_target(step.transfers)) for step in by_class.steps)
    first = np.arange(EXAMPLE.nodes_before * EXAMPLE.tasks_before)  # the range that eq. 1 gives
    reached = len(np.unique(first // EXAMPLE.tasks_after % EXAMPLE.nodes_after))
    saved = 100 * (1 - 1 / len(chain[12]))
    steps = len(by_class.steps), len(by_superclass.steps)
    return {
        "class-costs": Measured(cost[:12] + cost[13:]),
        "class-12": Measured(
            cost[12], note=f"All costs together: {sum(cost)}; t s = {7 * 11}; the printed ones: 76."
        ),
        "printed-pairs": Measured(printed - len(wrong_pairs()), note=f"Wrong: {wrong}."),
        "superclasses": Measured([s.number for s in chains]),
        "chains": Measured([sorted(chain[number]) for number in (0, 15, 14, 13, 12, 11, 10)]),
        "superclass-0": Measured([chain[0][k] for k in (0, 7)]),
        "superclass-12": Measured([chain[12][k] for k in (10, 3, 12)]),
        "equal-steps": Measured([int(step.cost) for step in by_superclass.steps]),
        "unequal-before": Measured(
            len({step.cost for step in by_class.steps}) > 1, note=f"Costs of MOD's steps: {cost}."
        ),
        "saved-steps": Measured(
            saved,
            note=f"Over the whole redistribution: {steps[0]} steps become {steps[1]}, "
            f"{100 * (1 - steps[1] / steps[0]):.0f} %; both take {by_class.makespan:.0f} "
            "units of time.",
        ),
        "one-at-a-time": Measured(sources, note=f"MOD's steps: {alone}."),
        "range": Measured(
            EXAMPLE.period, note=f"Tasks 0 to {first[-1]} alone reach {reached} of the 16 targets."
        ),
    }


def example_tables(by_class: Moves, by_superclass: Moves) -> list[Table]:
    """Tables 2 to 4 as they should be, and what start-ups cost."""
    return [
        Table(
            "Table 2, corrected",
            ["class", "units per pair", "node pairs"],
            [[c.number, c.units, pairs_text(c.pairs)] for c in classes(EXAMPLE)],
        ),
        Table(
            "Superclasses, corrected",
            ["superclass", "offset", "class: units", "together"],
            [
                [
                    s.number,
                    s.offset,
                    ", ".join(f"{k}: {u}" for k, u in s.chain),
                    sum(u for _, u in s.chain),
                ]
                for s in superclasses(EXAMPLE)
            ],
        ),
        Table(
            "Time of the whole redistribution with a start-up cost per step",
            ["start-up / unit", "MOD", "RO-MOD"],
            [
                [a, *(a * len(m.steps) + m.makespan for m in (by_class, by_superclass))]
                for a in (0, 1, 5, 11)
            ],
        ),
    ]


def wrong_pairs() -> list[tuple[int, int, int, int]]:
    """Printed pairs that are of another class: (printed class, n, q, its class by eq. 8)."""
    pairs = [(k, *map(int, pair.split(","))) for k, column in PRINTED for pair in column.split()]
    own = [(k, n, q, int(EXAMPLE.class_of(n, q))) for k, n, q in pairs]
    return [row for row in own if row[0] != row[3]]


def senders_per_target(transfers: Any) -> list[int]:
    """From how many sources each target receives in a step."""
    senders: dict[object, set[object]] = {}
    for transfer in transfers:
        senders.setdefault(transfer.target, set()).add(transfer.source)
    return [len(s) for s in senders.values()]


def pairs_text(pairs: Any) -> str:
    return " ".join(f"({a},{b})" for a, b in pairs)


def sweep() -> Found:
    """Every statement of section 3 for all N, t, Q, s up to ten."""
    true_in = {
        name: 0
        for name in (
            "same volume",
            "first class",
            "t classes",
            "neighbours",
            "equal cost",
            "fewer",
            "as few",
            "least time",
        )
    }
    cases = list(product(range(1, LARGEST + 1), repeat=4))
    example = {name: "" for name in true_in}
    for case in cases:
        for name, holds in statements(Blocks(*case)).items():
            true_in[name] += holds
            if not holds and not example[name]:
                example[name] = str(Blocks(*case))
    count = len(cases)
    share = {name: 100 * n / count for name, n in true_in.items()}

    def found(name: str) -> Measured:
        return Measured(
            share[name],
            note=f"{true_in[name]:,} of {count:,}"
            + (f"; not {example[name]}." if example[name] else "."),
        )

    measured = {
        "same-volume": found("same volume"),
        "proposition-1": found("first class"),
        "proposition-1-count": found("t classes"),
        "proposition-2": found("neighbours"),
        "always-equal": found("equal cost"),
        "always-fewer": found("fewer"),
        "always-least": found("least time"),
    }
    rows = [
        [name, n, f"{share[name]:.2f} %", example[name] or "none"] for name, n in true_in.items()
    ]
    columns = ["statement", "holds", "share", "first exception"]
    table = Table(f"All {count:,} redistributions up to {LARGEST}", columns, rows)
    return measured, [table], {}


def statements(blocks: Blocks) -> dict[str, bool]:
    """What section 3 says, for one redistribution."""
    t, s, g = blocks.tasks_before, blocks.tasks_after, blocks.modulus
    parts = segments(blocks)
    k = blocks.class_of(parts.source, parts.target)
    first = parts.start % s == 0
    starts = {-x % g for x in range(t)}
    table = classes(blocks)
    units = block_volumes(blocks).units
    step_of_chain = (np.diff(k) - t) % g == 0
    neighbours = (np.diff(parts.source) - 1) % blocks.nodes_before == 0
    inside = ~first[1:]
    by_class, by_superclass = mod(blocks), ro_mod(blocks)
    received = [
        totals_per_target(step.transfers, blocks.nodes_after) for step in by_superclass.steps
    ]
    return {
        "same volume": all(units[pair] == c.units for c in table for pair in c.pairs),
        "first class": set(k[first].tolist()) <= starts,
        "t classes": len({x for x in starts if table[x].pairs}) == t,
        "neighbours": bool((step_of_chain & neighbours)[inside].all()),
        "equal cost": all((row == s).all() for row in received),
        "fewer": len(by_superclass.steps) < len(by_class.steps),
        "as few": len(by_superclass.steps) <= len(by_class.steps),
        "least time": math.isclose(by_superclass.makespan, by_superclass.bound),
    }


def totals_per_target(transfers: Any, nodes: int) -> Floats:
    return totals(
        np.array([t.target for t in transfers]),
        np.array([t.units for t in transfers], dtype=np.float64),
        nodes,
    )


# Section 4 in the judge's model. Rates, costs per tuple, the random graph, the order of tasks, how
# often the system changes and the simulator are not published.

SCHEDULERS = {
    "Storm": "storm-even",
    "Meng": "meng-style",
    "Shukla": "storm-even",  # a migration, not a scheduler: it moves what Storm has placed
    "MT": "mt-scheduler",
    "RO-MOD": "ro-mod",
}
INTERVAL_S = 5.0  # between two measurements (section 4.1); one change in it
GROUP_S = 100 * TUPLE_KBIT / MBPS / 1000  # 100 tuples on a link
TUPLE_S = 0.001  # of CPU; chosen here

Graph = dict[str, list[str]]


def cluster() -> Found:
    """Section 4: load, rate and latency of five schemes while four tasks each become five."""
    rows: list[list[object]] = []
    spread: dict[str, dict[str, float]] = {}
    rate: dict[str, dict[str, float]] = {}
    latency_ms: dict[str, dict[str, float]] = {}
    for layout, graphs in (
        ("linear", [linear()]),
        ("random", [random_graph(seed) for seed in range(GRAPHS)]),
    ):
        for name in SCHEDULERS:
            results = [run_scheme(name, graph) for graph in graphs]
            load, largest, network, stop_s = (mean(column) for column in zip(*results, strict=True))
            # What arrives while a scheme stops waits for half of that on average.
            kept, wait_ms = 1 - stop_s / INTERVAL_S, 1000 * stop_s**2 / (2 * INTERVAL_S)
            for of, value in (
                (spread, load),
                (rate, largest * kept),
                (latency_ms, network + wait_ms),
            ):
                of.setdefault(layout, {})[name] = value
            rows.append([layout, name, load, largest, network, 1000 * stop_s, network + wait_ms])
    figures = ["standard deviation, tuples/s", "largest rate, factor", "network, ms per tuple"]
    columns = ["layout", "scheme", *figures, "stop of the change, ms", "with the waiting, ms"]
    change, tables = change_of_section_4()
    drawn = bars("Standard deviation of the load delivered to a node", spread, y="tuples/s")
    measured = figure_claims(spread, rate, latency_ms) | change
    modelled = Table("Section 4 in the judge's model", columns, rows)
    return measured, [modelled, *tables], {"load.svg": drawn}


def simulated() -> Found:
    """Figures 1 to 3 tuple by tuple."""

    def scheme(name: str, graph: Graph) -> Scheme:
        plans = [place(problem_of(graph, n), SCHEDULERS[name], objective="nodes") for n in (4, 5)]
        return Scheme(plans, stop_seconds(name, graph, plans[0], plans[1]))

    graphs = [random_graph(seed) for seed in range(SIMULATED_GRAPHS)]
    measured, table = simulated_claims(
        {name: scheme(name, linear()) for name in SCHEDULERS},
        {name: [scheme(name, graph) for graph in graphs] for name in SCHEDULERS},
    )
    growing, over_time = five_to_six(
        {name: (on_nodes(name, NODES), on_nodes(name, NODES + 1)) for name in SCHEDULERS}
    )
    return measured, [table, growing], {"five-to-six.svg": over_time}


def on_nodes(name: str, nodes: int) -> Plan:
    """A scheme's plan of the linear topology on so many nodes."""
    return place(problem_of(linear(), 4, nodes), SCHEDULERS[name], objective="nodes")


def figure_claims(
    spread: dict[str, dict[str, float]],
    rate: dict[str, dict[str, float]],
    latency_ms: dict[str, dict[str, float]],
) -> dict[str, Measured]:
    """Figures 1 to 3."""
    order = [sorted(spread[layout], key=spread[layout].__getitem__) for layout in spread]
    by_rate = [", ".join(sorted(of, key=of.__getitem__, reverse=True)) for of in rate.values()]
    return {
        "fig-1-order": Measured(order[0], note=f"Random topologies: {', '.join(order[1])}."),
        "fig-1-best": Measured(all(row[0] == "RO-MOD" for row in order)),
        "fig-1-random": Measured(
            sum(spread["random"][name] > spread["linear"][name] for name in SCHEDULERS),
            shape=mean(spread["random"].values()) > mean(spread["linear"].values()),
        ),
        "fig-2-best": Measured(
            all(max(by, key=by.__getitem__) == "RO-MOD" for by in rate.values()),
            note=f"Highest first, linear: {by_rate[0]}; random: {by_rate[1]}.",
        ),
        "fig-3-order": Measured(
            sorted(("RO-MOD", "Shukla", "MT"), key=latency_ms["linear"].__getitem__)
        ),
    }


def change_of_section_4() -> tuple[dict[str, Measured], list[Table]]:
    """Five components of four tasks become five of five: what senders and receivers are busy."""
    blocks = Blocks(NODES, 4, NODES, 5)
    moves = {"MOD": mod(blocks), "RO-MOD": ro_mod(blocks), "optimum": optimal(blocks)}
    busy = {name: m.one_port or m.makespan for name, m in moves.items()}
    rows = [
        [name, len(m.steps), m.makespan, busy[name], 1000 * busy[name] * GROUP_S]
        for name, m in moves.items()
    ]
    columns = ["by", "steps", "groups, receivers only", "groups, senders too", "ms, senders too"]
    measured = {
        "change-least": Measured(busy["RO-MOD"] / busy["optimum"]),
        "change-before": Measured(
            len(moves["RO-MOD"].steps) < len(moves["MOD"].steps) and busy["RO-MOD"] < busy["MOD"],
            note=f"{busy['RO-MOD']:g} groups against {busy['MOD']:g}.",
        ),
    }
    return measured, [Table("The change of the random topology, 5x4:5x5", columns, rows)]


def run_scheme(name: str, graph: Graph) -> tuple[float, float, float, float]:
    """Spread of the load, largest rate, network ms per tuple, and seconds that the change stops."""
    plans = [place(problem_of(graph, n), SCHEDULERS[name], objective="nodes") for n in (4, 5)]
    load, rate, network = (
        mean(column) for column in zip(*(figures_of(plan) for plan in plans), strict=True)
    )
    return load, rate, network, stop_seconds(name, graph, plans[0], plans[1])


def stop_seconds(name: str, graph: Graph, old: Plan, new: Plan) -> float:
    """How long the change from four to five tasks per component stops what it moves.

    A task's context is one group of tuples, the only size that the paper has.
    """
    if name == "RO-MOD":  # streams, not tasks: a target waits for one step at a time
        nodes = [plan.report.nodes_used for plan in (old, new)]
        tasks = [math.ceil(plan.problem.task_count / NODES) for plan in (old, new)]
        moves = ro_mod(Blocks(nodes[0], tasks[0], nodes[1], tasks[1]))
        return max(busiest_node(step) for step in moves.steps) * GROUP_S
    if name == "Shukla":  # one group of tuples gets through every level of the topology
        levels = 1 + max(depth(graph, c) for c in graph)
        drain_s = levels * (GROUP_S + 100 * TUPLE_S)
        moved = moving.move(old, new, "drain-checkpoint", {"drain_s": drain_s})
        return max(moved.moves.makespan, drain_s)
    return moving.move(old, new, "all-at-once").moves.makespan


def busiest_node(step: Step) -> float:
    """The most that any node sends or receives in a step."""
    lines: Counter[tuple[str, Name]] = Counter()
    for t in step.transfers:
        lines["sends", t.source] += t.units  # pyright: ignore[reportArgumentType]
        lines["receives", t.target] += t.units  # pyright: ignore[reportArgumentType]
    return float(max(lines.values()))


def depth(graph: Graph, component: str) -> int:
    """Steps from the spout to a component, the longest way."""
    return max((1 + depth(graph, c) for c in graph[component]), default=0)


def linear() -> Graph:
    """A spout and three bolts in a row."""
    return {"a": [], "b": ["a"], "c": ["b"], "d": ["c"]}


def random_graph(seed: int) -> Graph:
    """A spout and four bolts, each of which listens to one or two before it."""
    random = Random(f"souravlas {seed}")
    names = "abcde"
    return {"a": []} | {
        names[i]: sorted(random.sample(names[:i], random.randint(1, min(i, 2))))
        for i in range(1, 5)
    }


def problem_of(graph: Graph, tasks: int, nodes: int = NODES) -> Problem:
    """The topology on nodes of four slots; a tuple takes a millisecond everywhere."""
    size = {"tasks": tasks, "bytes": TUPLE_KBIT * 1000 // 8}
    group_mb = 100 * TUPLE_KBIT / 8 / 1000
    by_word = {"grouping": "fields", "fields": ["word"]}
    components = {
        name: {
            **size,
            **(
                {"inputs": dict.fromkeys(inputs, by_word), "state_mb": group_mb}
                if inputs
                else {"spout": True, "rate": TUPLES_PER_S}
            ),
        }
        for name, inputs in graph.items()
    }
    described = {f"n{{1..{nodes}}}": {"slots": SLOTS, "cpu": 100 * SLOTS, "bandwidth_mbps": MBPS}}
    content = {
        "format": FORMAT,
        "topology": {"name": "words", "workers": nodes * SLOTS, "components": components},
        "cluster": {"nodes": described},
        "profile": {name: {"*": {"cpu_ms": 1000 * TUPLE_S}} for name in graph},
    }
    return build(validated(content, {}))


def figures_of(plan: Plan) -> tuple[float, float, float]:
    """Standard deviation of the nodes' load, largest rate, network ms of a spout's tuple."""
    problem, assignment = plan.problem, plan.assignment
    report = judge(problem, assignment, objective="rate", bounded=False)
    load = np.zeros(len(problem.nodes))
    for stream in problem.streams:
        target = problem.tasks_of(stream.target)
        load += totals(
            assignment.node[target],
            stream.tuples_per_s * stream.received(target.stop - target.start),
            len(load),
        )
    network_ms = report.inter_node_traffic / TUPLES_PER_S * TUPLE_KBIT / MBPS
    return float(load.std()), float(report.max_rate or 0), network_ms

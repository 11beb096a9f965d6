"""The experiments on Storm (7.6, 8.5, 9.5), modelled: traffic between nodes under 80 % CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from headrace.judge.report import Report, judge
from headrace.lab.chart import bars
from headrace.lab.claims import Measured
from headrace.lab.papers import Table
from headrace.model.build import build
from headrace.model.examples import example
from headrace.model.problem import CPU, Assignment, Problem
from headrace.model.read import read
from headrace.planner import place

P, T3, I = "p-scheduler", "t3-scheduler", "i-scheduler"
R, OLS, OLS_FEW = "storm-ras", "aniello-online", "aniello-online, fewer"
# Section 6.1: no scheduler plans a node fuller than this; P, T3 and I keep it themselves.
CEILING = 0.8
RUNS: Mapping[str, tuple[str, str]] = {
    "smart": ("smart-home", "storm-8-high"),
    "smart-het": ("smart-home", "storm-2-high-4-low"),
    "taxi": ("taxi-routes", "storm-8-high"),
    "taxi-het": ("taxi-routes", "storm-2-high-2-low"),
    **{
        f"io-{shape}": (f"micro/storm-io-{shape}", "storm-1-high-2-low")
        for shape in ("linear", "diamond", "star")
    },
    **{
        f"cpu-{shape}": (f"micro/storm-cpu-{shape}", "storm-2-high-4-low")
        for shape in ("linear", "diamond", "star")
    },
}
FEWER = {"smart": 4, "taxi": 3}  # nodes OLS was run on once more
SIMILAR = 5.0  # percent


class Run(NamedTuple):
    """A plan and what the judge says of it on the whole nodes."""

    problem: Problem
    assignment: Assignment
    report: Report


Runs = Mapping[str, Mapping[str, Run]]  # experiment -> scheduler


def problem_of(*files: str) -> Problem:
    return build(read([example("eskandari", *f"{name}.yaml".split("/")) for name in files]))


def runs() -> dict[str, dict[str, Run]]:
    """Every experiment with every scheduler; P-Scheduler only on equal nodes, as in the thesis."""
    found: dict[str, dict[str, Run]] = {}
    for name, files in RUNS.items():
        problem = problem_of(*files)
        equal = len(problem.types) == 1
        found[name] = {by: run(problem, by) for by in ((P,) if equal else ()) + (T3, I, R, OLS)}
        if name in FEWER:
            found[name][OLS_FEW] = run(problem, OLS, FEWER[name])
    return found


def run(problem: Problem, by: str, nodes: int | None = None, theta: float | None = None) -> Run:
    """Plan, if `nodes` is given on that many nodes only."""
    seen = problem
    if by in (R, OLS):
        capacity = problem.capacity.copy()
        capacity[:, CPU] *= CEILING
        seen = replace(problem, capacity=capacity)
    if nodes is not None:
        seen = replace(
            seen, slot_taken=problem.slot_taken | (np.arange(len(problem.nodes)) >= nodes)[:, None]
        )
    options: dict[str, object] = {} if theta is None else {"theta": theta}
    if by == R:
        options["neighbours"] = "most"  # the thesis compares with Storm 1.1.1
    planned = place(seen, by, options=options, bounded=False)
    return Run(problem, planned.assignment, judge(problem, planned.assignment, bounded=False))


def gain(of: Mapping[str, Run], by: str, over: str) -> float:
    """Percent more throughput if traffic between nodes limits it: the other's over one's own."""
    return 100 * (of[over].report.inter_node_traffic / of[by].report.inter_node_traffic - 1)


def better(gains: Sequence[float], note: str = "") -> Measured:
    """Gains that are published as above zero: the ordering holds if all of them are."""
    return Measured(gains[0] if len(gains) == 1 else list(gains), shape=min(gains) > 0, note=note)


def applications(found: Runs) -> dict[str, Measured]:
    """Fig. 7.10, 7.12, 8.13, 8.14, 8.17, 8.18, 9.10, 9.11, 9.14 and 9.15."""
    measured: dict[str, Measured] = {}
    for by, letter in ((P, "p"), (T3, "t3"), (I, "i")):
        for name in ("smart", "taxi", "taxi-het"):
            if by in found[name]:
                for other, short in ((R, "r-storm"), (OLS, "ols")):
                    measured[f"{letter}-{name}-over-{short}"] = better(
                        [gain(found[name], by, other)], loads(found[name], by, other)
                    )
        if by in found["smart-het"]:
            least = min(gain(found["smart-het"], by, other) for other in (R, OLS))
            measured[f"{letter}-smart-het-best"] = Measured(
                least > 0, note=f"The others send at least {least:.1f} % more."
            )
    for name in FEWER:
        of = found[name]
        measured[f"ols-{name}-fewer"] = better([gain(of, OLS_FEW, OLS)])
        measured[f"ols-{name}-fewer-still-last"] = Measured(
            all(gain(of, by, OLS_FEW) > 0 for by in (P, T3, I, R)),
            note="Tuples/s between nodes: " + list_traffic(of) + ".",
        )
    more = {
        by: found["smart-het"][by].report.inter_node_traffic
        > found["smart"][by].report.inter_node_traffic
        for by in (T3, I, R, OLS)
    }
    none, one_s = (run(found["smart"][I].problem, I, theta=theta).report for theta in (0.0, 1.0))
    difference = 100 * (none.inter_node_traffic / one_s.inter_node_traffic - 1)
    return {
        **measured,
        "p-smart-over-t3": better([gain(found["smart"], P, T3)]),
        "i-apps-best": Measured(
            all(gain(found[name], I, by) > 0 for name in FEWER for by in (P, T3)),
            shape=all(gain(found[name], I, by) >= 0 for name in FEWER for by in (P, T3)),
        ),
        "smart-het-lower": Measured([by for by, is_more in more.items() if is_more]),
        "smart-theta": Measured(
            abs(difference) <= SIMILAR,
            note=f"Without the exact model it sends {difference:.1f} % more.",
        ),
        "smart-plug-alone": Measured(components_alone(found["smart"][R])),
        "ols-all-nodes": Measured([found[name][OLS].report.nodes_used for name in FEWER]),
        "r-storm-consolidates": Measured(
            all(
                found[name][by].report.nodes_used == found[name][R].report.nodes_used
                for name in FEWER
                for by in (P, T3, I)
            )
        ),
        "i-smart-arithmetic": Measured(100 * (6_900 / 5_200 - 1)),
    }


def micro_benchmarks(found: Runs) -> dict[str, Measured]:
    """Fig. 8.12 and 9.9."""
    measured: dict[str, Measured] = {}
    for by, letter in ((T3, "t3"), (I, "i")):
        for kind in ("io", "cpu"):
            over_ols = {
                shape: gain(found[f"{kind}-{shape}"], by, OLS)
                for shape in ("linear", "diamond", "star")
            }
            over_r = {shape: gain(found[f"{kind}-{shape}"], by, R) for shape in over_ols}
            each = ", ".join(f"{shape} {value:.1f} %" for shape, value in over_ols.items())
            alike = all(abs(over_r[shape]) <= SIMILAR for shape in ("linear", "star"))
            note = ", ".join(f"{shape} {over_r[shape]:.1f} %" for shape in ("linear", "star"))
            measured[f"{letter}-{kind}-like-r-storm"] = Measured(
                alike, note=f"R-Storm sends more: {note}."
            )
            if (by, kind) == (T3, "cpu"):
                measured["t3-cpu-diamond"] = better(
                    sorted([over_r["diamond"], over_ols["diamond"]])
                )
                measured["t3-cpu-over-ols"] = better(sorted([over_ols["linear"], over_ols["star"]]))
            else:
                measured[f"{letter}-{kind}-over-ols"] = better(
                    [min(over_ols.values()), max(over_ols.values())], f"{each}."
                )
                measured[f"{letter}-{kind}-diamond"] = better([over_r["diamond"]])
    diamond = found["io-diamond"][R]
    without = components_alone(diamond, ("source", "sink"))
    apart = [name for name in without if name.startswith("bolt")]
    with_source = sum(
        count_beside(diamond, bolt, ("source",))
        for bolt in diamond.problem.components
        if bolt.startswith("bolt")
    )
    note = f"Of the 24 tasks of the three bolts {with_source} share a node with the source."
    return {**measured, "io-diamond-middle-apart": Measured(len(apart), note=note)}


def components_alone(of: Run, among: Sequence[str] | None = None) -> list[str]:
    """Components that share no node with another component, or with any of some."""
    names = of.problem.components
    return [
        name
        for name in names
        if name not in (among or ()) and not count_beside(of, name, among or names)
    ]


def count_beside(of: Run, component: str, others: Sequence[str]) -> int:
    """Tasks of a component that share a node with a task of another one."""
    name = np.array(of.problem.components)[of.problem.component_of]
    node = of.assignment.node
    return int(
        np.isin(node[name == component], node[np.isin(name, others) & (name != component)]).sum()
    )


def list_traffic(of: Mapping[str, Run]) -> str:
    return ", ".join(f"{by} {one.report.inter_node_traffic:.0f}" for by, one in of.items())


def loads(of: Mapping[str, Run], by: str, over: str) -> str:
    """What the judge's own rate says: it counts CPU, which more nodes have more of."""
    rates = [of[name].report.max_rate or 1.0 for name in (by, over)]
    return (
        f"By CPU alone a node or a task is full at {rates[0]:.2f} times the load, "
        f"and at {rates[1]:.2f} times under {over}."
    )


def table(found: Runs) -> Table:
    """Every plan."""
    rows = [
        [
            name,
            by,
            r.nodes_used,
            round(r.inter_node_traffic),
            round(r.throughput),
            r.max_rate or 0.0,
            r.feasible,
        ]
        for name, of in found.items()
        for by, r in ((by, one.report) for by, one in of.items())
    ]
    columns = [
        "run",
        "scheduler",
        "nodes used",
        "tuples/s between nodes",
        "tuples/s processed, by CPU alone",
        "load until a node or a task is full",
        "fits",
    ]
    return Table("On Storm, modelled", columns, rows)


def plots(found: Runs) -> dict[str, str]:
    """Traffic between nodes as a share of all traffic."""

    def drawn(names: Sequence[str], title: str) -> str:
        groups = {
            name: {
                by: 100 * one.report.inter_node_traffic / one.report.total_traffic
                for by, one in found[name].items()
            }
            for name in names
        }
        return bars(title, groups, y="% of all tuples")

    micro = [name for name in found if name.startswith(("io", "cpu"))]
    return {
        "applications.svg": drawn(
            [n for n in found if n not in micro], "Applications: tuples that cross between nodes"
        ),
        "micro.svg": drawn(micro, "Micro-benchmarks on Storm: tuples that cross between nodes"),
    }

"""Muhammad's worked examples with his schedulers, and his six scenarios in the judge's model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headrace.judge.report import Report
from headrace.lab.chart import bars
from headrace.lab.claims import Measured
from headrace.lab.families import build_problem, from_files
from headrace.lab.papers import Experiment, Table
from headrace.model.arrays import Floats, Ints
from headrace.model.build import build
from headrace.model.examples import example
from headrace.model.problem import Assignment, Pairs, Problem
from headrace.model.read import read
from headrace.place.a3_storm import map_executors_to_slots as a3_slots
from headrace.place.ban_storm import ban_storm
from headrace.place.building_blocks.grouping import Affinity, group_by_pairs, sort_by_traffic
from headrace.place.building_blocks.node_power import (
    computation_power,
    gflops,
    node_power,
    rank_nodes,
)
from headrace.place.gr_storm import max_flow_min_cut
from headrace.place.top_storm import map_executors_to_slots as top_slots
from headrace.planner import place

APPS = {"word-count": "Word count", "exclamation": "Exclamation"}
SCENARIOS = (
    ("", ""),
    ("-4-workers", ""),
    ("-5-workers", ""),
    ("-4-workers", "-4-slots"),
    ("-5-workers", "-4-slots"),
    ("-5-workers", "-5-slots"),
)
PROPOSED = ("top-storm", "a3-storm", "ban-storm", "gr-storm")
DEFAULT, ISOLATION, RAS = "storm-even", "storm-isolation", "storm-ras"
OF_STORM = (DEFAULT, ISOLATION, RAS)
OPTIONS = {RAS: {"neighbours": "fewest"}}  # as in Storm 2.0.0, which the thesis runs
MASTERS = 2  # Nimbus and ZooKeeper, which most of the published node counts include
WEIGHTINGS, DRAWS = 200, 2_000_000
RAISED = "With the load raised until a node is full"


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What a scheduler makes of a scenario, and what the judge says of it."""

    problem: Problem
    assignment: Assignment
    report: Report

    @property
    def full_load(self) -> float:
        """Tuples/s processed when all spouts grow until a node is full."""
        return self.report.throughput * (self.report.max_rate or 1.0)


Plans = Mapping[str, Mapping[str, Sequence[Plan]]]  # application -> scheduler -> the six scenarios


def measure(quick: bool, _spark: Callable[[], object]) -> Experiment:
    """All claims; they take seconds, so the quick run leaves out the pictures alone."""
    plans, by_name = (
        {app: {by: six_scenarios(app, by, order) for by in (*PROPOSED, *OF_STORM)} for app in APPS}
        for order in ("file", "name")
    )
    chapter_3 = {**default_example(), **node_indices(), **first_groups(), **minimum_cut()}
    chapter_4 = {
        **nodes_used(plans),
        **resource_aware(plans),
        **who_plans_alike(plans),
        **traffic([plans, by_name]),
    }
    measured = {**chapter_3, **chapter_4, **throughput(plans), **throughput_per_node(plans)}
    return Experiment(measured) if quick else Experiment(measured, tables(plans), plots(plans))


def problem_of(*files: str, order: str = "file") -> Problem:
    """A problem of the examples; components as in the file, or by name, as Storm numbers them."""
    paths = [example("muhammad", f"{name}.yaml") for name in files]
    return (
        build(read(paths))
        if order == "file"
        else build_problem(
            json.dumps(json.loads(from_files("", "", paths).sections), sort_keys=True)
        )
    )


def six_scenarios(app: str, by: str, order: str) -> list[Plan]:
    """Table 4.2.

    The isolation scheduler gets a machine for each worker; the thesis does not say how many it had.
    """
    plans: list[Plan] = []
    for workers, slots in SCENARIOS:
        problem = problem_of(f"{app}{workers}", f"cluster{slots}", order=order)
        if by == ISOLATION:
            problem = replace(problem, isolated_machines=np.array([problem.worker_count(0)]))
        planned = place(problem, by, objective="nodes", options=OPTIONS.get(by))
        plans.append(Plan(problem, planned.assignment, planned.report))
    return plans


def default_example() -> dict[str, Measured]:
    """Fig. 1.6-1.7."""
    problem = problem_of("linear-on-two-nodes")
    planned = place(problem, DEFAULT)
    pairs, node = problem.task_pairs(), planned.assignment.node
    with_spout = [
        problem.task_name(t).removesuffix(".1") for t in np.flatnonzero(node == node[0]).tolist()
    ]
    crossing = int((node[pairs.source] != node[pairs.target]).sum())
    return {"default-example": Measured([*with_spout, crossing])}


def node_indices() -> dict[str, Measured]:
    """Tables 3.1, 3.2, 3.7-3.10 and 4.1: scores, and the order in which nodes are filled."""
    six, five, nine = (
        problem_of("top-example", "six-nodes"),
        problem_of("ban-example", "five-nodes"),
        problem_of("word-count", "cluster"),
    )
    found = {
        "table-3.1": Measured(node_order(six, computation_power(six, 0.8))),
        "table-3.2": Measured(node_order(six, computation_power(six, 0.2))),
        "table-3.7-gflops": Measured(gflops(five).tolist()),
        "table-4.1-gflops": Measured(np.rint(gflops(nine)[::3]).astype(int).tolist()),
        "table-4.1-power": Measured(
            np.rint(computation_power(nine, 0.8)[::3]).astype(int).tolist()
        ),
    }
    for table, kind in (("3.8", "cpu"), ("3.9", "memory"), ("3.10", "network")):
        power = node_power(replace(five, bound_by=(kind,)), 0.5, 0.25)
        found[f"table-{table}-scores"] = Measured(np.sort(power)[::-1].tolist())
        found[f"table-{table}-order"] = Measured(node_order(five, power))
    return found


def node_order(problem: Problem, power: Floats) -> list[str]:
    return [problem.nodes[n].removeprefix("node-") for n in rank_nodes(problem, power).tolist()]


def first_groups() -> dict[str, Measured]:
    """Sections 3.2.1 and 3.3.1: the first slot, who may join it next, and the sorted pairs."""
    top, a3 = problem_of("top-example", "six-nodes"), problem_of("a3-example", "six-nodes")
    heaviest = sort_by_traffic(a3.task_pairs())
    names = [
        f"{a3.task_name(s)}{a3.task_name(t)}"
        for s, t in zip(heaviest.source.tolist(), heaviest.target.tolist(), strict=True)
    ]
    also = ", ".join(fourth_members(a3, heaviest, "group"))
    return {
        "top-first-group": Measured(members(top, top_slots(top, 2, "seed_pair"))),
        "top-tie": Measured(fourth_members(top, top.task_pairs(), "seed_pair")),
        "table-3.6": Measured(names),
        "a3-first-group": Measured(members(a3, a3_slots(a3, a3.task_pairs(), 2, "seed_pair"))),
        "a3-tie": Measured(
            fourth_members(a3, heaviest, "seed_pair"),
            note=f"Measured to B, D and E together, first and last are {also}.",
        ),
    }


def members(problem: Problem, slot_of: Ints) -> list[str]:
    """The executors of the first slot, in the order of the file."""
    return [
        problem.task_name(t) for t in np.flatnonzero(slot_of[: problem.task_count] == 0).tolist()
    ]


def fourth_members(problem: Problem, pairs: Pairs, affinity: Affinity) -> list[str]:
    """Who ties for the fourth place of the first slot: the first and the last of them by number.

    Ties go to the lowest number, so executors are numbered forwards and backwards. Ten idle ones
    are added, for 16 executors and four slots make groups of four.
    """
    tasks = np.arange(problem.task_count)
    found: list[set[str]] = []
    for number in (tasks, tasks[::-1]):
        renumbered = replace(pairs, source=number[pairs.source], target=number[pairs.target])
        slot_of = group_by_pairs(renumbered, problem.task_count + 10, 4, affinity)
        found.append(set(members(problem, slot_of[number])))
    return sorted(found[0] ^ found[1])


def minimum_cut() -> dict[str, Measured]:
    """Section 3.5.2: how often the cut is as published.

    The weights of fig. 3.7 are not in the text, so random ones with the published properties are
    used.
    """
    problem = problem_of("gr-example", "six-nodes")
    pairs = problem.task_pairs()
    weights = np.random.default_rng(0).integers(1, 31, (DRAWS, len(pairs)))
    sink = problem.task_count - 1
    # For each way to split the bolts between the spouts and Bolt D: which streams are cut.
    cuts: list[Ints] = []
    for side in range(8):
        with_spouts = np.array([True, True, *(bool(side >> bit & 1) for bit in range(3)), False])
        cuts.append(np.flatnonzero(with_spouts[pairs.source] & ~with_spouts[pairs.target]))
    into_sink = weights[:, pairs.target == sink].sum(axis=1)
    carried = np.stack([weights[:, cut].sum(axis=1) for cut in cuts])
    streams = np.array([len(cut) for cut in cuts])
    fitting = (
        (into_sink == 35) & (carried.min(axis=0) == 35) & (carried[streams == 5] == 47).any(axis=0)
    )

    def alone(weight: Ints) -> bool:
        part_of = max_flow_min_cut(
            problem, replace(pairs, tuples_per_s=weight.astype(np.float64)), 2
        )
        return np.flatnonzero(part_of == part_of[sink]).tolist() == [sink]

    drawn = weights[fitting][:WEIGHTINGS]
    return {"minimum-cut": Measured(sum(alone(weight) for weight in drawn) / len(drawn))}


def nodes_used(plans: Plans) -> dict[str, Measured]:
    """Fig. 4.11 and 4.20, and what the text says of them."""
    words, exclaim = plans["word-count"], plans["exclamation"]
    least = all(
        max(nodes(words, by, s, 0) for by in PROPOSED) <= nodes(words, other, s, 0)
        for s in range(6)
        for other in OF_STORM
    )
    others = (DEFAULT, ISOLATION)
    fewer = all(
        max(nodes(exclaim, by, s, 0) for by in PROPOSED) < nodes(exclaim, other, s, 0)
        for s in range(6)
        for other in others
    )
    return {
        "word-count-1-nodes": Measured([nodes(words, by, 0) for by in (*PROPOSED, DEFAULT)]),
        "word-count-1-share": Measured(100 * share(words, 0)),
        "word-count-2-saved": Measured(100 - 100 * share(words, 1)),
        "word-count-3-nodes": Measured([nodes(words, by, 2) for by in (*PROPOSED, DEFAULT)]),
        "word-count-4-nodes": Measured([nodes(words, by, 3, 0) for by in PROPOSED]),
        "word-count-6-saved": Measured(100 - 100 * share(words, 5)),
        "word-count-most-saved": Measured(100 - 100 * min(share(words, s) for s in range(6))),
        "word-count-fewest": Measured(least),
        "exclamation-1-saved": Measured(100 - 100 * share(exclaim, 0)),
        "exclamation-2-share": Measured(100 * share(exclaim, 1)),
        "exclamation-3-nodes": Measured([nodes(exclaim, by, 2) for by in (*PROPOSED, DEFAULT)]),
        "exclamation-5-share": Measured(share(exclaim, 4)),
        "exclamation-6-share": Measured(100 * share(exclaim, 5, 0)),
        "exclamation-fewer": Measured(fewer),
    }


def nodes(app: Mapping[str, Sequence[Plan]], by: str, scenario: int, masters: int = MASTERS) -> int:
    return app[by][scenario].report.nodes_used + masters


def share(app: Mapping[str, Sequence[Plan]], scenario: int, masters: int = MASTERS) -> float:
    """Nodes of the proposed scheduler that uses most, over those of the default."""
    return max(nodes(app, by, scenario, masters) for by in PROPOSED) / nodes(
        app, DEFAULT, scenario, masters
    )


def resource_aware(plans: Plans) -> dict[str, Measured]:
    """Section 4.5: how Storm's resource-aware scheduler packs executors."""
    words, exclaim = (executors_per_slot(plans[app][RAS][0]) for app in APPS)
    return {
        "ras-slots": Measured([len(words), len(exclaim)]),
        "ras-word-count-executors": Measured(words, shape=len(words) == 5 and max(words) == 6),
        "ras-exclamation-executors": Measured(exclaim),
        "ras-word-count-scenarios": Measured(equal_slots(plans["word-count"])),
        "ras-exclamation-scenarios": Measured(equal_slots(plans["exclamation"])),
        "ras-extra-slots": Measured(
            len(words) - plans["word-count"]["a3-storm"][0].report.workers_used
        ),
    }


def executors_per_slot(plan: Plan) -> list[int]:
    place = np.column_stack([plan.assignment.node, plan.assignment.worker])
    return sorted(np.unique(place, axis=0, return_counts=True)[1].tolist(), reverse=True)


def equal_slots(app: Mapping[str, Sequence[Plan]]) -> list[int]:
    """Scenarios in which the resource-aware scheduler uses just the slots the topology asks for."""
    return [
        s
        for s, plan in enumerate(app[RAS], 1)
        if plan.report.workers_used == plan.problem.worker_count(0)
    ]


def who_plans_alike(plans: Plans) -> dict[str, Measured]:
    """Scenarios with the same default plan (section 4.4.2); does BAN group as A3 (table 3.11)?"""
    alike: dict[bytes, list[str]] = {}
    for scenario, plan in enumerate(plans["word-count"][DEFAULT], 1):
        alike.setdefault(
            plan.assignment.node.tobytes() + plan.assignment.worker.tobytes(), []
        ).append(str(scenario))
    groups = [plan.problem for app in APPS for plan in plans[app]["a3-storm"]] + [
        problem_of("ban-example", "five-nodes")
    ]
    same = all(
        parts(a3_slots(problem, problem.task_pairs(), problem.worker_count(0), "seed_pair"))
        == parts(slots_of(ban_storm(problem)))
        for problem in groups
    )
    return {
        "default-alike": Measured([" ".join(scenarios) for scenarios in alike.values()]),
        "ban-groups": Measured(same),
    }


def slots_of(assignment: Assignment) -> Ints:
    return assignment.node * (int(assignment.worker.max()) + 1) + assignment.worker


def parts(slot_of: Ints) -> set[tuple[int, ...]]:
    return {tuple(np.flatnonzero(slot_of == slot).tolist()) for slot in np.unique(slot_of)}


def traffic(listings: Sequence[Plans]) -> dict[str, Measured]:
    """Sections 3.3.1, 4.4.3 and 4.5.

    Executors tie and the thesis breaks no ties, so a claim must hold for both listings.
    """

    def less(figure: str, by: str, apps: Sequence[str]) -> int:
        """In how many scenarios a scheduler sends less than the default, in the worse listing."""
        counts: list[int] = []
        for plans in listings:
            both = [
                pair
                for app in apps
                for pair in zip(plans[app][by], plans[app][DEFAULT], strict=True)
            ]
            counts.append(
                sum(getattr(a.report, figure) < getattr(b.report, figure) for a, b in both)
            )
        return min(counts)

    exclaim = [plans["exclamation"][by] for plans in listings for by in (*PROPOSED, DEFAULT)]
    by_slots = [[of[s].report.inter_worker_traffic for s in range(3)] for of in exclaim]
    return {
        "less-between-nodes": Measured(
            [less("inter_node_traffic", by, tuple(APPS)) for by in PROPOSED[:3]]
        ),
        "gr-less-between-nodes": Measured(less("inter_node_traffic", "gr-storm", tuple(APPS))),
        "a3-less-between-slots-word-count": Measured(
            less("inter_worker_traffic", "a3-storm", ["word-count"])
        ),
        "a3-less-between-slots-exclamation": Measured(
            less("inter_worker_traffic", "a3-storm", ["exclamation"])
        ),
        "more-slots-more-traffic": Measured(all(a <= b <= c and a < c for a, b, c in by_slots)),
    }


def throughput(plans: Plans) -> dict[str, Measured]:
    """Fig. 4.10 and 4.19 at the load of the listings; the notes raise it until a node is full."""
    found: dict[str, Measured] = {}
    for app, last in (("word-count", "count"), ("exclamation", "exclaim2")):
        of = plans[app]
        gains = [[gain(of[by][s], of[DEFAULT][s]) for by in PROPOSED] for s in range(6)]
        full = [gain(of[by][s], of[DEFAULT][s], full=True) for by in PROPOSED for s in range(6)]
        note = f"{RAISED} the difference is {min(full):+.0f} to {max(full):+.0f} %."
        found[f"{app}-rate"] = Measured(processed_per_s(of["a3-storm"][0], last))
        found[f"{app}-others-rate"] = Measured(
            [processed_per_s(of[by][3], last) for by in (DEFAULT, ISOLATION)]
        )
        found[f"{app}-better"] = Measured(min(map(min, gains)) > 0, note=note)
        found[f"{app}-gains"] = Measured([max(gain) for gain in gains])
        found[f"{app}-over-isolation"] = Measured(
            max(gain(of[by][s], of[ISOLATION][s]) for by in PROPOSED for s in range(6))
        )
    a3, ras = (plans["exclamation"][by][0] for by in ("a3-storm", RAS))
    note = f"{RAISED} the difference is {gain(a3, ras, full=True):+.0f} %."
    return {**found, "exclamation-1-over-ras": Measured(gain(a3, ras), note=note)}


def processed_per_s(plan: Plan, component: str) -> float:
    """Tuples/s a component processes at the load of the listing."""
    return float(plan.problem.rate[plan.problem.components.index(component)]) * min(
        1.0, plan.report.max_rate or 1.0
    )


def gain(plan: Plan, over: Plan, *, full: bool = False) -> float:
    """Percent more tuples processed, at the load of the listing or at full load."""
    return 100 * (
        plan.full_load / over.full_load - 1
        if full
        else plan.report.throughput / over.report.throughput - 1
    )


def throughput_per_node(plans: Plans) -> dict[str, Measured]:
    """Eq. 1.2, fig. 4.12 and 4.21."""
    words = plans["word-count"]
    ratios = [
        per_node(words, by, s) / per_node(words, DEFAULT, s) for by in PROPOSED for s in range(6)
    ]
    alone = [
        per_node(words, by, s, 0) / per_node(words, DEFAULT, s, 0)
        for by in PROPOSED
        for s in range(6)
    ]
    found = {
        "word-count-per-node": Measured(
            float(np.mean(ratios)), note=f"Supervisors alone: {np.mean(alone):.2f}."
        )
    }
    for app, of in plans.items():
        cases = [
            (by, other, s) for by in PROPOSED for other in (DEFAULT, ISOLATION) for s in range(6)
        ]
        holds = [
            sum(
                of[by][s].full_load / nodes(of, by, s, m)
                > of[other][s].full_load / nodes(of, other, s, m)
                for by, other, s in cases
            )
            for m in (MASTERS, 0)
        ]
        note = (
            f"{RAISED} it holds in {holds[0]} of {len(cases)} comparisons; "
            f"supervisors alone: {holds[1]}."
        )
        found[f"{app}-per-node-better"] = Measured(
            all(per_node(of, by, s) > per_node(of, other, s) for by, other, s in cases), note=note
        )
    rest = (*PROPOSED, DEFAULT, RAS)
    both = [
        (per_node(of, ISOLATION, s), per_node(of, by, s))
        for of in plans.values()
        for by in rest
        for s in range(6)
    ]
    found["isolation-worst"] = Measured(
        all(a < b for a, b in both), shape=all(a <= b for a, b in both)
    )
    return found


def per_node(
    app: Mapping[str, Sequence[Plan]], by: str, scenario: int, masters: int = MASTERS
) -> float:
    return app[by][scenario].report.throughput / nodes(app, by, scenario, masters)


def tables(plans: Plans) -> list[Table]:
    """Every scheduler in every scenario, and headrace, which chooses its own number of workers."""
    figures: dict[str, Callable[[Report], object]] = {
        "supervisors used": lambda r: r.nodes_used,
        "tuples/s between nodes": lambda r: r.inter_node_traffic,
        "tuples/s between slots, those between nodes included": lambda r: r.inter_worker_traffic,
        "how many times its load until a node is full": lambda r: r.max_rate,
    }
    columns = ["scheduler", *(f"scenario {s}" for s in range(1, 7))]
    shown = {
        app: {**plans[app], "headrace": six_scenarios(app, "headrace", "file")} for app in APPS
    }
    return [
        Table(
            f"{title}: {name}",
            columns,
            [[by, *(figure(plan.report) for plan in of)] for by, of in shown[app].items()],
        )
        for app, title in APPS.items()
        for name, figure in figures.items()
    ]


def plots(plans: Plans) -> dict[str, str]:
    """Fig. 4.11, 4.12, 4.20 and 4.21."""
    kinds: dict[str, tuple[str, Callable[[Mapping[str, Sequence[Plan]], str, int], float]]] = {
        "nodes": ("nodes, Nimbus and ZooKeeper included", nodes),
        "per-node": ("tuples/s per node", per_node),
    }
    return {
        f"{kind}-{app}.svg": bars(
            f"{title}: {y}",
            {
                f"{s + 1}": {by: figure(plans[app], by, s) for by in (*PROPOSED, *OF_STORM)}
                for s in range(6)
            },
            y=y,
        )
        for app, title in APPS.items()
        for kind, (y, figure) in kinds.items()
    }

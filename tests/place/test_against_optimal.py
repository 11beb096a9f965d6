"""No feasible plan is better than `optimal`'s, and `optimal` is the best of all plans there are.

Two kinds of small problems: tight ones with every kind of rule, which many schedulers of the
papers answer with an overload, and loose ones, which nearly all of them answer with a feasible
plan. Only feasible plans are compared.
"""

from __future__ import annotations

import itertools
from functools import cache
from random import Random

import numpy as np
import pytest

from headrace.errors import Infeasible
from headrace.judge.feasible import violations
from headrace.judge.report import judge
from headrace.judge.traffic import Workers, traffic
from headrace.judge.use import use
from headrace.model.problem import Assignment, Problem
from tests.failures import label_failure
from tests.place.contract import every_scheduler, run
from tests.problems import Content, document, problem_of, roomy_document

TIGHT_SEEDS, LOOSE_SEEDS = range(16), range(16)
CASES = [("tight", seed) for seed in TIGHT_SEEDS] + [("loose", seed) for seed in LOOSE_SEEDS]
MOST_PLANS = 1024  # so few that all of them can be tried


@cache
def small_content(kind: str, seed: int) -> Content:
    """The first random problem that has to be split over nodes and has few plans."""
    random = Random((3000 if kind == "tight" else 4000) + seed)
    while True:
        content = tight_content(random) if kind == "tight" else loose_content(random)
        problem = problem_of(content)
        if (
            "topologies" not in content
            and has_to_be_split(problem)
            and plan_count(problem) <= MOST_PLANS
        ):
            return content


def tight_content(random: Random) -> Content:
    """Anything but local-or-shuffle, whose traffic depends on the plan."""
    content = document(random, most_tasks=6, most_nodes=3)
    content.pop("options", None)
    for spec in content.get("topology", {}).get("components", {}).values():
        for entry in (entry for streams in spec.get("inputs", {}).values() for entry in streams):
            if entry["grouping"] == "local-or-shuffle":
                entry["grouping"] = "shuffle"
    return content


def loose_content(random: Random) -> Content:
    """One worker on each of three nodes, and no node has room for more than 60 % of the tasks."""
    content = roomy_document(random, tasks=6, nodes=3)
    components = content["topology"]["components"].values()
    for spec in components:
        need = random.choice((10, 20, 30))
        spec |= {"cpu": need, "memory_mb": need}
    room = 0.6 * sum(spec["tasks"] * spec["cpu"] for spec in components)
    for node in content["cluster"]["nodes"].values():
        node |= {"slots": 1, "cpu": room, "memory_mb": room}
    content["topology"]["workers"] = 3
    return content


def has_to_be_split(problem: Problem) -> bool:
    """Whether there is traffic, no node can take all tasks, and all nodes together perhaps can."""
    demand = np.array(
        [problem.task_demand(int(machine)).sum(axis=0) for machine in problem.node_type]
    )
    alone = (demand > problem.free).any(axis=1).all()
    together = (demand.min(axis=0) <= problem.free.sum(axis=0)).all()
    return problem.pair_count > 0 and bool(alone and together)


def plan_count(problem: Problem) -> int:
    return int(problem.free_slots.sum()) ** problem.task_count


@cache
def best_traffic(kind: str, seed: int) -> float | None:
    """Inter-node traffic of `optimal`'s plan; None if it says that there is no feasible plan."""
    problem = problem_of(small_content(kind, seed))
    plan = run("optimal", problem)
    assert isinstance(plan, Assignment | Infeasible), f"optimal refuses: {plan}"
    if isinstance(plan, Infeasible):
        return None
    return judge(problem, plan, bounded=False).inter_node_traffic


@every_scheduler
def test_no_feasible_plan_is_better_than_optimal(name: str) -> None:
    compared = 0
    for kind, seed in CASES:
        with label_failure(kind=kind, seed=seed):
            problem = problem_of(small_content(kind, seed))
            plan = run(name, problem)
            if not isinstance(plan, Assignment):
                continue
            report = judge(problem, plan, bounded=False)
            if not report.feasible:
                continue
            best = best_traffic(kind, seed)
            assert best is not None, f"{name} has a feasible plan; optimal says there is none"
            assert report.inter_node_traffic >= best - 1e-9 * report.total_traffic
            compared += 1
    assert compared >= 10, f"{name} has too few feasible plans to compare"


@pytest.mark.parametrize("kind", ["tight", "loose"])
def test_optimal_is_the_best_of_all_plans_tried_one_by_one(kind: str) -> None:
    solved = crossing = 0
    for seed in TIGHT_SEEDS if kind == "tight" else LOOSE_SEEDS:
        with label_failure(seed=seed):
            best = least_traffic_of_all_plans(problem_of(small_content(kind, seed)))
            found = best_traffic(kind, seed)
            if best is None:
                continue
            assert found is not None, "optimal says that there is no feasible plan, and there is"
            assert found == pytest.approx(best)
            solved += 1
            crossing += best > 0
    assert solved >= 10
    assert crossing >= 8, "too few problems with traffic between nodes"


def least_traffic_of_all_plans(problem: Problem) -> float | None:
    """The least traffic between nodes that any feasible plan has; None if none is feasible.

    Bandwidth may be overloaded: `optimal` does not guard it.
    """
    slots = [
        (n, int(s))
        for n in range(len(problem.nodes))
        for s in np.flatnonzero(~problem.slot_taken[n])
    ]
    best: float | None = None
    for choice in itertools.product(slots, repeat=problem.task_count):
        node, worker = np.array(choice, dtype=np.int64).T
        plan = Assignment(node, worker)
        workers = Workers.of(plan)
        sent = traffic(problem, plan, workers)
        broken = violations(problem, plan, workers, sent, use(problem, plan, workers, sent))
        if all(violation.resource.startswith("bandwidth") for violation in broken):
            best = sent.inter_node if best is None else min(best, sent.inter_node)
    return best

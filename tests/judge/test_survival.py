"""Whether a plan survives the loss of a node: by hand, and against every way to move its tasks."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import numpy as np
import pytest

from headrace.checks.problems import Content, draw_assignment, draw_document, problem_of
from headrace.judge.report import judge
from headrace.judge.survival import Survival
from headrace.model.problem import UNPLACED, Assignment, Problem
from tests.failures import label_failure


def survives(content: Content, plan: list[tuple[int, int]]) -> Survival:
    node, slot = np.array(plan, dtype=np.int64).T
    return judge(problem_of(content), Assignment(node, slot), bounded=False).survives


def tasks(*cpu: float, **facts: object) -> Content:
    return {"tasks": {f"t{i}": {"cpu": points, **facts} for i, points in enumerate(cpu, 1)}}


def nodes(*cpu: float, **facts: object) -> Content:
    return {"cluster": {"nodes": {f"n{i}": {"cpu": c, **facts} for i, c in enumerate(cpu, 1)}}}


def test_tasks_of_a_lost_node_go_to_several_others() -> None:
    # Without n1, its 30 and 20 need room: n2 and n3 have 40 and 20 left. The busiest node is at
    # 80 of 100, so the rate may grow by a quarter.
    plan = [(0, 0), (0, 0), (1, 0), (2, 0)]
    found = survives(tasks(30, 20, 60, 80) | nodes(100, 100, 100), plan)
    assert found.any_node is False  # without n3: 80 points, but 50 and 40 are left
    assert found.node == "n3"
    assert found.rate == pytest.approx(1.25)
    found = survives(tasks(30, 20, 50, 50) | nodes(100, 100, 100), plan)
    assert found == Survival(2.0, True, None)


def test_a_plan_on_the_only_node_does_not_survive_its_loss() -> None:
    assert survives(tasks(10) | nodes(100), [(0, 0)]).node == "n1"


def test_nobody_takes_over_without_a_slot() -> None:
    content = {
        "topologies": [
            {"name": name, "components": {"c": {"spout": True, "cpu": 10}}} for name in ("x", "y")
        ]
    }
    plan = [(0, 0), (1, 0)]
    assert survives(content | nodes(100, 100, slots=2), plan).any_node is True
    assert survives(content | nodes(100, 100, slots=1), plan).any_node is False


def test_pins_and_separations_hold_after_a_loss() -> None:
    def app(**facts: object) -> Content:
        return {"topology": {"components": {"c": {"spout": True, "tasks": 2, **facts}}}}

    plan = [(0, 0), (1, 0)]
    assert survives(app() | nodes(100, 100), plan).any_node is True
    assert survives(app(apart=True) | nodes(100, 100), plan).any_node is False
    assert survives(app(apart=True) | nodes(100, 100, 100), plan).any_node is True
    assert survives(app(nodes=["n1", "n2"], apart=True) | nodes(9, 9, 9), plan).any_node is False


def test_a_worker_takes_over_no_more_than_its_heap_holds() -> None:
    # Two workers of at most 100 MB with 60 each; one slot per node, so 60 MB fit nowhere.
    component = {"spout": True, "tasks": 2, "memory_mb": 60}
    content = {"topology": {"worker_max_heap_mb": 100, "components": {"c": component}}}
    plan = [(0, 0), (1, 0)]
    assert survives(content | nodes(9, 9, memory_mb=500, slots=1), plan).any_node is False
    assert survives(content | nodes(9, 9, memory_mb=500, slots=2), plan).any_node is True


def can_move(problem: Problem, plan: Assignment, lost: int) -> bool:
    """Try every other node and slot for every task of a lost node."""
    moving = np.flatnonzero(plan.node == lost).tolist()
    left = {n: problem.capacity[n] - problem.taken[n] for n in range(len(problem.nodes))}
    in_slot: dict[tuple[int, int], list[int]] = defaultdict(list)
    for t in np.flatnonzero((plan.node != lost) & (plan.node != UNPLACED)).tolist():
        n = int(plan.node[t])
        left[n] = left[n] - problem.task_demand(int(problem.node_type[n]))[t]
        in_slot[n, int(plan.worker[t])].append(t)

    def fits(t: int, n: int, slot: int) -> bool:
        c, g = problem.component_of[t], problem.topology[problem.component_of[t]]
        need = problem.task_demand(int(problem.node_type[n]))[t]
        beside = in_slot[n, slot]
        memory = sum(float(problem.demand[problem.component_of[i], 1]) for i in [*beside, t])
        here = [i for (m, _), held in in_slot.items() if m == n for i in held]
        return (
            bool(((need <= left[n] + 1e-9) | (need == 0)).all())
            and not bool(problem.slot_taken[n, slot])
            and all(bool(problem.topology[problem.component_of[i]] == g) for i in beside)
            and bool(memory <= problem.worker_heap_mb[g] * (1 + 1e-9))
            and (problem.allowed is None or bool(problem.allowed[c, n]))
            and not (
                bool(problem.apart[c]) and any(bool(problem.component_of[i] == c) for i in here)
            )
        )

    def place(rest: list[int]) -> bool:
        if not rest:
            return True
        t, *others = rest
        for n in range(len(problem.nodes)):
            for slot in range(int(problem.slots[n])):
                if n != lost and fits(t, n, slot):
                    need = problem.task_demand(int(problem.node_type[n]))[t]
                    left[n] = left[n] - need
                    in_slot[n, slot].append(t)
                    if place(others):
                        return True
                    in_slot[n, slot].remove(t)
                    left[n] = left[n] + need
        return False

    return place(moving)


def test_what_it_says_agrees_with_trying_everything() -> None:
    survived = broken = missed = 0
    for seed in range(250):
        random = Random(seed)
        content = draw_document(random, most_tasks=6, most_nodes=3)
        content.pop("options", None)
        problem = problem_of(content)
        plan = draw_assignment(random, problem, sound=True)
        report = judge(problem, plan, bounded=False)
        if not report.feasible:
            continue
        with label_failure(seed=seed):
            used = sorted({n for n in plan.node.tolist() if n != UNPLACED})
            possible = {n: can_move(problem, plan, n) for n in used}
            if report.survives.any_node:
                assert all(possible.values())
                survived += 1
            else:
                named = problem.nodes.index(report.survives.node or "")
                missed += possible[named]
                broken += 1
    assert survived >= 10
    assert broken >= 10
    assert missed <= broken // 10, "the quick packing misses too many ways"

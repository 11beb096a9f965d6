"""Relabelling: never more to move, nothing where only names differ, and every figure the same."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from headrace.checks.problems import draw_assignment, draw_document, problem_of
from headrace.judge.diff import COMPARED
from headrace.judge.report import judge
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.move.change import volumes_between
from headrace.move.relabel import measure_move, number_alike_nodes, relabel
from tests.move.plan_pairs import random_pair


def figures(problem: Problem, plan: Assignment) -> dict[str, object]:
    report = judge(problem, plan)
    return {name: getattr(report, name) for name in COMPARED}


def shuffled_names(problem: Problem, plan: Assignment, rng: np.random.Generator) -> Assignment:
    """The same plan on other nodes: each node's tasks go to a random one like it in its rack."""
    kind = number_alike_nodes(problem)
    role = np.arange(len(problem.nodes))
    for k in np.unique(kind).tolist():
        for rack in range(len(problem.racks)):
            members = np.flatnonzero((kind == k) & (problem.rack == rack))
            role[members] = rng.permutation(members)
    return Assignment(role[plan.node], plan.worker)


@pytest.mark.parametrize("tasks", [True, False])
def test_plans_that_differ_only_by_node_names_move_nothing(tasks: bool) -> None:
    for seed in range(20):
        problem, old, _ = random_pair(seed)
        new = shuffled_names(problem, old, np.random.default_rng(seed))
        assert (new.node != old.node).any()
        found = relabel(problem, old, new, tasks=tasks)
        assert (found.plan.node == old.node).all()
        assert not volumes_between(problem, old, found.plan).units.any()


def test_racks_that_are_alike_swap_as_a_whole() -> None:
    component = {
        "s": {"spout": True, "tasks": 2, "rate": 9, "state_mb": 5},
        "b": {"tasks": 2, "inputs": {"s": "shuffle"}, "state_mb": 5},
    }
    nodes = {f"r{r}n{n}": {"rack": f"r{r}", "cpu": 100} for r in (1, 2) for n in (1, 2)}
    problem = problem_of({"topology": {"components": component}, "cluster": {"nodes": nodes}})
    old = Assignment(np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64))
    new = Assignment(np.array([3, 3, 2, 2]), np.zeros(4, dtype=np.int64))
    assert (relabel(problem, old, new, tasks=False).plan.node == old.node).all()
    # Half of it in the other rack is another plan: traffic between racks would change.
    split = Assignment(np.array([0, 0, 2, 2]), np.zeros(4, dtype=np.int64))
    assert relabel(problem, old, split, tasks=False).plan.node.tolist() == [0, 0, 2, 2]


def test_nodes_that_differ_in_anything_keep_their_roles() -> None:
    for key, value in (
        ("cpu", 300),
        ("bandwidth_mbps", 10),
        ("slots", 3),
        ("type", "fast"),
        ("taken", {"cpu": 1}),
    ):
        nodes = {
            "a": {"cpu": 200, "slots": 4, "bandwidth_mbps": 100},
            "b": {"cpu": 200, "slots": 4, "bandwidth_mbps": 100, key: value},
        }
        problem = problem_of(
            {
                "topology": {"components": {"s": {"spout": True, "state_mb": 5}}},
                "cluster": {"nodes": nodes},
            }
        )
        old, new = (Assignment(np.array([n]), np.array([0])) for n in (0, 1))
        assert relabel(problem, old, new).plan.node.tolist() == [1], key
    pinned = {"s": {"spout": True, "state_mb": 5, "nodes": ["b"]}}
    problem = problem_of(
        {"topology": {"components": pinned}, "cluster": {"nodes": {"a": {}, "b": {}}}}
    )
    assert relabel(problem, old, new).plan.node.tolist() == [1]


def test_it_never_moves_more_and_changes_no_figure() -> None:
    saved = compared = 0
    for seed in range(150):
        random = Random(seed)
        problem = problem_of(draw_document(random))
        old, new = (draw_assignment(random, problem, sound=True) for _ in range(2))
        if ((old.node == UNPLACED) | (new.node == UNPLACED)).any():
            continue
        for tasks in (True, False):
            found = relabel(problem, old, new, tasks=tasks)
            before, after = measure_move(problem, old, new), measure_move(problem, old, found.plan)
            assert after <= before
            assert found.saved_mb == pytest.approx(before[0] - after[0])
            saved += after < before
            compared += 1
            expected = figures(problem, new)
            for name, value in figures(problem, found.plan).items():
                assert value == (
                    pytest.approx(expected[name]) if isinstance(value, float) else expected[name]
                ), (seed, name)
    assert saved > 50
    assert compared > 200


def test_tasks_nobody_could_tell_apart_swap_too() -> None:
    components = {"s": {"spout": True, "tasks": 4, "rate": 9, "state_mb": 5}}
    nodes = {"a": {"cpu": 100}, "b": {"cpu": 200}}
    problem = problem_of({"topology": {"components": components}, "cluster": {"nodes": nodes}})
    old = Assignment(np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64))
    new = Assignment(np.array([1, 0, 0, 0]), np.zeros(4, dtype=np.int64))
    # Three on a and one on b: one of the two on b goes, the rest stays.
    assert measure_move(problem, old, relabel(problem, old, new).plan) == (5, 1, 0)
    assert measure_move(problem, old, relabel(problem, old, new, tasks=False).plan) == (15, 3, 0)


def test_worker_processes_keep_their_slots() -> None:
    components = {
        "s": {"spout": True, "tasks": 2, "rate": 9},
        "b": {"tasks": 2, "inputs": {"s": "shuffle"}},
    }
    problem = problem_of(
        {
            "topology": {"components": components},
            "cluster": {"nodes": {"a": {"slots": 3, "taken": {"slots": [1]}}}},
        }
    )
    old = Assignment(np.zeros(4, dtype=np.int64), np.array([0, 0, 2, 2]))
    new = Assignment(np.zeros(4, dtype=np.int64), np.array([2, 2, 0, 0]))
    assert relabel(problem, old, new).plan.worker.tolist() == [0, 0, 2, 2]

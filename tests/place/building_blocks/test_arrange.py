"""Lots change places: nothing changes between nodes, less goes between racks, no node is fuller."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import numpy as np

from headrace.checks.problems import problem_of
from headrace.judge.report import judge
from headrace.model.arrays import Ints
from headrace.model.problem import Assignment, Problem
from headrace.place.building_blocks.arrange import arrange_lots
from headrace.place.headrace import headrace
from headrace.solve.classes import Classes, classes_of
from headrace.solve.least_traffic.search import least_crossing_search


def draw_racks(seed: int, nodes: int = 5) -> Problem:
    """A chain of components on equal nodes in two or three racks, too large for one node."""
    rng = Random(seed)
    racks = rng.choice([2, 3])
    names = [f"c{i}" for i in range(rng.randint(3, 5))]
    components: dict[str, Any] = {
        name: {"tasks": rng.randint(1, 4), "cpu": 30, "inputs": {names[i - 1]: "shuffle"}}
        for i, name in enumerate(names)
        if i
    }
    first = {"spout": True, "rate": 100 * rng.randint(1, 9), "tasks": 2, "cpu": 30}
    cluster = {f"n{i}": {"cpu": 100, "rack": f"r{i % racks}"} for i in range(nodes)}
    return problem_of(
        {
            "format": "headrace/1",
            "topology": {"name": "t", "components": {names[0]: first, **components}},
            "cluster": {"nodes": cluster},
        }
    )


def between_racks(problem: Problem, classes: Classes, x: Ints) -> tuple[float, float]:
    node = classes.nodes(x)
    report = judge(problem, Assignment(node, np.zeros_like(node)), bounded=False)
    return report.inter_rack_traffic, report.inter_node_traffic


def test_traffic_between_nodes_stays_and_between_racks_is_near_the_least() -> None:
    before = found = least = 0.0
    for seed in range(20):
        problem = draw_racks(seed)
        classes = classes_of(problem)
        plan = least_crossing_search(classes.instance, steps=20_000)
        if plan is None:
            continue
        there, nodes = between_racks(problem, classes, plan.x)
        arranged = arrange_lots(problem, classes, plan.x)
        here, same = between_racks(problem, classes, arranged)
        assert abs(same - nodes) < 1e-6
        assert here <= there + 1e-6
        orders = itertools.permutations(range(len(problem.nodes)))
        tried = (between_racks(problem, classes, plan.x[:, order])[0] for order in orders)
        before, found, least = before + there, found + here, least + min(tried)
    assert before > 1.1 * least > 0
    assert found <= 1.03 * least


def test_of_two_nodes_the_roomier_is_taken_whatever_the_scarce_resource_is() -> None:
    spout = {"spout": True, "rate": 1, "cpu": 15, "memory_mb": 400}
    topology = {"name": "t", "components": {"s": spout}}
    for poor, rich in (({"memory_mb": 500}, {"memory_mb": 4000}), ({"cpu": 20}, {"cpu": 400})):
        nodes = {"a": {"cpu": 100, **poor}, "b": {"cpu": 100, **rich}}
        problem = problem_of(
            {"format": "headrace/1", "topology": topology, "cluster": {"nodes": nodes}}
        )
        assert problem.nodes[int(headrace(problem).node[0])] == "b"

"""Tasks dealt out evenly, and the batches that need it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace.checks.problems import problem_of
from headrace.planner import place
from headrace.solve.classes import classes_of
from headrace.solve.rate.spread import deal_tasks, spread_tasks


def word_count(machines: int, tasks: int, **changes: Any) -> dict[str, Any]:
    components = {
        "s": {"spout": True, "tasks": 2, "rate": 1000, "bytes": 500},
        "split": {"tasks": tasks, "inputs": {"s": "shuffle"}, "selectivity": 10, "bytes": 500},
        "count": {"tasks": tasks, "inputs": {"split": "fields"}, **changes},
    }
    return {
        "topology": {"components": components},
        "cluster": {
            "nodes": {f"n{i}": {"cpu": 400, "bandwidth_mbps": 100} for i in range(machines)}
        },
        "profile": {name: {"*": {"cpu_ms": 0.05}} for name in components},
    }


@pytest.mark.parametrize(("nodes", "tasks"), [(6, 6), (8, 16), (3, 5)])
def test_batches_are_never_longer_than_those_of_tasks_dealt_in_turn(nodes: int, tasks: int) -> None:
    problem = problem_of(word_count(nodes, tasks))
    ours, theirs = (
        place(problem, by, objective="batch").report for by in ("headrace", "storm-even")
    )
    assert ours is not None
    assert theirs is not None
    assert ours.batch_seconds is not None
    assert theirs.batch_seconds is not None
    assert ours.feasible
    assert ours.batch_seconds <= theirs.batch_seconds * (1 + 1e-9)


def test_every_task_is_dealt_by_weight_and_pins_are_kept() -> None:
    problem = problem_of(word_count(3, 9, nodes=["n2"]))
    classes = classes_of(problem)
    x = deal_tasks(classes.instance, problem.stage[classes.component], np.array([0.5, 0.25, 0.25]))
    by_component = np.array([x[classes.component == c].sum(axis=0) for c in range(3)])
    assert by_component.tolist() == [[1, 1, 0], [5, 2, 2], [0, 0, 9]]


def test_only_feasible_counts_are_given_over_fewer_and_fewer_nodes() -> None:
    problem = problem_of(word_count(8, 16))
    classes = classes_of(problem)
    used = [
        int((x.sum(axis=0) > 0).sum())
        for x in spread_tasks(classes.instance, problem.stage[classes.component], np.full(8, 4.0))
    ]
    assert used == [8, 4, 2, 1]

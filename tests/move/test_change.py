"""From plan to plan: megabytes and seconds, what is lost, what every step gains, and plans that do not belong together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.checks.problems import Content, problem_of
from headrace.errors import InvalidInput
from headrace.judge.traffic import traffic
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.move.all_at_once import all_at_once
from headrace.move.change import arrivals, carry_plan, volumes_between
from headrace.move.optimal import optimal
from tests.move.plan_pairs import random_pair


def content(nodes: Content | None = None, split: int = 4) -> Content:
    components = {
        "source": {"spout": True, "tasks": 2, "rate": 100},
        "split": {"tasks": split, "inputs": {"source": "shuffle"}, "state_mb": 50},
        "count": {"tasks": 2, "inputs": {"split": "fields"}, "state_mb": 10},
    }
    return {
        "topology": {"components": components},
        "cluster": {
            "nodes": nodes or {"a": {"bandwidth_mbps": 1000}, "b": {"bandwidth_mbps": 100}, "c": {}}
        },
    }


def plan(*nodes: int) -> Assignment:
    node = np.array(nodes, dtype=np.int64)
    return Assignment(node, np.where(node == UNPLACED, UNPLACED, 0))


@pytest.fixture
def problem() -> Problem:
    return problem_of(content())


def test_megabytes_and_seconds_between_nodes(problem: Problem) -> None:
    # Two splits (50 MB) go from a to b at the slower 100 Mbit/s: 100 MB * 8 / 100 = 8 s. One count
    # (10 MB) from b to c: c has no bandwidth, b's 100 counts.
    volumes = volumes_between(problem, plan(0, 0, 0, 0, 0, 0, 1, 1), plan(0, 0, 1, 1, 0, 0, 2, 1))
    assert volumes.units.tolist() == [[0, 100, 0], [0, 0, 10], [0, 0, 0]]
    assert volumes.cost.tolist() == [[0, 8, 0], [0, 0, 0.8], [0, 0, 0]]
    assert volumes.bound == 8
    assert volumes.notes == ()


def test_where_no_bandwidth_is_known_the_assumption_is_said() -> None:
    problem = problem_of(content({"a": {}, "b": {}}))
    volumes = volumes_between(problem, plan(*[0] * 8), plan(0, 0, 1, 0, 0, 0, 0, 0))
    assert volumes.cost[0, 1] == 50 * 8 / 1000
    assert volumes.notes == (
        "1000 Mbit/s assumed between nodes neither of which has a bandwidth_mbps",
    )


def test_a_node_without_bandwidth_is_refused_only_if_it_has_to_send(problem: Problem) -> None:
    dead = replace(problem, bandwidth_mbps=np.array([1000.0, 0.0, 100.0]))
    assert volumes_between(dead, plan(*[0] * 8), plan(0, 0, 2, 0, 0, 0, 0, 0)).bound == 4
    with pytest.raises(
        InvalidInput, match="node b has no bandwidth, and 50 MB must go from a to b"
    ):
        volumes_between(dead, plan(*[0] * 8), plan(0, 0, 1, 0, 0, 0, 0, 0))


def test_negative_state_is_refused(problem: Problem) -> None:
    wrong = replace(problem, state_mb=np.array([0.0, -1.0, 5.0]))
    with pytest.raises(InvalidInput, match="split: state_mb is -1"):
        volumes_between(wrong, plan(*[0] * 8), plan(*[0] * 8))


def test_plans_of_another_size_or_with_unknown_nodes_are_refused(problem: Problem) -> None:
    with pytest.raises(
        InvalidInput, match="the old plan is for another topology: it places 7 tasks, there are 8"
    ):
        volumes_between(problem, plan(*[0] * 7), plan(*[0] * 8))
    with pytest.raises(
        InvalidInput, match=r"the new plan puts source\.1 on node number 3; there are 3 nodes"
    ):
        volumes_between(problem, plan(*[0] * 8), plan(3, *[0] * 7))


def test_plans_for_different_topologies_are_refused(problem: Problem) -> None:
    other = content()
    other["topology"]["components"]["alert"] = other["topology"]["components"].pop("count")
    with pytest.raises(
        InvalidInput,
        match="different topologies: only the old one has `alert`; only the new one has `count`",
    ):
        carry_plan(problem_of(other), plan(*[0] * 8), problem)


def test_the_state_of_a_node_that_is_gone_is_lost_and_that_is_said(problem: Problem) -> None:
    smaller = problem_of(content({"a": {}, "c": {}}))
    told = carry_plan(problem, plan(0, 0, 0, 1, 1, 2, 2, 1), smaller)
    assert told.plan.node.tolist() == [0, 0, 0, UNPLACED, UNPLACED, 1, 1, UNPLACED]
    assert told.lost == {"b": ("split.2", "split.3", "count.2")}
    assert told.notes == ("node b no longer exists: 3 tasks start elsewhere, their state is lost",)
    volumes = volumes_between(smaller, told.plan, plan(*[0] * 8))
    assert volumes.units.tolist() == [[0, 0], [60, 0]]
    assert "3 tasks start without their state (110 MB)" in volumes.notes


def test_counts_may_differ(problem: Problem) -> None:
    told = carry_plan(problem, plan(0, 0, 1, 1, 1, 1, 2, 2), problem_of(content(split=6)))
    assert told.plan.node.tolist() == [0, 0, 1, 1, 1, 1, UNPLACED, UNPLACED, 2, 2]
    assert told.added == {"split": 2}
    told = carry_plan(problem, plan(0, 0, 1, 1, 1, 1, 2, 2), problem_of(content(split=1)))
    assert told.plan.node.tolist() == [0, 0, 1, 2, 2]
    assert "3 tasks of split stop first" in told.notes[0]


def test_tasks_arrive_when_their_last_megabyte_does(problem: Problem) -> None:
    old, new = plan(0, 0, 0, 0, 0, 0, 1, 1), plan(0, 0, 1, 1, 0, 0, 2, 1)
    whole = arrivals(problem, old, new, all_at_once(volumes_between(problem, old, new)))
    assert [a.tasks for a in whole] == [("split.1", "split.2", "count.1")]
    steps = arrivals(problem, old, new, optimal(volumes_between(problem, old, new)))
    assert sorted(task for a in steps for task in a.tasks) == ["count.1", "split.1", "split.2"]
    assert sum(a.mb for a in steps) == pytest.approx(110)


def test_what_the_steps_gain_adds_up_to_what_the_plan_gains() -> None:
    for seed in range(5):
        problem, old, new = random_pair(seed)
        moves = optimal(volumes_between(problem, old, new))
        steps = arrivals(problem, old, new, moves)
        assert len(steps) == len(moves.steps)
        assert steps[-1].inter_node_traffic == pytest.approx(traffic(problem, new).inter_node)
        assert sum(a.gain for a in steps) == pytest.approx(
            traffic(problem, old).inter_node - traffic(problem, new).inter_node
        )

"""Each rule against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.checks.problems import problem_of
from headrace.control.choice import Adopted, Choice, Decision, all_of
from headrace.control.history import Entry, spare_core_seconds
from headrace.control.planning import fingerprint
from headrace.control.rules.aniello import weigh_traffic
from headrace.control.rules.gain import gain, no_flapping, worth_it
from headrace.control.rules.muhammad import Levels, tune
from headrace.errors import InvalidInput
from headrace.judge.report import judge
from headrace.model.problem import Assignment


def test_gain_over_the_horizon_against_stop_and_catch_up() -> None:
    # 10 s stop; 500 tuples of lag and 100 * 10 that came in meanwhile at 150 - 100 = 50 tuples/s:
    # 10 + 20 = 30 s. 40 s of 100 tuples/s are late: 4,000. Over 100 s, 60 remain: at 70 tuples/s
    # saved 4,200.
    facts = {
        "horizon_s": 100,
        "input_per_s": 100,
        "capacity_per_s": 150,
        "lag": 500,
        "restart_s": 4,
        "transfer_s": 6,
    }
    decision = worth_it(saved_per_s=70, **facts)
    assert decision.move
    assert decision.numbers == {
        "stop_s": 10,
        "catch_up_s": 30,
        "disturbed_s": 40,
        "gain": 4200,
        "cost": 4000,
    }
    assert decision.reason == (
        "70 tuples/s saved over 100 s come to 4200 tuples; 10 s stop and 30 s catch-up delay 4000"
    )
    assert not worth_it(saved_per_s=66, **facts).move
    assert worth_it(saved_per_s=66, delay_price=0.5, **facts).move
    assert not worth_it(saved_per_s=1e9, **{**facts, "horizon_s": 40}).move


def test_a_plan_that_never_catches_up_is_not_worth_it() -> None:
    decision = worth_it(saved_per_s=1e9, horizon_s=1e9, input_per_s=100, capacity_per_s=100)
    assert not decision.move
    assert "never catch up" in decision.reason


def test_a_running_plan_that_falls_behind_is_left_if_that_means_less_lag() -> None:
    # Stays: 0 + (100 - 80) * 60 = 1,200. Moves: 100 * 10 - (120 - 100) * 50 = 0.
    facts = {
        "saved_per_s": -5,
        "horizon_s": 60,
        "input_per_s": 100,
        "capacity_now_per_s": 80,
        "restart_s": 10,
    }
    decision = worth_it(capacity_per_s=120, **facts)
    assert decision.move
    assert decision.numbers == {"lag_if_stays": 1200, "lag_if_moves": 0, "stop_s": 10}
    # To a plan that does 85: 1,000 + 15 * 50 = 1,750.
    assert not worth_it(capacity_per_s=85, **facts).move


def test_a_move_that_costs_nothing_needs_any_gain() -> None:
    assert worth_it(saved_per_s=0.1, horizon_s=1, input_per_s=10, capacity_per_s=20).move
    assert not worth_it(saved_per_s=0, horizon_s=1, input_per_s=10, capacity_per_s=20).move


def test_impossible_measurements_are_refused() -> None:
    with pytest.raises(InvalidInput, match="lag is -1"):
        worth_it(saved_per_s=1, horizon_s=1, input_per_s=1, capacity_per_s=2, lag=-1)
    with pytest.raises(InvalidInput, match="restart_s is nan"):
        worth_it(
            saved_per_s=1, horizon_s=1, input_per_s=1, capacity_per_s=2, restart_s=float("nan")
        )


@pytest.mark.parametrize(
    ("best", "improve", "since", "moves"),
    [(90, 10, 180, True), (90.1, 10, 180, False), (90, 10, 179, False), (100, 0, 999, False)],
)
def test_aniello_asks_for_a_percentage_and_an_interval(
    best: float, improve: float, since: float, moves: bool
) -> None:
    assert weigh_traffic(100, best, improve_percent=improve, since_last_s=since).move == moves


def test_aniello_moves_for_an_overloaded_node_but_not_sooner() -> None:
    assert weigh_traffic(100, 120, relieves_overload=True).move
    assert not weigh_traffic(100, 120, relieves_overload=True, since_last_s=5).move
    assert "by 30 %" in weigh_traffic(100, 70).reason
    assert weigh_traffic(0.9, 0.1).move, "small rates count too"
    with pytest.raises(InvalidInput, match="improve_percent is 101"):
        weigh_traffic(1, 0, improve_percent=101)


def levels(node: float, slot: float = 0, nodes: int = 3, busiest: float = 0.5) -> Levels:
    return Levels(node, slot, 100 - node - slot, nodes, busiest)


def test_tuning_weighs_traffic_against_resources() -> None:
    now = levels(40, 20)  # 2 * 40 + 20 = 100
    assert tune(now, levels(40, 15)).move, "5 % less way to go"
    assert not tune(now, levels(40, 16)).move
    assert not tune(now, levels(10, 10, nodes=4)).move, "not with more nodes"
    assert not tune(now, levels(10, 10, busiest=1.1)).move, "not if that overloads a node"
    assert tune(levels(40, 20, busiest=1.2), levels(60, 20, busiest=0.9, nodes=5)).move, (
        "an overloaded node comes first"
    )
    assert "node 40 -> 10" in tune(now, levels(10, 10)).reason


def test_levels_are_those_of_the_judge() -> None:
    components = {
        "s": {"spout": True, "tasks": 1, "rate": 30, "cpu": 50},
        "b": {"tasks": 3, "inputs": {"s": "shuffle"}, "cpu": 50},
    }
    problem = problem_of(
        {
            "topology": {"components": components},
            "cluster": {"nodes": {"a": {"cpu": 200}, "b": {"cpu": 100}}},
        }
    )
    found = Levels.of(
        problem, judge(problem, Assignment(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 0])))
    )
    assert (
        found.inter_node,
        found.inter_slot,
        found.inter_executor,
        found.nodes_used,
    ) == pytest.approx((10, 10, 10, 2))
    assert found.busiest == 0.75


def test_a_plan_is_kept_for_a_while_and_an_old_one_does_not_come_back() -> None:
    history = [Adopted("a", 0), Adopted("b", 100), Adopted("c", 200)]
    rules = {"interval_s": 10, "intervals": 15, "dwell_s": 20}
    assert not no_flapping("a", history, 210, **rules).move, "c is 10 s old"
    assert not no_flapping("c", history, 999, **rules).move, "c is in force"
    assert not no_flapping("b", history, 340, **rules).move, "b was left 140 s ago"
    assert no_flapping("b", history, 351, **rules).move
    assert no_flapping("a", history, 251, **rules).move, "a was left 151 s ago"
    assert no_flapping("d", history, 221, **rules).move
    assert no_flapping("d", [], 0).move
    assert "140 s ago" in no_flapping("b", history, 340, **rules).reason


def test_a_history_out_of_order_is_refused() -> None:
    with pytest.raises(InvalidInput, match="order of time"):
        no_flapping("a", [Adopted("a", 5), Adopted("b", 1)], 9)


def test_the_same_places_have_the_same_fingerprint() -> None:
    components = {"s": {"spout": True, "rate": 1}, "b": {"inputs": {"s": "shuffle"}}}
    nodes = {"a": {"cpu": 200, "slots": 2}, "b": {"cpu": 100, "slots": 2}}
    topology = {"topology": {"components": components}}
    problem = problem_of({**topology, "cluster": {"nodes": nodes}})
    swapped = problem_of({**topology, "cluster": {"nodes": dict(reversed(nodes.items()))}})
    one, two = (
        Assignment(np.array([0, 1]), np.array([0, 0])),
        Assignment(np.array([0, 1]), np.array([0, 1])),
    )
    other = Assignment(np.array([1, 0]), np.array([0, 0]))
    assert fingerprint(problem, one) == fingerprint(swapped, other), "nodes count by their names"
    assert fingerprint(problem, one) != fingerprint(problem, two)


def test_all_rules_must_agree_and_the_first_objection_is_the_reason() -> None:
    yes, no = Decision(True, "good", {"x": 1}), Decision(False, "bad", {"y": 2})
    assert all_of(yes, yes).reason == "good; good"
    assert all_of(yes, no, yes) == no
    assert all_of(yes).numbers == {"x": 1}


def choice_of_fewer_cores(spare_core_s: float | None) -> Choice:
    """Four nodes of four cores are in use, and three would do; 100 s between decisions."""
    components = {"s": {"spout": True, "tasks": 4, "rate": 100, "cpu": 10}}
    problem = problem_of(
        {"topology": {"components": components}, "cluster": {"nodes": {"n{1..4}": {"cpu": 400}}}}
    )
    four, three = (
        Assignment(np.array(nodes), np.zeros(4, dtype=np.int64))
        for nodes in ([0, 1, 2, 3], [0, 1, 2, 2])
    )
    reports = [judge(problem, plan, objective="nodes", bounded=False) for plan in (four, three)]
    return Choice(
        problem, four, reports[0], problem, three, reports[1], plan="new", objective="nodes",
        at_s=1000.0, started_s=0.0, interval_s=100.0, spare_core_s=spare_core_s,
    )  # fmt: skip


def test_machines_are_given_back_once_enough_was_not_needed() -> None:
    # 16 cores for 1.5 intervals of 100 s: 2,400 core-seconds.
    assert gain(choice_of_fewer_cores(2400.0)).move
    waits = gain(choice_of_fewer_cores(2399.0))
    assert not waits.move
    assert "core-seconds were not needed, and a smaller plan comes at 2.4e+03" in waits.reason
    assert waits.numbers["cores_now"] == 16
    assert waits.numbers["cores_then"] == 12
    assert gain(choice_of_fewer_cores(800.0), patience=0.5).move
    # Where counts do not change, a plan on fewer machines is taken as soon as it is found.
    assert gain(choice_of_fewer_cores(None)).move


def test_what_was_not_needed_is_counted_since_the_last_move() -> None:
    def entry(at_s: float, now: float, then: float, *, applied: bool = False) -> Entry:
        numbers = {"cores_now": now, "cores_then": then}
        return Entry(at_s, applied, applied, "x", numbers=numbers)

    past = [entry(0, 16, 8), entry(100, 16, 8, applied=True), entry(200, 8, 8), entry(300, 8, 4)]
    # 0 for 100 s, then 4 cores for 50 s; what comes before the move does not count.
    assert spare_core_seconds(past, 350.0) == 200
    assert spare_core_seconds([], 350.0) == 0

"""Safe orders: nothing is overloaded on the way, refusals say what would help, partial moves gain.

The judge replays every state.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from headrace.checks.problems import draw_document, problem_of
from headrace.errors import HeadraceError, Infeasible, InvalidInput
from headrace.judge.traffic import traffic
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.move.change import carry_plan
from headrace.move.relabel import relabel
from headrace.move.safe_order import NoSafeOrder, SafeOrder, safe_order
from headrace.planner import place
from tests.move.plan_pairs import broken_rules, random_pair, random_plan, replayed


def plan(*nodes: int) -> Assignment:
    node = np.array(nodes, dtype=np.int64)
    return Assignment(node, np.where(node == UNPLACED, UNPLACED, 0))


def graph(tasks: dict[str, Any], traffic: list[list[Any]], **nodes: Any) -> Problem:
    return problem_of({"tasks": tasks, "traffic": traffic, "cluster": {"nodes": nodes}})


def check(problem: Problem, old: Assignment, new: Assignment, order: SafeOrder) -> None:
    """Every state keeps every rule, gains are the judge's, and the end is the new plan."""
    now = traffic(problem, old).inter_node
    state = old
    for move, state in zip(order.moves, replayed(problem, old, order.moves), strict=True):
        assert broken_rules(problem, state) == []
        after = traffic(problem, state).inter_node
        assert move.gain == pytest.approx(now - after, abs=1e-9 * max(1.0, now))
        now = after
    assert order.traffic_after == pytest.approx(now)
    assert (state.node == order.plan.node).all()
    if order.complete:
        assert (state.node == new.node).all()
        assert (state.worker == new.worker).all()


def test_random_pairs_at_85_percent_are_ordered() -> None:
    # All 200 of the promise, with larger ones among them, are run by benchmarks/moving.py.
    ordered = 0
    for seed in range(60):
        problem, old, new = random_pair(seed, nodes=(4, 7), per_node=(6, 9))
        refusal = refused(problem, old, new)
        ordered += refusal is None
        assert refusal is None or refusal.stuck
    assert ordered >= 57


def refused(problem: Problem, old: Assignment, new: Assignment) -> NoSafeOrder | None:
    """The refusal; None after a check of the order, if there is one."""
    try:
        order = safe_order(problem, old, new)
    except NoSafeOrder as refusal:
        return refusal
    assert order.complete
    check(problem, old, new, order)
    return None


def test_large_tasks_are_refused_only_with_proof_and_the_room_that_would_do_does() -> None:
    refusals = proofs = 0
    for seed in range(16):
        problem, old, new = random_pair(seed, nodes=(4, 6), per_node=(3, 4))
        refusal = refused(problem, old, new)
        if refusal is None:
            continue
        refusals += 1
        proofs += refusal.proven
        assert refusal.slack, "more room would do"
        capacity = problem.capacity.copy()
        for more in refusal.slack:
            capacity[problem.nodes.index(more.node), problem.resources.index(more.resource)] += (
                more.amount
            )
            assert f"{more.amount:g} more {more.resource} on {more.node}" in str(refusal.fix)
        assert refused(replace(problem, capacity=capacity), old, new) is None
    assert refusals > 3
    assert proofs == refusals, "what is not found is not there"


def two_that_swap(spare: float) -> Problem:
    """Two tasks of 60 on two nodes of 100, and a third node with `spare`."""
    tasks = {"x": {"cpu": 60, "state_mb": 7}, "y": {"cpu": 60, "state_mb": 5}}
    return graph(tasks, [["x", "y", 10]], a={"cpu": 100}, b={"cpu": 100}, c={"cpu": spare})


def test_two_that_must_swap_use_a_third_node_and_the_lighter_one_is_parked() -> None:
    problem = two_that_swap(60)
    order = safe_order(problem, plan(0, 1), plan(1, 0))
    assert [(m.kind, m.task, m.source, m.target) for m in order.moves] == [
        ("park", "y", "b", "c"),
        ("move", "x", "a", "b"),
        ("move", "y", "c", "a"),
    ]
    assert order.mb == 5 + 7 + 5
    check(problem, plan(0, 1), plan(1, 0), order)


def test_two_that_cannot_swap_are_named_with_the_room_that_would_do() -> None:
    problem = two_that_swap(50)
    with pytest.raises(NoSafeOrder) as caught:
        safe_order(problem, plan(0, 1), plan(1, 0))
    refusal = caught.value
    assert refusal.stuck == ("x", "y")
    assert refusal.proven
    assert "x (a -> b, lacks 20 cpu there), y (b -> a, lacks 20 cpu there)" in refusal.message
    # 10 more on the third node are the least that help.
    assert [(m.node, m.resource, round(m.amount, 3)) for m in refusal.slack] == [("c", "cpu", 10.0)]
    assert (refusal.resource, refusal.needed, refusal.available) == ("cpu", 60, 50)


def test_a_new_plan_that_is_overloaded_itself_is_refused_at_once() -> None:
    problem = two_that_swap(60)
    with pytest.raises(
        Infeasible, match=r"the new plan itself breaks a rule: .* does not fit on a .*proven"
    ):
        safe_order(problem, plan(0, 1), plan(0, 0))


def test_an_overloaded_node_may_be_left_but_takes_nobody() -> None:
    problem = graph(
        {t: {"cpu": 60} for t in "xyz"},
        [["x", "y", 1]],
        a={"cpu": 100},
        b={"cpu": 100},
        c={"cpu": 100},
    )
    order = safe_order(problem, plan(0, 0, 1), plan(0, 2, 1))
    assert [(m.task, m.target) for m in order.moves] == [("y", "c")]


def test_the_largest_gain_per_megabyte_comes_first() -> None:
    tasks = {
        "hub": {"cpu": 1},
        "light": {"cpu": 1, "state_mb": 1},
        "heavy": {"cpu": 1, "state_mb": 100},
        "idle": {"cpu": 1, "state_mb": 1},
    }
    problem = graph(tasks, [["hub", "light", 10], ["hub", "heavy", 50]], a={}, b={})
    order = safe_order(problem, plan(0, 1, 1, 1), plan(0, 0, 0, 0))
    assert [m.task for m in order.moves] == ["light", "heavy", "idle"]
    assert [m.gain for m in order.moves] == [10, 50, 0]


def test_limits_give_the_best_part() -> None:
    tasks = {
        "hub": {"cpu": 1},
        "light": {"cpu": 1, "state_mb": 1},
        "heavy": {"cpu": 1, "state_mb": 100},
        "idle": {"cpu": 1, "state_mb": 1},
    }
    problem = graph(tasks, [["hub", "light", 10], ["hub", "heavy", 50]], a={}, b={})
    old, new = plan(0, 1, 1, 1), plan(0, 0, 0, 0)
    one, cheap, none = (
        safe_order(problem, old, new, max_moves=1),
        safe_order(problem, old, new, max_mb=50),
        safe_order(problem, old, new, max_mb=0),
    )
    assert [m.task for m in one.moves] == ["light"]
    assert (one.complete, one.waiting) == (False, ("heavy", "idle"))
    assert [m.task for m in cheap.moves] == ["light"], "idle costs and gains nothing"
    assert none.moves == ()


def test_a_group_that_gains_only_together_is_found() -> None:
    # Either of x and y alone leaves its partner behind; together with z they are better off on b.
    tasks = {t: {"cpu": 1, "state_mb": 1} for t in "xyz"}
    problem = graph(tasks, [["x", "y", 10], ["x", "z", 4], ["y", "z", 4]], a={}, b={})
    order = safe_order(problem, plan(0, 0, 1), plan(1, 1, 1), max_moves=2)
    assert [m.gain for m in order.moves] == [-6, 14]
    assert order.traffic_after == 0


def test_partial_moves_never_make_it_worse_nor_exceed_their_limits() -> None:
    better = 0
    for seed in range(6):
        problem, old, _ = random_pair(seed, nodes=(4, 6), load=0.7)
        new = relabel(problem, old, place(problem, "headrace", steps=2000).assignment or old).plan
        for limits in ({"max_moves": 5}, {"max_mb": 300.0}, {"max_moves": 8, "max_mb": 200.0}):
            order = safe_order(problem, old, new, **limits)  # pyright: ignore[reportArgumentType]
            check(problem, old, new, order)
            assert len(order.moves) <= limits.get("max_moves", 10**9)
            assert order.mb <= limits.get("max_mb", 1e18)
            assert (order.traffic_after or 0) <= (order.traffic_before or 0) + 1e-9
            better += (order.traffic_after or 0) < (order.traffic_before or 0)
    assert better >= 17


def reachable_best(problem: Problem, old: Assignment, new: Assignment, hops: int) -> float:
    """The least traffic that so many safe hops can reach, with no task parked at the end."""
    need, moving = problem.task_demand(0), np.flatnonzero(old.node != new.node).tolist()
    level, seen, best = [old.node], {old.node.tobytes()}, traffic(problem, old).inter_node
    for _ in range(hops):
        following: list[np.ndarray] = []
        for node in level:
            free = problem.free.copy()
            np.subtract.at(free, node, need)
            for t in moving:
                for n in np.flatnonzero((need[t] <= free + 1e-9).all(axis=1)).tolist():
                    there = node.copy()
                    there[t] = n
                    if there.tobytes() not in seen:
                        seen.add(there.tobytes())
                        following.append(there)
                        if ((there == old.node) | (there == new.node)).all():
                            best = min(
                                best, traffic(problem, Assignment(there, old.worker)).inter_node
                            )
        level = following
    return best


def test_three_moves_gain_nearly_what_the_best_three_do() -> None:
    parts: list[float] = []
    for seed in range(16):
        problem, old, _ = random_pair(
            seed, nodes=(3, 3), per_node=(4, 4), load=0.7 if seed % 2 else 0.85
        )
        new = relabel(problem, old, place(problem, "headrace", steps=2000).assignment or old).plan
        before = traffic(problem, old).inter_node
        best = before - reachable_best(problem, old, new, 3)
        order = safe_order(problem, old, new, max_moves=3)
        if best > 1e-9:
            parts.append((before - (order.traffic_after or 0)) / best)
    assert max(parts) <= 1 + 1e-9
    assert len(parts) >= 8
    assert np.mean(parts) >= 0.9


def test_tasks_of_a_node_that_is_gone_start_first_and_without_state() -> None:
    tasks = {t: {"cpu": 40, "state_mb": 10} for t in "wxyz"}
    flows = [["w", "x", 5], ["y", "z", 5]]
    before = graph(tasks, flows, a={"cpu": 120}, b={"cpu": 120}, gone={"cpu": 100})
    after = graph(tasks, flows, a={"cpu": 120}, b={"cpu": 120})
    told = carry_plan(before, plan(0, 2, 2, 1), after)
    order = safe_order(after, told.plan, plan(1, 1, 0, 0))
    assert [m.kind for m in order.moves][:2] == ["start", "start"]
    assert {m.task for m in order.moves[:2]} == {"x", "y"}
    assert all(m.mb == 0 and m.source is None for m in order.moves[:2])
    assert order.moves[0].gain is None
    assert order.complete
    assert order.traffic_before is None
    assert order.traffic_after == 0
    assert "2 tasks start without their state (20 MB)" in order.notes


def test_lost_tasks_start_elsewhere_where_their_place_is_still_taken() -> None:
    # y ran on the lost node and is to take x's place on a; x can leave only to b. c has room for a
    # while.
    tasks = {"x": {"cpu": 60, "state_mb": 10}, "y": {"cpu": 60, "state_mb": 10}}
    problem = graph(tasks, [["x", "y", 5]], a={"cpu": 60}, b={"cpu": 60}, c={"cpu": 60})
    order = safe_order(problem, plan(0, UNPLACED), plan(1, 0))
    assert order.moves[0].kind == "start"
    assert order.complete


def test_lost_tasks_start_last_where_their_presence_would_leave_no_room() -> None:
    # w and z swap between a and b, which hold two tasks each: possible only while x and y do not
    # run.
    tasks = {t: {"cpu": 40, "state_mb": 10} for t in "wxyz"}
    problem = graph(tasks, [["w", "x", 5]], a={"cpu": 100}, b={"cpu": 100})
    order = safe_order(problem, plan(0, UNPLACED, UNPLACED, 1), plan(1, 1, 0, 0))
    assert [m.kind for m in order.moves] == ["move", "move", "start", "start"]
    assert order.complete
    assert any("start last" in note for note in order.notes)


def test_topologies_with_heaps_pins_and_separations_are_ordered_safely() -> None:
    """Feasible plans of several schedulers; the random documents together use every rule."""
    ordered = refused = 0
    for seed in range(90):
        random = Random(seed)
        problem = problem_of(draw_document(random, most_tasks=16, most_nodes=6))
        plans: list[Assignment] = []
        for by in ("headrace", "storm-ras", "storm-even", "a3-storm"):
            try:
                planned = place(problem, by, steps=300)
            except HeadraceError:
                continue
            if planned.report.feasible:
                plans.append(planned.assignment)
        for old, new in pairwise(plans):
            try:
                order = safe_order(problem, old, new)
            except NoSafeOrder:
                refused += 1
                continue
            check(problem, old, new, order)
            ordered += order.complete and len(order.moves) > 0
    assert ordered >= 40
    assert refused <= ordered / 10


def test_topologies_that_want_each_other_s_slot_use_a_spare_one() -> None:
    components = {"s": {"spout": True, "tasks": 2, "cpu": 1}}
    topologies = [{"name": name, "components": components} for name in ("p", "q")]
    problem = problem_of({"topologies": topologies, "cluster": {"nodes": {"a": {"slots": 3}}}})
    node = np.zeros(4, dtype=np.int64)
    old, new = Assignment(node, np.array([0, 0, 1, 1])), Assignment(node, np.array([1, 1, 0, 0]))
    order = safe_order(problem, old, new)
    check(problem, old, new, order)
    assert order.complete
    assert order.mb == 0
    assert {m.kind for m in order.moves} == {"worker"}


def test_bandwidth_is_not_exceeded_on_the_way() -> None:
    # x and y exchange 8 Mbit/s and move together; each node's link carries 10. While one of them is
    # away, 8 of 10 are used: allowed. With a link of 5 it is not, and there is no other way.
    tasks = {"x": {"cpu": 1}, "y": {"cpu": 1}}
    for link, works in ((10, True), (5, False)):
        nodes = {n: {"bandwidth_mbps": link} for n in "ab"}
        problem = graph(tasks, [["x", "y", 1000, 1_000_000]], **nodes)
        if works:
            check(problem, plan(0, 0), plan(1, 1), safe_order(problem, plan(0, 0), plan(1, 1)))
        else:
            with pytest.raises(NoSafeOrder, match="not proven"):
                safe_order(problem, plan(0, 0), plan(1, 1))


def test_the_same_seed_gives_the_same_order() -> None:
    problem, old, new = random_pair(5, per_node=(4, 5))
    assert safe_order(problem, old, new).to_json() == safe_order(problem, old, new).to_json()


def test_nothing_to_move_is_an_empty_order() -> None:
    problem, old, _ = random_pair(1)
    order = safe_order(problem, old, old)
    assert (order.moves, order.complete, order.mb) == ((), True, 0)


def test_wrong_limits_are_refused() -> None:
    problem, old, new = random_pair(1)
    with pytest.raises(InvalidInput, match="max_moves is -1"):
        safe_order(problem, old, new, max_moves=-1)
    with pytest.raises(InvalidInput, match="max_mb is nan"):
        safe_order(problem, old, new, max_mb=float("nan"))


def test_hundreds_of_moves_are_ordered() -> None:
    problem, old, _ = random_pair(3, nodes=(40, 40), per_node=(20, 20))
    new = random_plan(problem, np.random.default_rng(9))
    assert new is not None
    order = safe_order(problem, old, new)
    assert order.complete
    state = old
    for step, state in enumerate(replayed(problem, old, order.moves)):
        if step % 50 == 0:
            assert broken_rules(problem, state) == []
    assert broken_rules(problem, state) == []

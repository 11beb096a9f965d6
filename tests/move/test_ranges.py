"""What a change of plans carries: ranges of key groups, as the engine reads them."""

# pyright: reportUnknownParameterType=false
# pyarrow says nothing about its types.

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headrace.checks.problems import Content, problem_of
from headrace.errors import InvalidInput
from headrace.judge.diff import divided_mb
from headrace.model.document import Component
from headrace.model.keys import GROUPS
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.model.ranges import divide_state, find_holders, task_state_mb
from headrace.move.change import arrivals, carry_plan, volumes_between
from headrace.move.optimal import optimal
from headrace.move.relabel import relabel
from headrace.move.ro_mod import ro_mod
from headrace.planner import moving, place
from headrace.run import Keyed
from headrace.run.batches import Batches
from headrace.run.placement import PlanInForce
from headrace.run.rehearsal import rehearse_batch
from headrace.run.routing import key_groups
from headrace.run.state import Commit, Store, carry_out, files_of_task, groups_of_task
from headrace.run.state_files import StateFile, read_state
from tests.run.topologies import (
    COUNTS,
    expected_counts,
    final_counts,
    plan,
    settings,
    values,
    word_count,
)

FIELDS = {"grouping": "fields", "fields": ["word"]}


def counting(tasks: int, *, nodes: int = 2, grouping: object = None, mb: float = 40) -> Problem:
    """One spout, and a bolt with state."""
    components: Content = {
        "say": {"spout": True, "rate": 100},
        "count": {"tasks": tasks, "inputs": {"say": grouping or FIELDS}, "state_mb": mb},
    }
    # No two nodes are alike, so that only tasks can swap roles.
    facts = [{"bandwidth_mbps": 1000, "slots": 8 + i} for i in range(nodes)]
    return problem_of(
        {
            "topology": {"components": components},
            "cluster": {"nodes": {f"n{i}": facts[i] for i in range(nodes)}},
        }
    )


def on(*nodes: int) -> Assignment:
    """The spout on node 0, the bolt's tasks as given."""
    node = np.array([0, *nodes], dtype=np.int64)
    return Assignment(node, np.zeros_like(node))


def mb_between(old: Problem, before: Assignment, new: Problem, after: Assignment) -> list[float]:
    """Megabytes that go from one node to another, as the planner has them, [from, to]."""
    running = carry_plan(old, before, new)
    volumes = volumes_between(new, running.plan, after, holders=running.holders)
    return volumes.units.tolist()


def test_one_task_that_becomes_two_gives_half_of_its_keys_away() -> None:
    # 40 MB on n0. Task 1 keeps the groups 0 to 16383, task 2 on n1 gets 16384 to 32767: 20 MB, at
    # 1000 Mbit/s 0.16 s.
    old, new = counting(1), counting(2)
    running = carry_plan(old, on(0), new)
    assert running.notes == (
        "count: 1 tasks become 2, and its 40 MB of keyed state are divided again",
    )
    volumes = volumes_between(new, running.plan, on(0, 1), holders=running.holders)
    assert volumes.units.tolist() == [[0, 20], [0, 0]]
    assert (volumes.bound, volumes.notes) == (pytest.approx(0.16), ())
    assert volumes.ranges is not None
    (piece,) = [volumes.ranges.show(i) for i in volumes.ranges.list_moving()]
    assert piece == ("count", 16384, 32768, "count.1", "count.2", "n0", "n1", 20.0)


def test_a_task_that_stops_leaves_its_keys_to_the_others() -> None:
    # Four tasks of 40 MB on n0 n0 n1 n1 become two on n0 n1: the first gets the keys of the first
    # two, and nothing moves. On n1 n0 instead everything does: 80 MB each way.
    old, new = counting(4), counting(2)
    assert mb_between(old, on(0, 0, 1, 1), new, on(0, 1)) == [[0, 0], [0, 0]]
    assert mb_between(old, on(0, 0, 1, 1), new, on(1, 0)) == [[0, 80], [80, 0]]
    # Alike tasks swap roles, so that nothing has to move after all.
    running = carry_plan(old, on(0, 0, 1, 1), new)
    better = relabel(new, running.plan, on(1, 0), holders=running.holders)
    assert (better.plan.node.tolist(), better.saved_mb) == ([0, 0, 1], 160)


def test_swapping_tasks_keeps_the_most_keys() -> None:
    # Two tasks on n0, n1 become four: two places on each node. Tasks 1 and 2 hold the keys of the
    # old task 1 (n0), tasks 3 and 4 those of task 2 (n1).
    old, new = counting(2), counting(4)
    running = carry_plan(old, on(0, 1), new)
    better = relabel(new, running.plan, on(1, 0, 1, 0), holders=running.holders)
    assert better.plan.node.tolist()[1:] == [0, 0, 1, 1]
    assert better.saved_mb == 40  # as given, task 1 and task 4 are on the wrong node
    units = volumes_between(new, running.plan, better.plan, holders=running.holders).units
    assert not units.any()


def test_the_places_of_tasks_go_to_those_that_get_their_keys() -> None:
    # Two tasks become four: the first starts with the keys of the first, the third with those of
    # the second; the other two are new. Four become two: the first and the third stay.
    two, four = counting(2), counting(4)
    assert carry_plan(two, on(0, 1), four).plan.node.tolist() == [0, 0, UNPLACED, 1, UNPLACED]
    assert carry_plan(four, on(0, 0, 1, 1), two).plan.node.tolist() == [0, 0, 1]


def test_state_that_is_not_keyed_cannot_be_divided() -> None:
    old, new = counting(2, grouping="shuffle"), counting(3, grouping="shuffle")
    assert mb_between(old, on(0, 1), new, on(0, 1, 1)) == [[0, 0], [0, 0]]
    assert carry_plan(old, on(0, 1), new).notes == ("1 new tasks of count start without state",)
    assert carry_plan(new, on(0, 1, 1), old).notes == (
        "1 tasks of count stop first; their 40 MB of state are not keyed, and lost",
    )


def test_of_a_global_grouping_the_first_task_holds_everything() -> None:
    old, new = counting(2, grouping="global"), counting(3, grouping="global")
    assert task_state_mb(old).tolist() == [0, 40, 0]
    assert mb_between(old, on(0, 1), new, on(1, 0, 0)) == [[0, 40], [0, 0]]
    assert mb_between(old, on(0, 1), new, on(0, 1, 1)) == [[0, 0], [0, 0]]


def test_keys_of_a_node_that_is_gone_are_lost_and_that_is_said() -> None:
    # n1 had the second half of the keys. Of three tasks the second and the third miss some.
    old, new = counting(2), counting(3, nodes=1)
    running = carry_plan(old, on(0, 1), new)
    volumes = volumes_between(new, running.plan, on(0, 0, 0), holders=running.holders)
    assert volumes.notes == ("2 tasks start without their state (40 MB)",)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 3), (3, 2), (4, 6), (7, 5), (40, 39)])
def test_the_planner_moves_what_the_engine_reads(before: int, after: int) -> None:
    """Every file that a task of the new plan reads is a range of the planner, and no other is."""
    old, new = counting(before), counting(after)
    holders = find_holders(old, on(*([0] * before)), new)
    pieces = divide_state(new, holders, on(*([1] * after)))
    mine = pieces.component == 1
    said = sorted(
        zip(
            pieces.taker[mine].tolist(),
            pieces.first[mine].tolist(),
            pieces.end[mine].tolist(),
            pieces.holder[mine].tolist(),
            strict=True,
        )
    )
    inputs = {"say": [FIELDS]}
    was, will = (Component.model_validate({"tasks": n, "inputs": inputs}) for n in (before, after))
    files = [StateFile("count", *groups_of_task(was, k), str(k)) for k in range(before)]
    read = sorted(
        (number, f.first, f.end, int(f.file))
        for number in range(after)
        for f in files_of_task(files, "count", will, number)
    )
    assert said == read
    assert pieces.mb[mine].sum() == pytest.approx(40 * before)


def test_the_planner_s_megabytes_are_the_engine_s_rows() -> None:
    # 60,000 keys in three tasks on n0 n0 n1 become five on n0 n1 n0 n1 n1. A key's row is a
    # thousandth of a megabyte: 20 MB per task.
    keys = pa.table({"word": [f"key {i}" for i in range(60_000)]})
    group = key_groups(keys, ["word"])
    was, will = on(0, 0, 1), on(0, 1, 0, 1, 1)
    moved = np.zeros((2, 2))
    np.add.at(moved, (was.node[1 + group * 3 // GROUPS], will.node[1 + group * 5 // GROUPS]), 0.001)
    said = np.array(mb_between(counting(3, mb=20), was, counting(5, mb=20), will))
    assert said[0, 1] == pytest.approx(moved[0, 1], rel=0.02)
    assert said[1, 0] == pytest.approx(moved[1, 0], rel=0.02, abs=0.1)


def test_diff_move_and_the_safe_order_say_the_same() -> None:
    old = place(counting(2), "storm-even")
    new = place(counting(4), "storm-even")
    change, transfer = moving.difference(old, new), moving.least_transfer(old, new)
    steps = moving.move(old, new)
    order, _ = moving.move_safely(old, new)
    assert transfer["mb"] == steps.moves.units == order.mb
    assert change.moved_mb == sum(change.divided.values())  # before roles are swapped
    assert change.divided == divided_mb(old.problem, old.assignment, new.problem, new.assignment)
    assert steps.moves.units <= change.moved_mb
    assert not any("without" in note for note in (*steps.notes, *order.notes))


def test_a_safe_order_counts_the_keys_that_new_tasks_take() -> None:
    # One task of 40 MB on n0 becomes two, on n1: the second starts on n1 and takes 20 MB, then the
    # first moves there with the 20 MB that are left to it.
    old, new = place(counting(1), "storm-even"), place(counting(2), "storm-even")
    old, new = replace(old, assignment=on(0)), replace(new, assignment=on(1, 1))
    order, _ = moving.move_safely(old, new)
    assert [(m.kind, m.task, m.mb) for m in order.moves] == [
        ("start", "count.2", 0),
        ("move", "count.1", 20),
    ]
    assert (order.divided_mb, order.mb) == (20, 40)
    assert order.to_json()["report"]["divided_mb"] == 20


def blocks_of(count: int, size: int) -> list[int]:
    """Tasks dealt in blocks: as many as `size` on a node."""
    return [k // size for k in range(count)]


def test_ro_mod_orders_ranges_by_the_offset_of_their_block() -> None:
    # Twelve tasks of 1 MB, three per node on four nodes, become four per node on three: 4x3:3x4.
    # Block 0 (tasks 1-4) starts with node 0's block, offset 0: task 4 comes from n1.
    # Block 1 (5-8) starts at offset 1 of n1's: tasks 7, 8 from n2. Block 2 (9-12) starts at offset
    # 2 of n2's: tasks 10-12 from n3. Three steps of 1, 2 and 3 MB; at 1000 Mbit/s 8 ms each MB.
    problem = counting(12, nodes=4, mb=1)
    old, new = on(*blocks_of(12, 3)), on(*blocks_of(12, 4))
    moves = ro_mod(volumes_between(problem, old, new))
    assert [[tuple(t) for t in step.transfers] for step in moves.steps] == [
        [("n1", "n0", 1)],
        [("n2", "n1", 2)],
        [("n3", "n2", 3)],
    ]
    assert [step.cost for step in moves.steps] == pytest.approx([0.008, 0.016, 0.024])
    assert [[r.taker for r in step.ranges] for step in moves.steps] == [
        ["count.4"],
        ["count.7", "count.8"],
        ["count.10", "count.11", "count.12"],
    ]
    # No node sends or receives more than 3 MB: all of it could be done in 24 ms.
    assert (
        moves.bound == optimal(volumes_between(problem, old, new)).makespan == pytest.approx(0.024)
    )


def test_ro_mod_orders_a_change_of_counts() -> None:
    # Two tasks (12 MB each) on n0, n1 become three on n0, n1, n2; in sixths of the 24 MB:
    # before n0 n0 n0 n1 n1 n1, after n0 n0 n1 n1 n2 n2.
    # Block 0 starts at offset 0 of n0's and stays. Block 1 starts at offset 2 of n0's: one sixth
    # from n0 to n1. Block 2 starts at offset 1 of n1's: two sixths from n1 to n2.
    # By offset: first block 2 (8 MB), then block 1 (4 MB).
    old, new = counting(2, nodes=3, mb=12), counting(3, nodes=3, mb=12)
    running = carry_plan(old, on(0, 1), new)
    work = volumes_between(new, running.plan, on(0, 1, 2), holders=running.holders)
    moves = ro_mod(work)
    shown = [
        [(r.first, r.end, r.holder, r.taker, round(r.mb, 2)) for r in step.ranges]
        for step in moves.steps
    ]
    assert shown == [
        [(21846, 32768, "count.2", "count.3", 8.0)],
        [(10923, 16384, "count.1", "count.2", 4.0)],
    ]
    assert moves.units == pytest.approx(float(work.units.sum()))
    assert moves.to_json()["steps"][1]["ranges"] == [
        {
            "component": "count",
            "groups": [10923, 16384],
            "from_task": "count.1",
            "to_task": "count.2",
            "from": "n0",
            "to": "n1",
            "mb": pytest.approx(24 * 5461 / 32768),
        }
    ]


def test_ro_mod_counts_what_nodes_send_as_well() -> None:
    # Two components of one task (40 MB each) on n0 become two tasks each; the second ones are on n1
    # and on n2. Both halves start at the middle, so they go in one step: n0 sends 40 MB, which
    # takes 0.32 s, though n1 and n2 receive 20 MB each.
    def two_counts(tasks: int) -> Problem:
        one: Content = {"tasks": tasks, "inputs": {"say": FIELDS}, "state_mb": 40}
        return problem_of(
            {
                "topology": {"components": {"say": {"spout": True}, "b": one, "c": one}},
                "cluster": {"nodes": {"n{0..2}": {"bandwidth_mbps": 1000}}},
            }
        )

    old, new = two_counts(1), two_counts(2)
    running = carry_plan(old, on(0, 0), new)
    work = volumes_between(new, running.plan, on(0, 1, 0, 2), holders=running.holders)
    moves = ro_mod(work)
    assert [[tuple(t) for t in step.transfers] for step in moves.steps] == [
        [("n0", "n1", 20), ("n0", "n2", 20)]
    ]
    assert moves.steps[0].cost == moves.bound == pytest.approx(0.32)


def test_between_two_plans_ranges_arrive_with_their_step() -> None:
    problem = counting(12, nodes=4, mb=1)
    plans = [place(problem, "storm-even") for _ in range(2)]
    old, new = (
        replace(p, assignment=on(*blocks_of(12, n))) for p, n in zip(plans, (3, 4), strict=True)
    )
    # Tasks keep their numbers, since ro-mod's steps are of these plans as they are.
    pair = moving.TwoPlans(
        problem, old.assignment, new.assignment, (), find_holders(problem, old.assignment, problem)
    )
    moves = ro_mod(pair.volumes())
    gains = arrivals(problem, pair.old, pair.new, moves)
    assert [g.tasks for g in gains] == [
        ("count.4",),
        ("count.7", "count.8"),
        ("count.10", "count.11", "count.12"),
    ]
    assert [g.pause_s for g in gains] == pytest.approx([0.008, 0.016, 0.024])


def test_ranges_of_one_pair_of_nodes_arrive_in_the_order_of_their_offsets() -> None:
    # Before n0 n0 n2 n2 n0, after n0 n1 n2 n2 n1: task 5 starts its source's run (offset 0), task 2
    # is second in its own (offset 1), so task 5 goes first.
    problem = counting(5, nodes=3, mb=1)
    old, new = on(0, 0, 2, 2, 0), on(0, 1, 2, 2, 1)
    gains = arrivals(problem, old, new, ro_mod(volumes_between(problem, old, new)))
    assert [g.tasks for g in gains] == [("count.5",), ("count.2",)]


def test_the_engine_carries_out_an_order_of_ranges(tmp_path: Path) -> None:
    """After the steps of ro-mod, tasks of the new plan read whole files that hold their keys."""
    topology = word_count(tmp_path / "out")
    in_force = PlanInForce(topology, plan(count=2))
    batches = Batches(topology, in_force, settings(tmp_path))
    rehearse_batch(batches, 0, values(0, 70))
    store = Store(settings(tmp_path).checkpoint)
    before = rows_of(store, store.last())

    old, new = counting(2, nodes=3, mb=12), counting(3, nodes=3, mb=12)
    running = carry_plan(old, on(0, 1), new)
    moves = ro_mod(volumes_between(new, running.plan, on(0, 1, 2), holders=running.holders))
    for step in moves.steps:
        ranges = [(r.component, r.first, r.end) for r in step.ranges]
        commit = carry_out(store, ranges, {"count": COUNTS})
        assert commit == store.last()
        assert rows_of(store, commit) == before
        assert (
            carry_out(store, ranges, {"count": COUNTS}) == commit
        )  # a second time changes nothing
    component = Component.model_validate({"tasks": 3, "inputs": {"split": [FIELDS]}})
    found = [files_of_task(store.last().state, "count", component, k) for k in range(3)]
    taken = [[(f.first, f.end, f.whole) for f in files if f.whole] for files in found]
    assert taken[1] == [(10923, 16384, True)]  # the rest of task 2's keys never moved
    assert taken[2] == [(21846, 32768, True)]

    in_force.set(plan("three", nodes=("a", "b", "c"), count=3))
    rehearse_batch(batches, 1, values(70, 140))
    assert final_counts(tmp_path / "out") == expected_counts(140)


def rows_of(store: Store, commit: Commit) -> dict[str, int]:
    """The state of all tasks together."""
    rows = read_state(commit.state, store.folder, COUNTS).to_pylist()
    assert len({row["word"] for row in rows}) == len(rows)
    return {row["word"]: row["count"] for row in rows}


def test_an_order_for_a_component_without_keyed_state_is_refused(tmp_path: Path) -> None:
    keyed: dict[str, Keyed] = {}
    with pytest.raises(InvalidInput, match="`split` has no keyed state"):
        carry_out(Store(tmp_path), [("split", 0, 5)], keyed)


def test_new_tasks_that_ran_nowhere_are_no_holders() -> None:
    problem = counting(2)
    pieces = divide_state(problem, find_holders(problem, on(0, UNPLACED), problem), on(0, 0))
    assert pieces.lost.tolist() == [False, False, True]

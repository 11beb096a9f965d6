"""Every tuple that entered is completed, pending or lost, whatever happens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.model.problem import Assignment
from headrace.simulate.layout import grow, lay_out
from headrace.solve.simulation import state as at
from headrace.solve.simulation.changes import kill_task, pause_task, resume_task, seat_tasks
from headrace.solve.simulation.state import Run
from headrace.solve.simulation.tuples import advance, set_rate


def small(**sections: Any) -> hr.Case:
    """Two spouts, a bolt that multiplies, one that is keyed, a sink for all; three nodes."""
    components = {
        "a": {"spout": True, "tasks": 2, "rate": 300, "bytes": 200},
        "b": {"spout": True, "rate": 200, "bytes": 100},
        "split": {"tasks": 3, "inputs": {"a": "shuffle", "b": "local-or-shuffle"},
                  "selectivity": 2.5, "bytes": 50},
        "count": {"tasks": 4, "inputs": {"split": {"grouping": "fields", "fields": ["w"]}},
                  "selectivity": 0.3, "bytes": 50, "state_mb": 5},
        "out": {"tasks": 2, "inputs": {"count": "all"}},
    }  # fmt: skip
    return hr.case(
        {
            "topology": {"components": components},
            "cluster": {
                "nodes": {
                    "n1": {"cpu": 100, "bandwidth_mbps": 10, "slots": 4, "rack": "r1"},
                    "n2": {"cpu": 200, "bandwidth_mbps": 10, "slots": 4, "rack": "r1"},
                    "n3": {"cpu": 100, "slots": 4, "rack": "r2"},
                },
                "racks": {"r1": {"uplink_mbps": 5}},
            },
            "profile": {name: {"*": {"cpu_ms": 0.4}} for name in components},
            "options": {"judge": {"send_node_cpu_ms": 0.05, "send_worker_cpu_ms": 0.01}},
            **sections,
        }
    )


def pending(run: Run) -> int:
    """Trees in memory, counted one by one; every one has tuples somewhere."""
    open_trees = np.flatnonzero(run.open != at.NOBODY)
    free = np.zeros(len(run.next), bool)
    place, count = int(run.counts[at.FREE_TUPLE]), int(run.counts[at.FREE_TUPLES])
    for _ in range(count):
        assert not free[place]
        free[place] = True
        place = int(run.next[place])
    used = np.flatnonzero(~free & (run.via != at.ACKNOWLEDGED))
    tuples = np.bincount(run.tree[used], minlength=len(run.open))
    assert (tuples[open_trees] == run.open[open_trees]).all()
    assert len(used) == run.open[open_trees].sum()
    return len(open_trees)


def check(run: Run) -> None:
    entered, completed, lost = (int(run.counts[i]) for i in (at.ENTERED, at.COMPLETED, at.LOST))
    assert entered == completed + lost + pending(run)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    queue_size=st.sampled_from([None, 1, 5]),
    limit=st.sampled_from([None, 1, 4]),
    factor=st.sampled_from([0.5, 1.0, 2.5]),
)
def test_nothing_is_forgotten(
    seed: int, queue_size: int | None, limit: int | None, factor: float
) -> None:
    sections = {k: v for k, v in (("queue_size", queue_size), ("max_spout_pending", limit)) if v}
    problem = small(**sections).problem
    rng = np.random.default_rng(seed)
    node = rng.integers(0, 3, problem.task_count)
    run = lay_out(problem, Assignment(node, rng.integers(0, 2, problem.task_count)), seed)
    rates = (problem.rate[problem.component_of] * problem.share)[run.sources]
    for i, rate in enumerate((rates * factor).tolist()):
        set_rate(run, i, rate)
    for step in range(6):
        until = float(step + 1)
        while advance(run, until) == at.FULL:
            run = grow(run)
        check(run)
        assert (run.waiting >= 0).all()
        if queue_size is not None:
            assert (run.waiting[~run.source.astype(bool)] <= queue_size + 1).all()
        if limit is not None:
            assert (run.pending <= limit).all()
        for task in rng.integers(0, problem.task_count, 2).tolist():
            (kill_task if rng.random() < 0.3 else pause_task)(run, task)
        for task in rng.integers(0, problem.task_count, 2).tolist():
            resume_task(run, task)
        seat_tasks(run)
    check(run)


def test_nothing_is_lost_without_a_cause() -> None:
    found = hr.simulate(hr.place(small(), by="storm-even"), seconds=20)
    assert found.total("lost") == 0
    assert found.total("entered") == found.total("completed") + found.pending


def test_a_change_of_plan_loses_nothing() -> None:
    case = small()
    before, after = hr.place(case, by="storm-even"), hr.place(case, by="rstorm")
    found = hr.simulate(before, seconds=20, events=[{"at": 8, "plan": after}])
    assert found.total("lost") == 0
    assert found.total("entered") == found.total("completed") + found.pending
    assert any("tasks move" in note for note in found.notes)


MOMENTS = st.floats(0.0, 4.0)
CHANGES = st.one_of(
    st.fixed_dictionaries({"at": MOMENTS, "rate": st.sampled_from([0.0, 0.5, 3.0])}),
    st.fixed_dictionaries({"at": MOMENTS, "hot": st.sampled_from(["count.1", "count.3"])}),
    st.fixed_dictionaries({"at": MOMENTS, "plan": st.integers(0, 1000)}),
)
FAILURES = st.one_of(
    st.fixed_dictionaries({"at": MOMENTS, "lose": st.sampled_from(["n1", "n2", "n3"])}),
    st.fixed_dictionaries({"at": MOMENTS, "join": st.sampled_from(["n1", "n2", "n3"])}),
)


def random_plan(case: hr.Case, seed: int) -> hr.Plan:
    rng = np.random.default_rng(seed)
    tasks = [case.problem.task_name(t) for t in range(case.problem.task_count)]
    return hr.judge(case, {task: f"n{rng.integers(1, 4)}" for task in tasks})


@settings(max_examples=25, deadline=None)
@given(
    changes=st.lists(CHANGES, max_size=4),
    failures=st.lists(FAILURES, max_size=3),
    queue_size=st.sampled_from([None, 2, 20]),
    limit=st.sampled_from([None, 1, 20]),
)
def test_whatever_happens_every_tuple_is_counted_once(
    changes: list[dict[str, Any]],
    failures: list[dict[str, Any]],
    queue_size: int | None,
    limit: int | None,
) -> None:
    sections = {k: v for k, v in (("queue_size", queue_size), ("max_spout_pending", limit)) if v}
    case = small(**sections)
    events = [
        {**event, "plan": random_plan(case, event["plan"])} if "plan" in event else event
        for event in changes
    ]
    found = hr.simulate(random_plan(case, 0), seconds=5, events=[*events, *failures])
    assert found.total("entered") == found.total("completed") + found.pending + found.total("lost")
    assert found.pending >= 0
    if not any("lose" in event for event in failures):
        assert found.total("lost") == 0


def test_a_lost_node_loses_what_it_holds_and_what_is_sent_to_it() -> None:
    plan = hr.place(small(), by="storm-even")
    found = hr.simulate(
        plan, seconds=20, events=[{"at": 5, "lose": "n2"}, {"at": 10, "join": "n2"}]
    )
    lost = np.array(found.series["lost"])
    at_s = np.array(found.series["at_s"])
    assert lost[at_s <= 5].sum() == 0
    assert lost[(at_s > 5) & (at_s <= 10)].sum() > 100
    assert lost[at_s > 10.5].sum() == 0
    assert found.total("entered") == found.total("completed") + found.pending + found.total("lost")


@pytest.mark.parametrize("detail", ["tuple", "fluid", "batch"])
def test_same_seed_same_bytes(detail: str) -> None:
    plan = hr.place(small(), by="storm-even")
    one, two = (hr.simulate(plan, seconds=5, seed=3, detail=detail, runs=2) for _ in range(2))
    assert one.to_json() == two.to_json()
    if detail != "fluid":
        assert hr.simulate(plan, seconds=5, seed=4, detail=detail).to_json() != one.to_json()

"""The fewest tasks on small workloads: all counts in order, and only those that can be packed."""

from __future__ import annotations

import numpy as np

from headrace.lab.families import random_sections
from headrace.model.document import FORMAT
from headrace.model.read import validated
from headrace.model.sizable import Load, load_of, sizable
from headrace.model.workload import Workload
from headrace.planner import size
from headrace.size.packed_tasks import counts_from, pack_fewest_tasks


def small_load(first_cpu: int = 100) -> Load:
    """Two components with work for 90 and 60 points at the rate given, on nodes of 100 and 50."""
    content = {
        "format": FORMAT,
        "topology": {
            "components": {
                "a": {"spout": True, "rate": 100},
                "b": {"inputs": {"a": "shuffle"}},
            }
        },
        "cluster": {"nodes": {"n1": {"cpu": first_cpu}, "n2": {"cpu": 50}}},
        "profile": {"a": {"*": {"cpu_ms": 9.0}}, "b": {"*": {"cpu_ms": 6.0}}},
    }
    return load_of(sizable(Workload(validated(content, {})), catalog=False), catalog=False)


def test_all_counts_come_once_and_those_with_fewest_tasks_first() -> None:
    least, most = np.array([2, 1, 1]), np.array([9, 2, 9])
    found = [tuple(count.tolist()) for count in counts_from(least, most, extra=4)]
    totals = [sum(count) for count in found]
    assert totals == sorted(totals)
    expected = {
        (a, b, c)
        for a in range(2, 10)
        for b in range(1, 3)
        for c in range(1, 10)
        if a + b + c < 4 + 4
    }
    assert len(found) == len(expected)
    assert set(found) == expected


def test_the_fewest_that_can_be_packed_are_found() -> None:
    """All 150 points are needed: nodes of 100 and 50 must be full.

    One task each (90 and 60) does not fill them, nor do 1 and 2 (90; 30, 30: 60 beside nothing),
    2 and 1 (45, 45; 60), nor 1 and 3 (90; 20, 20, 20), 2 and 2 (45, 45; 30, 30) or 3 and 1 (30, 30,
    30; 60): of these no sums are 50. With five tasks, 3 and 2 (30 five times) are no 50 either;
    1 and 4 (90; 15 four times), 2 and 3 (45, 45; 20, 20, 20), 4 and 1 (22.5 four times; 60): none.
    Six: 3 and 3: 30 + 20 = 50, and 30, 30, 20, 20 are 100.
    """
    found = pack_fewest_tasks(small_load(), 1.0, enough=9, deadline=None)
    assert found is not None
    assert found.tolist() == [[2, 1], [2, 1]]


def test_none_are_found_where_none_are_fewer() -> None:
    assert pack_fewest_tasks(small_load(), 1.0, enough=6, deadline=None) is None
    assert pack_fewest_tasks(small_load(), 1.0, enough=9, deadline=lambda: True) is None


def test_a_sized_plan_on_full_nodes_has_the_fewest_tasks() -> None:
    """An integer program proves that 32 is the least here; a search by single tasks ended at 42."""
    workload = Workload(validated({"format": FORMAT, **random_sections(7042)}, {}))
    best = size(workload, options={"within": 0.0}).report.max_rate
    sized = size(workload)
    assert sized.problem.task_count == 32
    assert best is not None
    assert sized.report.max_rate is not None
    assert sized.report.max_rate >= 0.99 * best * (1 - 1e-9)

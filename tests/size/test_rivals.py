"""No other sizer beats headrace: a slice of benchmarks/sizers.py, and cases that once were lost."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import planner
from headrace.errors import HeadraceError
from headrace.model.generate_workload import random_workload
from headrace.model.request import Request
from headrace.size.headrace import headrace
from headrace.size.nasiri import nasiri
from headrace.size.nasiri_optimal import nasiri_optimal
from tests.size.workloads import rolling_count, workload_of

NEAR = 0.001  # as a share
RIVALS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("nasiri", {"to": "least-tcu"}),
    ("nasiri", {"to": "least-utilised"}),
    ("nasiri-optimal", {"most_per_machine": 6}),
)


def sustained(content: dict[str, Any], by: str, options: dict[str, Any]) -> float:
    """The judge's rate; 0 where a sizer refuses, or breaks a rule."""
    try:
        report = planner.size(workload_of(content), by, options=options).report
    except HeadraceError:
        return 0.0
    return report.max_rate or 0.0 if report.feasible else 0.0


@pytest.mark.parametrize("seed", range(100, 114))
def test_no_sizer_beats_headrace_on_a_random_workload(seed: int) -> None:
    content = random_workload(seed)
    ours = sustained(content, "headrace", {})
    for by, options in RIVALS:
        theirs = sustained(content, by, options)
        assert theirs <= ours * (1 + NEAR), f"{by} {options}"


@pytest.mark.parametrize(
    ("seed", "by"),
    [
        (20318, "ds2"),  # narrow links: the same counts, placed for what they send
        (20324, "lsa"),
        (20535, "nasiri-optimal"),  # the best has up to ten tasks on one node
    ],
)
def test_what_once_was_lost_is_not_lost_again(seed: int, by: str) -> None:
    content = random_workload(seed)
    ours, theirs = sustained(content, "headrace", {"within": 0.0}), sustained(content, by, {})
    assert 0 < theirs <= ours * (1 + NEAR)


def test_few_tasks_hear_a_tick_that_goes_to_all() -> None:
    # By hand in tests/golden/nasiri.yaml: three instances alone on a node each carry 750.
    content = rolling_count()
    assert headrace(workload_of(content)).rate == pytest.approx(750)
    assert nasiri_optimal(workload_of(content)).rate == pytest.approx(750)
    assert nasiri(workload_of(content)).rate < 750


def test_counts_at_which_a_loop_never_ends_are_not_planned() -> None:
    # Each of n tasks of b hears all that the n tasks return, 0.3 of a tuple each: with four tasks
    # 1.2 come back for each one.
    components = {
        "s": {"spout": True, "rate": 1},
        "b": {"inputs": {"s": "shuffle", "b": "all"}, "selectivity": 0.3},
    }
    content: dict[str, Any] = {
        "topology": {"components": components},
        "profile": {"b": {"*": {"cpu_ms": 10}}},
        "cluster": {"nodes": {f"n{i}": {"cpu": 100} for i in range(1, 7)}},
    }
    # n tasks process r / (1 - 0.3 n) in all, so each 100 points carry n (1 - 0.3 n) 100.
    best = max(n * (1 - 0.3 * n) * 100 for n in (1, 2, 3))
    assert headrace(workload_of(content)).rate == pytest.approx(best)
    assert nasiri_optimal(workload_of(content)).rate == pytest.approx(best)


def test_the_first_task_of_a_global_stream_has_more_to_do() -> None:
    # The first task of b hears all of t, 0.5 points per tuple/s, and shares the 1 of s with the
    # others.
    components = {
        "s": {"spout": True, "rate": 10},
        "t": {"inputs": {"s": "shuffle"}, "selectivity": 0.5},
        "b": {"inputs": {"s": "shuffle", "t": "global"}},
    }
    content: dict[str, Any] = {
        "topology": {"components": components},
        "profile": {"t": {"*": {"cpu_ms": 0}}, "b": {"*": {"cpu_ms": 10}}},
        "cluster": {"nodes": {f"n{i}": {"cpu": 100} for i in (1, 2, 3)}},
    }
    # More tasks make the first one's share of s smaller: alone on its node it carries
    # 100 / (0.5 + 1/k) of k tasks, and the other two nodes have (k - 1) / 2 tasks of 1/k each.
    best = max(min(100 / (0.5 + 1 / k), 100 / (-(-(k - 1) // 2) / k)) for k in range(2, 60))
    sized = headrace(workload_of(content))
    assert sized.rate >= best * (1 - NEAR)


def test_a_search_cut_short_still_gives_a_plan() -> None:
    content = random_workload(35)
    sized = headrace(workload_of(content), Request(deadline=lambda: True))
    assert sized.rate > 0

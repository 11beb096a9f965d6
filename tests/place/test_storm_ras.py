"""Since Storm 2.3 the resource-aware scheduler goes back where a task finds no room."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.checks.problems import problem_of
from headrace.errors import Infeasible, InvalidInput, Unsupported
from headrace.planner import place

# a and b have one connection each: a comes first, by name. Of CPU n1 has 100 / 160 and of memory
# half, so n1 comes before n2. The first descent puts a on n1: 50 are left there and 60 on n2, and
# b needs 80.
NARROW: dict[str, Any] = {
    "topology": {
        "worker_max_heap_mb": 1000,
        "components": {
            "a": {"spout": True, "rate": 10, "cpu": 50, "memory_mb": 100},
            "b": {"inputs": {"a": "shuffle"}, "cpu": 80, "memory_mb": 100},
        },
    },
    "cluster": {
        "nodes": {
            "n1": {"cpu": 100, "memory_mb": 1000, "slots": 4},
            "n2": {"cpu": 60, "memory_mb": 1000, "slots": 4},
        }
    },
}


def nodes(document: dict[str, Any], **options: object) -> dict[str, str]:
    return dict(
        place(problem_of(document), "storm-ras", options={"version": "2.3", **options}).node_of
    )


def test_the_task_before_makes_room() -> None:
    # a goes on through the other three workers of n1, where b still has no room, to n2.
    assert nodes(NARROW) == {"a.1": "n2", "b.1": "n1"}


def test_before_2_3_the_topology_is_refused() -> None:
    with pytest.raises(Infeasible) as refusal:
        nodes(NARROW, version="2.0")
    assert refusal.value.message == (
        "no node has room for `b.1`: it needs 80 cpu, and n2, which comes nearest, has 60 free"
    )


def test_the_search_ends_at_its_limit_of_states() -> None:
    # Five states until a is on n2; b is the sixth, and whether the limit is passed is looked at
    # before it.
    assert nodes(NARROW, max_states=5) == {"a.1": "n2", "b.1": "n1"}
    with pytest.raises(Infeasible) as refusal:
        nodes(NARROW, max_states=4)
    assert refusal.value.message == (
        "no node has room for `b.1`: it needs 80 cpu, and n2, which comes nearest, has 60 free; "
        "other places for the tasks before it were tried until 4 states were seen "
        "(option max_states)"
    )
    assert (refusal.value.task, refusal.value.resource) == ("b.1", "cpu")
    assert (refusal.value.needed, refusal.value.available) == (80, 60)


def test_workers_of_others_are_no_states() -> None:
    # Three of n1's six workers are left, 1, 4 and 5: a is on n2 with the fourth state.
    n1, n2 = NARROW["cluster"]["nodes"].values()
    shared = n1 | {"slots": 6, "taken": {"slots": [0, 2, 3]}}
    document = NARROW | {"cluster": {"nodes": {"n1": shared, "n2": n2}}}
    assert nodes(document, max_states=4) == {"a.1": "n2", "b.1": "n1"}
    with pytest.raises(Infeasible, match="until 3 states"):
        nodes(document, max_states=3)


def test_an_acker_goes_back_with_the_task_that_opened_its_worker() -> None:
    # The acker goes into a's new worker: 50 + 10 fill n2 as well.
    acker = {"__acker": {"tasks": 1, "cpu": 10, "memory_mb": 100}}
    topology = NARROW["topology"]
    components = topology["components"] | acker
    document = NARROW | {"topology": topology | {"components": components}}
    assert nodes(document) == {"a.1": "n2", "b.1": "n1", "__acker.1": "n2"}


# p has two connections, q and r one: p, then its neighbours q and r. Shares of CPU and memory: n1
# 5/7 and 1/3, n2 2/7 and 2/3, so n1 comes first. p needs the memory of n2. q follows in the same
# order, for its component is another: n1, one worker tried. r needs 450 of the 400 left there.
RESORTED: dict[str, Any] = {
    "topology": {
        "worker_max_heap_mb": 1000,
        "components": {
            "q": {"spout": True, "rate": 10, "cpu": 100, "memory_mb": 100},
            "p": {"inputs": {"q": "shuffle"}, "cpu": 10, "memory_mb": 700},
            "r": {"inputs": {"p": "shuffle"}, "cpu": 450, "memory_mb": 100},
        },
    },
    "cluster": {
        "nodes": {
            "n1": {"cpu": 500, "memory_mb": 500, "slots": 1},
            "n2": {"cpu": 200, "memory_mb": 1000, "slots": 1},
        }
    },
}


def test_going_back_sorts_again_and_may_pass_a_place_by() -> None:
    # Back at q nodes are sorted again: n2, which holds p, comes first. One worker was tried, so
    # the first is left out: that of n2, though the one tried was n1's. q goes to n1 once more, r
    # fails, and no worker is left for q, nor for p. Yet q beside p would do.
    with pytest.raises(Infeasible, match="were tried in vain"):
        nodes(RESORTED)


def test_with_a_second_worker_on_it_the_node_is_not_passed_by() -> None:
    n1, n2 = RESORTED["cluster"]["nodes"].values()
    document = RESORTED | {"cluster": {"nodes": {"n1": n1, "n2": n2 | {"slots": 2}}}}
    assert nodes(document) == {"p.1": "n2", "q.1": "n2", "r.1": "n1"}


def test_what_no_other_place_could_help_is_refused_at_once() -> None:
    # All of the 160 CPU are needed, but b's 110 are on no node even when it is empty.
    components = NARROW["topology"]["components"]
    large = components | {"b": components["b"] | {"cpu": 110}}
    document = NARROW | {"topology": NARROW["topology"] | {"components": large}}
    with pytest.raises(Infeasible) as refusal:
        nodes(document)
    assert "were tried" not in refusal.value.message


def test_as_many_tasks_as_states_are_refused() -> None:
    with pytest.raises(Unsupported, match=r"at most 2 states.*2 tasks"):
        nodes(NARROW, max_states=2)
    with pytest.raises(InvalidInput, match="max_states is 0"):
        nodes(NARROW, max_states=0)

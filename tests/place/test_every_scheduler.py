"""The contract that every registered scheduler keeps, whatever it is after: the same problems for all of them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest

from headrace.errors import HeadraceError, Infeasible, Unsupported
from headrace.judge.feasible import Violation, violations
from headrace.judge.report import judge
from headrace.judge.traffic import Workers, traffic
from headrace.judge.use import use
from headrace.model.problem import UNPLACED, Assignment, Pairs, Problem, Stream
from headrace.planner import place
from headrace.registry import Entry, algorithm, entries
from tests.problems import Content, document, problem_of, renamed, roomy_document

SCHEDULERS = {entry.name: entry for entry in entries("place")}
SEEDS = range(40)  # problems of all kinds
ROOMY_SEEDS = range(8)  # problems that nobody may refuse
SMALL_SEEDS = range(16)  # problems with at most so many plans
MOST_PLANS = 1024

MATURITIES = {
    "reproduced",  # matches published numbers
    "faithful",  # follows the published algorithm; the worked example passes
    "inspired",  # after a paper whose details we do not have
    "ours",  # published nowhere else
    "exact",  # gives the optimum, or says that it does not
}

# Word of a Guards line -> the rules it stands for. What stands before "is never" or "are never" is
# guarded.
GUARDED_WORDS = {
    "slots": {"no such slot", "slot taken", "slot shared"},
    "CPU": {"overload cpu"},
    "memory": {"overload memory_mb"},
    "further resources": {"overload gpu"},
    "bandwidth": {"overload bandwidth in", "overload bandwidth out"},
    "worker heap": {"worker heap"},
    "pins": {"pinned"},
    "separations": {"apart"},
}

every_scheduler = pytest.mark.parametrize("name", SCHEDULERS)


def guarded(entry: Entry) -> set[str]:
    """The words of GUARDED_WORDS that an entry's Guards line promises."""
    promise, never, _ = (
        re.split(r"\b((?:is|are) never)\b", entry.guards, maxsplit=1)
        if " never" in entry.guards
        else ("", "", "")
    )
    return {
        word
        for word in GUARDED_WORDS
        if never and re.search(rf"\b{word}\b", promise, re.IGNORECASE)
    }


def rule(violation: Violation) -> str:
    return f"overload {violation.resource}" if violation.kind == "overload" else violation.kind


def run(name: str, problem: Problem, seed: int = 0) -> Assignment | HeadraceError:
    """A plan or a stated refusal; anything else that is raised fails the test."""
    try:
        planned = place(problem, name, seed=seed)
    except HeadraceError as error:
        return error
    assert planned.assignment is not None
    return planned.assignment


@cache
def content_of(seed: int) -> Content:
    """Problems of all kinds. Prices of sending are left out: only the judge knows what a plan pays for them."""
    content = document(Random(1000 + seed), most_tasks=9)
    content.pop("options", None)
    return content


@cache
def outcome(name: str, seed: int) -> tuple[Problem, Assignment | HeadraceError]:
    problem = problem_of(content_of(seed))
    return problem, run(name, problem)


def arrays(thing: Problem | Pairs | Stream) -> Iterator[np.ndarray[Any, Any]]:
    """Every array of a problem, those of its streams and pairs included."""
    for value in (getattr(thing, field.name) for field in fields(thing)):
        if isinstance(value, np.ndarray):
            yield value
    if isinstance(thing, Problem):
        for part in (thing.pairs, *thing.streams):
            yield from arrays(part)


def check_every_task_is_placed_once(problem: Problem, plan: Assignment) -> None:
    """On an existing node, in an existing and free slot, one topology per slot; of a refused topology, nothing."""
    assert len(plan.node) == len(plan.worker) == problem.task_count
    owner_of: dict[tuple[int, int], str] = {}
    for task in range(problem.task_count):
        topology = problem.topologies[problem.topology[problem.component_of[task]]]
        node, slot = int(plan.node[task]), int(plan.worker[task])
        if topology in plan.refused:
            assert (node, slot) == (UNPLACED, UNPLACED)
            continue
        assert 0 <= node < len(problem.nodes)
        assert 0 <= slot < problem.slots[node]
        assert not problem.slot_taken[node, slot]
        assert owner_of.setdefault((node, slot), topology) == topology


def same(a: Assignment | HeadraceError, b: Assignment | HeadraceError) -> bool:
    if isinstance(a, Assignment) and isinstance(b, Assignment):
        return np.array_equal(a.node, b.node) and np.array_equal(a.worker, b.worker)
    return type(a) is type(b)


# What its file says


@every_scheduler
def test_the_file_introduces_the_scheduler(name: str) -> None:
    entry = SCHEDULERS[name]
    assert entry.summary.endswith(".")
    assert entry.source
    assert entry.maturity in MATURITIES
    assert entry.differs
    assert "slots" in guarded(entry), (
        f"the Guards line does not say that slots `are never` overcommitted: {entry.guards}"
    )


def test_guards_lines_are_read_as_they_are_meant() -> None:
    everything = set(GUARDED_WORDS) - {"bandwidth"}
    meant = {
        "storm-even": {"slots"},
        "storm-ras": everything - {"pins", "separations"},
        "headrace": everything,
        "optimal": everything,
    }
    assert {name: guarded(SCHEDULERS[name]) for name in meant if name in SCHEDULERS} == {
        n: w for n, w in meant.items() if n in SCHEDULERS
    }


# What it does with problems of all kinds


@every_scheduler
@pytest.mark.parametrize("seed", SEEDS)
def test_every_task_is_placed_once_in_a_free_slot(name: str, seed: int) -> None:
    problem, plan = outcome(name, seed)
    if isinstance(plan, Assignment):
        check_every_task_is_placed_once(problem, plan)
        assert set(plan.refused) < set(problem.topologies)
    else:
        assert str(plan)


@every_scheduler
@pytest.mark.parametrize("seed", SEEDS)
def test_what_the_file_says_it_guards_is_never_broken(name: str, seed: int) -> None:
    problem, plan = outcome(name, seed)
    if isinstance(plan, Assignment):
        promised = {kind for word in guarded(SCHEDULERS[name]) for kind in GUARDED_WORDS[word]}
        assert [
            v.message for v in judge(problem, plan, bounded=False).violations if rule(v) in promised
        ] == []


@every_scheduler
@pytest.mark.parametrize("seed", SEEDS[::3])
def test_the_same_seed_gives_the_same_plan_and_leaves_the_problem_alone(
    name: str, seed: int
) -> None:
    problem = problem_of(content_of(seed))
    before = [array.copy() for array in arrays(problem)]
    again = run(name, problem)
    assert all(
        np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for a, b in zip(before, arrays(problem), strict=True)
    )
    assert same(again, outcome(name, seed)[1])


@every_scheduler
@pytest.mark.parametrize("seed", SEEDS[1::3])
def test_a_common_prefix_before_all_names_changes_nothing(name: str, seed: int) -> None:
    assert same(run(name, problem_of(renamed(content_of(seed), "prefix-"))), outcome(name, seed)[1])


# What it does with problems that give no reason to refuse


@cache
def roomy_content(seed: int) -> Content:
    return roomy_document(Random(2000 + seed), topologies=1 + seed % 2)


@every_scheduler
@pytest.mark.parametrize("seed", ROOMY_SEEDS)
def test_where_there_is_room_for_all_the_plan_is_feasible(name: str, seed: int) -> None:
    problem = problem_of(roomy_content(seed))
    plan = algorithm_plan(name, problem)
    check_every_task_is_placed_once(problem, plan)
    assert not plan.refused
    assert judge(problem, plan, bounded=False).violations == ()


def algorithm_plan(name: str, problem: Problem) -> Assignment:
    """A plan; a refusal fails the test with its message."""
    plan = run(name, problem)
    assert isinstance(plan, Assignment), f"{name} refuses: {plan}"
    return plan


ROOM: Content = {
    "nodes": {
        "n1": {"cpu": 800, "memory_mb": 8192, "slots": 4},
        "n2": {"cpu": 800, "memory_mb": 8192, "slots": 4},
    }
}
EDGE_CASES: dict[str, Content] = {
    "one task": {"topology": {"components": {"a": {"spout": True, "rate": 5, "cpu": 10}}}, "cluster": ROOM},
    "one bare task": {"tasks": {"a": {"cpu": 10}}, "cluster": ROOM},
    "one node": {
        "topology": {"components": {"a": {"spout": True, "tasks": 2, "rate": 5, "cpu": 10}, "b": {"tasks": 3, "inputs": {"a": "shuffle"}}}},
        "cluster": {"nodes": {"only": {"cpu": 400, "memory_mb": 4096, "slots": 2}}},
    },
    "one node with one slot": {
        "topology": {"workers": 1, "components": {"a": {"spout": True, "rate": 5, "cpu": 10}, "b": {"tasks": 3, "inputs": {"a": "shuffle"}}}},
        "cluster": {"nodes": {"only": {"cpu": 400, "memory_mb": 4096, "slots": 1}}},
    },
    "no traffic at all": {"topology": {"components": {"a": {"spout": True, "tasks": 3, "cpu": 10}, "b": {"tasks": 2, "cpu": 5}}}, "cluster": ROOM},
    "streams without tuples": {
        "topology": {"components": {"a": {"spout": True, "tasks": 2, "rate": 0, "cpu": 10}, "b": {"tasks": 2, "inputs": {"a": "shuffle"}}}},
        "cluster": ROOM,
    },
    "no demands at all": {
        "topology": {"components": {"a": {"spout": True, "tasks": 2, "rate": 9}, "b": {"tasks": 2, "inputs": {"a": "shuffle"}}}},
        "cluster": {"nodes": {"n1": {}, "n2": {}}},
    },
    "a graph in two pieces": {
        "tasks": {name: {"cpu": 10, "memory_mb": 10} for name in "abcdef"},
        "traffic": [["a", "b", 5], ["b", "c", 4], ["d", "e", 3], ["e", "f", 2]],
        "cluster": ROOM,
    },
    "only bolts": {"topology": {"components": {"a": {"tasks": 2, "cpu": 10}, "b": {"tasks": 2, "inputs": {"a": "shuffle"}}}}, "cluster": ROOM},
}  # fmt: skip


@every_scheduler
@pytest.mark.parametrize("case", EDGE_CASES)
def test_the_smallest_problems_work(name: str, case: str) -> None:
    problem = problem_of(EDGE_CASES[case])
    plan = algorithm_plan(name, problem)
    check_every_task_is_placed_once(problem, plan)
    assert judge(problem, plan, bounded=False).feasible


LOOP: Content = {
    "components": {
        "a": {"spout": True, "rate": 10, "cpu": 10},
        "b": {
            "tasks": 2,
            "inputs": {"a": "shuffle", "c": "shuffle"},
            "selectivity": 0.5,
            "cpu": 10,
        },
        "c": {"tasks": 2, "inputs": {"b": "shuffle"}, "selectivity": 0.5, "cpu": 10},
        "d": {"inputs": {"c": "shuffle", "d": "shuffle"}, "selectivity": 0.1, "cpu": 10},
    }
}


@every_scheduler
def test_a_cycle_works_or_is_named_in_the_refusal(name: str) -> None:
    problem = problem_of({"topology": LOOP, "cluster": ROOM})
    plan = run(name, problem)
    if isinstance(plan, HeadraceError):
        assert isinstance(plan, Unsupported)
        assert re.search(r"\b(cycle|loop)\b", plan.message)
        assert re.search(r"\b[bcd]\b", plan.message)
    else:
        check_every_task_is_placed_once(problem, plan)
        assert judge(problem, plan, bounded=False).feasible


# What `optimal` says about all of them


@cache
def small_content(seed: int) -> Content:
    """One topology or task graph, so small that all plans can be tried.

    Local-or-shuffle is left out, for its traffic depends on the plan.
    """
    random = Random(3000 + seed)
    while True:
        content = document(random, most_tasks=6, most_nodes=3)
        content.pop("options", None)
        for spec in content.get("topology", {}).get("components", {}).values():
            for entry in (
                entry for streams in spec.get("inputs", {}).values() for entry in streams
            ):
                entry["grouping"] = (
                    "shuffle" if entry["grouping"] == "local-or-shuffle" else entry["grouping"]
                )
        problem = problem_of(content)
        if (
            "topologies" not in content
            and has_to_be_split(problem)
            and plan_count(problem) <= MOST_PLANS
        ):
            return content


def has_to_be_split(problem: Problem) -> bool:
    """Whether there is traffic, no node could take all tasks, and all nodes together perhaps could."""
    demand = np.array(
        [problem.task_demand(int(machine)).sum(axis=0) for machine in problem.node_type]
    )
    alone, together = (
        (demand > problem.free).any(axis=1).all(),
        (demand.min(axis=0) <= problem.free.sum(axis=0)).all(),
    )
    return problem.pair_count > 0 and bool(alone and together)


def plan_count(problem: Problem) -> int:
    return int(problem.free_slots.sum()) ** problem.task_count


@cache
def best_traffic(seed: int) -> float | None:
    """Inter-node traffic of `optimal`'s plan; None if it says that there is no feasible plan."""
    problem = problem_of(small_content(seed))
    try:
        plan = run("optimal", problem)
    except Exception:  # noqa: BLE001 - one bug of optimal's would otherwise be told once per scheduler; its own tests tell it
        return math.nan
    if isinstance(plan, Assignment):
        return judge(problem, plan, bounded=False).inter_node_traffic
    return None if isinstance(plan, Infeasible) else math.nan


if_optimal = pytest.mark.skipif(
    "optimal" not in SCHEDULERS, reason="there is no `optimal` to compare with yet"
)


@if_optimal
@every_scheduler
@pytest.mark.parametrize("seed", SMALL_SEEDS)
def test_no_feasible_plan_is_better_than_optimal(name: str, seed: int) -> None:
    problem = problem_of(small_content(seed))
    plan = run(name, problem)
    if isinstance(plan, Assignment) and (report := judge(problem, plan, bounded=False)).feasible:
        best = best_traffic(seed)
        assert best is not None, f"{name} has a feasible plan where optimal says that there is none"
        if math.isnan(best):
            pytest.skip("optimal gives no answer")
        assert report.inter_node_traffic >= best - 1e-9 * report.total_traffic


@if_optimal
@pytest.mark.parametrize("seed", SMALL_SEEDS)
def test_optimal_is_the_best_of_all_plans_tried_one_by_one(seed: int) -> None:
    problem = problem_of(small_content(seed))
    slots = [
        (n, int(s))
        for n in range(len(problem.nodes))
        for s in np.flatnonzero(~problem.slot_taken[n])
    ]
    best: float | None = None
    for choice in itertools.product(slots, repeat=problem.task_count):
        node, worker = np.array(choice, dtype=np.int64).T
        plan = Assignment(node, worker)
        workers = Workers.of(plan)
        sent = traffic(problem, plan, workers)
        broken = violations(problem, plan, workers, sent, use(problem, plan, workers, sent))
        if all(
            violation.resource.startswith("bandwidth") for violation in broken
        ):  # which optimal does not guard
            best = sent.inter_node if best is None else min(best, sent.inter_node)
    found = best_traffic(seed)
    if best is not None:
        assert found is not None, "optimal says that there is no feasible plan, and there is one"
        assert found == pytest.approx(best)


@if_optimal
@pytest.mark.parametrize("seed", SMALL_SEEDS)
def test_optimal_answers_every_small_problem(seed: int) -> None:
    plan = run("optimal", problem_of(small_content(seed)))
    assert isinstance(plan, Assignment | Infeasible), f"optimal refuses: {plan}"


@if_optimal
def test_most_small_problems_have_a_feasible_plan_with_traffic_to_compare_with() -> None:
    found = [best_traffic(seed) for seed in SMALL_SEEDS]
    assert sum(best is not None for best in found) >= len(found) / 2
    assert sum(best is not None and best > 0 for best in found) >= len(found) / 4


def test_schedulers_are_called_like_their_modules() -> None:
    for name, entry in SCHEDULERS.items():
        assert entry.module == f"headrace.place.{name.replace('-', '_')}"
        assert callable(algorithm("place", name))

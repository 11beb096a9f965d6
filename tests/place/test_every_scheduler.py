"""The contract that every registered scheduler keeps: the same problems for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from random import Random
from typing import Any

import numpy as np

from headrace.errors import HeadraceError, Unsupported
from headrace.judge.feasible import Violation
from headrace.judge.report import judge
from headrace.model.problem import Assignment, Pairs, Problem, Stream
from headrace.registry import Entry, algorithm
from tests.failures import label_failure
from tests.place.contract import (
    SCHEDULERS,
    check_every_task_is_placed_once,
    every_scheduler,
    run,
    run_without_refusal,
)
from tests.problems import Content, document, problem_of, renamed, roomy_document

SEEDS = range(40)  # problems of all kinds
ROOMY_SEEDS = range(8)  # problems that nobody may refuse

MATURITIES = {
    "reproduced",  # matches published numbers
    "faithful",  # follows the published algorithm; the worked example passes
    "inspired",  # after a paper whose details we do not have
    "ours",  # published nowhere else
    "exact",  # gives the optimum, or says that it does not
}

# Word of a Guards line -> the rules it means. What comes before "is never" or "are never" is
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


@cache
def content_of(seed: int) -> Content:
    """Problems of all kinds, without prices of sending: only the judge knows what a plan pays."""
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
    assert {name: guarded(SCHEDULERS[name]) for name in meant} == meant


def test_schedulers_are_called_like_their_modules() -> None:
    for name, entry in SCHEDULERS.items():
        assert entry.module == f"headrace.place.{name.replace('-', '_')}"
        assert callable(algorithm("place", name))


# What it does with problems of all kinds


@every_scheduler
def test_every_task_is_placed_once_in_a_free_slot(name: str) -> None:
    plans = 0
    for seed in SEEDS:
        with label_failure(seed=seed):
            problem, plan = outcome(name, seed)
            if isinstance(plan, Assignment):
                plans += 1
                check_every_task_is_placed_once(problem, plan)
                assert set(plan.refused) < set(problem.topologies)
            else:
                assert str(plan)
    assert plans >= len(SEEDS) / 2, f"{name} refuses too many problems to be tested by them"


@every_scheduler
def test_what_the_file_says_it_guards_is_never_broken(name: str) -> None:
    promised = {kind for word in guarded(SCHEDULERS[name]) for kind in GUARDED_WORDS[word]}
    for seed in SEEDS:
        with label_failure(seed=seed):
            problem, plan = outcome(name, seed)
            if isinstance(plan, Assignment):
                broken = judge(problem, plan, bounded=False).violations
                assert [v.message for v in broken if rule(v) in promised] == []


@every_scheduler
def test_the_same_seed_gives_the_same_plan_and_leaves_the_problem_alone(name: str) -> None:
    plans = 0
    for seed in SEEDS[::3]:
        with label_failure(seed=seed):
            problem = problem_of(content_of(seed))
            before = [array.copy() for array in arrays(problem)]
            again = run(name, problem)
            assert all(
                np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
                for a, b in zip(before, arrays(problem), strict=True)
            )
            assert same(again, outcome(name, seed)[1])
            plans += isinstance(again, Assignment)
    assert plans >= len(SEEDS[::3]) / 2


@every_scheduler
def test_a_common_prefix_before_all_names_changes_nothing(name: str) -> None:
    plans = 0
    for seed in SEEDS[1::3]:
        with label_failure(seed=seed):
            plan = run(name, problem_of(renamed(content_of(seed), "prefix-")))
            assert same(plan, outcome(name, seed)[1])
            plans += isinstance(plan, Assignment)
    assert plans >= len(SEEDS[1::3]) / 2


# What it does with problems that give no reason to refuse


@cache
def roomy_content(seed: int) -> Content:
    return roomy_document(Random(2000 + seed), topologies=1 + seed % 2)


@every_scheduler
def test_where_there_is_room_for_all_the_plan_is_feasible(name: str) -> None:
    for seed in ROOMY_SEEDS:
        with label_failure(seed=seed):
            problem = problem_of(roomy_content(seed))
            plan = run_without_refusal(name, problem)
            check_every_task_is_placed_once(problem, plan)
            assert not plan.refused
            assert judge(problem, plan, bounded=False).violations == ()


ROOM: Content = {
    "nodes": {
        "n1": {"cpu": 800, "memory_mb": 8192, "slots": 4},
        "n2": {"cpu": 800, "memory_mb": 8192, "slots": 4},
    }
}


SPOUT: Content = {"spout": True, "rate": 5, "cpu": 10}
READS_A: Content = {"inputs": {"a": "shuffle"}}


def topology(cluster: Content = ROOM, workers: int | None = None, **components: Content) -> Content:
    more = {} if workers is None else {"workers": workers}
    return {"topology": {"components": components, **more}, "cluster": cluster}


def only_node(slots: int) -> Content:
    return {"nodes": {"only": {"cpu": 400, "memory_mb": 4096, "slots": slots}}}


EDGE_CASES: dict[str, Content] = {
    "one task": topology(a=SPOUT),
    "one bare task": {"tasks": {"a": {"cpu": 10}}, "cluster": ROOM},
    "one node": topology(only_node(slots=2), a=SPOUT | {"tasks": 2}, b=READS_A | {"tasks": 3}),
    "one node with one slot": topology(
        only_node(slots=1), workers=1, a=SPOUT, b=READS_A | {"tasks": 3}
    ),
    "no traffic at all": topology(
        a={"spout": True, "tasks": 3, "cpu": 10}, b={"tasks": 2, "cpu": 5}
    ),
    "streams without tuples": topology(a=SPOUT | {"tasks": 2, "rate": 0}, b=READS_A | {"tasks": 2}),
    "no demands at all": topology(
        {"nodes": {"n1": {}, "n2": {}}},
        a={"spout": True, "tasks": 2, "rate": 9},
        b=READS_A | {"tasks": 2},
    ),
    "a graph in two pieces": {
        "tasks": {name: {"cpu": 10, "memory_mb": 10} for name in "abcdef"},
        "traffic": [["a", "b", 5], ["b", "c", 4], ["d", "e", 3], ["e", "f", 2]],
        "cluster": ROOM,
    },
    "only bolts": topology(a={"tasks": 2, "cpu": 10}, b=READS_A | {"tasks": 2}),
}


@every_scheduler
def test_the_smallest_problems_work(name: str) -> None:
    for case, content in EDGE_CASES.items():
        with label_failure(case=case):
            problem = problem_of(content)
            plan = run_without_refusal(name, problem)
            check_every_task_is_placed_once(problem, plan)
            assert judge(problem, plan, bounded=False).feasible


LOOP = topology(
    a=SPOUT | {"rate": 10},
    b={"tasks": 2, "inputs": {"a": "shuffle", "c": "shuffle"}, "selectivity": 0.5, "cpu": 10},
    c={"tasks": 2, "inputs": {"b": "shuffle"}, "selectivity": 0.5, "cpu": 10},
    d={"inputs": {"c": "shuffle", "d": "shuffle"}, "selectivity": 0.1, "cpu": 10},
)


@every_scheduler
def test_a_cycle_works_or_is_named_in_the_refusal(name: str) -> None:
    problem = problem_of(LOOP)
    plan = run(name, problem)
    if isinstance(plan, HeadraceError):
        assert isinstance(plan, Unsupported)
        assert re.search(r"\b(cycle|loop)\b", plan.message)
        assert re.search(r"\b[bcd]\b", plan.message)
    else:
        check_every_task_is_placed_once(problem, plan)
        assert judge(problem, plan, bounded=False).feasible

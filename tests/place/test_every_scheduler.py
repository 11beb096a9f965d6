"""The contract that every registered scheduler keeps, whatever it is after: the same problems for all."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

from headrace.checks.problems import problem_of
from headrace.checks.promises import (
    GUARDED_WORDS,
    PROMISES,
    SMALL_SEEDS,
    Subject,
    best_traffic,
    check_promise,
    guarded_words,
    small_content,
)
from headrace.errors import Infeasible
from headrace.judge.feasible import violations
from headrace.judge.traffic import Workers, traffic
from headrace.judge.use import use
from headrace.model.problem import Assignment, Problem
from headrace.registry import entries, find
from tests.failures import label_failure

SCHEDULERS = {entry.name: entry for entry in entries("place") if "headrace." in entry.module}

MATURITIES = {
    "reproduced",  # matches published numbers
    "faithful",  # follows the published algorithm; the worked example passes
    "inspired",  # after a paper whose details we do not have
    "ours",  # published nowhere else
    "exact",  # gives the optimum, or says that it does not
}

# Promise -> problems on which a scheduler must have given a plan, so that holding it means something.
LEAST = {
    "every task is placed once in a free slot": 10,
    "what it guards is never broken": 10,
    "the same seed gives the same plan": 14,
    "a common prefix changes nothing": 13,
    "where there is room the plan is feasible": 8,
    "the smallest problems work": 9,
    "a cycle works or is named": 1,
    "no plan is better than the best": 10,
}

every_scheduler = pytest.mark.parametrize("name", SCHEDULERS)


@cache
def subject(name: str) -> Subject:
    return Subject(name)


@every_scheduler
def test_the_file_introduces_the_scheduler(name: str) -> None:
    entry = SCHEDULERS[name]
    assert entry.summary.endswith(".")
    assert entry.source
    assert entry.maturity in MATURITIES
    assert entry.differs
    assert "slots" in guarded_words(entry.guards), (
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
    assert {name: guarded_words(SCHEDULERS[name].guards) for name in meant} == meant


@every_scheduler
@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_holds(name: str, promise: str) -> None:
    verdict = check_promise(promise, subject(name))
    assert verdict.failures == ()
    assert verdict.checked >= LEAST[promise], "too few plans to say that it holds"


def test_optimal_is_the_best_of_all_plans_tried_one_by_one() -> None:
    solved = crossing = 0
    for seed in SMALL_SEEDS:
        with label_failure(seed=seed):
            problem = problem_of(small_content(seed))
            assert isinstance(Subject("optimal").plan(problem), Assignment | Infeasible)
            best = least_traffic_of_all_plans(problem)
            assert best_traffic(seed) == pytest.approx(best)
            solved += best < float("inf")
            crossing += 0 < best < float("inf")
    assert solved >= 20
    assert crossing >= 16, "too few problems with traffic between nodes"


def least_traffic_of_all_plans(problem: Problem) -> float:
    """The least that any feasible plan has; bandwidth may be overloaded: optimal does not guard it."""
    slots = [
        (n, int(s))
        for n in range(len(problem.nodes))
        for s in np.flatnonzero(~problem.slot_taken[n])
    ]
    best = float("inf")
    for choice in itertools.product(slots, repeat=problem.task_count):
        node, worker = np.array(choice, dtype=np.int64).T
        plan = Assignment(node, worker)
        workers = Workers.of(plan)
        sent = traffic(problem, plan, workers)
        broken = violations(problem, plan, workers, sent, use(problem, plan, workers, sent))
        if all(v.resource.startswith("bandwidth") for v in broken):
            best = min(best, sent.inter_node)
    return best


def test_schedulers_are_called_like_their_modules() -> None:
    for name, entry in SCHEDULERS.items():
        assert entry.module == f"headrace.place.{name.replace('-', '_')}"
        assert callable(find("place", name).function)

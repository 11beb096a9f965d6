"""A scheduler that breaks a promise is caught, each promise by one that breaks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import headrace as hr
from headrace.checks import PROMISES, Subject
from headrace.checks.promises import Verdict, check_promise
from headrace.cli import main
from headrace.model.problem import CPU
from headrace.place.storm_even import storm_even


def one_task_nowhere(problem: hr.Problem) -> hr.Assignment:
    plan = storm_even(problem)
    node = plan.node.copy()
    node[0] = -1
    return replace(plan, node=node)


def beyond_the_slots(problem: hr.Problem) -> hr.Assignment:
    plan = storm_even(problem)
    return replace(plan, worker=plan.worker + 9)


def careless(problem: hr.Problem) -> hr.Assignment:
    """All on one node.

    Guards    CPU and memory are never overcommitted, it says.
    """
    return hr.Assignment(np.zeros(problem.task_count, np.int64), np.zeros(problem.task_count, int))


_calls = {"n": 0}


def forgetful(problem: hr.Problem) -> hr.Assignment:
    _calls["n"] += 1
    node = np.full(problem.task_count, _calls["n"] % len(problem.nodes), np.int64)
    return hr.Assignment(node, np.zeros(problem.task_count, np.int64))


def by_first_letter(problem: hr.Problem) -> dict[str, str]:
    names = [problem.task_name(t) for t in range(problem.task_count)]
    return {name: problem.nodes[ord(name[0]) % len(problem.nodes)] for name in names}


def always_refuses(problem: hr.Problem) -> Any:
    raise hr.Infeasible("never")


def breaks_down(problem: hr.Problem) -> Any:
    raise RuntimeError("a bug")


def overwrites(problem: hr.Problem) -> hr.Assignment:
    demand: Any = problem.demand
    demand.flags.writeable = True
    demand[:, CPU] += 1
    return storm_even(problem)


BROKEN = {
    "every task is placed once in a free slot": (one_task_nowhere, beyond_the_slots),
    "what it guards is never broken": (careless,),
    "the same seed gives the same plan": (forgetful, overwrites),
    "a common prefix changes nothing": (by_first_letter,),
    "where there is room the plan is feasible": (always_refuses, breaks_down),
    "the smallest problems work": (always_refuses, breaks_down),
    "a cycle works or is named": (always_refuses, breaks_down),
}


@pytest.mark.parametrize(
    ("promise", "scheduler"), [(p, s) for p, several in BROKEN.items() for s in several]
)
def test_a_broken_promise_is_found(promise: str, scheduler: Any) -> None:
    verdict = check_promise(promise, Subject(scheduler))
    assert verdict.failures
    assert not verdict.holds


def test_a_plan_that_beats_the_optimum_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    promise = "no plan is better than the best"
    assert check_promise(promise, Subject("headrace")).holds
    monkeypatch.setattr("headrace.checks.promises.best_traffic", lambda seed: 1e9)
    assert check_promise(promise, Subject("headrace")).failures


def test_a_promise_that_was_never_tried_does_not_hold() -> None:
    assert not Verdict("p", 0, ()).holds
    verdict = check_promise("every task is placed once in a free slot", Subject(always_refuses))
    assert verdict.checked == 0
    assert not verdict.holds


def test_the_command_names_what_is_broken() -> None:
    result = CliRunner().invoke(main, ["check-scheduler", "tests.checks.test_promises:careless"])
    assert result.exit_code == 1
    assert "BROKEN" in result.stdout
    assert result.stdout.count("\n") >= len(PROMISES)

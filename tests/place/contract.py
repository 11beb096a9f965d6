"""What the contract tests of all schedulers share."""

from __future__ import annotations

import pytest

from headrace.errors import HeadraceError
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.planner import place
from headrace.registry import entries

SCHEDULERS = {entry.name: entry for entry in entries("place")}
every_scheduler = pytest.mark.parametrize("name", SCHEDULERS)


def run(name: str, problem: Problem, seed: int = 0) -> Assignment | HeadraceError:
    """A plan or a stated refusal; anything else that is raised fails the test."""
    try:
        planned = place(problem, name, seed=seed)
    except HeadraceError as error:
        return error
    assert planned.assignment is not None
    return planned.assignment


def run_without_refusal(name: str, problem: Problem) -> Assignment:
    """A plan; a refusal fails the test with its message."""
    plan = run(name, problem)
    assert isinstance(plan, Assignment), f"{name} refuses: {plan}"
    return plan


def check_every_task_is_placed_once(problem: Problem, plan: Assignment) -> None:
    """On a node, in a free slot that exists, one topology per slot; nothing of a refused one."""
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

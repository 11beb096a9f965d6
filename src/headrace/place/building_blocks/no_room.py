"""The refusal where no node can take a task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.errors import Infeasible
from headrace.model.arrays import TOLERANCE
from headrace.model.problem import Bools, Floats, Problem


def fits(need: Floats, free: Floats) -> Bools:
    """Where a need is within what is free."""
    return need <= free + TOLERANCE


def no_room(
    problem: Problem, task: int, resources: Sequence[str], need: Floats, free: Floats, may: Bools
) -> Infeasible:
    """The refusal of a task: names the node that comes nearest and what it lacks most.

    `need` and `free` are [N, resources]; `may` says which nodes have a worker for the task, [N].
    What a node lacks is measured as a share of the need.
    """
    name, component = problem.task_name(task), problem.components[problem.component_of[task]]
    if fits(need, free).all(axis=1).any():
        message = (
            f"no node has room for `{name}`: "
            "where its resources are free, every slot is taken or full"
        )
        return Infeasible(
            message,
            task=name,
            resource="slots",
            needed=1,
            available=0,
            fix="free a slot or add a node",
        )
    lack = (need - free) / np.maximum(need, TOLERANCE)
    node = int(np.where(may | ~may.any(), lack.max(axis=1), np.inf).argmin())
    k = int(lack[node].argmax())
    resource, needed, available = resources[k], float(need[node, k]), max(0.0, float(free[node, k]))
    nearest = f"{problem.nodes[node]}, which comes nearest, has {available:g} free"
    fix = (
        f"add a node with {needed:g} {resource} free, "
        f"or lower {resource} of {component} to {available:g}"
    )
    message = f"no node has room for `{name}`: it needs {needed:g} {resource}, and {nearest}"
    return Infeasible(
        message, task=name, resource=resource, needed=needed, available=available, fix=fix
    )

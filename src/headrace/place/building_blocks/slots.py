"""Free slots, and the refusal where there are too few."""

from __future__ import annotations

import numpy as np

from headrace.errors import Infeasible
from headrace.model.arrays import Ints
from headrace.model.problem import Problem


def free_slots(problem: Problem, node: int) -> Ints:
    """Free slots of a node, lowest first."""
    return np.flatnonzero(~problem.slot_taken[node])


def refuse_without_slots(problem: Problem, needed: int, available: int) -> None:
    """Raise if fewer slots are free than a plan needs."""
    if available < needed:
        name = problem.topologies[0]
        message = (
            f"`{name}` needs {needed} free slot{'s' * (needed != 1)}; the cluster has {available}"
        )
        missing = needed - available
        fix = (
            f"free {missing} slot{'s' * (missing != 1)}, add nodes, "
            f"or lower `workers` to {available}"
            if available
            else "free a slot or add a node"
        )
        raise Infeasible(message, resource="slots", needed=needed, available=available, fix=fix)

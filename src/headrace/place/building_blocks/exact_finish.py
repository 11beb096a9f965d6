"""The last step of a search for little traffic, on small problems: an integer program."""

from __future__ import annotations

from headrace.model.arrays import Ints
from headrace.model.request import Request
from headrace.solve.instance import Instance

MOST_CELLS, MOST_TASKS = 150, 200  # classes x nodes, and tasks, that take a fraction of a second
EXACT_STEPS = 20


def finish_exactly(instance: Instance, x: Ints, request: Request) -> Ints:
    """Counts [C, N] with less traffic between nodes than x, where a program finds any; else x.

    Annealing ends near the least traffic; of small problems the program knows the least itself.
    """
    if request.steps is not None or not 1 < instance.allowed.size <= MOST_CELLS:
        return x
    if instance.count.sum() > MOST_TASKS:
        return x
    crossing = instance.crossing(x)
    if crossing <= 0:
        return x

    from headrace.solve.proof.by_counts import least_crossing_by_counts

    least = least_crossing_by_counts(instance)
    if least is not None and crossing <= least * (1 + 1e-9):
        return x

    # Loads scipy, which tiny problems should not wait for.
    from headrace.solve.proof.exact import least_crossing

    steps, deadline = EXACT_STEPS, request.deadline
    proof = least_crossing(instance, start=x, steps=steps, deadline=deadline)
    return x if proof.x is None else proof.x

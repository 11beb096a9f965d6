"""The last step of a search for little traffic, on small problems: an integer program."""

from __future__ import annotations

from headrace.model.arrays import Ints
from headrace.model.request import Request
from headrace.solve.instance import Instance

MOST_CELLS, MOST_TASKS = 150, 200  # classes x nodes, and tasks, that take a fraction of a second
EXACT_STEPS, MOST_COLUMNS = 20, 3_000  # of the program


def finish_exactly(instance: Instance, x: Ints, request: Request) -> tuple[Ints, bool]:
    """Counts [C, N] with less traffic between nodes than x, where a program finds any; else x.

    And whether no counts have less. Annealing ends near the least traffic; of small problems the
    program knows the least itself.
    """
    if request.steps is not None or not 1 < instance.allowed.size <= MOST_CELLS:
        return x, False
    if instance.count.sum() > MOST_TASKS:
        return x, False
    crossing = instance.crossing(x)
    if crossing <= 0:
        return x, True

    from headrace.solve.proof.by_counts import least_crossing_by_counts

    least = least_crossing_by_counts(instance)
    if least is not None and crossing <= least * (1 + 1e-9):
        return x, True

    # Loads scipy, which tiny problems should not wait for.
    from headrace.solve.proof.exact import least_crossing

    proof = least_crossing(
        instance,
        start=x,
        steps=EXACT_STEPS,
        deadline=request.deadline,
        columns=MOST_COLUMNS,
        bounded=False,
    )
    return (x if proof.x is None else proof.x), proof.proven

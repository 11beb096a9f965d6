"""The last step of a search for few nodes, on small problems: an integer program that packs."""

from __future__ import annotations

from headrace.model.arrays import Ints
from headrace.model.request import Request
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.search import least_crossing_search

MOST_CELLS = 600  # classes x nodes, that take a fraction of a second
STEPS = 3  # for the program: two attempts, the second with more branches


def drop_more_nodes(instance: Instance, x: Ints, request: Request) -> Ints:
    """Counts [C, N] on fewer nodes than x, where a program finds any; else x.

    The search takes one node away after another; the program looks at all of them at once.
    """
    if request.steps is not None or instance.allowed.size > MOST_CELLS:
        return x

    # Loads scipy, which other objectives should not wait for.
    from headrace.solve.proof.fewest_nodes import least_nodes, pack_on_fewest
    from headrace.solve.proof.integer_program import Budget

    used = int((x.sum(axis=0) > 0).sum())
    if used <= least_nodes(instance):
        return x
    fewer = pack_on_fewest(instance, used - 1, Budget(STEPS, request.deadline))
    if fewer is None:
        return x
    # The program knows no heaps of single slots: the search mends what does not fit, if it can.
    again = least_crossing_search(
        instance,
        starts=(fewer,),
        deadline=request.deadline,
        seed=request.seed,
        prefer="nodes",
    )
    return again.x if again is not None and again.nodes_used < used else x

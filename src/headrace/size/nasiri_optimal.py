"""Nasiri's optimum: every number of instances, every placement of them; for small clusters.

Source    H. Nasiri et al., A scheduling algorithm to maximize Storm throughput in heterogeneous
          cluster, 2023, section Motivation, eq. 1-2.
Maturity  faithful
Guards    CPU is never overcommitted at the rate found; `max_tasks` and pins are kept; memory,
          slots, separations and bandwidth may be violated.
Differs   as eq. 1 bounds the search, a machine runs at most `most_per_machine` instances (10, as in
          the paper's example), so finer divisions are not looked at. Placements that cannot beat
          the best found, or only swap alike machines, are left out; the answer is the same. Where
          rates depend on counts (a stream goes to every task, or is divided by tasks), every
          number of instances is looked at with its own rates. Refuses what it cannot finish.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from headrace.errors import InvalidInput, Unsupported
from headrace.model.arrays import Ints
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.model.sizable import Load, load_of, sizable
from headrace.model.sized import Sized
from headrace.model.workload import Workload
from headrace.size.nasiri import place_instances
from headrace.solve.counts.small_clusters import Exhaustive, list_busy

MOST_COUNTS = 2_000_000  # vectors of counts, eq. 1
MOST_STEPS = 150_000_000  # placements looked at, some seconds


def nasiri_optimal(
    workload: Workload, request: Request = DEFAULT_REQUEST, *, most_per_machine: int = 10
) -> Sized:
    """The counts and the placement of the highest rate."""
    if most_per_machine < 1:
        raise InvalidInput(
            f"nasiri-optimal: option most_per_machine is {most_per_machine}; it must be at least 1"
        )
    workload = sizable(workload, catalog=False)
    load = load_of(workload, catalog=False)
    load.refuse_what_fits_nowhere()
    instances = search_exhaustively(load, most_per_machine, request.deadline)
    kind = f"exact for at most {most_per_machine} instances per machine"
    sized = place_instances(load, instances, None, kind)
    return replace(sized, bound=sized.rate)


def search_exhaustively(
    load: Load, most_per_machine: int, deadline: Callable[[], bool] | None
) -> Ints:
    """The best instances of every component on every node, [C, N]; free ones on the first node."""
    for c in load.workload.flow.uneven:
        if load.most[c] > 1:
            name = load.problem.components[c]
            raise Unsupported(
                "nasiri-optimal takes components whose instances all get the same; "
                f"a stream of `{name}` goes to its first one alone",
                fix="use headrace",
            )
    busy = list_busy(load)
    total = most_per_machine * len(load.problem.nodes)
    vectors = math.comb(total, len(busy))
    if vectors > MOST_COUNTS:
        raise too_large(vectors, MOST_COUNTS, "numbers of instances")
    search = Exhaustive.of(load, busy, most_per_machine)
    while not search.look_on(MOST_STEPS):
        if search.spent >= MOST_STEPS or (deadline is not None and deadline()):
            raise too_large(MOST_STEPS, MOST_STEPS, "placements")
    if not search.best.any(axis=1).all():
        raise Unsupported(
            "no placement with so few instances per machine exists",
            fix="raise option most_per_machine, or use headrace",
        )
    return search.instances(load)


def too_large(needed: int, most: int, what: str) -> Unsupported:
    """The refusal of a search that would not end."""
    return Unsupported(
        f"the exhaustive search would look at {needed:,} {what} or more; "
        f"the most it takes is {most:,}",
        resource=what,
        needed=needed,
        available=most,
        fix="use headrace, or lower option most_per_machine",
    )

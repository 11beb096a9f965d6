"""Nasiri's optimum: every number of instances, every placement of them; for small clusters.

Source    H. Nasiri et al., A scheduling algorithm to maximize Storm throughput in heterogeneous
          cluster, 2023, section Motivation, eq. 1-2.
Maturity  faithful
Guards    CPU is never overcommitted at the rate found; `max_tasks` and pins are kept; memory,
          slots, separations and bandwidth may be violated.
Differs   as eq. 1 bounds the search, a machine runs at most `most_per_machine` instances (10, as in
          the paper's example), so finer divisions are not looked at. Placements that cannot beat
          the best found, or only swap alike machines, are left out; the answer is the same.
          Refuses what it cannot finish.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from headrace.errors import InvalidInput, Unsupported
from headrace.model.arrays import Ints
from headrace.model.problem import CPU, THREAD
from headrace.model.request import DEFAULT_REQUEST, Request
from headrace.model.sizable import Load, load_of, sizable
from headrace.model.sized import Sized
from headrace.model.workload import Workload
from headrace.size.nasiri import place_instances
from headrace.solve.counts.exhaustive import Machines, find_best_placement

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
    return place_instances(load, instances, None, kind)


def search_exhaustively(
    load: Load, most_per_machine: int, deadline: Callable[[], bool] | None
) -> Ints:
    """The best instances of every component on every node, [C, N]; free ones on the first node."""
    busy = np.flatnonzero(load.by_rate.any(axis=1) | load.fixed.any(axis=1))
    nodes = len(load.problem.nodes)
    total = most_per_machine * nodes
    vectors = math.comb(total, len(busy))
    if load.copied:
        raise Unsupported(
            "nasiri-optimal takes rates that do not depend on counts; "
            "a stream here is copied to every task",
            fix="use headrace",
        )
    if vectors > MOST_COUNTS:
        raise too_large(vectors, MOST_COUNTS, "numbers of instances")
    key = np.column_stack([load.problem.node_type, load.problem.free, load.fits.T])
    order = np.lexsort(np.nan_to_num(key, posinf=1e300).T[::-1])
    like = np.append(False, (key[order][1:] == key[order][:-1]).all(axis=1))
    machines = Machines(
        np.ascontiguousarray(load.by_rate[np.ix_(busy, order)]),
        np.ascontiguousarray(load.fixed[np.ix_(busy, order)]),
        load.problem.free[order, CPU],
        np.ascontiguousarray(load.fits[np.ix_(busy, order)]),
        like,
        most_per_machine,
        THREAD,
    )
    best, factor = np.zeros((len(busy), nodes), dtype=np.int64), np.zeros(1)
    scratch, used, steps = np.zeros_like(best), np.zeros((3, nodes)), np.array([MOST_STEPS])
    for count in list_counts(len(busy), total, np.minimum(load.most[busy], total)):
        find_best_placement(machines, count, best, factor, scratch, used, steps)
        if steps[0] < 0 or (deadline is not None and deadline()):
            raise too_large(MOST_STEPS, MOST_STEPS, "placements")
    if not best.any(axis=1).all():
        raise Unsupported(
            "no placement with so few instances per machine exists",
            fix="raise option most_per_machine, or use headrace",
        )
    instances = np.zeros((len(load.most), nodes), dtype=np.int64)
    instances[np.ix_(busy, order)] = best
    for c in np.flatnonzero(~instances.any(axis=1)).tolist():
        instances[c, int(load.fits[c].argmax())] = 1
    return instances


def list_counts(components: int, total: int, most: Ints) -> Iterator[Ints]:
    """All vectors of 1 or more instances each, up to `total` in all (eq. 1), fewest first."""

    def of_sum(left: int, c: int) -> Iterator[list[int]]:
        if c == components - 1:
            if 1 <= left <= most[c]:
                yield [left]
            return
        for n in range(1, min(left - (components - 1 - c), int(most[c])) + 1):
            for rest in of_sum(left - n, c + 1):
                yield [n, *rest]

    for sum_ in range(components, total + 1):
        for vector in of_sum(sum_, 0):
            yield np.array(vector, dtype=np.int64)


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

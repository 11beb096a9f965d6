"""The fewest tasks that carry a rate, on small workloads: exactly, in one of two ways.

Where nodes are full almost to the last percent, whether counts can be packed hangs on the size of
their tasks, and a search that changes one count at a time finds no way from one to the next. Where
a task takes the same of every node, all counts are tried from few to many: how they fill the nodes
is quickly seen, since only few ways waste so little. Elsewhere, and where counts are too many, an
integer program chooses counts and nodes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil, comb

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.problem import CPU
from headrace.model.sizable import Load
from headrace.solve.classes import classes_of
from headrace.solve.counts.fewest_tasks import SharedWork, find_fewest_tasks
from headrace.solve.rate.full_nodes import fill_to_capacity

MOST_COUNTS = 4_000  # that could have to be tried
TRIES = 1_500  # of them at most, some 2 ms each


def pack_fewest_tasks(
    load: Load, factor: float, enough: int, deadline: Callable[[], bool] | None
) -> Ints | None:
    """Counts [C, N] that carry a factor with fewer than `enough` tasks; None if none are found."""
    least = least_counts(load, factor)
    extra = enough - int(least.sum())
    if extra <= 0 or load.copied:
        return None
    same = all(bool((points == points[:, :1]).all()) for points in (load.by_rate, load.fixed))
    if same and comb(extra - 1 + len(least), len(least)) <= MOST_COUNTS:
        return try_all_counts(load, factor, least, extra, deadline)
    problem = load.problem
    tasks = SharedWork(
        work=factor * load.by_rate,
        fixed=load.fixed,
        demand=problem.demand,
        room=problem.free,
        thread=load.thread,
        fits=load.fits,
        apart=problem.apart,
        least=least,
        most=load.most,
    )
    return find_fewest_tasks(tasks, enough, deadline)


def try_all_counts(
    load: Load, factor: float, least: Ints, extra: int, deadline: Callable[[], bool] | None
) -> Ints | None:
    """The first counts [C, N] that can be packed, with fewer than `extra` more than the least."""
    instance = replace(classes_of(load.problem).instance, allowed=load.fits)
    for number, count in enumerate(counts_from(least, load.most, extra)):
        if number >= TRIES or (deadline is not None and deadline()):
            return None
        demand = instance.demand.copy()
        demand[:, :, CPU] = factor * load.by_rate[:, 0] / count + load.fixed[:, 0]
        threads = load.thread * (1 + 1e-9) >= demand[instance.node_type, :, CPU].T
        some = replace(instance, count=count, demand=demand, allowed=load.fits & threads)
        found = fill_to_capacity(some)
        if found is not None:
            return found
    return None


def least_counts(load: Load, factor: float) -> Ints:
    """Tasks of every component that its threads need on the nodes that suit it best, [C]."""
    carries: Floats = np.where(load.fits, load.thread - load.fixed, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(load.by_rate > 0, carries / load.by_rate, np.where(load.fits, np.inf, 0.0))
    needed = [ceil(factor / most * (1 - 1e-9)) for most in np.maximum(one.max(axis=1), 1e-300)]
    return np.maximum(np.array(needed, dtype=np.int64), 1)


def counts_from(least: Ints, most: Ints, extra: int) -> Iterator[Ints]:
    """All counts with fewer than `extra` tasks more than the least, those with fewest first."""

    def divide(tasks: int, components: int) -> Iterator[tuple[int, ...]]:
        if components == 1:
            yield (tasks,)
            return
        for own in range(tasks + 1):
            for others in divide(tasks - own, components - 1):
                yield own, *others

    for more in range(extra):
        for added in divide(more, len(least)):
            count = least + np.array(added, dtype=np.int64)
            if (count <= most).all():
                yield count

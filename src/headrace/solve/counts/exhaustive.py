"""Every way to place so many instances of each component on a few machines, without those that cannot beat the best so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.solve.compiled import kernel

BETTER = 1e-9  # relative: by how much a placement must beat the best to count


class Machines(NamedTuple):
    """What components cost on the machines there are. C components, N machines; alike machines stand side by side."""

    by_rate: Floats  # [C, N] points of the whole component at factor 1
    fixed: Floats  # [C, N] points of one instance
    cpu: Floats  # [N]
    may: Bools  # [C, N]
    like_previous: Bools  # [N] cannot be told from the machine before it
    most: int  # instances on one machine
    thread: float  # most points of one instance


@kernel
def best_placement(
    machines: Machines,
    count: Ints,
    best: Ints,
    best_factor: Floats,
    x: Ints,
    used: Floats,
    steps: Ints,
) -> None:
    """Raise best_factor[0], with its placement in best[C, N], if some placement of count[C] instances does.

    Scratch: x[C, N], used[3, N]. steps[0] counts down the places looked at; the search is cut where
    it falls below 0.
    """
    components, nodes = x.shape
    load, fixed, tasks = used[0], used[1], used[2]
    x[:] = -1
    used[:] = 0.0
    at = 0
    while at >= 0:
        c = at // nodes
        n = at % nodes
        left = count[c]
        for j in range(n):
            left -= x[c, j]
        v = x[c, n]
        if v >= 0:
            load[n] -= v * machines.by_rate[c, n] / count[c]
            fixed[n] -= v * machines.fixed[c, n]
            tasks[n] -= v
            v = -1 if n == nodes - 1 else v - 1
        else:
            v = min(left, machines.most - int(tasks[n])) if machines.may[c, n] else 0
            if machines.like_previous[
                n
            ]:  # of columns that could change places, the larger comes first
                alike = True
                for e in range(c):
                    if x[e, n] != x[e, n - 1]:
                        alike = False
                if alike:
                    v = min(v, x[c, n - 1])
            if n == nodes - 1 and v < left:
                v = -1
        if v < 0:
            x[c, n] = -1
            at -= 1
            continue
        x[c, n] = v
        load[n] += v * machines.by_rate[c, n] / count[c]
        fixed[n] += v * machines.fixed[c, n]
        tasks[n] += v
        steps[0] -= 1
        if steps[0] < 0:
            return
        wanted = best_factor[0] * (1 + BETTER)
        if fixed[n] + wanted * load[n] > machines.cpu[n] or (
            load[n] == 0.0 and fixed[n] > machines.cpu[n]
        ):
            continue
        if (
            v > 0
            and machines.fixed[c, n] + wanted * machines.by_rate[c, n] / count[c] > machines.thread
        ):
            continue
        if room_left(machines, count, load, fixed, wanted) < least_need(
            machines, count, x, c, n, wanted
        ):
            continue
        if at < components * nodes - 1:
            at += 1
            continue
        factor = np.inf
        for j in range(nodes):
            if load[j] > 0.0:
                factor = min(factor, (machines.cpu[j] - fixed[j]) / load[j])
            for e in range(components):
                if x[e, j] > 0 and machines.by_rate[e, j] > 0.0:
                    factor = min(
                        factor,
                        (machines.thread - machines.fixed[e, j])
                        * count[e]
                        / machines.by_rate[e, j],
                    )
        if factor > wanted:
            best_factor[0] = factor
            for e in range(components):
                for j in range(nodes):
                    best[e, j] = x[e, j]


@kernel
def room_left(machines: Machines, count: Ints, load: Floats, fixed: Floats, factor: float) -> float:
    """Points that all machines still have at a factor."""
    room = 0.0
    for n in range(load.shape[0]):
        room += max(0.0, machines.cpu[n] - fixed[n] - factor * load[n])
    return room * (1 + 1e-9)


@kernel
def least_need(machines: Machines, count: Ints, x: Ints, c: int, n: int, factor: float) -> float:
    """Points that the instances not placed yet need at least at a factor."""
    need = 0.0
    for e in range(c, x.shape[0]):
        left = count[e]
        if e == c:
            for j in range(n + 1):
                left -= x[e, j]
        least = np.inf
        for j in range(x.shape[1]):
            if machines.may[e, j]:
                least = min(
                    least, factor * machines.by_rate[e, j] / count[e] + machines.fixed[e, j]
                )
        need += left * least
    return need

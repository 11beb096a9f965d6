"""Every way to place so many instances of each component on a few machines.

Ways that cannot beat the best so far are left out, and so are those that only rename machines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.solve.compiled import NONE, inlined, kernel

BETTER = 1e-9  # relative: by how much a placement must beat the best to count
LOAD, FIXED, TASKS = 0, 1, 2  # rows of `used`: points at factor 1, fixed points, instances


class Machines(NamedTuple):
    """What components cost on the machines there are. C components, N machines.

    Machines that are alike are side by side.
    """

    by_rate: Floats  # [C, N] points of the whole component at factor 1
    fixed: Floats  # [C, N] points of one instance
    cpu: Floats  # [N]
    may: Bools  # [C, N]
    like_previous: Bools  # [N] cannot be told from the machine before it
    most: int  # instances on one machine
    thread: float  # most points of one instance


@kernel
def find_best_placement(
    machines: Machines,
    count: Ints,
    best: Ints,
    best_factor: Floats,
    x: Ints,
    used: Floats,
    steps: Ints,
) -> None:
    """Raise best_factor[0], with its placement in best[C, N], if count[C] instances can beat it.

    Scratch: x[C, N], used[3, N]. steps[0] counts down the places looked at; the search is cut where
    it falls below 0.
    """
    components, nodes = x.shape
    x[:] = -1
    used[:] = 0.0
    at = 0  # the cell (component, machine) that is decided; from the last one on it goes back
    while at >= 0:
        c = at // nodes
        n = at % nodes
        v = int(x[c, n])
        if v >= 0:
            add_instances(machines, count, used, c, n, -v)
            v = NONE if n == nodes - 1 else v - 1
        else:
            v = most_instances(machines, count, x, used, c, n)
        if v < 0:
            x[c, n] = -1
            at -= 1
            continue
        x[c, n] = v
        add_instances(machines, count, used, c, n, v)
        steps[0] -= 1
        if steps[0] < 0:
            return
        wanted = best_factor[0] * (1 + BETTER)
        if not may_reach(machines, count, x, used, c, n, wanted):
            continue
        if at < components * nodes - 1:
            at += 1
            continue
        factor = sustained_factor(machines, count, x, used)
        if factor > wanted:
            best_factor[0] = factor
            for e in range(components):
                for j in range(nodes):
                    best[e, j] = x[e, j]


@inlined
def add_instances(machines: Machines, count: Ints, used: Floats, c: int, n: int, v: int) -> None:
    """Count v more instances of component c (v < 0: fewer) on machine n."""
    used[LOAD, n] += v * machines.by_rate[c, n] / count[c]
    used[FIXED, n] += v * machines.fixed[c, n]
    used[TASKS, n] += v


@inlined
def most_instances(machines: Machines, count: Ints, x: Ints, used: Floats, c: int, n: int) -> int:
    """The most instances of c that machine n may get; -1 if the last machine cannot take the rest.

    Of machines that could change places, the one before must hold no less.
    """
    left = count[c]
    for j in range(n):
        left -= x[c, j]
    v = min(left, machines.most - int(used[TASKS, n])) if machines.may[c, n] else 0
    if machines.like_previous[n]:
        alike = True
        for e in range(c):
            if x[e, n] != x[e, n - 1]:
                alike = False
        if alike:
            v = min(v, x[c, n - 1])
    return NONE if n == x.shape[1] - 1 and v < left else v


@inlined
def may_reach(
    machines: Machines, count: Ints, x: Ints, used: Floats, c: int, n: int, factor: float
) -> bool:
    """Whether the placement so far, up to component c on machine n, leaves a factor in reach."""
    load, fixed = used[LOAD], used[FIXED]
    if fixed[n] + factor * load[n] > machines.cpu[n]:
        return False
    if load[n] == 0.0 and fixed[n] > machines.cpu[n]:
        return False
    thread = machines.fixed[c, n] + factor * machines.by_rate[c, n] / count[c]
    if x[c, n] > 0 and thread > machines.thread:
        return False
    return room_left(machines, used, factor) >= least_need(machines, count, x, c, n, factor)


@kernel
def room_left(machines: Machines, used: Floats, factor: float) -> float:
    """Points that all machines still have at a factor."""
    room = 0.0
    for n in range(used.shape[1]):
        room += max(0.0, machines.cpu[n] - used[FIXED, n] - factor * used[LOAD, n])
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
                points = factor * machines.by_rate[e, j] / count[e] + machines.fixed[e, j]
                least = min(least, points)
        need += left * least
    return need


@kernel
def sustained_factor(machines: Machines, count: Ints, x: Ints, used: Floats) -> float:
    """The factor that a complete placement sustains."""
    factor = np.inf
    for n in range(x.shape[1]):
        if used[LOAD, n] > 0.0:
            factor = min(factor, (machines.cpu[n] - used[FIXED, n]) / used[LOAD, n])
        for c in range(x.shape[0]):
            if x[c, n] > 0 and machines.by_rate[c, n] > 0.0:
                spare = machines.thread - machines.fixed[c, n]
                factor = min(factor, spare * count[c] / machines.by_rate[c, n])
    return factor

"""Every number of instances of each component, and every way to place them, on a few machines.

Ways that cannot beat the best so far are left out, and so are those that only rename machines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.solve.compiled import NONE, inlined, kernel
from headrace.solve.counts.count_flow import CountFlow, grow_rates

BETTER = 1e-9  # relative: by how much a placement must beat the best to count
LOAD, FIXED, TASKS = 0, 1, 2  # rows of `used`: points at factor 1, fixed points, instances


class Machines(NamedTuple):
    """What components cost on the machines there are. C components, N machines, K resources.

    Only components that cost something; machines that are alike are side by side.
    """

    by_rate: Floats  # [C, N] points of the whole component at factor 1 and its reference rate
    fixed: Floats  # [C, N] points of one instance
    cpu: Floats  # [N]
    may: Bools  # [C, N]
    like_previous: Bools  # [N] cannot be told from the machine before it
    most: int  # instances on one machine
    thread: float  # most points of one instance
    most_tasks: Ints  # [C] instances of a component
    apart: Bools  # [C] no two instances on one machine
    other: Floats  # [C, K] of further resources, of one instance
    room: Floats  # [N, K]
    component: Ints  # [C] its number in `flow`, which knows those that cost nothing too
    flow: CountFlow


class Scratch(NamedTuple):
    """Room to work in."""

    x: Ints  # [C, N] instances
    used: Floats  # [3, N]
    taken: Floats  # [N, K] of further resources
    each: Floats  # [C, N] points of one instance at factor 1, under the counts looked at
    least: Floats  # [C] points that an instance needs at least, at the factor to beat
    tasks: Ints  # instances of all components of the flow
    more: Floats  # times its reference rate, of all components of the flow
    first_gets: Floats  # of it, what goes to the first task alone: nothing, see `search_counts`


def scratch_for(machines: Machines) -> Scratch:
    """Room to search these machines."""
    components, nodes = machines.by_rate.shape
    known = len(machines.flow.order)
    return Scratch(
        x=np.zeros((components, nodes), dtype=np.int64),
        used=np.zeros((3, nodes)),
        taken=np.zeros_like(machines.room),
        each=np.zeros((components, nodes)),
        least=np.zeros(components),
        tasks=np.ones(known, dtype=np.int64),
        more=np.ones(known),
        first_gets=np.zeros(known),
    )


@kernel
def search_counts(
    machines: Machines,
    scratch: Scratch,
    count: Ints,
    total: int,
    best: Ints,
    best_factor: Floats,
    steps: Ints,
    pause: int,
) -> bool:
    """Look at counts from count[C] on, up to `total` instances; whether all were looked at.

    Raises best_factor[0], with its placement in best[C, N], where it can be beaten. steps[0]
    counts down the places looked at, and the search ends where it falls below 0; it also pauses
    after about `pause` of them, with `count` where it goes on. All instances of a component must
    get the same.
    """
    until = steps[0] - pause
    while count.sum() <= total:
        for c in range(len(count)):
            scratch.tasks[machines.component[c]] = count[c]
        if grow_rates(machines.flow, scratch.tasks, scratch.more, scratch.first_gets):
            for c in range(len(count)):
                share = scratch.more[machines.component[c]] / count[c]
                for n in range(machines.by_rate.shape[1]):
                    scratch.each[c, n] = machines.by_rate[c, n] * share
            find_best_placement(machines, scratch, count, best, best_factor, steps)
        steps[0] -= 1
        if steps[0] < 0:
            return False
        if not advance_counts(count, machines.most_tasks, total):
            return True
        if steps[0] < until:
            return False
    return True


@kernel
def advance_counts(count: Ints, most: Ints, total: int) -> bool:
    """Make count[C] the next vector of 1 to most[C] each, fewest in all first; False at the end."""
    last = len(count) - 1
    behind = 0  # instances of the components behind c
    for c in range(last - 1, -1, -1):
        behind += count[c + 1]
        if count[c] < most[c] and behind > last - c:
            count[c] += 1
            share_rest(count, most, c, behind - 1)
            return True
    sum_ = count.sum() + 1
    if sum_ > total or sum_ > most.sum():
        return False
    share_rest(count, most, NONE, sum_)
    return True


@kernel
def share_rest(count: Ints, most: Ints, c: int, rest: int) -> None:
    """Give so many instances to the components behind c: to the last ones as many as they take."""
    for e in range(c + 1, len(count)):
        behind = 0
        for f in range(e + 1, len(count)):
            behind += most[f]
        count[e] = max(1, rest - behind)
        rest -= count[e]


@kernel
def find_best_placement(
    machines: Machines,
    scratch: Scratch,
    count: Ints,
    best: Ints,
    best_factor: Floats,
    steps: Ints,
) -> None:
    """Raise best_factor[0], with its placement in best[C, N], if count[C] instances can beat it."""
    x, used = scratch.x, scratch.used
    components, nodes = x.shape
    x[:] = -1
    used[:] = 0.0
    scratch.taken[:] = 0.0
    wanted = best_factor[0] * (1 + BETTER)
    find_least(machines, scratch, wanted)
    need = 0.0
    for c in range(components):
        need += count[c] * scratch.least[c]
    if room_left(machines, used, wanted) < need:
        return
    at = 0  # the cell (component, machine) that is decided; from the last one on it goes back
    while at >= 0:
        c = at // nodes
        n = at % nodes
        v = int(x[c, n])
        if v >= 0:
            add_instances(machines, scratch, c, n, -v)
            v = NONE if n == nodes - 1 else v - 1
        else:
            v = most_instances(machines, scratch, count, c, n)
        if v < 0:
            x[c, n] = -1
            at -= 1
            continue
        x[c, n] = v
        add_instances(machines, scratch, c, n, v)
        steps[0] -= 1
        if steps[0] < 0:
            return
        if not may_reach(machines, scratch, count, c, n, wanted):
            continue
        if at < components * nodes - 1:
            at += 1
            continue
        factor = sustained_factor(machines, scratch)
        if factor > wanted:
            best_factor[0] = factor
            wanted = factor * (1 + BETTER)
            find_least(machines, scratch, wanted)
            for e in range(components):
                for j in range(nodes):
                    best[e, j] = x[e, j]


@kernel
def find_least(machines: Machines, scratch: Scratch, factor: float) -> None:
    """Write down what an instance of each component needs at least at a factor."""
    for c in range(machines.by_rate.shape[0]):
        least = np.inf
        for n in range(machines.by_rate.shape[1]):
            points = factor * scratch.each[c, n] + machines.fixed[c, n]
            if machines.may[c, n] and points <= machines.thread and points <= machines.cpu[n]:
                least = min(least, points)
        scratch.least[c] = least


@inlined
def add_instances(machines: Machines, scratch: Scratch, c: int, n: int, v: int) -> None:
    """Count v more instances of component c (v < 0: fewer) on machine n."""
    scratch.used[LOAD, n] += v * scratch.each[c, n]
    scratch.used[FIXED, n] += v * machines.fixed[c, n]
    scratch.used[TASKS, n] += v
    for k in range(machines.room.shape[1]):
        scratch.taken[n, k] += v * machines.other[c, k]


@inlined
def most_instances(machines: Machines, scratch: Scratch, count: Ints, c: int, n: int) -> int:
    """The most instances of c that machine n may get; -1 if the last machine cannot take the rest.

    Of machines that could change places, the one before must hold no less.
    """
    x = scratch.x
    left = count[c]
    for j in range(n):
        left -= x[c, j]
    v = min(left, machines.most - int(scratch.used[TASKS, n])) if machines.may[c, n] else 0
    if machines.apart[c]:
        v = min(v, 1)
    for k in range(machines.room.shape[1]):
        if v > 0 and machines.other[c, k] > 0.0:
            room = machines.room[n, k] * (1 + BETTER) - scratch.taken[n, k]
            if room < v * machines.other[c, k]:
                v = max(0, int(room / machines.other[c, k]))
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
    machines: Machines, scratch: Scratch, count: Ints, c: int, n: int, factor: float
) -> bool:
    """Whether the placement so far, up to component c on machine n, leaves a factor in reach."""
    load, fixed = scratch.used[LOAD], scratch.used[FIXED]
    if fixed[n] + factor * load[n] > machines.cpu[n]:
        return False
    if load[n] == 0.0 and fixed[n] > machines.cpu[n]:
        return False
    thread = machines.fixed[c, n] + factor * scratch.each[c, n]
    if scratch.x[c, n] > 0 and thread > machines.thread:
        return False
    left = count[c]
    for j in range(n + 1):
        left -= scratch.x[c, j]
    need = left * scratch.least[c] if left > 0 else 0.0
    for e in range(c + 1, len(count)):
        need += count[e] * scratch.least[e]
    return room_left(machines, scratch.used, factor) >= need


@kernel
def room_left(machines: Machines, used: Floats, factor: float) -> float:
    """Points that all machines still have at a factor."""
    room = 0.0
    for n in range(used.shape[1]):
        room += max(0.0, machines.cpu[n] - used[FIXED, n] - factor * used[LOAD, n])
    return room * (1 + 1e-9)


@kernel
def sustained_factor(machines: Machines, scratch: Scratch) -> float:
    """The factor that a complete placement sustains."""
    factor = np.inf
    for n in range(scratch.x.shape[1]):
        if scratch.used[LOAD, n] > 0.0:
            spare = machines.cpu[n] - scratch.used[FIXED, n]
            factor = min(factor, spare / scratch.used[LOAD, n])
        for c in range(scratch.x.shape[0]):
            if scratch.x[c, n] > 0 and scratch.each[c, n] > 0.0:
                spare = machines.thread - machines.fixed[c, n]
                factor = min(factor, spare / scratch.each[c, n])
    return factor

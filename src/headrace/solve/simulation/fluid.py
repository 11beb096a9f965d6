"""Queues as a fluid: what flows in and out of groups of like tasks, in small steps.

A cell is the tasks of a component that run on one node and get equal shares; Q cells, C
components, S streams, N nodes. All is in tuples/s but for what waits, in tuples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.compiled import compiled

ROUNDS = 6  # in which the cores of a full node are shared out


class Fluid(NamedTuple):
    """A plan as a fluid and how it is at a moment."""

    component: Ints  # [Q]
    node: Ints  # [Q]
    share: Floats  # [Q] of its component's tuples
    most: Floats  # [Q] tuples/s that its threads serve at most
    threads: Floats  # [Q] cores that they take at most
    work_s: Floats  # [Q] CPU seconds of a tuple
    limit: Floats  # [Q] tuples that may wait
    arrives: Floats  # [Q] tuples/s from outside at the given rates
    cores: Floats  # [N]
    mbps: Floats  # [N]
    source: Ints  # [S] component
    target: Ints  # [S] component
    gain: Floats  # [S] tuples received per tuple that the source serves
    megabits: Floats  # [S] of a tuple
    on_node: Floats  # [C, N] share of a component's tuples that a node gets
    waiting: Floats  # [Q]
    served: Floats  # [Q] in this step
    enters: Floats  # [Q] in this step
    hold: Floats  # [C] share of their speed that components keep, while a queue behind is full
    need: Floats  # [3, N] CPU, megabits out and in that nodes would like
    level: Floats  # [3, N] cores of a busy thread; and sums on the way to it
    emitted: Floats  # [C, N]
    total: Floats  # [C]
    visits: Floats  # [C] tuples that a component serves per tuple that arrives
    started: Floats  # [3] arrived, started by spouts, completed so far
    done: Floats  # [C] tuples that components have served so far
    open: Floats  # [1] trees that may be open
    passed: Floats  # [Q] tuples served so far


@compiled
def flow(fluid: Fluid, factor: float, dt: float, steps: int) -> None:
    """Let a fluid flow for some steps."""
    for _ in range(steps):
        demand(fluid, factor, dt)
        serve(fluid, dt)
        pass_on(fluid)
        complete(fluid, dt)


@compiled
def demand(fluid: Fluid, factor: float, dt: float) -> None:
    """What each cell would serve, and what that asks of its node."""
    fluid.need[:] = 0.0
    allowed = 1.0
    free = (fluid.open[0] - (fluid.started[1] - fluid.started[2])) / dt
    wish = 0.0
    for q in range(len(fluid.node)):
        c = fluid.component[q]
        into = fluid.enters[q] + factor * fluid.arrives[q]
        fluid.waiting[q] += into * dt
        fluid.started[0] += factor * fluid.arrives[q] * dt
        rate = min(fluid.waiting[q] / dt, fluid.most[q] * fluid.hold[c])
        fluid.served[q] = rate
        if fluid.arrives[q] > 0.0:
            wish += rate
    if wish > 0.0 and wish > free:
        allowed = max(0.0, free) / wish
    for q in range(len(fluid.node)):
        if fluid.arrives[q] > 0.0:
            fluid.served[q] *= allowed
        fluid.need[0, fluid.node[q]] += fluid.served[q] * fluid.work_s[q]


@compiled
def share_cores(fluid: Fluid) -> None:
    """The cores that a busy thread gets on nodes that cannot serve all: the same for each.

    Threads that need less leave the rest to the others, so the level rises to where it fits.
    """
    level, full, left = fluid.level
    for n in range(len(fluid.cores)):
        level[n] = 0.0 if fluid.need[0, n] > fluid.cores[n] else np.inf
    for _ in range(ROUNDS):
        full[:] = 0.0
        left[:] = fluid.cores
        for q in range(len(fluid.node)):
            n = fluid.node[q]
            wish = fluid.served[q] * fluid.work_s[q]
            if wish <= level[n] * fluid.threads[q]:
                left[n] -= wish
            else:
                full[n] += fluid.threads[q]
        for n in range(len(fluid.cores)):
            if full[n] > 0.0 and level[n] < np.inf:
                level[n] = max(level[n], left[n] / full[n])


@compiled
def serve(fluid: Fluid, dt: float) -> None:
    """Cut what nodes and links cannot do; what is left flows out."""
    fluid.emitted[:] = 0.0
    if np.any(fluid.need[0] > fluid.cores):
        share_cores(fluid)
    else:
        fluid.level[0] = np.inf
    for q in range(len(fluid.node)):
        n = fluid.node[q]
        most = fluid.level[0, n] * fluid.threads[q]
        if fluid.served[q] * fluid.work_s[q] > most:
            fluid.served[q] = most / fluid.work_s[q]
        fluid.emitted[fluid.component[q], n] += fluid.served[q]
    link_needs(fluid)
    slow = False
    for n in range(len(fluid.cores)):
        slow |= fluid.need[1, n] > fluid.mbps[n] or fluid.need[2, n] > fluid.mbps[n]
    worst = np.max(fluid.need[2] / fluid.mbps) if slow else 0.0
    fluid.total[:] = 0.0
    for q in range(len(fluid.node)):
        n = fluid.node[q]
        if slow:
            over = max(fluid.need[1, n] / fluid.mbps[n], worst)
            if over > 1.0 and sends(fluid, fluid.component[q]):
                fluid.served[q] /= over
        fluid.waiting[q] = max(0.0, fluid.waiting[q] - fluid.served[q] * dt)
        fluid.total[fluid.component[q]] += fluid.served[q]
        fluid.passed[q] += fluid.served[q] * dt


@compiled
def sends(fluid: Fluid, component: int) -> bool:
    """Whether a component sends tuples whose size is known."""
    for s in range(len(fluid.source)):
        if fluid.source[s] == component and fluid.megabits[s] > 0.0:
            return True
    return False


@compiled
def link_needs(fluid: Fluid) -> None:
    """Megabits that leave and enter every node."""
    for s in range(len(fluid.source)):
        if fluid.megabits[s] == 0.0:
            continue
        a, b, size = fluid.source[s], fluid.target[s], fluid.gain[s] * fluid.megabits[s]
        total = fluid.emitted[a].sum()
        for n in range(len(fluid.cores)):
            own = fluid.emitted[a, n]
            fluid.need[1, n] += own * size * (1.0 - fluid.on_node[b, n])
            fluid.need[2, n] += (total - own) * size * fluid.on_node[b, n]


@compiled
def pass_on(fluid: Fluid) -> None:
    """What was served flows on, by shares; a full queue holds its senders back."""
    into = fluid.emitted[:, 0]
    into[:] = 0.0
    for s in range(len(fluid.source)):
        into[fluid.target[s]] += fluid.total[fluid.source[s]] * fluid.gain[s]
    fluid.hold[:] = np.minimum(1.0, fluid.hold * 1.05)
    for q in range(len(fluid.node)):
        c = fluid.component[q]
        fluid.enters[q] = into[c] * fluid.share[q]
        if fluid.waiting[q] > fluid.limit[q] and fluid.enters[q] > fluid.served[q]:
            for s in range(len(fluid.source)):
                if fluid.target[s] == c:
                    a = fluid.source[s]
                    cut = fluid.hold[a] * max(0.01, fluid.served[q] / fluid.enters[q])
                    fluid.hold[a] = min(fluid.hold[a], cut)


@compiled
def complete(fluid: Fluid, dt: float) -> None:
    """About how many are complete, for the limit on open trees: as many as all components served.

    Which of the tasks of a component a tree needs is not looked at here.
    """
    least = fluid.started[0]
    for c in range(len(fluid.visits)):
        fluid.done[c] += fluid.total[c] * dt
        if fluid.visits[c] > 0.0:
            least = min(least, fluid.done[c] / fluid.visits[c])
    for q in range(len(fluid.node)):
        if fluid.arrives[q] > 0.0:
            fluid.started[1] += fluid.served[q] * dt
    fluid.started[2] = max(fluid.started[2], least)

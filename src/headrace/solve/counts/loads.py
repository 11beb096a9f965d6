"""How full nodes and threads are under given counts, kept up to date while tasks come and go.

All tasks of a component share its load evenly: one task more makes all others smaller. A ratio is
load over room at factor 1, so the largest ratio is the reciprocal of the factor that the counts
sustain.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.problem import CPU
from headrace.solve.compiled import inlined, kernel
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.state import State, put
from headrace.solve.least_traffic.terms import Terms, terms_of

STEEP = 16.0  # how much the fullest node outweighs the others in the soft maximum
FULL = 1e9  # ratio of a node whose fixed load alone exceeds it
THRIFT = 1e-3  # share of the cost that one more task per node adds: of equal plans, fewer tasks
SCALE, SOFT, TASKS = 0, 1, 2  # where `Loads.sums` keeps what


class TaskCosts(NamedTuple):
    """What components cost. Y node types, C components, N nodes."""

    by_rate: Floats  # [Y, C] points of the whole component at factor 1
    fixed: Floats  # [Y, C] points of one task
    thread: Floats  # [Y, C] points one task has for what grows with the rate
    cpu: Floats  # [N] free points
    most: Ints  # [C] tasks


class Loads(NamedTuple):
    """What follows from the counts."""

    total: Ints  # [C] tasks
    hosts: Ints  # [Y, C] nodes of a type that hold a component
    ratio: Floats  # [N] of a node
    pace: Floats  # [C] ratio of the fullest thread of a component
    sums: Floats  # [3] the scale of the soft maximum, its sum, the number of tasks


def room_terms(instance: Instance, costs: TaskCosts) -> Terms:
    """What a node must hold besides CPU, which depends on the counts; traffic is left out."""
    demand, capacity = instance.demand.copy(), instance.capacity.copy()
    demand[:, :, CPU], capacity[:, CPU] = 0.0, np.inf
    none = np.zeros(0, dtype=np.int64)
    return terms_of(
        replace(
            instance,
            demand=demand,
            capacity=capacity,
            count=np.minimum(costs.most, 1_000_000),
            edge_a=none,
            edge_b=none,
            edge_weight=np.zeros(0),
        )
    )


def empty_loads(terms: Terms) -> Loads:
    """Room for the figures; `measure_loads` fills it."""
    nodes, components = terms.allowed.shape
    types = terms.demand.shape[0]
    return Loads(
        total=np.zeros(components, np.int64),
        hosts=np.zeros((types, components), np.int64),
        ratio=np.zeros(nodes),
        pace=np.zeros(components),
        sums=np.zeros(3),
    )


@kernel
def node_ratio(terms: Terms, state: State, costs: TaskCosts, loads: Loads, n: int) -> float:
    """Load of node n at factor 1 over what it has for it."""
    y = terms.node_type[n]
    load = 0.0
    fixed = 0.0
    for i in range(state.contents[n]):
        c = int(state.content[n, i])
        load += state.x[n, c] * costs.by_rate[y, c] / loads.total[c]
        fixed += state.x[n, c] * costs.fixed[y, c]
    if costs.cpu[n] == np.inf:
        return 0.0
    room = costs.cpu[n] - fixed
    if load <= 0.0:
        return FULL if fixed > costs.cpu[n] * (1 + 1e-9) else 0.0
    return load / room if room > load / FULL else FULL


@kernel
def thread_ratio(costs: TaskCosts, loads: Loads, c: int) -> float:
    """The same for the fullest thread of component c."""
    most = 0.0
    for y in range(costs.by_rate.shape[0]):
        if loads.hosts[y, c] > 0 and costs.by_rate[y, c] > 0.0:
            most = max(most, costs.by_rate[y, c] / loads.total[c] / max(costs.thread[y, c], 1e-9))
    return most


@kernel
def measure_loads(terms: Terms, state: State, costs: TaskCosts, loads: Loads) -> None:
    """Work everything out from the counts."""
    nodes, components = state.x.shape
    loads.total[:] = 0
    loads.hosts[:] = 0
    loads.sums[:] = 0.0
    for n in range(nodes):
        for i in range(state.contents[n]):
            c = int(state.content[n, i])
            loads.total[c] += state.x[n, c]
            loads.hosts[terms.node_type[n], c] += 1
        loads.sums[TASKS] += state.tasks[n]
    for n in range(nodes):
        loads.ratio[n] = node_ratio(terms, state, costs, loads, n)
        loads.sums[SCALE] = max(loads.sums[SCALE], loads.ratio[n])
    for c in range(components):
        loads.pace[c] = thread_ratio(costs, loads, c)
        loads.sums[SCALE] = max(loads.sums[SCALE], loads.pace[c])
    loads.sums[SCALE] = max(loads.sums[SCALE], 1e-30)
    for n in range(nodes):
        loads.sums[SOFT] += (loads.ratio[n] / loads.sums[SCALE]) ** STEEP
    for c in range(components):
        loads.sums[SOFT] += (loads.pace[c] / loads.sums[SCALE]) ** STEEP


@kernel
def largest_ratio(loads: Loads) -> float:
    """The reciprocal of the factor that the counts sustain."""
    most = 0.0
    for n in range(loads.ratio.shape[0]):
        most = max(most, loads.ratio[n])
    for c in range(loads.pace.shape[0]):
        most = max(most, loads.pace[c])
    return most


@kernel
def soft_cost(loads: Loads) -> float:
    """What the search lowers: a soft maximum of the ratios, and a little for every task."""
    return max(0.0, loads.sums[SOFT]) ** (1.0 / STEEP) * (
        1.0 + THRIFT * loads.sums[TASKS] / loads.ratio.shape[0]
    )


@kernel
def apply_move(
    terms: Terms,
    state: State,
    costs: TaskCosts,
    loads: Loads,
    c: int,
    n: int,
    m: int,
    k: int,
    d: int,
    k2: int,
) -> None:
    """Take k tasks of c from node n to node m, and k2 of d from m to n.

    Without n (n < 0) the tasks are new, without m they are gone.
    """
    if n >= 0:
        change_count(terms, state, loads, c, n, -k)
        if k2 > 0:
            change_count(terms, state, loads, d, n, k2)
    if m >= 0:
        change_count(terms, state, loads, c, m, k)
        if k2 > 0:
            change_count(terms, state, loads, d, m, -k2)
    refresh_component(terms, state, costs, loads, c, n < 0 or m < 0)
    if k2 > 0:
        refresh_component(terms, state, costs, loads, d, n < 0 or m < 0)
    if n >= 0:
        refresh_node(terms, state, costs, loads, n)
    if m >= 0:
        refresh_node(terms, state, costs, loads, m)


@inlined
def undo_move(
    terms: Terms,
    state: State,
    costs: TaskCosts,
    loads: Loads,
    c: int,
    n: int,
    m: int,
    k: int,
    d: int,
    k2: int,
) -> None:
    """Take back what `apply_move` did with the same arguments."""
    if m < 0 and k2 > 0:  # tasks of c became tasks of d on node n
        apply_move(terms, state, costs, loads, d, n, m, k2, c, k)
    else:
        apply_move(terms, state, costs, loads, c, m, n, k, d, k2)


@kernel
def change_count(terms: Terms, state: State, loads: Loads, c: int, n: int, k: int) -> None:
    """Put k more tasks of c on node n (k < 0: fewer); ratios are left for `refresh_..`."""
    y = terms.node_type[n]
    before = state.x[n, c]
    put(terms, state, c, n, k)
    if before == 0:
        loads.hosts[y, c] += 1
    if before + k == 0:
        loads.hosts[y, c] -= 1
    loads.total[c] += k
    loads.sums[TASKS] += k


@kernel
def refresh_component(
    terms: Terms, state: State, costs: TaskCosts, loads: Loads, c: int, resized: bool
) -> None:
    """Work out the thread of c again and, if its tasks changed size, all nodes that hold it."""
    loads.sums[SOFT] -= (loads.pace[c] / loads.sums[SCALE]) ** STEEP
    loads.pace[c] = thread_ratio(costs, loads, c)
    loads.sums[SOFT] += (loads.pace[c] / loads.sums[SCALE]) ** STEEP
    if resized:
        for i in range(state.holders[c]):
            refresh_node(terms, state, costs, loads, int(state.holder[c, i]))


@kernel
def refresh_node(terms: Terms, state: State, costs: TaskCosts, loads: Loads, n: int) -> None:
    """Work out the ratio of node n again."""
    loads.sums[SOFT] -= (loads.ratio[n] / loads.sums[SCALE]) ** STEEP
    loads.ratio[n] = node_ratio(terms, state, costs, loads, n)
    loads.sums[SOFT] += (loads.ratio[n] / loads.sums[SCALE]) ** STEEP

"""How full nodes and threads are under given counts, kept up to date while tasks come and go.

All tasks of a component share its load evenly: one task more makes all others smaller. Where a
stream goes to every task, or is divided by tasks, the load itself changes with the counts. A ratio
is load over room at factor 1, so the largest ratio is the reciprocal of the factor that the counts
sustain.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.problem import CPU
from headrace.solve.compiled import ZERO, inlined, kernel
from headrace.solve.counts.count_flow import DEPENDS, UNEVEN, CountFlow, grow_rates
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.state import State, put
from headrace.solve.least_traffic.terms import Terms, terms_of

STEEP = 16.0  # how much the fullest node outweighs the others in the soft maximum
FULL = 1e9  # ratio of a node whose fixed load alone exceeds it
THRIFT = 1e-3  # share of the cost that one more task per node adds: of equal plans, fewer tasks
SCALE, SOFT, TASKS = 0, 1, 2  # where `Fullness.sums` keeps what


class TaskCosts(NamedTuple):
    """What components cost. Y node types, C components, N nodes."""

    by_rate: Floats  # [Y, C] points of the whole component at factor 1 and its reference rate
    fixed: Floats  # [Y, C] points of one task
    thread: Floats  # [Y, C] points one task has for what grows with the rate
    cpu: Floats  # [N] free points
    most: Ints  # [C] tasks
    flow: CountFlow  # what becomes of the load under other counts


class Fullness(NamedTuple):
    """What follows from the counts."""

    total: Ints  # [C] tasks
    hosts: Ints  # [Y, C] nodes of a type that hold a component
    ratio: Floats  # [N] of a node
    pace: Floats  # [C] ratio of the fullest thread of a component
    more: Floats  # [C] times its reference rate that a component gets
    first_gets: Floats  # [C] what of it goes to its first task alone
    sums: Floats  # [3] the scale of the soft maximum, its sum, the number of tasks


def without_cpu(instance: Instance) -> Instance:
    """What a node must hold besides CPU, which depends on the counts."""
    demand, capacity = instance.demand.copy(), instance.capacity.copy()
    demand[:, :, CPU], capacity[:, CPU] = 0.0, np.inf
    return replace(instance, demand=demand, capacity=capacity)


def room_terms(instance: Instance, costs: TaskCosts) -> Terms:
    """The same as terms of a search; traffic is left out."""
    none = np.zeros(0, dtype=np.int64)
    return terms_of(
        replace(
            without_cpu(instance),
            count=np.minimum(costs.most, 1_000_000),
            edge_a=none,
            edge_b=none,
            edge_weight=np.zeros(0),
        )
    )


def empty_fullness(terms: Terms) -> Fullness:
    """Room for the figures; `measure_fullness` fills it."""
    nodes, components = terms.allowed.shape
    types = terms.demand.shape[0]
    return Fullness(
        total=np.zeros(components, np.int64),
        hosts=np.zeros((types, components), np.int64),
        ratio=np.zeros(nodes),
        pace=np.zeros(components),
        more=np.ones(components),
        first_gets=np.zeros(components),
        sums=np.zeros(3),
    )


@kernel
def ratio_of_node(
    terms: Terms, state: State, costs: TaskCosts, fullness: Fullness, n: int
) -> float:
    """Load of node n at factor 1 over what it has for it."""
    y = terms.node_type[n]
    load = 0.0
    fixed = 0.0
    for i in range(state.contents[n]):
        c = int(state.content[n, i])
        even = (fullness.more[c] - fullness.first_gets[c]) / fullness.total[c]
        load += state.x[n, c] * costs.by_rate[y, c] * even
        if fullness.first_gets[c] > 0.0 and node_of_first(state, c) == n:
            load += costs.by_rate[y, c] * fullness.first_gets[c]
        fixed += state.x[n, c] * costs.fixed[y, c]
    if costs.cpu[n] == np.inf:
        return 0.0
    room = costs.cpu[n] - fixed
    if load <= 0.0:
        return FULL if fixed > costs.cpu[n] * (1 + 1e-9) else 0.0
    return load / room if room > load / FULL else FULL


@kernel
def ratio_of_thread(
    terms: Terms, state: State, costs: TaskCosts, fullness: Fullness, c: int
) -> float:
    """The same for the fullest thread of component c."""
    most = 0.0
    even = (fullness.more[c] - fullness.first_gets[c]) / fullness.total[c]
    for y in range(costs.by_rate.shape[0]):
        if fullness.hosts[y, c] > 0 and costs.by_rate[y, c] > 0.0:
            most = max(most, costs.by_rate[y, c] * even / max(costs.thread[y, c], 1e-9))
    if fullness.first_gets[c] > 0.0:
        y = terms.node_type[node_of_first(state, c)]
        load = costs.by_rate[y, c] * (even + fullness.first_gets[c])
        most = max(most, load / max(costs.thread[y, c], 1e-9))
    return min(most, FULL)


@kernel
def node_of_first(state: State, c: int) -> int:
    """The node of a component's first task: tasks are numbered node by node."""
    first = int(state.holder[c, 0])
    for i in range(1, state.holders[c]):
        first = min(first, int(state.holder[c, i]))
    return first


@kernel
def measure_fullness(terms: Terms, state: State, costs: TaskCosts, fullness: Fullness) -> None:
    """Work everything out from the counts."""
    nodes = state.x.shape[0]
    fullness.total[:] = 0
    fullness.hosts[:] = 0
    fullness.sums[:] = 0.0
    for n in range(nodes):
        for i in range(state.contents[n]):
            c = int(state.content[n, i])
            fullness.total[c] += state.x[n, c]
            fullness.hosts[terms.node_type[n], c] += 1
        fullness.sums[TASKS] += state.tasks[n]
    refresh_all(terms, state, costs, fullness)
    fullness.sums[SCALE] = max(largest_ratio(fullness), 1e-30)
    fullness.sums[SOFT] = soft_sum(fullness)


@kernel
def refresh_all(terms: Terms, state: State, costs: TaskCosts, fullness: Fullness) -> None:
    """Work out rates, nodes and threads again from how many tasks there are."""
    grow_rates(costs.flow, fullness.total, fullness.more, fullness.first_gets)
    for n in range(fullness.ratio.shape[0]):
        fullness.ratio[n] = ratio_of_node(terms, state, costs, fullness, n)
    for c in range(fullness.pace.shape[0]):
        fullness.pace[c] = ratio_of_thread(terms, state, costs, fullness, c)


@kernel
def soft_sum(fullness: Fullness) -> float:
    """The sum of the soft maximum, in units of the scale."""
    total = 0.0
    for n in range(fullness.ratio.shape[0]):
        total += (fullness.ratio[n] / fullness.sums[SCALE]) ** STEEP
    for c in range(fullness.pace.shape[0]):
        total += (fullness.pace[c] / fullness.sums[SCALE]) ** STEEP
    return total


@kernel
def largest_ratio(fullness: Fullness) -> float:
    """The reciprocal of the factor that the counts sustain."""
    most = 0.0
    for n in range(fullness.ratio.shape[0]):
        most = max(most, fullness.ratio[n])
    for c in range(fullness.pace.shape[0]):
        most = max(most, fullness.pace[c])
    return most


@kernel
def soft_cost(fullness: Fullness) -> float:
    """What the search lowers: a soft maximum of the ratios, and a little for every task."""
    return max(0.0, fullness.sums[SOFT]) ** (1.0 / STEEP) * (
        1.0 + THRIFT * fullness.sums[TASKS] / fullness.ratio.shape[0]
    )


@kernel
def apply_move(
    terms: Terms,
    state: State,
    costs: TaskCosts,
    fullness: Fullness,
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
        change_count(terms, state, fullness, c, n, -k)
        if k2 > 0:
            change_count(terms, state, fullness, d, n, k2)
    if m >= 0:
        change_count(terms, state, fullness, c, m, k)
        if k2 > 0:
            change_count(terms, state, fullness, d, m, -k2)
    if costs.flow.kind == UNEVEN or (costs.flow.kind == DEPENDS and (n < 0 or m < 0)):
        refresh_all(terms, state, costs, fullness)
        fullness.sums[SOFT] = soft_sum(fullness)
        return
    refresh_component(terms, state, costs, fullness, c, n < 0 or m < 0)
    if k2 > 0:
        refresh_component(terms, state, costs, fullness, d, n < 0 or m < 0)
    if n >= 0:
        refresh_node(terms, state, costs, fullness, n)
    if m >= 0:
        refresh_node(terms, state, costs, fullness, m)


@inlined
def undo_move(
    terms: Terms,
    state: State,
    costs: TaskCosts,
    fullness: Fullness,
    c: int,
    n: int,
    m: int,
    k: int,
    d: int,
    k2: int,
) -> None:
    """Take back what `apply_move` did with the same arguments."""
    if m < 0 and k2 > 0:  # tasks of c became tasks of d on node n
        apply_move(terms, state, costs, fullness, d, n, m, k2, c, k)
    else:
        apply_move(terms, state, costs, fullness, c, m, n, k, d, k2)


@kernel
def change_count(terms: Terms, state: State, fullness: Fullness, c: int, n: int, k: int) -> None:
    """Put k more tasks of c on node n (k < 0: fewer); ratios are left for `refresh_..`."""
    y = terms.node_type[n]
    before = state.x[n, c]
    put(terms, state, c, n, k)
    if before == 0:
        fullness.hosts[y, c] += 1
    if before + k == 0:
        fullness.hosts[y, c] -= 1
    fullness.total[c] += k
    fullness.sums[TASKS] += k


@kernel
def refresh_component(
    terms: Terms, state: State, costs: TaskCosts, fullness: Fullness, c: int, resized: bool
) -> None:
    """Work out the thread of c again and, if its tasks changed size, all nodes that hold it."""
    fullness.sums[SOFT] -= (fullness.pace[c] / fullness.sums[SCALE]) ** STEEP
    fullness.pace[c] = ratio_of_thread(terms, state, costs, fullness, c)
    fullness.sums[SOFT] += (fullness.pace[c] / fullness.sums[SCALE]) ** STEEP
    if resized:
        for i in range(state.holders[c]):
            n = ZERO + int(state.holder[c, i])  # for 32 bits all would be compiled again
            refresh_node(terms, state, costs, fullness, n)


@kernel
def refresh_node(terms: Terms, state: State, costs: TaskCosts, fullness: Fullness, n: int) -> None:
    """Work out the ratio of node n again."""
    fullness.sums[SOFT] -= (fullness.ratio[n] / fullness.sums[SCALE]) ** STEEP
    fullness.ratio[n] = ratio_of_node(terms, state, costs, fullness, n)
    fullness.sums[SOFT] += (fullness.ratio[n] / fullness.sums[SCALE]) ** STEEP

"""What nodes carry under given counts, kept up to date while tasks move, and what it is worth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.compiled import kernel
from headrace.solve.least_traffic.state import State
from headrace.solve.least_traffic.terms import Terms
from headrace.solve.rate.costs import RateCosts

RATE, BATCH, BALANCE = 0, 1, 2  # objectives
# Where `NodeLoads.sums` keeps what.
SCALE = 0  # the largest ratio when the counts were loaded
SOFT = 1  # over the nodes: ratio over scale, to a high power
SHARES, SQUARES = 2, 3  # over the nodes: share of CPU in use, and its square
SLOWEST, STAGES = 4, 5  # over the stages: seconds of the slowest node, and of all nodes
OVER = 6  # over the nodes: ratio above 1

STEEP = 40.0  # how much the fullest node outweighs the others while searching
FULL = 1e12  # ratio of a node whose fixed load alone exceeds it
OVER_PRICE = 1e6  # of a node that carries more than it can, where the rate is not the objective
# The same while searching, times the cost: the way to a good plan may lead through a bad one.
PASSING_PRICE = 2.0
# Of an average node's seconds: of equally long batches, the one with idle nodes; and the same while
# searching, where it leads to shorter ones.
IDLE_PRICE, IDLE_PRICE_SEARCHING = 1e-7, 1e-3


class NodeLoads(NamedTuple):
    """What nodes carry under the counts at hand."""

    grows: Floats  # [N] CPU points that grow with the rate
    fixed: Floats  # [N] and that do not
    emits: Floats  # [N, S]
    receives: Floats  # [N, S]
    sending: Floats  # [N] CPU points spent on sending to other nodes
    ratio: Floats  # [N] load over room at the given rates
    stage_s: Floats  # [stages, N]
    slowest_s: Floats  # [stages]
    touched: Ints  # scratch: stages that changed
    sums: Floats  # what the cost is made of


def new_loads(costs: RateCosts, nodes: int) -> NodeLoads:
    """Loads of nodes before any counts are loaded."""
    stages, streams = len(costs.member_start) - 1, len(costs.size)
    return NodeLoads(
        grows=np.zeros(nodes),
        fixed=np.zeros(nodes),
        emits=np.zeros((nodes, streams)),
        receives=np.zeros((nodes, streams)),
        sending=np.zeros(nodes),
        ratio=np.zeros(nodes),
        stage_s=np.zeros((stages, nodes)),
        slowest_s=np.zeros(stages),
        touched=np.zeros(stages + 1, np.int64),
        sums=np.zeros(7),
    )


@kernel
def load_counts(
    terms: Terms, state: State, costs: RateCosts, loads: NodeLoads, objective: int
) -> None:
    """Work everything out from the counts, free of old rounding."""
    loads.grows[:] = 0.0
    loads.fixed[:] = 0.0
    loads.emits[:] = 0.0
    loads.receives[:] = 0.0
    loads.sums[:] = 0.0
    nodes, classes = state.x.shape
    for n in range(nodes):
        for c in range(classes):
            if state.x[n, c] > 0:
                add_tasks(terms, costs, loads, c, n, state.x[n, c])
        loads.ratio[n] = node_ratio(costs, loads, n)
        loads.sums[SCALE] = max(loads.sums[SCALE], loads.ratio[n])
    loads.sums[SCALE] = max(loads.sums[SCALE], 1e-30)
    for n in range(nodes):
        count_node(costs, loads, n, objective, 1.0)
    for k in range(loads.slowest_s.shape[0]):
        loads.slowest_s[k] = 0.0
        for n in range(nodes):
            loads.stage_s[k, n] = stage_seconds(terms, state, costs, loads, k, n)
            loads.slowest_s[k] = max(loads.slowest_s[k], loads.stage_s[k, n])
            loads.sums[STAGES] += loads.stage_s[k, n]
        loads.sums[SLOWEST] += loads.slowest_s[k]


@kernel
def add_tasks(terms: Terms, costs: RateCosts, loads: NodeLoads, c: int, n: int, k: int) -> None:
    """Count k more tasks of class c on node n (k < 0: fewer)."""
    y = terms.node_type[n]
    loads.grows[n] += k * costs.grows[y, c]
    loads.fixed[n] += k * costs.fixed[y, c]
    for i in range(costs.out_start[c], costs.out_start[c + 1]):
        loads.emits[n, costs.out_stream[i]] += k * costs.out_amount[i]
    for i in range(costs.in_start[c], costs.in_start[c + 1]):
        loads.receives[n, costs.in_stream[i]] += k * costs.in_amount[i]


@kernel
def update_nodes(
    terms: Terms,
    state: State,
    costs: RateCosts,
    loads: NodeLoads,
    n: int,
    m: int,
    touched: int,
    objective: int,
) -> None:
    """Work out nodes n and m again; what they added to the sums has been taken away before."""
    if objective == BATCH:
        for j in range(touched):
            update_stage(terms, state, costs, loads, loads.touched[j], n)
            update_stage(terms, state, costs, loads, loads.touched[j], m)
    loads.ratio[n] = node_ratio(costs, loads, n)
    loads.ratio[m] = node_ratio(costs, loads, m)
    count_node(costs, loads, n, objective, 1.0)
    count_node(costs, loads, m, objective, 1.0)


@kernel
def count_node(costs: RateCosts, loads: NodeLoads, n: int, objective: int, sign: float) -> None:
    """Add node n to the sums that the cost is made of, or take it away (`sign` -1)."""
    if objective == RATE:
        loads.sums[SOFT] += sign * (loads.ratio[n] / loads.sums[SCALE]) ** STEEP
        return
    loads.sums[OVER] += sign * max(0.0, loads.ratio[n] - 1.0 - 1e-9)
    if objective == BALANCE:
        share = cpu_share(costs, loads, n)
        loads.sums[SHARES] += sign * share
        loads.sums[SQUARES] += sign * share * share


@kernel
def node_ratio(costs: RateCosts, loads: NodeLoads, n: int) -> float:
    """Load of node n at the given rates over its room: it sustains the reciprocal of that."""
    out = 0.0
    into = 0.0
    points = 0.0
    for s in range(costs.size.shape[0]):
        leaves = loads.emits[n, s] * max(0.0, costs.copies[s] - loads.receives[n, s])
        comes = loads.receives[n, s] * max(0.0, costs.emitted[s] - loads.emits[n, s])
        points += leaves * costs.send_points + comes * costs.receive_points
        out += costs.size[s] * leaves
        into += costs.size[s] * comes
    ratio = max(out, into) / costs.bytes_per_s[n]
    loads.sending[n] = points
    grows = loads.grows[n] + loads.sending[n]
    if grows > 1e-12 and costs.cpu[n] < np.inf:
        room = costs.cpu[n] - loads.fixed[n]
        ratio = max(ratio, grows / room if room > 1e-9 * grows else FULL)
    return ratio


@kernel
def cpu_share(costs: RateCosts, loads: NodeLoads, n: int) -> float:
    """Share of node n's CPU in use, by us and by others."""
    if costs.installed[n] == np.inf or costs.installed[n] <= 0.0:
        return 0.0
    return (
        loads.grows[n] + loads.fixed[n] + loads.sending[n] + costs.installed[n] - costs.cpu[n]
    ) / costs.installed[n]


@kernel
def stage_seconds(
    terms: Terms, state: State, costs: RateCosts, loads: NodeLoads, stage: int, n: int
) -> float:
    """Seconds of a stage on node n per second of input: waves of tasks, then receiving."""
    y = terms.node_type[n]
    tasks = 0
    load = 0.0
    longest = 0.0
    for i in range(costs.member_start[stage], costs.member_start[stage + 1]):
        c = costs.member[i]
        k = state.x[n, c]
        if k > 0:
            points = costs.grows[y, c] + costs.fixed[y, c]
            tasks += k
            load += k * points
            longest = max(longest, points)
    seconds = 0.0
    if tasks > 0:
        waves = 1.0 if costs.cores[n] == np.inf else np.ceil(tasks / costs.cores[n])
        seconds = max(waves * load / tasks, longest) / 100
    into = 0.0
    out = 0.0
    for i in range(costs.into_start[stage], costs.into_start[stage + 1]):
        s = costs.into_stream[i]
        into += (
            costs.size[s] * loads.receives[n, s] * max(0.0, costs.emitted[s] - loads.emits[n, s])
        )
        out += costs.size[s] * loads.emits[n, s] * max(0.0, costs.copies[s] - loads.receives[n, s])
    return seconds + max(into, out) / costs.bytes_per_s[n]


@kernel
def touched_stages(costs: RateCosts, loads: NodeLoads, c: int, found: int) -> int:
    """Add the stages that depend on where class c is: its own, and those it sends to."""
    for i in range(costs.out_start[c] - 1, costs.out_start[c + 1]):
        k = costs.stage[c] if i < costs.out_start[c] else costs.target[costs.out_stream[i]]
        known = False
        for j in range(found):
            if loads.touched[j] == k:
                known = True
        if not known:
            loads.touched[found] = k
            found += 1
    return found


@kernel
def update_stage(
    terms: Terms, state: State, costs: RateCosts, loads: NodeLoads, k: int, n: int
) -> None:
    """Work out stage k on node n again, and with it the stage's slowest node."""
    was, now = loads.stage_s[k, n], stage_seconds(terms, state, costs, loads, k, n)
    loads.stage_s[k, n] = now
    loads.sums[STAGES] += now - was
    slowest = loads.slowest_s[k]
    if now >= slowest:
        slowest = now
    elif was >= slowest:
        slowest = 0.0
        for i in range(loads.ratio.shape[0]):
            slowest = max(slowest, loads.stage_s[k, i])
    loads.sums[SLOWEST] += slowest - loads.slowest_s[k]
    loads.slowest_s[k] = slowest


@kernel
def load_cost(loads: NodeLoads, objective: int) -> float:
    """A soft maximum of the ratios, the batch's seconds, or the variance of the load."""
    nodes = loads.ratio.shape[0]
    if objective == BATCH:
        return loads.sums[SLOWEST] + IDLE_PRICE_SEARCHING * loads.sums[STAGES] / nodes
    if objective == BALANCE:
        return max(0.0, loads.sums[SQUARES] / nodes - (loads.sums[SHARES] / nodes) ** 2)
    return max(0.0, loads.sums[SOFT]) ** (1.0 / STEEP)


@kernel
def search_cost(loads: NodeLoads, objective: int, scale: float) -> float:
    """What the search lowers: the cost, and a price for overload that it can pass through."""
    return load_cost(loads, objective) + PASSING_PRICE * scale * min(loads.sums[OVER], 3.0)


@kernel
def objective_value(loads: NodeLoads, objective: int) -> float:
    """The objective itself, to be lowered."""
    if objective != RATE:
        value = load_cost(loads, objective)
        if objective == BATCH:
            value = loads.sums[SLOWEST] + IDLE_PRICE * loads.sums[STAGES] / loads.ratio.shape[0]
        return value + (OVER_PRICE * loads.sums[OVER] if loads.sums[OVER] > 1e-9 else 0.0)
    most = 0.0
    for n in range(loads.ratio.shape[0]):
        most = max(most, loads.ratio[n])
    return most

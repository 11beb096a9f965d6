"""Counts of a plan, kept up to date with all that follows from them while tasks come and go."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.model.arrays import Floats, Ints
from headrace.solve.compiled import ZERO, inlined, kernel
from headrace.solve.least_traffic.terms import Terms
from headrace.solve.packing import TOO_MANY, bins_in, fill_runs

Indices = NDArray[np.int32]  # of nodes and classes: halves four tables of classes x nodes


class State(NamedTuple):
    """Counts of a (possibly partial) plan and what follows from them."""

    x: Ints  # [N, C]
    pull: Floats  # [N, C]  traffic one more task of c would find on n
    rack_pull: Floats  # [R, C]  and in the rack r
    used: Floats  # [N, K]
    tasks: Ints  # [N]
    members: Ints  # [N, G] tasks of a group on a node
    bins: Ints  # [N, G]    slots a group takes on a node
    taken: Ints  # [N]
    over: Floats  # [N]     overload in average nodes and slots; 0 where everything fits
    content: Indices  # [N, C]   classes present on a node, in no order; content_at is the inverse
    content_at: Indices  # [N, C]
    contents: Ints  # [N]
    holder: Indices  # [C, N]    nodes that hold a class, in no order; holder_at is the inverse
    holder_at: Indices  # [C, N]
    holders: Ints  # [C]
    run_space: Floats  # scratch of `slots_after`: see `packing.fill_runs`
    run_length: Ints


def empty_state(terms: Terms) -> State:
    """No task placed anywhere."""
    nodes, classes = terms.allowed.shape
    groups = len(terms.heap)
    widest = int(np.diff(terms.member_start).max(initial=0))
    return State(
        x=np.zeros((nodes, classes), np.int64),
        pull=np.zeros((nodes, classes)),
        rack_pull=np.zeros((int(terms.rack.max(initial=0)) + 1, classes)),
        used=np.zeros_like(terms.limit),
        tasks=np.zeros(nodes, np.int64),
        members=np.zeros((nodes, groups), np.int64),
        bins=np.zeros((nodes, groups), np.int64),
        taken=np.zeros(nodes, np.int64),
        over=np.zeros(nodes),
        content=np.zeros((nodes, classes), np.int32),
        content_at=np.zeros((nodes, classes), np.int32),
        contents=np.zeros(nodes, np.int64),
        holder=np.zeros((classes, nodes), np.int32),
        holder_at=np.zeros((classes, nodes), np.int32),
        holders=np.zeros(classes, np.int64),
        run_space=np.zeros(3 * widest + 4),
        run_length=np.zeros(3 * widest + 4, np.int64),
    )


@kernel
def slots_after(
    terms: Terms, state: State, n: int, g: int, c: int, k: int, c2: int, k2: int
) -> int:
    """Slots that group g takes on node n after k more tasks of class c and k2 of class c2."""
    present = state.members[n, g]
    if terms.group[c] == g:
        present += k
    if k2 != 0 and terms.group[c2] == g:
        present += k2
    if present <= 0:
        return 0
    if not terms.packed[g]:
        return 1
    runs = ZERO
    for i in range(terms.member_start[g], terms.member_start[g + 1]):
        e = terms.member[i]
        count = state.x[n, e]
        if e == c:
            count += k
        if e == c2:
            count += k2
        size = float(terms.memory[e])
        if count > 0 and size > 0.0:
            runs = fill_runs(state.run_space, state.run_length, runs, size, count, terms.heap[g])
            if runs < 0:
                return TOO_MANY
    return max(bins_in(state.run_length, runs), 1)


@kernel
def overload_after(terms: Terms, state: State, n: int, c: int, k: int, c2: int, k2: int) -> float:
    """Overload of node n after k more (k < 0: fewer) tasks of class c and k2 of class c2."""
    y = terms.node_type[n]
    total = 0.0
    for r in range(terms.unit.shape[0]):
        beyond = state.used[n, r] + k * terms.demand[y, c, r] - terms.limit[n, r]
        if k2 != 0:
            beyond += k2 * terms.demand[y, c2, r]
        if beyond > 0.0:
            total += beyond * terms.unit[r]
    if terms.slotted:
        g = terms.group[c]
        taken = state.taken[n] + slots_after(terms, state, n, g, c, k, c2, k2) - state.bins[n, g]
        if k2 != 0 and terms.group[c2] != g:
            g2 = terms.group[c2]
            taken += slots_after(terms, state, n, g2, c2, k2, c2, ZERO) - state.bins[n, g2]
        if taken > terms.slots[n]:
            total += taken - terms.slots[n]
    return total


@kernel
def room(terms: Terms, state: State, c: int, n: int, k: int) -> int:
    """How many of k tasks of class c the resources of node n still hold, slots aside."""
    y = terms.node_type[n]
    for r in range(terms.unit.shape[0]):
        need = terms.demand[y, c, r]
        if need > 0.0:
            left = terms.limit[n, r] - state.used[n, r]
            if left < k * need:
                k = int(left / need) if left > 0.0 else 0
                if k == 0:
                    return 0
    return k


@kernel
def put(terms: Terms, state: State, c: int, n: int, k: int) -> float:
    """Add k tasks of class c to node n (k < 0: take away); gives the change of cost.

    The cost is that of moving tasks minus the traffic kept inside nodes.
    """
    x = state.x
    before = x[n, c]
    cost = -k * state.pull[n, c] - terms.own[c] * k * (k - 1) / 2
    if terms.racked:
        cost += put_in_rack(terms, state, c, terms.rack[n], k)
    if terms.moving:
        was = terms.current[n, c]
        cost += terms.move_cost[c] * (max(0, before + k - was) - max(0, before - was))
    if terms.slotted:
        g = terms.group[c]
        bins = slots_after(terms, state, n, g, c, k, c, ZERO)
        state.taken[n] += bins - state.bins[n, g]
        state.bins[n, g] = bins
        state.members[n, g] += k
    x[n, c] = before + k
    state.tasks[n] += k
    for i in range(terms.start[c], terms.start[c + 1]):
        state.pull[n, terms.other[i]] += k * terms.weight[i]
    state.pull[n, c] += k * terms.own[c]
    y = terms.node_type[n]
    over = 0.0
    for r in range(terms.unit.shape[0]):
        state.used[n, r] += k * terms.demand[y, c, r]
        beyond = state.used[n, r] - terms.limit[n, r]
        if beyond > 0.0:
            over += beyond * terms.unit[r]
    if terms.slotted and state.taken[n] > terms.slots[n]:
        over += state.taken[n] - terms.slots[n]
    state.over[n] = over
    if before == 0:
        list_class(state, c, n)
    elif before + k == 0:
        unlist_class(state, c, n)
    return cost


@inlined
def put_in_rack(terms: Terms, state: State, c: int, r: int, k: int) -> float:
    """The same for the rack of the node."""
    cost = -k * state.rack_pull[r, c] - terms.own[c] * k * (k - 1) / 2
    for i in range(terms.start[c], terms.start[c + 1]):
        state.rack_pull[r, terms.other[i]] += k * terms.weight[i]
    state.rack_pull[r, c] += k * terms.own[c]
    return terms.rack_price * cost


@inlined
def list_class(state: State, c: int, n: int) -> None:
    """Enter class c among the classes on node n, and n among the nodes that hold c."""
    state.content_at[n, c] = state.contents[n]
    state.content[n, state.contents[n]] = c
    state.contents[n] += 1
    state.holder_at[c, n] = state.holders[c]
    state.holder[c, state.holders[c]] = n
    state.holders[c] += 1


@inlined
def unlist_class(state: State, c: int, n: int) -> None:
    """Take both entries out again; the last one of each list fills the gap."""
    state.contents[n] -= 1
    last, at = state.content[n, state.contents[n]], state.content_at[n, c]
    state.content[n, at] = last
    state.content_at[n, last] = at
    state.holders[c] -= 1
    end, at = state.holder[c, state.holders[c]], state.holder_at[c, n]
    state.holder[c, at] = end
    state.holder_at[c, end] = at


@kernel
def load_state(terms: Terms, state: State, rows: Ints) -> float:
    """Make `state` hold just the counts rows[N, C], free of old rounding; gives the cost."""
    nodes, classes = rows.shape
    state.x[:] = 0
    state.pull[:] = 0.0
    state.rack_pull[:] = 0.0
    state.used[:] = 0.0
    state.tasks[:] = 0
    state.members[:] = 0
    state.bins[:] = 0
    state.taken[:] = 0
    state.over[:] = 0.0
    state.contents[:] = 0
    state.holders[:] = 0
    cost = 0.0
    for n in range(nodes):
        for c in range(classes):
            if rows[n, c] > 0:
                cost += put(terms, state, c, n, rows[n, c])
    return cost


@kernel
def reload_state(terms: Terms, state: State, node: Ints, class_: Ints, tasks: Ints) -> float:
    """Make `state` hold just tasks[i] of class_[i] on node[i]; gives the cost.

    Empty cells take no time, but old rounding stays.
    """
    for n in range(state.x.shape[0]):
        while state.contents[n] > 0:
            c = int(state.content[n, state.contents[n] - 1])
            put(terms, state, c, n, -state.x[n, c])
    cost = 0.0
    for i in range(node.shape[0]):
        cost += put(terms, state, class_[i], node[i], tasks[i])
    return cost


@kernel
def list_state(state: State, node: Ints, class_: Ints, tasks: Ints) -> None:
    """Write down what is where in `state`, node by node."""
    found = 0
    for n in range(state.x.shape[0]):
        for i in range(state.contents[n]):
            node[found] = n
            class_[found] = state.content[n, i]
            tasks[found] = state.x[n, class_[found]]
            found += 1

"""Ways to fill one node: what it would hold if each task had a price and the node were alone.

A fill is good if it keeps more traffic inside the node than its tasks cost. Chunks come, go, or
take each other's place as long as that pays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.solve.compiled import NONE, ZERO, inlined, kernel
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.chunks import weight_between
from headrace.solve.least_traffic.state import State, empty_state, put, room
from headrace.solve.least_traffic.terms import Terms, terms_of

MOST_CHANGES = 200  # of one fill; it is good enough long before
MOST_SEEDS = 2_000  # pairs of classes, the busiest, that fills start from, for each kind of node


class Kinds(NamedTuple):
    """Nodes that can hold the same, as one node of each kind; Q kinds."""

    kind: Ints  # [N]
    nodes: Ints  # [Q] how many there are of a kind
    terms: Terms  # with one node of each kind
    state: State
    near: Ints  # [C] scratch
    marked: Bools  # [C]


def kinds_of(instance: Instance) -> tuple[Ints, Ints, Ints]:
    """The kind of each node, one node of each kind, and how many there are of it."""
    pins = np.packbits(instance.allowed, axis=0)  # eight classes at once: sorting takes long
    allowed = np.unique(pins, axis=1, return_inverse=True)[1].reshape(-1)
    facts = np.column_stack([instance.node_type, instance.slots, allowed, instance.capacity])
    _, first, kind, nodes = np.unique(
        facts, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    return kind.reshape(-1), first, nodes


def one_node_of_each_kind(instance: Instance) -> Kinds:
    """The instance with one node of each kind, nothing placed."""
    kind, first, nodes = kinds_of(instance)
    small = replace(
        instance,
        node_type=instance.node_type[first],
        capacity=instance.capacity[first],
        allowed=instance.allowed[:, first],
        slots=instance.slots[first],
        rack=None,
        rack_price=0.0,
    )
    terms = terms_of(small)
    classes = len(instance.count)
    near, marked = np.zeros(classes, np.int64), np.zeros(classes, np.bool_)
    return Kinds(kind, nodes, terms, empty_state(terms), near, marked)


def pairs_of_classes(instance: Instance, kinds: Kinds) -> tuple[Ints, Ints]:
    """Fills to start from, [S, C], and their kinds: half a node of each of two neighbours."""
    traffic = instance.edge_weight * instance.count[instance.edge_a]
    traffic = traffic * instance.count[instance.edge_b]
    busiest = np.sort(np.argsort(-traffic, kind="stable")[:MOST_SEEDS])
    a, b = instance.edge_a[busiest], instance.edge_b[busiest]
    terms, seeds = kinds.terms, np.arange(len(busiest))
    rows: list[Ints] = []
    for n in range(len(kinds.nodes)):
        need = terms.demand[terms.node_type[n]]
        with np.errstate(divide="ignore", invalid="ignore"):
            half = np.where(need > 0, terms.limit[n] / 2 / need, np.inf).min(axis=1)
        half = np.minimum(half, np.where(terms.apart, 1, terms.wanted)).astype(np.int64)
        half = np.where(terms.allowed[n], half, 0)
        row = np.zeros((len(busiest), len(half)), np.int64)
        row[seeds, a] = half[a]
        row[seeds, b] = half[b]
        rows.append(row)
    return np.concatenate(rows), np.repeat(np.arange(len(kinds.nodes)), len(busiest))


def improve_fills(kinds: Kinds, price: Floats, most: Ints, rows: Ints, kind: Ints) -> Floats:
    """Make the fills rows[S, C] better at these prices, in place; gives the traffic they keep.

    No fill takes more than `most[c]` tasks of class c.
    """
    kept = np.zeros(len(rows))
    scratch = (kinds.near, kinds.marked)
    refill_nodes(kinds.terms, kinds.state, price, most, rows, kind, kept, *scratch)
    return kept


@kernel
def refill_nodes(
    terms: Terms,
    state: State,
    price: Floats,
    most: Ints,
    rows: Ints,
    kind: Ints,
    kept: Floats,
    near: Ints,
    marked: Bools,
) -> None:
    """Load one fill after the other, improve it, and write it back."""
    for s in range(rows.shape[0]):
        n = kind[s]
        for c in range(rows.shape[1]):
            if rows[s, c] > 0:
                put(terms, state, c, n, rows[s, c])
                rows[s, c] = 0
        for _ in range(MOST_CHANGES):
            if not change_fill(terms, state, n, price, most, near, marked):
                break
        while state.contents[n] > 0:
            c = int(state.content[n, state.contents[n] - 1])
            k = state.x[n, c]
            rows[s, c] = k
            kept[s] += put(terms, state, c, n, -k)  # what it loses is what was kept


@inlined
def list_near(terms: Terms, state: State, n: int, most: Ints, near: Ints, marked: Bools) -> int:
    """List the classes on node n and their neighbours that may come; gives how many."""
    width = 0
    for i in range(state.contents[n]):
        c = int(state.content[n, i])
        if not marked[c]:
            marked[c] = True
            near[width] = c
            width += 1
        for j in range(terms.start[c], terms.start[c + 1]):
            e = terms.other[j]
            if not marked[e] and most[e] > 0 and terms.allowed[n, e]:
                marked[e] = True
                near[width] = e
                width += 1
    for i in range(width):
        marked[near[i]] = False
    return width


@kernel
def change_fill(
    terms: Terms, state: State, n: int, price: Floats, most: Ints, near: Ints, marked: Bools
) -> bool:
    """Make the change of node n that gains most; False if none gains.

    Tasks of a class near it come, as many as fit; or tasks of a class on it leave; or both.
    """
    best, come, many, leave, fewer = terms.tie, NONE, ZERO, NONE, ZERO
    for i in range(list_near(terms, state, n, most, near, marked)):
        c = near[i]
        spare = most[c] - state.x[n, c]
        if terms.apart[c]:
            spare = min(spare, 1 - state.x[n, c])
        worth = state.pull[n, c] - price[c]
        own = terms.own[c] / 2
        k = room(terms, state, c, n, spare) if spare > 0 else ZERO
        gain = k * worth + own * k * (k - 1)
        if gain > best:
            best, come, many, leave, fewer = gain, c, k, NONE, ZERO
        for j in range(state.contents[n]):
            d = int(state.content[n, j])
            if d != c and spare <= 0:
                continue
            lost = state.pull[n, d] - price[d]
            between = weight_between(terms, c, d) if d != c else 0.0
            out = state.x[n, d]
            while out > 0:  # all that are there, half of them, a quarter ..
                gain = terms.own[d] / 2 * out * (out + 1) - out * lost
                k = ZERO
                if d != c:
                    k = room_without(terms, state, c, n, spare, d, out)
                    gain += k * worth + own * k * (k - 1) - k * out * between
                if gain > best:
                    best, come, many, leave, fewer = gain, c, k, d, out
                out //= 2
    if leave >= 0:
        put(terms, state, leave, n, -fewer)
    if many > 0:
        put(terms, state, come, n, many)
    return leave >= 0 or many > 0


@inlined
def room_without(terms: Terms, state: State, c: int, n: int, k: int, d: int, out: int) -> int:
    """How many of k tasks of class c node n holds when `out` of class d leave it."""
    y = terms.node_type[n]
    for r in range(terms.unit.shape[0]):
        need = terms.demand[y, c, r]
        if need > 0.0:
            left = terms.limit[n, r] - state.used[n, r] + out * terms.demand[y, d, r]
            if left < k * need:
                k = int(left / need) if left > 0.0 else 0
    return k

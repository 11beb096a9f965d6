"""A step that moves a chunk of a class: alone, or while a chunk of another class makes way.

What makes way goes back to where the first chunk came from (a swap), or on to a third node (a
chain).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.solve.chance import Rng, pick, random_share
from headrace.solve.compiled import NONE, ONE, ZERO, inlined
from headrace.solve.least_traffic.ledger import (
    BURSTING,
    BUSY,
    COST,
    REFUSED,
    REFUSED_COST,
    Ledger,
    log_move,
)
from headrace.solve.least_traffic.state import State, overload_after, put, room
from headrace.solve.least_traffic.terms import Terms

# A step's kind is a random number in [0, 1); above these, if nothing else decides:
MAKE_WAY = 0.5  # another class makes way even where the chunk would fit as it is
MAKE_WAY_TO_A_THIRD = 0.75  # and goes near its own neighbours, not back

ALL_TASKS = 0.8  # of the chunks are all that a node has of a class
ALL_TASKS_OVERLOADED = 0.4  # the same where overload is allowed: it goes away in small pieces
TWICE_AS_MANY = 0.7  # of the other chunks of a size are doubled again
JUST_ENOUGH = 0.75  # of what makes way is no more than must


class Exchange(NamedTuple):
    """k tasks of class c go from node n to node m; k2 of class d make way and go from m to o."""

    c: int
    n: int
    m: int
    k: int  # 0: there is nothing to exchange
    d: int
    k2: int  # 0: none makes way
    o: int  # n: they swap; else a third node


@inlined
def try_chunks(
    terms: Terms,
    state: State,
    ledger: Ledger,
    c: int,
    n: int,
    m: int,
    kind: float,
    over_price: float,
    worst: float,
    sample: bool,
) -> bool:
    """Move tasks of class c from node n to m if that costs no more than `worst`; whether it did.

    `sample`: add what is refused to the tally.
    """
    hard = over_price == 0.0
    move = propose_exchange(terms, state, ledger.rng, c, n, m, kind, hard)
    if move.k == 0:
        return False
    change = exchange_cost(terms, state, move)
    more_nodes = nodes_gained(state, move)
    price = change + terms.node_price * more_nodes
    if hard and price > worst:
        if sample and change > 0.0:
            ledger.tally[REFUSED_COST] += change
            ledger.tally[REFUSED] += 1.0
        return False
    if not hard or terms.slotted:
        over, now_over = overload_now(state, move), overload_then(terms, state, move)
        if hard:
            if now_over > over:
                return False
        elif price + over_price * (now_over - over) > worst:
            return False
    make_exchange(terms, state, ledger, move)
    ledger.tally[COST] += change
    ledger.tally[BUSY] += more_nodes
    return True


@inlined
def propose_exchange(
    terms: Terms, state: State, rng: Rng, c: int, n: int, m: int, kind: float, hard: bool
) -> Exchange:
    """Draw how many tasks of c go from n to m, and who makes way; 0 tasks if that is forbidden."""
    nothing = Exchange(c, n, m, ZERO, c, ZERO, n)
    all_tasks = ALL_TASKS if hard else ALL_TASKS_OVERLOADED
    k = chunk_of(rng, state.x[n, c], all_tasks)
    if terms.apart[c] and state.x[m, c] > 0:
        return nothing
    fits = room(terms, state, c, m, k) if hard else k
    if kind <= MAKE_WAY and fits > 0:
        return Exchange(c, n, m, fits, c, ZERO, n)
    if state.contents[m] == 0:
        return nothing
    d = pick_class(state, rng, m)
    o = NONE
    if kind > MAKE_WAY_TO_A_THIRD and terms.start[d + 1] > terms.start[d]:
        o = node_near(terms, state, rng, d)
    if o < 0:
        o = n
    if d == c or o == m or not terms.allowed[o, d] or (terms.apart[d] and state.x[o, d] > 0):
        return nothing
    k2 = chunk_of(rng, state.x[m, d], all_tasks)
    if hard:
        if state.x[m, d] > 1 and random_share(rng) < JUST_ENOUGH:
            k2 = ONE
        k2 = enough_to_make_way(terms, state, c, k, d, k2, m)
        if k2 == 0 or not resources_hold(terms, state, o, d, k2, c, k if o == n else ZERO):
            return nothing
    return Exchange(c, n, m, k, d, k2, o)


@inlined
def node_near(terms: Terms, state: State, rng: Rng, c: int) -> int:
    """A node that holds some neighbour of class c, which has neighbours; NONE if none is placed."""
    b = int(terms.other[terms.start[c] + pick(rng, int(terms.start[c + 1] - terms.start[c]))])
    if state.holders[b] == 0:
        return NONE
    return pick_node(state, rng, b)


@inlined
def pick_node(state: State, rng: Rng, c: int) -> int:
    """One of the nodes that hold class c."""
    return int(ZERO + state.holder[c, pick(rng, int(state.holders[c]))])


@inlined
def pick_class(state: State, rng: Rng, n: int) -> int:
    """One of the classes on node n."""
    return int(ZERO + state.content[n, pick(rng, int(state.contents[n]))])


@inlined
def chunk_of(rng: Rng, have: int, all_tasks: float) -> int:
    """How many of `have` tasks to touch: in `all_tasks` of the cases all, else a power of two."""
    if have == 1 or random_share(rng) < all_tasks:
        return have
    k = 1
    while k * 2 < have and random_share(rng) < TWICE_AS_MANY:
        k *= 2
    return k


@inlined
def enough_to_make_way(terms: Terms, state: State, c: int, k: int, d: int, k2: int, m: int) -> int:
    """How many tasks of class d, at least k2, must leave node m for k of c; 0: all are too few."""
    y = terms.node_type[m]
    for r in range(terms.unit.shape[0]):
        beyond = state.used[m, r] + k * terms.demand[y, c, r] - terms.limit[m, r]
        if beyond > k2 * terms.demand[y, d, r]:
            if terms.demand[y, d, r] <= 0.0:
                return ZERO
            k2 = int(np.ceil(beyond / terms.demand[y, d, r]))
    return k2 if k2 <= state.x[m, d] else ZERO


@inlined
def resources_hold(terms: Terms, state: State, n: int, d: int, k2: int, c: int, k: int) -> bool:
    """Whether k2 tasks of d fit on node n when k of c leave it; old overload may stay, not grow."""
    y = terms.node_type[n]
    for r in range(terms.unit.shape[0]):
        more = k2 * terms.demand[y, d, r] - k * terms.demand[y, c, r]
        if more > 0.0 and state.used[n, r] + more > terms.limit[n, r]:
            return False
    return True


@inlined
def exchange_cost(terms: Terms, state: State, move: Exchange) -> float:
    """Change of cost by an exchange: moving tasks minus kept traffic."""
    change = cost_to_move(terms, state, move.c, move.n, move.m, move.k)
    if move.k2 > 0:
        change += cost_to_move(terms, state, move.d, move.m, move.o, move.k2)
        # A move counted on traffic with the other chunk, which has gone by then; a swap, twice.
        times = 2.0 if move.o == move.n else 1.0
        if terms.racked:
            n, m, o = terms.rack[move.n], terms.rack[move.m], terms.rack[move.o]
            if n != m and m != o:
                times += terms.rack_price * (2.0 if o == n else 1.0)
        change += times * move.k * move.k2 * weight_between(terms, move.c, move.d)
    return change


@inlined
def cost_to_move(terms: Terms, state: State, c: int, n: int, m: int, k: int) -> float:
    """Change of cost if k tasks of class c go from node n to node m."""
    change = k * (state.pull[n, c] - state.pull[m, c]) - terms.own[c] * k * k
    if terms.racked and terms.rack[n] != terms.rack[m]:
        pull = state.rack_pull
        gone = k * (pull[terms.rack[n], c] - pull[terms.rack[m], c]) - terms.own[c] * k * k
        change += terms.rack_price * gone
    if terms.moving:
        x, was = state.x, terms.current
        change += terms.move_cost[c] * (
            max(0, x[n, c] - k - was[n, c])
            - max(0, x[n, c] - was[n, c])
            + max(0, x[m, c] + k - was[m, c])
            - max(0, x[m, c] - was[m, c])
        )
    return change


@inlined
def weight_between(terms: Terms, c: int, d: int) -> float:
    """Traffic between one task of class c and one of class d (another class)."""
    low, high = int(terms.start[c]), int(terms.start[c + 1])
    while low < high:
        middle = (low + high) // 2
        if terms.other[middle] < d:
            low = middle + 1
        else:
            high = middle
    if low < terms.start[c + 1] and terms.other[low] == d:
        return terms.weight[low]
    return 0.0


@inlined
def nodes_gained(state: State, move: Exchange) -> int:
    """How many more nodes are in use after an exchange."""
    back = move.k2 if move.o == move.n else ZERO
    gained = (1 if state.tasks[move.n] - move.k + back > 0 else 0) - 1
    gained += (1 if state.tasks[move.m] + move.k - move.k2 > 0 else 0) - (
        1 if state.tasks[move.m] > 0 else 0
    )
    if move.o != move.n and state.tasks[move.o] == 0:
        gained += 1
    return gained


@inlined
def overload_now(state: State, move: Exchange) -> float:
    """Overload of the nodes of an exchange as it is."""
    over = state.over[move.n] + state.over[move.m]
    return over if move.o == move.n else over + state.over[move.o]


@inlined
def overload_then(terms: Terms, state: State, move: Exchange) -> float:
    """Overload of the nodes of an exchange once it is made."""
    back = move.k2 if move.o == move.n else ZERO
    over = overload_after(terms, state, move.n, move.c, -move.k, move.d, back)
    over += overload_after(terms, state, move.m, move.c, move.k, move.d, -move.k2)
    if move.o != move.n:
        over += overload_after(terms, state, move.o, move.d, move.k2, move.d, ZERO)
    return over


@inlined
def make_exchange(terms: Terms, state: State, ledger: Ledger, move: Exchange) -> None:
    """Make an exchange, log it, and count the overloaded nodes again."""
    ledger.tally[BURSTING] -= count_overloaded(state, move)
    put(terms, state, move.c, move.n, -move.k)
    if move.k2 > 0:
        put(terms, state, move.d, move.m, -move.k2)
        put(terms, state, move.d, move.o, move.k2)
        log_move(ledger, move.d, move.m, move.o, move.k2)
    put(terms, state, move.c, move.m, move.k)
    log_move(ledger, move.c, move.n, move.m, move.k)
    ledger.tally[BURSTING] += count_overloaded(state, move)


@inlined
def count_overloaded(state: State, move: Exchange) -> int:
    """How many nodes of an exchange are overloaded."""
    nodes = (1 if state.over[move.n] > 0.0 else 0) + (1 if state.over[move.m] > 0.0 else 0)
    return nodes + (1 if move.o != move.n and state.over[move.o] > 0.0 else 0)

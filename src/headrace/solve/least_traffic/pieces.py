"""A step that moves a connected piece of a node, or all of it, as a whole.

Single classes seldom leave a piece, since each of them gives up traffic. The piece may change
places with one of the other node.
"""

from __future__ import annotations

from headrace.solve.chance import random_share
from headrace.solve.compiled import ONE, ZERO, kernel
from headrace.solve.least_traffic.chunks import pick_class
from headrace.solve.least_traffic.ledger import BURSTING, BUSY, COST, Ledger, log_move
from headrace.solve.least_traffic.state import State, put
from headrace.solve.least_traffic.terms import Terms

AGAINST_A_PIECE = 0.6  # of the pieces change places with one of the other node


@kernel
def try_pieces(
    terms: Terms,
    state: State,
    ledger: Ledger,
    c: int,
    n: int,
    m: int,
    whole: bool,
    over_price: float,
    worst: float,
) -> bool:
    """Move the piece of node n around class c (`whole`: all of n) to m, perhaps against one of m.

    Taken back if it costs more than `worst`. Gives whether it was made.
    """
    outs = gather(terms, state, ledger, ZERO, n, c, whole)
    backs = ZERO
    if state.contents[m] > 0 and random_share(ledger.rng) < AGAINST_A_PIECE:
        backs = gather(terms, state, ledger, ONE, m, pick_class(state, ledger.rng, m), whole)
    hard = over_price == 0.0
    if not pieces_may_go(terms, state, ledger, outs, backs, n, m, hard):
        return False
    was_busy, was_bursting, over = pair_load(state, n, m)
    change = shift_piece(terms, state, ledger, ZERO, outs, n, m)
    change += shift_piece(terms, state, ledger, ONE, backs, m, n)
    now_busy, now_bursting, now_over = pair_load(state, n, m)
    price = change + terms.node_price * (now_busy - was_busy) + over_price * (now_over - over)
    if price > worst or (hard and now_over > over):
        shift_piece(terms, state, ledger, ONE, backs, n, m)
        shift_piece(terms, state, ledger, ZERO, outs, m, n)
        return False
    for i in range(outs):
        log_move(ledger, ledger.piece[0, i], n, m, ledger.piece_tasks[0, i])
    for i in range(backs):
        log_move(ledger, ledger.piece[1, i], m, n, ledger.piece_tasks[1, i])
    ledger.tally[COST] += change
    ledger.tally[BUSY] += now_busy - was_busy
    ledger.tally[BURSTING] += now_bursting - was_bursting
    return True


@kernel
def gather(
    terms: Terms, state: State, ledger: Ledger, side: int, n: int, c: int, whole: bool
) -> int:
    """List the classes on node n that hang together with c, or all if `whole`; gives how many."""
    classes, tasks, seen = ledger.piece[side], ledger.piece_tasks[side], ledger.seen
    found = 0
    if whole:
        for i in range(state.contents[n]):
            classes[found] = state.content[n, i]
            found += 1
    else:
        classes[0] = c
        seen[c] = True
        found = 1
        at = 0
        while at < found:
            e = classes[at]
            at += 1
            for i in range(terms.start[e], terms.start[e + 1]):
                f = terms.other[i]
                if not seen[f] and state.x[n, f] > 0:
                    seen[f] = True
                    classes[found] = f
                    found += 1
        for i in range(found):
            seen[classes[i]] = False
    for i in range(found):
        tasks[i] = state.x[n, classes[i]]
    return found


@kernel
def pieces_may_go(
    terms: Terms, state: State, ledger: Ledger, outs: int, backs: int, n: int, m: int, hard: bool
) -> bool:
    """Whether the gathered pieces may change nodes; resources are looked at only if `hard`."""
    if not piece_is_allowed(terms, state, ledger, ZERO, outs, m) or not piece_is_allowed(
        terms, state, ledger, ONE, backs, n
    ):
        return False
    return not hard or (
        pieces_fit(terms, state, ledger, ONE, backs, ZERO, outs, m)
        and pieces_fit(terms, state, ledger, ZERO, outs, ONE, backs, n)
    )


@kernel
def piece_is_allowed(
    terms: Terms, state: State, ledger: Ledger, side: int, found: int, m: int
) -> bool:
    """Whether pins and `apart` let a piece go to node m; a twin that leaves m now still counts."""
    for i in range(found):
        c = ledger.piece[side, i]
        if not terms.allowed[m, c] or (terms.apart[c] and state.x[m, c] > 0):
            return False
    return True


@kernel
def pieces_fit(
    terms: Terms, state: State, ledger: Ledger, out: int, outs: int, into: int, intos: int, n: int
) -> bool:
    """Whether node n has the resources if one gathered piece leaves it and the other comes."""
    y = terms.node_type[n]
    for r in range(terms.unit.shape[0]):
        used = state.used[n, r]
        for i in range(outs):
            used -= ledger.piece_tasks[out, i] * terms.demand[y, ledger.piece[out, i], r]
        for i in range(intos):
            used += ledger.piece_tasks[into, i] * terms.demand[y, ledger.piece[into, i], r]
        if used > terms.limit[n, r]:
            return False
    return True


@kernel
def shift_piece(
    terms: Terms, state: State, ledger: Ledger, side: int, found: int, n: int, m: int
) -> float:
    """Move a gathered piece from node n to node m; gives the change of cost."""
    change = 0.0
    for i in range(found):
        c, k = ledger.piece[side, i], ledger.piece_tasks[side, i]
        change += put(terms, state, c, n, -k)
        change += put(terms, state, c, m, k)
    return change


@kernel
def pair_load(state: State, n: int, m: int) -> tuple[int, int, float]:
    """Of nodes n and m: how many are in use, how many overloaded, and by how much together."""
    busy = (1 if state.tasks[n] > 0 else 0) + (1 if state.tasks[m] > 0 else 0)
    bursting = (1 if state.over[n] > 0.0 else 0) + (1 if state.over[m] > 0.0 else 0)
    return busy, bursting, state.over[n] + state.over[m]

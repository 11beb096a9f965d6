"""Annealing over (class, node) counts: chunks move, chunks swap, connected pieces of a node move or swap as a whole.

One step is one proposal. Its gain comes from `State.pull` in constant time; only an accepted step
pays for updates, and those grow with the class's neighbours. Steps, not seconds, are counted, so a
run is the same wherever it runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.solve.chance import Rng, pick, random_share, stream
from headrace.solve.compiled import NONE, ONE, ZERO, kernel
from headrace.solve.least_traffic.fit import State, Terms, overload_after, put, room

# Where `Run.tally` keeps what.
COST, BEST_COST, BEST_NODES = 0, 1, 2
SAMPLE = 3  # sum of the costs of refused worsening proposals, and their number: sets the first temperature
SAMPLED = 4
LOGGED = 5  # moves in `Run.log`: those made since the best plan; NOT_LOGGED where the log does not lead from the best plan to this one
NOT_LOGGED = -1.0


class Run(NamedTuple):
    """What a search carries from one slice of steps to the next."""

    tally: Floats
    rng: Rng  # [1]
    log: Ints  # [L, 4]    accepted moves (class, from, to, tasks) since the best plan
    best: Ints  # [N, C]
    piece: Ints  # [2, C]  scratch: classes of a piece that moves as a whole, and their tasks
    piece_tasks: Ints  # [2, C]
    seen: Bools  # [C]


def new_run(terms: Terms, seed: int, slice_steps: int) -> Run:
    """A run that has not seen any plan."""
    nodes, classes = terms.allowed.shape
    tally = np.zeros(8)
    tally[BEST_COST] = np.inf
    tally[BEST_NODES] = np.inf
    tally[LOGGED] = NOT_LOGGED
    return Run(
        tally=tally,
        rng=stream(seed),
        log=np.zeros((2 * slice_steps + 4 * classes + 16, 4), np.int64),
        best=np.zeros((nodes, classes), np.int64),
        piece=np.zeros((2, classes), np.int64),
        piece_tasks=np.zeros((2, classes), np.int64),
        seen=np.zeros(classes, np.bool_),
    )


@kernel
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


@kernel
def move_change(terms: Terms, state: State, c: int, n: int, m: int, k: int) -> float:
    """Change of cost if k tasks of class c go from node n to node m."""
    change = k * (state.pull[n, c] - state.pull[m, c]) - terms.own[c] * k * k
    if terms.moving:
        x, was = state.x, terms.current
        change += terms.move_cost[c] * (
            max(0, x[n, c] - k - was[n, c])
            - max(0, x[n, c] - was[n, c])
            + max(0, x[m, c] + k - was[m, c])
            - max(0, x[m, c] - was[m, c])
        )
    return change


@kernel
def chunk_of(rng: Rng, have: int, all_share: float) -> int:
    """How many of `have` tasks to touch: all of them in `all_share` of the cases, else a power of two."""
    if have == 1 or random_share(rng) < all_share:
        return have
    k = 1
    while k * 2 < have and random_share(rng) < 0.7:
        k *= 2
    return k


@kernel
def gather(terms: Terms, state: State, run: Run, side: int, n: int, c: int, whole: bool) -> int:
    """List the classes on node n that hang together with c there (all of them if `whole`); gives how many."""
    classes, tasks, seen = run.piece[side], run.piece_tasks[side], run.seen
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
def piece_may_go(terms: Terms, state: State, run: Run, side: int, found: int, m: int) -> bool:
    """Whether pins and `apart` let a piece go to node m; a twin that would leave m at the same time still counts."""
    for i in range(found):
        c = run.piece[side, i]
        if not terms.allowed[m, c] or (terms.apart[c] and state.x[m, c] > 0):
            return False
    return True


@kernel
def shift_piece(
    terms: Terms, state: State, run: Run, side: int, found: int, n: int, m: int
) -> float:
    """Move a gathered piece from node n to node m; gives the change of cost."""
    change = 0.0
    for i in range(found):
        c, k = run.piece[side, i], run.piece_tasks[side, i]
        change += put(terms, state, c, n, -k)
        change += put(terms, state, c, m, k)
    return change


@kernel
def piece_overload(
    terms: Terms, state: State, run: Run, out: int, outs: int, into: int, intos: int, n: int
) -> bool:
    """Whether node n's resources would burst if one gathered piece left it and the other came."""
    y = terms.node_type[n]
    for r in range(terms.unit.shape[0]):
        used = state.used[n, r]
        for i in range(outs):
            used -= run.piece_tasks[out, i] * terms.demand[y, run.piece[out, i], r]
        for i in range(intos):
            used += run.piece_tasks[into, i] * terms.demand[y, run.piece[into, i], r]
        if used > terms.limit[n, r]:
            return True
    return False


@kernel
def enough_to_make_way(terms: Terms, state: State, c: int, k: int, d: int, k2: int, m: int) -> int:
    """How many tasks of class d, at least k2, must leave node m so that k of class c fit; 0 if all of them are not enough."""
    y = terms.node_type[m]
    for r in range(terms.unit.shape[0]):
        beyond = state.used[m, r] + k * terms.demand[y, c, r] - terms.limit[m, r]
        if beyond > k2 * terms.demand[y, d, r]:
            if terms.demand[y, d, r] <= 0.0:
                return 0
            k2 = int(np.ceil(beyond / terms.demand[y, d, r]))
    return k2 if k2 <= state.x[m, d] else 0


@kernel
def resources_hold(terms: Terms, state: State, n: int, d: int, k2: int, c: int, k: int) -> bool:
    """Whether k2 tasks of class d fit on node n when k of class c leave it; what was overloaded may stay so, not grow."""
    y = terms.node_type[n]
    for r in range(terms.unit.shape[0]):
        more = k2 * terms.demand[y, d, r] - k * terms.demand[y, c, r]
        if more > 0.0 and state.used[n, r] + more > terms.limit[n, r]:
            return False
    return True


@kernel
def anneal(
    terms: Terms,
    state: State,
    run: Run,
    steps: int,
    hot: float,
    cold: float,
    done: float,
    share: float,
    over_price: float,
    until_fits: bool,
) -> int:
    """Propose `steps` changes; temperature falls from `hot` towards `cold` as done..done+share of the run passes.

    `over_price` 0 never lets a node's overload grow; above 0 overload is allowed at that price.
    `until_fits` ends the call as soon as nothing is overloaded. Gives the steps made. The best
    feasible plan ends up in `run.best`.
    """
    nodes, classes = state.x.shape
    tally, rng, log = run.tally, run.rng, run.log
    hard = over_price == 0.0
    all_share = 0.8 if hard else 0.4  # overloads go away in small pieces
    in_step = tally[LOGGED] >= 0.0
    logged = int(tally[LOGGED]) if in_step else 0
    busy = 0
    bursting = 0
    for n in range(nodes):
        if state.tasks[n] > 0:
            busy += 1
        if state.over[n] > 0.0:
            bursting += 1
    cost = tally[COST]
    heat = 0.0
    made = steps
    for step in range(steps + 1):
        rank = cost + terms.node_rank * busy
        if bursting == 0 and (
            rank < tally[BEST_COST] - terms.tie
            or (rank <= tally[BEST_COST] + terms.tie and busy < tally[BEST_NODES])
        ):
            tally[BEST_COST] = rank
            tally[BEST_NODES] = busy
            catch_up(state, run, logged, in_step)
            in_step = True
            logged = 0
        elif logged + 2 * classes + 2 >= log.shape[0]:
            in_step = False
            logged = 0
        if step == steps or (until_fits and bursting == 0):
            made = step
            break
        if step % 128 == 0:
            passed = done + share * step / steps
            heat = 0.0 if hot == 0.0 else hot * (cold / hot) ** passed
        c = pick(rng, classes)
        if state.holders[c] == 0:
            continue
        n = int(state.holder[c, pick(rng, state.holders[c])])
        degree = terms.start[c + 1] - terms.start[c]
        if degree > 0 and random_share(rng) < 0.8:
            b = terms.other[terms.start[c] + pick(rng, degree)]
            if state.holders[b] == 0:
                continue
            m = int(state.holder[b, pick(rng, int(state.holders[b]))])
        else:
            m = pick(rng, nodes)
        if m == n or not terms.allowed[m, c]:
            continue
        most = (
            -heat * np.log(1.0 - random_share(rng)) if heat > 0.0 else 0.0
        )  # the worst change that is still accepted
        kind = random_share(rng)
        was_bursting = (1 if state.over[n] > 0.0 else 0) + (1 if state.over[m] > 0.0 else 0)
        was_busy = (1 if state.tasks[n] > 0 else 0) + (1 if state.tasks[m] > 0 else 0)
        over = state.over[n] + state.over[m]

        if (
            kind < 0.03
        ):  # a connected piece, or all of a node; perhaps against a piece of the other node
            outs = gather(terms, state, run, ZERO, n, c, kind < 0.006)
            backs = ZERO
            if state.contents[m] > 0 and random_share(rng) < 0.6:
                e = int(state.content[m, pick(rng, state.contents[m])])
                backs = gather(terms, state, run, ONE, m, e, kind < 0.006)
            if not piece_may_go(terms, state, run, ZERO, outs, m) or not piece_may_go(
                terms, state, run, ONE, backs, n
            ):
                continue
            if hard and (
                piece_overload(terms, state, run, ONE, backs, ZERO, outs, m)
                or piece_overload(terms, state, run, ZERO, outs, ONE, backs, n)
            ):
                continue
            change = shift_piece(terms, state, run, ZERO, outs, n, m)
            change += shift_piece(terms, state, run, ONE, backs, m, n)
            now_busy = (1 if state.tasks[n] > 0 else 0) + (1 if state.tasks[m] > 0 else 0)
            now_over = state.over[n] + state.over[m]
            price = (
                change + terms.node_price * (now_busy - was_busy) + over_price * (now_over - over)
            )
            if price > most or (hard and now_over > over):
                shift_piece(terms, state, run, ONE, backs, n, m)
                shift_piece(terms, state, run, ZERO, outs, m, n)
                continue
            for i in range(outs):
                log[logged, 0], log[logged, 1], log[logged, 2], log[logged, 3] = (
                    run.piece[0, i],
                    n,
                    m,
                    run.piece_tasks[0, i],
                )
                logged += 1
            for i in range(backs):
                log[logged, 0], log[logged, 1], log[logged, 2], log[logged, 3] = (
                    run.piece[1, i],
                    m,
                    n,
                    run.piece_tasks[1, i],
                )
                logged += 1
            cost += change
            busy += now_busy - was_busy
            bursting += (
                (1 if state.over[n] > 0.0 else 0) + (1 if state.over[m] > 0.0 else 0) - was_bursting
            )
            continue

        k = chunk_of(rng, state.x[n, c], all_share)
        if terms.apart[c] and state.x[m, c] > 0:
            continue
        fits = room(terms, state, c, m, k) if hard else k
        d = NONE
        k2 = ZERO
        o = n  # where tasks of m go to make way: back to n (a swap) or on to a third node
        if kind > 0.5 or fits == 0:
            if state.contents[m] == 0:
                continue
            d = int(state.content[m, pick(rng, state.contents[m])])
            degree = int(terms.start[d + 1] - terms.start[d])
            if kind > 0.75 and degree > 0:
                b = terms.other[terms.start[d] + pick(rng, degree)]
                if state.holders[b] > 0:
                    o = int(state.holder[b, pick(rng, int(state.holders[b]))])
            if (
                d == c
                or o == m
                or not terms.allowed[o, d]
                or (terms.apart[d] and state.x[o, d] > 0)
            ):
                continue
            k2 = chunk_of(rng, state.x[m, d], all_share)
            if hard and state.x[m, d] > 1 and random_share(rng) < 0.75:
                k2 = ONE  # just as many as must make way
            if hard:
                k2 = enough_to_make_way(terms, state, c, k, d, k2, m)
                if k2 == 0 or not resources_hold(terms, state, o, d, k2, c, k if o == n else ZERO):
                    continue
            change = move_change(terms, state, c, n, m, k) + move_change(terms, state, d, m, o, k2)
            change += (2.0 if o == n else 1.0) * k * k2 * weight_between(terms, c, d)
        else:
            k = fits
            change = move_change(terms, state, c, n, m, k)
        third = o != n
        now_busy = (1 if state.tasks[n] - k + (0 if third else k2) > 0 else 0) + (
            1 if state.tasks[m] + k - k2 > 0 else 0
        )
        if third:
            now_busy += 1
            was_busy += 1 if state.tasks[o] > 0 else 0
            was_bursting += 1 if state.over[o] > 0.0 else 0
            over += state.over[o]
        price = change + terms.node_price * (now_busy - was_busy)
        if hard and price > most:
            if heat == 0.0 and change > 0.0:
                tally[SAMPLE] += change
                tally[SAMPLED] += 1.0
            continue
        if not hard or terms.slotted:
            e = max(d, ZERO)
            now_over = overload_after(terms, state, n, c, -k, e, ZERO if third else k2)
            now_over += overload_after(terms, state, m, c, k, e, -k2)
            if third:
                now_over += overload_after(terms, state, o, d, k2, d, ZERO)
            if hard:
                if now_over > over:
                    continue
            elif price + over_price * (now_over - over) > most:
                continue
        put(terms, state, c, n, -k)
        if k2 > 0:
            put(terms, state, d, m, -k2)
            put(terms, state, d, o, k2)
            log[logged, 0], log[logged, 1], log[logged, 2], log[logged, 3] = d, m, o, k2
            logged += 1
        put(terms, state, c, m, k)
        log[logged, 0], log[logged, 1], log[logged, 2], log[logged, 3] = c, n, m, k
        logged += 1
        cost += change
        busy += now_busy - was_busy
        bursting += (
            (1 if state.over[n] > 0.0 else 0) + (1 if state.over[m] > 0.0 else 0) - was_bursting
        )
        if third and state.over[o] > 0.0:
            bursting += 1
    tally[COST] = cost
    tally[LOGGED] = logged if in_step else NOT_LOGGED
    return made


@kernel
def catch_up(state: State, run: Run, logged: int, in_step: bool) -> None:
    """Make the plan at hand the best one: by the moves since the last best plan, or as a whole if those are not known."""
    best, log = run.best, run.log
    if in_step:
        for i in range(logged):
            best[log[i, 1], log[i, 0]] -= log[i, 3]
            best[log[i, 2], log[i, 0]] += log[i, 3]
        return
    nodes, classes = state.x.shape
    for n in range(nodes):  # element by element: numba takes seconds to compile an array assignment
        for c in range(classes):
            best[n, c] = state.x[n, c]

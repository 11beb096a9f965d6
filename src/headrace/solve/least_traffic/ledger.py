"""What a search carries from step to step: where it is, the best plan, and the moves since then."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.solve.chance import Rng, stream
from headrace.solve.compiled import inlined, kernel
from headrace.solve.least_traffic.state import State
from headrace.solve.least_traffic.terms import Terms

# Where `Ledger.tally` keeps what.
COST, BUSY, BURSTING = 0, 1, 2  # of the plan at hand: its cost, nodes in use, overloaded nodes
BEST_COST, BEST_NODES = 3, 4
REFUSED_COST, REFUSED = 5, 6  # worsening proposals refused without heat: their cost, their number
LOGGED = 7  # moves in `Ledger.log`, which lead from the best plan to the one at hand
NOT_LOGGED = -1.0  # instead of their number where that is no longer so


class Ledger(NamedTuple):
    """What a search carries from one slice of steps to the next."""

    tally: Floats
    rng: Rng  # [1]
    log: Ints  # [L, 4]    accepted moves (class, from, to, tasks) since the best plan
    best: Ints  # [N, C]
    piece: Ints  # [2, C]  scratch: classes of a piece that moves as a whole, and their tasks
    piece_tasks: Ints  # [2, C]
    seen: Bools  # [C]


def new_ledger(terms: Terms, seed: int, slice_steps: int) -> Ledger:
    """A ledger before the first plan."""
    nodes, classes = terms.allowed.shape
    tally = np.zeros(8)
    tally[BEST_COST] = np.inf
    tally[BEST_NODES] = np.inf
    tally[LOGGED] = NOT_LOGGED
    return Ledger(
        tally=tally,
        rng=stream(seed),
        log=np.zeros((2 * slice_steps + 4 * classes + 16, 4), np.int64),
        best=np.zeros((nodes, classes), np.int64),
        piece=np.zeros((2, classes), np.int64),
        piece_tasks=np.zeros((2, classes), np.int64),
        seen=np.zeros(classes, np.bool_),
    )


@inlined
def count_nodes(state: State, ledger: Ledger) -> None:
    """Count the nodes in use and the overloaded ones."""
    ledger.tally[BUSY] = 0.0
    ledger.tally[BURSTING] = 0.0
    for n in range(state.tasks.shape[0]):
        if state.tasks[n] > 0:
            ledger.tally[BUSY] += 1.0
        if state.over[n] > 0.0:
            ledger.tally[BURSTING] += 1.0


@inlined
def log_move(ledger: Ledger, c: int, n: int, m: int, k: int) -> None:
    """Note that k tasks of class c went from node n to node m."""
    if ledger.tally[LOGGED] >= 0.0:
        at = int(ledger.tally[LOGGED])
        ledger.log[at, 0], ledger.log[at, 1], ledger.log[at, 2], ledger.log[at, 3] = c, n, m, k
        ledger.tally[LOGGED] += 1.0


@inlined
def remember_best(terms: Terms, state: State, ledger: Ledger) -> None:
    """Make the plan at hand the best one if it is; forget the log before it overflows."""
    tally = ledger.tally
    rank = tally[COST] + terms.node_rank * tally[BUSY]
    if tally[BURSTING] == 0.0 and (
        rank < tally[BEST_COST] - terms.tie
        or (rank <= tally[BEST_COST] + terms.tie and tally[BUSY] < tally[BEST_NODES])
    ):
        tally[BEST_COST] = rank
        tally[BEST_NODES] = tally[BUSY]
        copy_to_best(state, ledger)
        tally[LOGGED] = 0.0
    elif tally[LOGGED] + 2 * state.x.shape[1] + 2 >= ledger.log.shape[0]:  # a step may move all
        tally[LOGGED] = NOT_LOGGED


@kernel
def copy_to_best(state: State, ledger: Ledger) -> None:
    """Bring the best plan up to date: by the log, or as a whole where that is not known."""
    best, log = ledger.best, ledger.log
    if ledger.tally[LOGGED] >= 0.0:
        for i in range(int(ledger.tally[LOGGED])):
            best[log[i, 1], log[i, 0]] -= log[i, 3]
            best[log[i, 2], log[i, 0]] += log[i, 3]
        return
    nodes, classes = state.x.shape
    for n in range(nodes):  # element by element: numba takes seconds to compile an array assignment
        for c in range(classes):
            best[n, c] = state.x[n, c]

"""Annealing over (class, node) counts: chunks of a class and connected pieces of a node move.

One step is one proposal. Its gain comes from `State.pull` in constant time; only an accepted step
pays for updates, and those grow with the class's neighbours. Steps, not seconds, are counted, so a
run is the same wherever it runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.solve.chance import Rng, pick, random_share
from headrace.solve.compiled import NONE, inlined, kernel
from headrace.solve.least_traffic.chunks import node_near, pick_node, try_chunks
from headrace.solve.least_traffic.ledger import BURSTING, Ledger, count_nodes, remember_best
from headrace.solve.least_traffic.pieces import try_pieces
from headrace.solve.least_traffic.state import State
from headrace.solve.least_traffic.terms import Terms

NEAR = 0.8  # of the moves go to a node that holds a neighbour, the others to any node
# Below these, a step's kind, a random number in [0, 1), moves more than a chunk of one class:
WHOLE_NODE = 0.006  # all that a node holds
PIECE = 0.03  # what hangs together on a node
STEPS_PER_HEAT = 128  # the temperature is worked out again after so many


class Cooling(NamedTuple):
    """How the temperature falls and what overload costs while `anneal` makes its steps."""

    hot: float  # temperature at the start of the run; 0: nothing worse is ever accepted
    cold: float  # and at its end
    done: float  # share of the run that is over
    share: float  # share of the run that these steps are
    over_price: float  # of overload; 0: it never grows
    until_fits: bool  # end as soon as nothing is overloaded


@kernel
def anneal(terms: Terms, state: State, ledger: Ledger, steps: int, cooling: Cooling) -> int:
    """Propose `steps` changes, gives those made; the best feasible plan goes to `ledger.best`."""
    rng = ledger.rng
    count_nodes(state, ledger)
    remember_best(terms, state, ledger)
    heat = 0.0
    for step in range(steps):
        if cooling.until_fits and ledger.tally[BURSTING] == 0.0:
            return step
        if step % STEPS_PER_HEAT == 0:
            heat = heat_at(cooling, step, steps)
        c, n, m = choose_move(terms, state, rng)
        if m < 0:
            continue
        worst = -heat * np.log(1.0 - random_share(rng)) if heat > 0.0 else 0.0
        kind = random_share(rng)
        if kind < PIECE:
            whole = kind < WHOLE_NODE
            made = try_pieces(terms, state, ledger, c, n, m, whole, cooling.over_price, worst)
        else:
            made = try_chunks(
                terms, state, ledger, c, n, m, kind, cooling.over_price, worst, heat == 0.0
            )
        if made:
            remember_best(terms, state, ledger)
    return steps


@inlined
def heat_at(cooling: Cooling, step: int, steps: int) -> float:
    """The temperature at a step."""
    if cooling.hot == 0.0:
        return 0.0
    passed = cooling.done + cooling.share * step / steps
    return cooling.hot * (cooling.cold / cooling.hot) ** passed


@inlined
def choose_move(terms: Terms, state: State, rng: Rng) -> tuple[int, int, int]:
    """Some class, a node that holds it, and another where it may go: NONE if none was drawn."""
    nodes, classes = state.x.shape
    c = pick(rng, classes)
    if state.holders[c] == 0:
        return c, NONE, NONE
    n = pick_node(state, rng, c)
    if terms.start[c + 1] > terms.start[c] and random_share(rng) < NEAR:
        m = node_near(terms, state, rng, c)
    else:
        m = pick(rng, nodes)
    if m < 0 or m == n or not terms.allowed[m, c]:
        return c, n, NONE
    return c, n, m

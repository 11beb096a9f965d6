"""Counts that run fast: the largest rate, the shortest batch, or the evenest load.

Moves and swaps between two nodes, annealed. What a node can sustain depends on the counts of that
node alone: its CPU, and of every stream what it emits and what share it receives. So a step looks
at two nodes, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.problem import Problem
from headrace.solve.chance import Rng, pick, random_share, stream
from headrace.solve.classes import Classes
from headrace.solve.compiled import NONE, ZERO, inlined, kernel
from headrace.solve.least_traffic.chunks import Exchange, chunk_of, pick_class, pick_node
from headrace.solve.least_traffic.state import (
    State,
    empty_state,
    load_state,
    overload_after,
    put,
)
from headrace.solve.least_traffic.terms import Terms, terms_of
from headrace.solve.rate.costs import RateCosts, rate_costs
from headrace.solve.rate.loads import (
    BALANCE,
    BATCH,
    RATE,
    SCALE,
    NodeLoads,
    add_tasks,
    count_node,
    load_cost,
    load_counts,
    new_loads,
    objective_value,
    search_cost,
    touched_stages,
    update_nodes,
)

OBJECTIVES = {"rate": RATE, "batch": BATCH, "balance": BALANCE}
# Share of the cost a step may lose, on average, at the start of each round.
HEAT = {
    RATE: (0.03, 0.01, 0.02, 0.005),
    BATCH: (0.5, 0.1, 0.3, 0.03),
    BALANCE: (0.5, 0.1, 0.3, 0.03),
}
LEAST_STEPS = {RATE: 300_000, BATCH: 60_000, BALANCE: 60_000}
SLICE_STEPS = 10_000  # between two looks at the clock
STEPS_PER_LOOK = 16  # the fullest node is looked for again after so many
FROM_THE_FULLEST = 0.5  # of the moves for a rate come from the fullest node
SWAP = 0.4  # of the moves bring something back
ALL_TASKS = 0.5  # of the chunks are all that a node has of a class
# With fewer than ten million nodes, a soft maximum is less than so many times the true one.
SOFTNESS = 1.5


class Best(NamedTuple):
    """The best counts of a search, and their value."""

    rows: Ints  # [N, C]
    value: Floats  # [1]


def improve_speed(
    problem: Problem,
    classes: Classes,
    x: Ints,
    objective: Literal["rate", "batch", "balance"],
    *,
    seed: int = 0,
    steps: int | None = None,
    deadline: Callable[[], bool] | None = None,
    enough: float = np.inf,
) -> Ints:
    """Feasible counts [classes, N] at least as good for the objective as the feasible x given.

    Ends early at a rate that is `enough`.
    """
    instance = classes.instance
    terms, costs = terms_of(instance), rate_costs(problem, classes)
    state, loads = empty_state(terms), new_loads(costs, len(instance.node_type))
    aim = OBJECTIVES[objective]
    if steps is None:
        steps = int(np.clip(300 * instance.allowed.size, LEAST_STEPS[aim], 1_000_000))
    rng = stream(seed, 0x7654321)
    best = Best(np.ascontiguousarray(x.T, dtype=np.int64), np.array([np.inf]))
    for hot in HEAT[aim]:
        load_state(terms, state, best.rows.copy())
        done, each = 0, max(1, steps // len(HEAT[aim]))
        while done < each:
            part = min(SLICE_STEPS, each - done)
            heat = hot * (1 - done / each)
            even_out(terms, state, costs, loads, rng, best, part, aim, heat)
            done += part
            reached = aim == RATE and best.value[0] <= 1.0 / enough
            if reached or (deadline is not None and deadline()):
                return np.ascontiguousarray(best.rows.T)
    return np.ascontiguousarray(best.rows.T)


def sustained_rate(problem: Problem, classes: Classes, x: Ints) -> float:
    """The factor of the given rates that counts x[classes, N] sustain; inf if nothing limits it."""
    most = float(_loads_of(problem, classes, x, RATE).ratio.max())
    return 1.0 / most if most > 0 else np.inf


def batch_time(problem: Problem, classes: Classes, x: Ints) -> float:
    """Seconds of a batch per second of input with counts x[classes, N].

    More than any real batch where a node carries more than it can.
    """
    return objective_value(_loads_of(problem, classes, x, BATCH), BATCH)


def _loads_of(problem: Problem, classes: Classes, x: Ints, objective: int) -> NodeLoads:
    """What nodes carry under counts x[classes, N]."""
    terms, costs = terms_of(classes.instance), rate_costs(problem, classes)
    state, loads = empty_state(terms), new_loads(costs, x.shape[1])
    load_state(terms, state, np.ascontiguousarray(x.T, dtype=np.int64))
    load_counts(terms, state, costs, loads, objective)
    return loads


@kernel
def even_out(
    terms: Terms,
    state: State,
    costs: RateCosts,
    loads: NodeLoads,
    rng: Rng,
    best: Best,
    steps: int,
    objective: int,
    heat: float,
) -> None:
    """Propose `steps` moves or swaps; a step may lose, on average, the share `heat` of the cost."""
    load_counts(terms, state, costs, loads, objective)
    scale = max(load_cost(loads, objective), 1e-12)
    cost = search_cost(loads, objective, scale)
    remember(state, best, objective_value(loads, objective), 1e-12)
    fullest = ZERO
    for step in range(steps):
        if step % STEPS_PER_LOOK == 0:
            fullest = fullest_node(loads.ratio, fullest)
        move = propose_swap(terms, state, rng, fullest, objective)
        if move.k == 0 or not swap_fits(terms, state, move):
            continue
        touched = touched_stages(costs, loads, move.c, ZERO)
        if move.k2 > 0:
            touched = touched_stages(costs, loads, move.d, touched)
        swap(terms, state, costs, loads, move, touched, objective)
        now = search_cost(loads, objective, scale)
        if now <= cost - heat * scale * np.log(1.0 - random_share(rng)):
            cost = now
            # Others cannot be the best: no need to work their rate out.
            if objective != RATE or now < best.value[0] / loads.sums[SCALE] * SOFTNESS:
                remember(state, best, objective_value(loads, objective), 1e-9)
        else:
            back = Exchange(move.c, move.m, move.n, move.k, move.d, move.k2, move.m)
            swap(terms, state, costs, loads, back, touched, objective)


@kernel
def remember(state: State, best: Best, value: float, tie: float) -> None:
    """Copy the counts if their value is the best so far; relatively nearer than `tie` is equal."""
    if value >= best.value[0] * (1 - tie):
        return
    best.value[0] = value
    nodes, classes = state.x.shape
    for n in range(nodes):
        for c in range(classes):
            best.rows[n, c] = state.x[n, c]


@inlined
def fullest_node(ratio: Floats, fullest: int) -> int:
    """The node with the largest ratio; the one given if that is as large."""
    for n in range(ratio.shape[0]):
        if ratio[n] > ratio[fullest]:
            fullest = n
    return fullest


@inlined
def propose_swap(terms: Terms, state: State, rng: Rng, fullest: int, objective: int) -> Exchange:
    """Draw tasks of a class to move, and perhaps some to come back; 0 tasks if forbidden."""
    nodes, classes = state.x.shape
    nothing = Exchange(ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO)
    n = NONE
    if objective == RATE and random_share(rng) < FROM_THE_FULLEST and state.contents[fullest] > 0:
        n = fullest
        c = pick_class(state, rng, n)
    else:
        c = pick(rng, classes)
        if state.holders[c] == 0:
            return nothing
        n = pick_node(state, rng, c)
    m = pick(rng, nodes)
    if m == n or not terms.allowed[m, c] or (terms.apart[c] and state.x[m, c] > 0):
        return nothing
    k = chunk_of(rng, state.x[n, c], ALL_TASKS)
    if random_share(rng) < SWAP and state.contents[m] > 0:
        d = pick_class(state, rng, m)
        if d == c or not terms.allowed[n, d] or (terms.apart[d] and state.x[n, d] > 0):
            return nothing
        return Exchange(c, n, m, k, d, chunk_of(rng, state.x[m, d], ALL_TASKS), n)
    return Exchange(c, n, m, k, c, ZERO, n)


@inlined
def swap_fits(terms: Terms, state: State, move: Exchange) -> bool:
    """Whether neither node is overloaded once tasks have changed places."""
    return (
        overload_after(terms, state, move.m, move.c, move.k, move.d, -move.k2) <= 0.0
        and overload_after(terms, state, move.n, move.c, -move.k, move.d, move.k2) <= 0.0
    )


@kernel
def swap(
    terms: Terms,
    state: State,
    costs: RateCosts,
    loads: NodeLoads,
    move: Exchange,
    touched: int,
    objective: int,
) -> None:
    """Make an exchange between two nodes and bring the loads up to date."""
    count_node(costs, loads, move.n, objective, -1.0)
    count_node(costs, loads, move.m, objective, -1.0)
    put_tasks(terms, state, costs, loads, move.c, move.n, -move.k)
    if move.k2 > 0:
        put_tasks(terms, state, costs, loads, move.d, move.m, -move.k2)
        put_tasks(terms, state, costs, loads, move.d, move.n, move.k2)
    put_tasks(terms, state, costs, loads, move.c, move.m, move.k)
    update_nodes(terms, state, costs, loads, move.n, move.m, touched, objective)


@inlined
def put_tasks(
    terms: Terms, state: State, costs: RateCosts, loads: NodeLoads, c: int, n: int, k: int
) -> None:
    """Add k tasks of class c to node n (k < 0: take away), in the counts and in the loads."""
    put(terms, state, c, n, k)
    add_tasks(terms, costs, loads, c, n, k)

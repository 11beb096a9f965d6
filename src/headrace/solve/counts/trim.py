"""Fewer tasks at a given factor: counts and places annealed for the number of tasks.

The steps are those of the search for the largest factor. Here a task costs one, and what a node or
a thread has to carry beyond the factor has a price, so that the search can pass through it.
"""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.chance import Rng, random_share
from headrace.solve.compiled import ZERO, kernel
from headrace.solve.counts.annealing import FULLEST_EVERY, draw_move
from headrace.solve.counts.fullness import (
    TASKS,
    Fullness,
    TaskCosts,
    apply_move,
    empty_fullness,
    measure_fullness,
    room_terms,
    undo_move,
)
from headrace.solve.counts.starts import Growth
from headrace.solve.least_traffic.state import State, empty_state, load_state
from headrace.solve.least_traffic.terms import Terms
from headrace.solve.rate.speed import fullest_node

# Tasks that a step may lose, on average, at the start of each round.
HOT = (8.0, 4.0, 2.0, 1.0)
SLICE_STEPS = 10_000  # between two looks at the deadline
STEPS_EACH, LEAST_STEPS, MOST_STEPS = 1_000, 400_000, 1_000_000  # for every task, and in all
ROUNDING = 1e-9  # relative: a node may be as full as a sum of floats makes it


def trim_counts(
    growth: Growth, starts: list[Ints], factor: float, steps: int | None = None
) -> Ints | None:
    """Counts [C, N] that sustain the factor with few tasks; None if no start leads to any.

    Starts [N, C] may be too full; the steps are shared by them.
    """
    terms = room_terms(growth.instance, growth.costs)
    state, fullness = empty_state(terms), empty_fullness(terms)
    best, fewest = np.zeros_like(state.x), np.array([np.inf])
    for rows in starts:
        total = int(rows.sum())
        budget = int(np.clip(STEPS_EACH * total, LEAST_STEPS, MOST_STEPS))
        each = max(1, (budget if steps is None else steps) // (len(starts) * len(HOT)))
        price = 2.0 * total  # of a node that is twice as full as it may be
        load_state(terms, state, rows.copy())
        for hot in HOT:
            done = 0
            while done < each:
                part, heat = min(SLICE_STEPS, each - done), hot * (1 - done / each)
                args = (growth.rng, best, fewest, part, heat, price, 1.0 / factor)
                anneal_tasks(terms, state, growth.costs, fullness, *args)
                done += part
                if growth.deadline is not None and growth.deadline():
                    return np.ascontiguousarray(best.T) if np.isfinite(fewest[0]) else None
            if np.isfinite(fewest[0]):
                load_state(terms, state, best.copy())
    return np.ascontiguousarray(best.T) if np.isfinite(fewest[0]) else None


@kernel
def anneal_tasks(
    terms: Terms,
    state: State,
    costs: TaskCosts,
    fullness: Fullness,
    rng: Rng,
    best: Ints,
    fewest: Floats,
    steps: int,
    heat: float,
    price: float,
    limit: float,
) -> None:
    """Propose `steps` moves; one may lose, on average, `heat` tasks.

    The counts with fewest tasks whose ratios are within the limit end up in `best`.
    """
    measure_fullness(terms, state, costs, fullness)
    excess = excess_over(fullness, limit)
    cost = fullness.sums[TASKS] + price * excess
    keep_if_fewer(state, fullness, excess, best, fewest)
    fullest = ZERO
    for step in range(steps):
        if step % FULLEST_EVERY == 0:
            fullest = fullest_node(fullness.ratio, fullest)
        c, n, m, k, d, k2 = draw_move(terms, state, costs, fullness, rng, fullest)
        if c < 0:
            continue
        apply_move(terms, state, costs, fullness, c, n, m, k, d, k2)
        excess = excess_over(fullness, limit)
        now = fullness.sums[TASKS] + price * excess
        if now <= cost - heat * np.log(1.0 - random_share(rng)):
            cost = now
            keep_if_fewer(state, fullness, excess, best, fewest)
        else:
            undo_move(terms, state, costs, fullness, c, n, m, k, d, k2)


@kernel
def excess_over(fullness: Fullness, limit: float) -> float:
    """By how much ratios are above the limit, as shares of it, all together."""
    most = limit * (1 + ROUNDING)
    total = 0.0
    for n in range(fullness.ratio.shape[0]):
        if fullness.ratio[n] > most:
            total += min(fullness.ratio[n] / limit - 1.0, 10.0)
    for c in range(fullness.pace.shape[0]):
        if fullness.pace[c] > most:
            total += min(fullness.pace[c] / limit - 1.0, 10.0)
    return total


@kernel
def keep_if_fewer(
    state: State, fullness: Fullness, excess: float, best: Ints, fewest: Floats
) -> None:
    """Copy the counts to `best` if they are within the limit and fewer than those."""
    if excess > 0.0 or fullness.sums[TASKS] >= fewest[0] - 0.5:
        return
    fewest[0] = fullness.sums[TASKS]
    nodes, components = state.x.shape
    for n in range(nodes):
        for c in range(components):
            best[n, c] = state.x[n, c]

"""Counts and places annealed: tasks are added, taken away, converted, moved and swapped."""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.chance import Rng, pick, random_share
from headrace.solve.compiled import NONE, ONE, ZERO, inlined, kernel
from headrace.solve.counts.fullness import (
    SCALE,
    STEEP,
    THRIFT,
    Fullness,
    TaskCosts,
    apply_move,
    empty_fullness,
    largest_ratio,
    measure_fullness,
    room_terms,
    soft_cost,
    undo_move,
)
from headrace.solve.counts.starts import Growth
from headrace.solve.least_traffic.state import State, empty_state, load_state, overload_after
from headrace.solve.least_traffic.terms import Terms
from headrace.solve.rate.speed import fullest_node

STARTS = 3  # of which the best are annealed
# Share of the cost a step may lose, on average, at the start of each round.
HOT = (0.05, 0.01, 0.03, 0.003)
SLICE_STEPS = 20_000  # between two looks at the deadline

# What a step proposes, by one random number in [0, 1): below ADD a task more, below REMOVE a task
# fewer, below CONVERT a task becomes one of another component, above that tasks move.
ADD, REMOVE, CONVERT = 0.25, 0.45, 0.55
FROM_FULLEST = 0.4  # chance that the task is taken from the fullest node, else from any holder
WHOLE_KIND = 0.15  # chance that all tasks of the component on the node move, not one
COME_BACK = 0.5  # chance that tasks of another component move the other way
FULLEST_EVERY = 16  # steps between two looks for the fullest node
# The soft cost is a little above the largest ratio; only where it is below this multiple of what
# the best counts could have is it worth working out the ratio itself.
NEAR_BEST = 1.6


def anneal_starts(growth: Growth, starts: list[Ints], budget: int) -> tuple[Ints, float] | None:
    """The best rows [N, C] from the most promising starts, and their largest ratio.

    None if there is no start. `budget` steps are shared by the starts.
    """
    terms = room_terms(growth.instance, growth.costs)
    state, fullness = empty_state(terms), empty_fullness(terms)
    measured: list[tuple[float, int, Ints]] = []
    for rows in starts:
        load_state(terms, state, rows)
        measure_fullness(terms, state, growth.costs, fullness)
        measured.append((largest_ratio(fullness), len(measured), rows))
    measured.sort(
        key=lambda start: (start[0] * (1 + THRIFT * start[2].sum() / len(growth.pool)), start[1])
    )
    best: tuple[Ints, float] | None = None
    for value, _, rows in measured[:STARTS]:
        own, own_value = rows.copy(), np.array([value])
        if (best is None or best[1] * growth.enough > 1.0) and value * growth.enough > 1.0:
            steps = budget // min(STARTS, len(measured))
            _anneal_in_rounds(growth, terms, state, fullness, own, own_value, steps)
        if best is None or own_value[0] < best[1]:
            best = own, float(own_value[0])
    return best


def _anneal_in_rounds(
    growth: Growth,
    terms: Terms,
    state: State,
    fullness: Fullness,
    best: Ints,
    best_value: Floats,
    steps: int,
) -> None:
    """Anneal from `best` in rounds of falling heat; the best counts end up there."""
    each = max(1, steps // len(HOT))
    for hot in HOT:
        load_state(terms, state, best.copy())
        done = 0
        while done < each:
            part = min(SLICE_STEPS, each - done)
            heat = hot * (1 - done / each)
            anneal_counts(
                terms, state, growth.costs, fullness, growth.rng, best, best_value, part, heat
            )
            done += part
            if best_value[0] * growth.enough <= 1.0:
                return
            if growth.deadline is not None and growth.deadline():
                return


@kernel
def anneal_counts(
    terms: Terms,
    state: State,
    costs: TaskCosts,
    fullness: Fullness,
    rng: Rng,
    best: Ints,
    best_value: Floats,
    steps: int,
    heat: float,
) -> None:
    """Propose `steps` moves; one may lose, on average, the share `heat` of the first cost.

    The best counts end up in `best`, their largest ratio in `best_value[0]`.
    """
    measure_fullness(terms, state, costs, fullness)
    cost = soft_cost(fullness)
    scale = cost
    fullest = ZERO
    for step in range(steps):
        if step % FULLEST_EVERY == 0:
            fullest = fullest_node(fullness.ratio, fullest)
        c, n, m, k, d, k2 = draw_move(terms, state, costs, fullness, rng, fullest)
        if c < 0:
            continue
        apply_move(terms, state, costs, fullness, c, n, m, k, d, k2)
        now = soft_cost(fullness)
        if now <= cost - heat * scale * np.log(1.0 - random_share(rng)):
            cost = now
            keep_if_best(state, fullness, now, best, best_value)
        else:
            undo_move(terms, state, costs, fullness, c, n, m, k, d, k2)


@inlined
def draw_move(
    terms: Terms, state: State, costs: TaskCosts, fullness: Fullness, rng: Rng, fullest: int
) -> tuple[int, int, int, int, int, int]:
    """(c, n, m, k, d, k2) as `apply_move` takes them; c = -1 where this draw gives no move."""
    c, n, m, k, d, k2 = propose_move(state, costs, fullness, rng, fullest)
    if c >= 0 and not move_fits(terms, state, c, n, m, k, d, k2):
        c = NONE
    return c, n, m, k, d, k2


@inlined
def propose_move(
    state: State, costs: TaskCosts, fullness: Fullness, rng: Rng, fullest: int
) -> tuple[int, int, int, int, int, int]:
    """A move that may not fit; c = -1 where this draw gives none."""
    nodes, components = state.x.shape
    nothing = (NONE, NONE, NONE, ZERO, NONE, ZERO)
    what = random_share(rng)
    if what < ADD:
        c = pick(rng, components)
        m = pick(rng, nodes)
        return nothing if fullness.total[c] >= costs.most[c] else (c, NONE, m, ONE, c, ZERO)
    if random_share(rng) < FROM_FULLEST and state.contents[fullest] > 0:
        n = fullest
        c = int(state.content[n, pick(rng, state.contents[n])])
    else:
        c = pick(rng, components)
        if state.holders[c] == 0:
            return nothing
        n = int(state.holder[c, pick(rng, state.holders[c])])
    if what < REMOVE:
        return nothing if fullness.total[c] <= 1 else (c, n, NONE, ONE, c, ZERO)
    if what < CONVERT:
        d = pick(rng, components)
        if d == c or fullness.total[c] <= 1 or fullness.total[d] >= costs.most[d]:
            return nothing
        return c, n, NONE, ONE, d, ONE
    m = pick(rng, nodes)
    if m == n:
        return nothing
    k = state.x[n, c] if random_share(rng) < WHOLE_KIND else ONE
    if random_share(rng) < COME_BACK and state.contents[m] > 0:
        d = int(state.content[m, pick(rng, state.contents[m])])
        if d == c:
            return nothing
        return c, n, m, k, d, state.x[m, d] if random_share(rng) < WHOLE_KIND else ONE
    return c, n, m, k, c, ZERO


@inlined
def move_fits(terms: Terms, state: State, c: int, n: int, m: int, k: int, d: int, k2: int) -> bool:
    """Whether both nodes may hold what comes to them, and have the room."""
    if m >= 0:
        if not terms.allowed[m, c] or (terms.apart[c] and state.x[m, c] + k > 1):
            return False
        if overload_after(terms, state, m, c, k, d, -k2) > 0.0:
            return False
    if n >= 0 and k2 > 0:
        if not terms.allowed[n, d] or (terms.apart[d] and state.x[n, d] + k2 > 1):
            return False
        if overload_after(terms, state, n, c, -k, d, k2) > 0.0:
            return False
    return True


@inlined
def keep_if_best(
    state: State, fullness: Fullness, cost: float, best: Ints, best_value: Floats
) -> None:
    """Copy the counts to `best` if their largest ratio is below the best one."""
    nodes, components = state.x.shape
    if cost < NEAR_BEST * best_value[0] / fullness.sums[SCALE] * nodes ** (1.0 / STEEP):
        value = largest_ratio(fullness)
        if value < best_value[0] * (1 - 1e-9):
            best_value[0] = value
            for i in range(nodes):
                for j in range(components):
                    best[i, j] = state.x[i, j]

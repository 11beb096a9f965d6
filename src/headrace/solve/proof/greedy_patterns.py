"""Good patterns of one node by greed and exchange, where the best would take too long."""

from __future__ import annotations

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.compiled import NONE, compiled, lean
from headrace.solve.proof.knapsack import Knapsack, has_slots


@compiled
def grow_patterns(knapsack: Knapsack, price: Floats, found: Ints, worth_found: Floats) -> None:
    """Patterns found[c], worth worth_found[c], grown from one task of class c.

    Their worth is -inf where no such task fits.
    """
    for seed in range(len(price)):
        worth_found[seed] = -np.inf
        if knapsack.most[seed] > 0:
            worth_found[seed] = grow_pattern(knapsack, price, seed, found[seed])


@compiled
def grow_pattern(knapsack: Knapsack, price: Floats, seed: int, pattern: Ints) -> float:
    """Grow a pattern from one task of class `seed`; gives its worth.

    The node is filled even where a task costs more than it brings, for its neighbours may come
    after it; exchange sorts that out.
    """
    weight = knapsack.weight
    pattern[:] = 0
    gain = price.copy()
    free = knapsack.room.copy()
    total = 0.0
    filling = True
    entering, leaving = seed, NONE
    # Exchanges always gain; the limit only guards against rounding.
    for _ in range(knapsack.most.sum() + 8 * len(price)):
        if leaving >= 0:
            pattern[leaving] -= 1
            total -= gain[leaving] - weight[leaving, leaving]
            gain -= weight[leaving]
            free += knapsack.demand[leaving]
        if entering >= 0:
            total += gain[entering]
            pattern[entering] += 1
            gain += weight[entering]
            free -= knapsack.demand[entering]
        entering, leaving = best_entry(knapsack, pattern, gain, free, filling), NONE
        if entering >= 0:
            continue
        filling = False
        entering, leaving = best_exchange(knapsack, pattern, gain, free, total)
        if leaving < 0:
            break
    return total


@lean
def best_entry(knapsack: Knapsack, pattern: Ints, gain: Floats, free: Floats, filling: bool) -> int:
    """The class of which one more task gains most for its size; -1 if none fits.

    Unless `filling`, only what gains anything counts.
    """
    entering = NONE
    best = -np.inf if filling else 0.0
    for c in range(len(gain)):
        better = gain[c] > best * knapsack.size[c]
        if better and can_exchange(knapsack, pattern, free, c, NONE):
            best = gain[c] / knapsack.size[c]
            entering = c
    return entering


@lean
def best_exchange(
    knapsack: Knapsack, pattern: Ints, gain: Floats, free: Floats, total: float
) -> tuple[int, int]:
    """The class that should enter (-1: none) and the one that should leave for it.

    -1 for both where no exchange gains.
    """
    weight, classes = knapsack.weight, len(gain)
    entering, leaving = NONE, NONE
    best = 1e-9 * abs(total)
    for d in range(classes):
        if pattern[d] == 0:
            continue
        lost = gain[d] - weight[d, d]
        if -lost > best:
            best = -lost
            entering, leaving = NONE, d
        for c in range(classes):
            better = c != d and gain[c] - weight[c, d] - lost > best
            if better and can_exchange(knapsack, pattern, free, c, d):
                best = gain[c] - weight[c, d] - lost
                entering, leaving = c, d
    return entering, leaving


@lean
def can_exchange(
    knapsack: Knapsack, pattern: Ints, free: Floats, entering: int, leaving: int
) -> bool:
    """Whether one task may enter when one of class `leaving` (-1: none) goes."""
    if pattern[entering] >= knapsack.most[entering]:
        return False
    for k in range(len(free)):
        room = free[k] + (knapsack.demand[leaving, k] if leaving >= 0 else 0.0)
        if knapsack.demand[entering, k] > room:
            return False
    if not knapsack.slots_matter:
        return True
    pattern[entering] += 1
    if leaving >= 0:
        pattern[leaving] -= 1
    fits = has_slots(knapsack, pattern)
    pattern[entering] -= 1
    if leaving >= 0:
        pattern[leaving] += 1
    return fits

"""Machines chosen by what they can hold: a cutting-stock program over patterns of whole tasks.

For task counts that are fixed, the tasks of a component are all alike, so what a machine holds is a
pattern: how many tasks of each component. The cheapest machines are the cheapest patterns that hold
all tasks. Patterns are made as the linear program asks for them, then machines are rented in whole
numbers, step by step. How large tasks should be is tried out: large ones cost less that does not
grow with the rate, small ones fill machines better. A component's tasks fill a thread, or a half or
a third of one, on the type that does most of its work in the relaxation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.solve import highs
from headrace.solve.counts.rate_lp import Fluid, Pools

# Of a thread that tasks fill, so that whole numbers of them fill a machine.
SHARES = (1.0, 1 / 2, 1 / 3, 1 / 4)
# Where these do not fit the machines there are: on the slowest type, so that tasks fit all.
SMALLER = (0.4, 0.3, 0.2, 0.14)
ROUNDS = 120  # of new patterns
GOOD_ENOUGH = 2e-3  # relative: patterns that improve the linear program by less are not looked for
DIVE_ROUNDS = 6  # of new patterns after machines were rented
BEST = 2  # sizes of tasks for which whole machines are looked for
GRID = 6000  # units that a machine's CPU is divided into when it is filled
MOST_TASKS = 20_000
ROUNDING = 1e-9  # relative: a machine may be as full as a sum of floats makes it


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """Counts, and what one task then takes. C components, P machine types."""

    tasks: Ints  # [C]
    cpu: Floats  # [C, P] points of one task; inf where it does not fit


def pack_machines(
    pools: Pools,
    fluid: Fluid,
    price: Floats,
    available: Floats,
    deadline: Callable[[], bool] | None = None,
) -> tuple[Ints, Ints] | None:
    """Cheap machines [P] that carry the relaxation's factor, and the tasks on them [C, N].

    Nodes are in the order of the types. None if none were found.
    """
    main = (fluid.handled * pools.by_rate).argmax(axis=1)
    slowest = np.where(pools.may, pools.by_rate, -1.0).argmax(axis=1)
    for shares, kind in ((SHARES, main), (SMALLER, slowest)):
        best = _pack_cheapest(
            pools,
            [size_tasks(pools, fluid.factor, share, kind) for share in shares],
            price,
            available,
            deadline,
        )
        if best is not None:
            order = np.argsort(best.kind, kind="stable")
            return np.bincount(best.kind, minlength=len(price)).astype(np.int64), best.holds[
                order
            ].T.copy()
    return None


def _pack_cheapest(
    pools: Pools,
    choices: Sequence[Sizes | None],
    price: Floats,
    available: Floats,
    deadline: Callable[[], bool] | None,
) -> Packing | None:
    """The cheapest whole machines, for the sizes whose linear program is cheapest."""
    tried: list[tuple[Sizes, Patterns]] = []
    for sizes in choices:
        if sizes is None or any((sizes.tasks == other.tasks).all() for other, _ in tried):
            continue
        patterns = generate_patterns(pools, sizes, price, available, deadline=deadline)
        if patterns.value < np.inf:
            tried.append((sizes, patterns))
    found = [
        rent_whole_machines(pools, sizes, patterns, price, available, deadline)
        for sizes, patterns in sorted(tried, key=lambda t: t[1].value)[:BEST]
    ]
    return min(
        (p for p in found if p is not None), key=lambda p: float(price[p.kind].sum()), default=None
    )


def size_tasks(pools: Pools, factor: float, share: float, main: Ints) -> Sizes | None:
    """Tasks that fill a share of a thread on the main type [C] of their component.

    None where it may not have so many.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        need = np.where(
            pools.may,
            factor * pools.by_rate / np.maximum(share * pools.thread - pools.fixed, 1e-9),
            0.0,
        )
        least = np.where(
            pools.may, factor * pools.by_rate / np.maximum(pools.thread - pools.fixed, 1e-9), np.inf
        ).min(axis=1)
    wanted = need[np.arange(len(need)), main]
    tasks = np.minimum(np.maximum(np.ceil(wanted * (1 - 1e-9)), 1.0), pools.most)
    if (least > tasks * (1 + 1e-9)).any() or tasks.sum() > MOST_TASKS:
        return None
    cpu = factor * pools.by_rate / tasks[:, None] + pools.fixed
    fits = pools.may & (cpu <= pools.thread * (1 + 1e-9))
    return (
        Sizes(tasks.astype(np.int64), np.where(fits, cpu, np.inf))
        if fits.any(axis=1).all()
        else None
    )


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """What machines may hold, and how often the linear program takes it. J patterns."""

    kind: Ints  # [J]
    holds: Ints  # [J, C]
    times: Floats  # [J]
    value: float  # the linear program's cost; inf if not all tasks can be held


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """Machines with what they hold. N machines."""

    kind: Ints  # [N]
    holds: Ints  # [N, C]


def generate_patterns(
    pools: Pools,
    sizes: Sizes,
    price: Floats,
    available: Floats,
    *,
    known: Patterns | None = None,
    rounds: int = ROUNDS,
    deadline: Callable[[], bool] | None = None,
) -> Patterns:
    """Patterns for the linear program's optimum, or near it, from those known."""
    kind, holds = (
        _patterns_of_one(pools, sizes, len(price))
        if known is None
        else (known.kind, np.minimum(known.holds, sizes.tasks))
    )
    penalty = np.full(len(sizes.tasks), 10 * float(price.max()))  # of a task without a machine
    while True:
        keep = _distinct(kind, holds)
        kind, holds = kind[keep], holds[keep]
        value, times, left, worth, rent = _solve_relaxation(
            kind, holds, sizes.tasks, price, available, penalty
        )
        gain, more = 0.0, []
        for p in np.flatnonzero(available > 0).tolist() if rounds > 0 else ():
            held = fill_one_machine(pools, sizes, p, worth)
            saves = float(worth @ held) - price[p] - rent[p]
            if saves > 1e-9 * price[p]:
                more.append((p, held))
                gain += saves * min(float(available[p]), value / price[p])
        rounds -= 1
        if gain <= GOOD_ENOUGH * value or rounds < 0 or (deadline is not None and deadline()):
            return Patterns(kind, holds, times, np.inf if left > 1e-6 else value)
        kind = np.append(kind, [p for p, _ in more])
        holds = np.vstack([holds, *(held for _, held in more)])


def _patterns_of_one(pools: Pools, sizes: Sizes, kinds: int) -> tuple[Ints, Ints]:
    """Machines full of one component each."""
    rows = [
        (p, fill_one_machine(pools, sizes, p, np.eye(len(sizes.tasks))[c]))
        for p in range(kinds)
        for c in np.flatnonzero(np.isfinite(sizes.cpu[:, p])).tolist()
    ]
    return np.array([p for p, _ in rows], dtype=np.int64), np.array(
        [held for _, held in rows], dtype=np.int64
    )


def _distinct(kind: Ints, holds: Ints) -> Ints:
    _, first = np.unique(np.column_stack([kind, holds]), axis=0, return_index=True)
    first = np.sort(first)
    return first[holds[first].any(axis=1)]


def _solve_relaxation(
    kind: Ints, holds: Ints, tasks: Ints, price: Floats, available: Floats, penalty: Floats
) -> tuple[float, Floats, float, Floats, Floats]:
    """The linear program over the patterns known.

    Gives its cost, how often each pattern is taken [J], tasks left without a machine, what a task
    of each component is worth [C], and what a scarce type costs beyond its price [P].
    """
    of_kind = (kind[None, :] == np.arange(len(price))[:, None]).astype(np.float64)
    scarce = np.isfinite(available)
    components = len(tasks)
    result = highs.solve_linear_program(
        np.concatenate([price[kind], penalty]),
        A_ub=np.vstack(
            [
                -np.hstack([holds.T, np.eye(components)]),
                np.hstack([of_kind[scarce], np.zeros((scarce.sum(), components))]),
            ]
        ),
        b_ub=np.concatenate([-tasks.astype(np.float64), available[scarce]]),
    )
    dual = -np.asarray(result.ineqlin.marginals, dtype=np.float64)
    rent = np.zeros(len(price))
    rent[scarce] = dual[components:]
    x = np.asarray(result.x, dtype=np.float64)
    return float(result.fun), x[: len(kind)], float(x[len(kind) :].sum()), dual[:components], rent


def fill_one_machine(pools: Pools, sizes: Sizes, kind: int, worth: Floats) -> Ints:
    """What one machine should hold to be worth most, on a grid of its CPU, [C]."""
    cpu = sizes.cpu[:, kind]
    holds = np.zeros(len(cpu), dtype=np.int64)
    useful = np.flatnonzero(np.isfinite(cpu) & (worth > 1e-12) & (sizes.tasks > 0))
    room = pools.room[kind]
    if not len(useful):
        return holds
    most = np.where(pools.apart, 1, sizes.tasks)[useful]
    for k in np.flatnonzero(np.isfinite(room)).tolist():
        need = pools.other[useful, k]
        with np.errstate(divide="ignore"):
            most = np.minimum(most, np.where(need > 0, np.floor(room[k] / need + 1e-9), np.inf))
    if not np.isfinite(pools.cpu[kind]):
        holds[useful] = most
    else:
        units = np.ceil(cpu[useful] / float(pools.cpu[kind]) * GRID * (1 - ROUNDING)).astype(
            np.int64
        )
        holds[useful] = _knapsack(np.maximum(units, 1), worth[useful], most.astype(np.int64))
    density = worth[useful] / np.maximum(cpu[useful], 1e-9)
    for k in np.flatnonzero(np.isfinite(room)).tolist():  # rarely: CPU fills up first
        for c in useful[np.argsort(density)].tolist():
            while (
                holds[c]
                and pools.other[c, k] > 0
                and pools.other[:, k] @ holds > room[k] * (1 + 1e-9)
            ):
                holds[c] -= 1
    return holds


def _knapsack(units: Ints, worth: Floats, most: Ints) -> Ints:
    """How many of each thing, of so many units and worth, go into GRID units for the most worth."""
    value = np.zeros(GRID + 1)
    taken: list[tuple[int, int, Bools]] = []
    for i in np.argsort(-worth / units, kind="stable").tolist():
        left, bundle = int(min(most[i], GRID // units[i])), 1
        while left > 0:
            bundle = min(bundle, left)
            width = bundle * int(units[i])
            better = np.zeros(GRID + 1, dtype=bool)
            with_it = value[: GRID + 1 - width] + bundle * worth[i]
            better[width:] = with_it > value[width:] + 1e-15
            value[width:] = np.where(better[width:], with_it, value[width:])
            taken.append((i, bundle, better))
            left -= bundle
            bundle *= 2
    counts, here = np.zeros(len(units), dtype=np.int64), GRID
    for i, bundle, better in reversed(taken):
        if better[here]:
            counts[i] += bundle
            here -= bundle * int(units[i])
    return counts


def rent_whole_machines(
    pools: Pools,
    sizes: Sizes,
    patterns: Patterns,
    price: Floats,
    available: Floats,
    deadline: Callable[[], bool] | None,
) -> Packing | None:
    """Rent the patterns taken most, and ask the program again about the tasks that are left."""
    left, unrented = sizes.tasks.copy(), available.copy()
    kinds: list[int] = []
    held: list[Ints] = []
    while left.any():
        if not np.isfinite(patterns.value) or (deadline is not None and deadline()):
            return None
        times = np.floor(patterns.times + 1e-6).astype(np.int64)
        if not times.any():
            times[_most_taken(pools, sizes, patterns)] = 1
        for j in np.flatnonzero(times).tolist():
            for _ in range(int(times[j])):
                holds = np.minimum(patterns.holds[j], left)
                if holds.any() and unrented[patterns.kind[j]] >= 1:
                    kinds.append(int(patterns.kind[j]))
                    held.append(holds)
                    left = left - holds
                    unrented[patterns.kind[j]] -= 1
        if left.any():
            patterns = generate_patterns(
                pools,
                Sizes(left, sizes.cpu),
                price,
                unrented,
                known=patterns,
                rounds=DIVE_ROUNDS,
                deadline=deadline,
            )
    return Packing(np.array(kinds, dtype=np.int64), np.array(held, dtype=np.int64))


def _most_taken(pools: Pools, sizes: Sizes, patterns: Patterns) -> int:
    """The pattern that the linear program takes most often, of several the one that is fullest."""
    cpu = np.where(np.isfinite(sizes.cpu), sizes.cpu, 0.0).T[patterns.kind]
    full = (patterns.holds * cpu).sum(axis=1) / pools.cpu[patterns.kind]
    return int(np.lexsort((-full, -np.round(patterns.times, 3)))[0])

"""The most that a node can keep of classes larger than it: all fills in fractions that can be best.

With thousands of tasks in a class it matters little that tasks are whole. In fractions, and with
all resources as one size, the best fill of a node at given prices is known. Take two classes of it
that exchange nothing and of which the node holds some but not all it may. Moving room from one to
the other changes the fill's worth in proportion, so one way of moving loses nothing, and goes on
until one class is all there or gone. What remains is a set of classes that are all there, and a
clique of the graph of streams that shares the rest of the room (Motzkin and Straus 1965 show it for
a graph without prices). Both are few where classes are large, and each is one small system of
linear equations. The prices are those of `prices`; with the true worth in the place of a guess they
give a bound in every round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.proof.certificate import Bounds, Estimate
from headrace.solve.proof.knapsack import class_sizes
from headrace.solve.proof.prices import NEW_PATTERNS, Master, Work, converge, master_of
from headrace.solve.symmetry import Quotient

MOST_SETS, MOST_CLIQUES = 2_000, 2_000  # more take too long in every round
CLIQUE_WORK = 10_000  # visits that a look at a clique takes, whatever the sets
ROUNDING = 1e-9
SINGULAR = 1e12  # condition of equations: beyond, a smaller clique is as good


@dataclass(frozen=True, slots=True, eq=False)
class Fills:
    """The fills of one node that can be best: S sets of full classes, cliques of C classes."""

    full: Floats  # [S, C]   tasks of the classes that are all there
    left: Floats  # [S]      room that they leave
    income: Floats  # [S, C] what one task more exchanges with them
    kept: Floats  # [S]      traffic between them
    size: Floats  # [C]
    most: Floats  # [C]
    weight: Floats  # [C, C]
    cliques: list[tuple[Ints, Floats]]  # classes [k], and the inverse of its equations [k+1, k+1]


def fills_of(q: Quotient) -> list[Fills] | None:
    """The fills of every node class; None where they are too many, or a class exchanges inside."""
    weight = q.weights()
    if np.diagonal(weight).any():
        return None
    cliques = list_cliques(weight)
    found: list[Fills] = []
    for j in range(len(q.nodes)):
        size, room = class_sizes(q, j)
        most = q.most[j].astype(np.float64)
        full = None if cliques is None else full_sets(most, size, room)
        if cliques is None or full is None:
            return None
        income = full @ weight
        possible = [clique for clique in cliques if (most[clique] > 0).all()]
        found.append(
            Fills(
                full=full,
                left=np.maximum(room - full @ size, 0.0),
                income=income,
                kept=(full * income).sum(axis=1) / 2,
                size=size,
                most=most,
                weight=weight,
                cliques=[c for c in (with_inverse(weight, size, p) for p in possible) if c],
            )
        )
    return found


def list_cliques(weight: Floats) -> list[Ints] | None:
    """Classes that all exchange something with each other, [k] each; None: too many."""
    linked = weight > 0
    found: list[list[int]] = [[c] for c in range(len(weight))]
    for clique in found:  # grows as it is read
        larger = np.flatnonzero(linked[clique].all(axis=0)).tolist()
        found += [[*clique, c] for c in larger if c > clique[-1]]
        if len(found) > MOST_CLIQUES:
            return None
    return [np.array(clique, dtype=np.int64) for clique in found]


def full_sets(most: Floats, size: Floats, room: float) -> Floats | None:
    """Sets of classes that a node can hold all it may of, as fills [S, C]; None: too many."""
    load = most * size
    may = np.flatnonzero((most > 0) & (load <= room)).tolist()
    sets: list[tuple[list[int], float]] = [([], room)]
    for chosen, left in sets:  # grows as it is read
        later = may if not chosen else [c for c in may if c > chosen[-1]]
        sets += [([*chosen, c], left - load[c]) for c in later if load[c] <= left]
        if len(sets) > MOST_SETS:
            return None
    full = np.zeros((len(sets), len(most)))
    for row, (chosen, _) in enumerate(sets):
        full[row, chosen] = most[chosen]
    return full


def with_inverse(weight: Floats, size: Floats, clique: Ints) -> tuple[Ints, Floats] | None:
    """A clique and the inverse of what holds where its fill is best; None where it has none.

    What one task more gains is the same for its size in every class, and the room is used up.
    """
    k = len(clique)
    equations = np.zeros((k + 1, k + 1))
    equations[:k, :k] = weight[np.ix_(clique, clique)] / weight.max(initial=1e-300)
    equations[:k, k], equations[k, :k] = -size[clique], size[clique]
    equations[:, k] /= size.max()
    equations[k] /= size.max()
    if np.linalg.cond(equations) > SINGULAR:
        return None
    inverse: Floats = np.linalg.inv(equations).astype(np.float64)
    return clique, inverse


def best_fills(fills: Fills, price: Floats) -> tuple[float, Floats]:
    """What a fill is worth at most at these prices, at least 0, and the best of some cliques."""
    base = fills.kept - fills.full @ price
    gain = fills.income - price
    unit, large = fills.weight.max(initial=1e-300), fills.size.max()
    worth, found = [0.0], [np.zeros_like(price)]
    for clique, inverse in fills.cliques:
        known = np.column_stack([-gain[:, clique] / unit, fills.left / large])
        tasks = (known @ inverse.T)[:, :-1]
        inside = (tasks >= -ROUNDING) & (tasks <= fills.most[clique] * (1 + ROUNDING))
        inside &= fills.full[:, clique] == 0
        between = (tasks @ fills.weight[np.ix_(clique, clique)] * tasks).sum(axis=1) / 2
        value = base + (gain[:, clique] * tasks).sum(axis=1) + between
        value = np.where(inside.all(axis=1), value, base)  # full classes alone are a fill too
        best = int(np.argmax(value))
        fill = fills.full[best].copy()
        if inside[best].all():
            fill[clique] = tasks[best]
        worth.append(float(value[best]))
        found.append(fill)
    order = np.argsort(-np.array(worth), kind="stable")[:NEW_PATTERNS]
    return worth[int(order[0])], np.array(found)[order]


def bounds_by_fractions(q: Quotient, fills: list[Fills], work: Work) -> Bounds:
    """Ever better bounds on the traffic kept, until prices are the best for fills in fractions."""
    master = master_of(q)
    for j, f in enumerate(fills):
        master.add(j, np.diag(f.most)[f.most > 0])
    least = master.total
    each = sum(
        f.full.size + sum(CLIQUE_WORK + len(f.full) * (len(c) + 1) for c, _ in f.cliques)
        for f in fills
    )

    def grow(_: Master, price: Floats, work: Work) -> tuple[Sequence[Floats], Floats]:
        nonlocal least
        best = [best_fills(f, price) for f in fills]
        worth = np.array([value for value, _ in best])
        least = min(least, float(price @ q.count + worth @ q.nodes) + ROUNDING * master.total)
        work.spend(each)
        return [found for _, found in best], worth

    for _ in converge(master, None, work, grow):
        yield Estimate(least, 0.0)
    yield Estimate(least, 0.0)

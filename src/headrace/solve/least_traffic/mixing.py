"""Plans mixed from good fills of nodes: column generation, then rounding.

A linear program says how many nodes get which fill, in fractions, and what a task and a node are
worth to that mixture. At these prices better fills are found (`fills`), and it is solved again.
The mixture is then made whole step by step: the largest shares are rounded up, and the rest is
mixed again from what is left. What belongs nowhere goes where it fits.

This sees the whole cluster at once, where annealing sees two nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace.solve.highs import solve_linear_program
from headrace.solve.least_traffic.fills import (
    Kinds,
    improve_fills,
    kinds_of,
    one_node_of_each_kind,
    pairs_of_classes,
)
from headrace.solve.least_traffic.progress import OutOfTime
from headrace.solve.least_traffic.stages import (
    BY_TRAFFIC,
    PACKING,
    Heat,
    average_refusal,
    complete_plan,
)
from headrace.solve.pattern_rows import pattern_rows

if TYPE_CHECKING:
    from headrace.model.arrays import Floats, Ints
    from headrace.solve.least_traffic.progress import Search

# Where mixing pays: nodes share few kinds, classes few neighbours, and there is much to choose.
MOST_KINDS = 12
NODES_PER_KIND = 4
FEWEST_CELLS, FEWEST_STEPS = 2_000, 200_000
MOST_CLASSES = 500
MOST_EDGES_PER_CLASS = 4
FEWEST_TASKS_PER_CLASS = 3  # single tasks leave nothing to mix: annealing does better

FIRST_PRICES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2)  # of what a task keeps in the first plan, on average
MOST_ROUNDS = 30  # of better fills
LITTLE = 1e-3  # of what is kept: a round that gains no more is idle
PATIENCE = 2  # idle rounds before it is enough
MOST_NEW = 400  # fills of a round
NEAR_ENOUGH = 0.05  # of what an average node keeps: fills that are this much too expensive stay
ROUNDS_WHILE_ROUNDING = 2
NODES_AT_ONCE = (0.04, 0.01)  # share of the nodes that are rounded up together, one attempt each
MANY_CLASSES = 100  # from here on there is time for one attempt
COOLING = Heat(0.01, 0.002)  # of the plan that comes out, which is better than heat would find
COOLING_STEPS = 0.1  # share of the steps


class Mixture(NamedTuple):
    """How many nodes get which fill, in fractions, and the prices that follow."""

    share: Floats  # [P] of each fill, in nodes
    price: Floats  # [C] of a task
    node_price: Floats  # [Q] of a node
    kept: float


@dataclass(slots=True, eq=False)
class Fills:
    """The fills that are known: P of them."""

    kind: Ints  # [P]
    tasks: Ints  # [P, C]
    kept: Floats  # [P]
    seen: set[bytes] = field(default_factory=set[bytes])

    def add(self, kind: Ints, tasks: Ints, kept: Floats) -> int:
        """Add those that are not known yet; gives how many."""
        new: list[int] = []
        for i in range(len(kind)):
            name = kind[i].tobytes() + tasks[i].tobytes()
            if name not in self.seen:
                self.seen.add(name)
                new.append(i)
        self.kind = np.concatenate([self.kind, kind[new]])
        self.tasks = np.concatenate([self.tasks, tasks[new]])
        self.kept = np.concatenate([self.kept, kept[new]])
        return len(new)

    def only(self, which: Ints) -> Fills:
        """Some of them."""
        return Fills(self.kind[which], self.tasks[which], self.kept[which], self.seen)

    def margin(self, mixture: Mixture) -> Floats:
        """What each keeps beyond what its tasks and its node cost."""
        cost = self.tasks.astype(np.float64) @ mixture.price
        return self.kept - cost - mixture.node_price[self.kind]


def mixing_pays(search: Search, budget: int) -> bool:
    """Whether to look for a plan mixed from fills."""
    terms, instance = search.terms, search.instance
    if terms.slotted or terms.moving or terms.racked or terms.node_rank:
        return False
    nodes, classes = terms.allowed.shape
    if terms.allowed.size < FEWEST_CELLS or budget < FEWEST_STEPS or classes > MOST_CLASSES:
        return False
    if not 0 < len(terms.other) <= 2 * MOST_EDGES_PER_CLASS * classes:
        return False
    if int(terms.wanted.sum()) < FEWEST_TASKS_PER_CLASS * classes:
        return False
    kinds = len(kinds_of(instance)[2])
    return kinds <= MOST_KINDS and NODES_PER_KIND * kinds <= nodes


def plan_by_mixing(search: Search, budget: int) -> None:
    """Mix fills from those of the best plan so far; remember the plans that come out if better."""
    instance = search.instance
    kinds = one_node_of_each_kind(instance)
    seeds = pairs_of_classes(instance, kinds)
    fills = first_fills(search, kinds, seeds)
    left, nodes = instance.count.copy(), kinds.nodes.copy()
    mix_better(search, kinds, fills, seeds, left, nodes, MOST_ROUNDS)
    many = len(instance.count) > MANY_CLASSES
    for at_once in NODES_AT_ONCE[:1] if many else NODES_AT_ONCE:
        rows = round_mixture(search, kinds, fills, seeds, at_once)
        search.load(rows)
        search.bench.left[:] = instance.count - rows.sum(axis=0)
        complete_plan(search, PACKING._replace(manner=BY_TRAFFIC), budget // 10)
        if not search.overloaded and not search.bench.left.any():
            cool_down(search, int(COOLING_STEPS * budget))


def cool_down(search: Search, steps: int) -> None:
    """Anneal the loaded plan a little, then descend."""
    rows = search.state.x.copy()
    scale = average_refusal(search, min(20_000, steps // 10 + 1))
    search.load(rows)
    search.anneal(steps, COOLING.first * scale, COOLING.last * scale)
    search.anneal(steps // 4)


def first_fills(search: Search, kinds: Kinds, seeds: tuple[Ints, Ints]) -> Fills:
    """What the nodes of the best plan hold, and fills around them at several levels of prices."""
    instance, rows = search.instance, search.ledger.best
    a, b, weight = instance.edge_a, instance.edge_b, instance.edge_weight
    pairs = np.where(a == b, rows[:, a] * (rows[:, a] - 1) / 2, rows[:, a] * rows[:, b])
    fills = Fills(np.zeros(0, np.int64), np.zeros((0, rows.shape[1]), np.int64), np.zeros(0))
    fills.add(kinds.kind, rows, pairs @ weight)
    each = np.zeros(len(instance.count))
    kept = pairs.sum(axis=0) * weight / 2
    np.add.at(each, a, kept)
    np.add.at(each, b, kept)
    each /= np.maximum(instance.count, 1)
    plan = fills.only(np.arange(len(fills.kind)))
    for level in FIRST_PRICES:
        for kind, tasks in ((plan.kind, plan.tasks), (seeds[1], seeds[0])):
            found = tasks.copy()
            fills.add(kind, found, improve_fills(kinds, level * each, instance.count, found, kind))
        stop_in_time(search)
    return fills


def mix_better(
    search: Search,
    kinds: Kinds,
    fills: Fills,
    seeds: tuple[Ints, Ints],
    left: Ints,
    nodes: Ints,
    rounds: int,
) -> Mixture:
    """Mix, look for better fills at the prices, and mix again; `fills` grows."""
    mixture = mix_fills(fills, left, nodes)
    idle = 0
    for _ in range(rounds):
        chosen = mixture.share > 1e-9
        kind = np.concatenate([fills.kind[chosen], seeds[1]])
        tasks = np.minimum(np.concatenate([fills.tasks[chosen], seeds[0]]), left)
        open_kind = nodes[kind] > 0
        kind, tasks = kind[open_kind], tasks[open_kind]
        kept = improve_fills(kinds, mixture.price, left, tasks, kind)
        found = Fills(kind, tasks, kept)
        margin = found.margin(mixture)
        best = np.argsort(-margin, kind="stable")[:MOST_NEW]
        best = best[margin[best] > 1e-7 * mixture.kept]
        before = mixture.kept
        if not fills.add(kind[best], tasks[best], kept[best]):
            break
        mixture = mix_fills(fills, left, nodes)
        stop_in_time(search)
        idle = 0 if mixture.kept > before * (1 + LITTLE) else idle + 1
        if idle == PATIENCE:
            break
    return mixture


def mix_fills(fills: Fills, left: Ints, nodes: Ints) -> Mixture:
    """The mixture that keeps most, of at most `left` tasks and `nodes` of each kind."""
    rows = pattern_rows(fills.tasks, fills.kind, len(nodes))
    limits = np.concatenate([left, nodes]).astype(np.float64)
    solved = solve_linear_program(-fills.kept, A_ub=rows, b_ub=limits)
    price = -np.asarray(solved.ineqlin.marginals)
    return Mixture(solved.x, price[: len(left)], price[len(left) :], -float(solved.fun))


def round_mixture(
    search: Search, kinds: Kinds, fills: Fills, seeds: tuple[Ints, Ints], at_once: float
) -> Ints:
    """Counts [N, C] of whole nodes: the largest shares are rounded up, and the rest mixed again."""
    left, nodes = search.instance.count.copy(), kinds.nodes.copy()
    rows = np.zeros((len(kinds.kind), len(left)), np.int64)
    free = [np.flatnonzero(kinds.kind == q).tolist()[::-1] for q in range(len(nodes))]
    little = 1e-9 * search.instance.total_weight
    fits = np.arange(len(fills.kind))
    while nodes.any() and len(fits):
        fills = fills.only(fits)
        mixture = mix_better(search, kinds, fills, seeds, left, nodes, ROUNDS_WHILE_ROUNDING)
        if mixture.kept <= little:
            break
        taken, most = 0, max(1, int(at_once * len(kinds.kind)))
        for i in np.argsort(-mixture.share, kind="stable").tolist():
            many = int(mixture.share[i] + 1e-6)
            if many == 0 and taken >= most:
                break
            q, tasks = int(fills.kind[i]), fills.tasks[i]
            for _ in range(max(many, 1)):
                if nodes[q] == 0 or (tasks > left).any():
                    break
                rows[free[q].pop()] = tasks
                left -= tasks
                nodes[q] -= 1
                taken += 1
        near = fills.margin(mixture) > -NEAR_ENOUGH * mixture.kept / len(kinds.kind)
        useful = (mixture.share > 1e-9) | near
        fits = np.flatnonzero(useful & (nodes[fills.kind] > 0) & (fills.tasks <= left).all(axis=1))
    return rows


def stop_in_time(search: Search) -> None:
    """Look at the clock."""
    if search.deadline is not None and search.deadline():
        raise OutOfTime

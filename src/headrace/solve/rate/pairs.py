"""Counts with a high rate or an even load, by dealing the tasks of two nodes out again, exactly.

Single moves and swaps come to an end where the fullest node could only be relieved by several tasks
against several others. All ways to divide what two nodes hold are few enough to look at, if need be
with some classes left where they are. Only CPU and what must fit are looked at: where bandwidth
limits a node, or sending costs CPU, whoever calls compares.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb, prod
from typing import Literal, NamedTuple

import numpy as np

from headrace.model.arrays import TOLERANCE, Floats, Ints
from headrace.solve.chance import Rng, pick, random_share, stream
from headrace.solve.compiled import ONE, ZERO, kernel
from headrace.solve.instance import Instance
from headrace.solve.rate.costs import RateCosts
from headrace.solve.rate.loads import BALANCE, FULL, RATE

AIMS = {"rate": RATE, "balance": BALANCE}
MOST_WAYS = 3_000  # to divide the tasks of two nodes, that are looked at in one step
WAYS = 3_000_000  # looked at in all: some 0.3 s; four times as many found next to nothing more
OFTEN = 20  # times all ways to deal the tasks out: looking at more is in vain on tiny problems
WAYS_AT_ONCE = 300_000  # between two looks at the clock
LEAST_GAIN = 1e-9  # as a share


class Deal(NamedTuple):
    """Counts while two nodes at a time are dealt again; N nodes, C classes, K resources."""

    rows: Ints  # [N, C]
    used: Floats  # [N, K]
    grows: Floats  # [N] CPU points that grow with the rate
    fixed: Floats  # [N] and that do not
    worth: Floats  # [N] load over room (rate), share of CPU in use (balance)
    best: Ints  # [N, C] the best counts so far
    value: Floats  # [2] of the best counts, and of those at hand
    free: Ints  # [C] scratch: classes that are dealt
    digit: Ints  # [C] scratch: tasks of each on the first node
    kept: Ints  # [C] scratch: the same of the way that is taken
    two: Floats  # [2, K + 2] scratch: loads of the two nodes


class Rules(NamedTuple):
    """What must fit."""

    grows: Floats  # [N, C]
    fixed: Floats  # [N, C]
    demand: Floats  # [N, C, K]
    limit: Floats  # [N, K]
    most: Ints  # [N, C] tasks of a class that a node may hold
    cpu: Floats  # [N] free points
    installed: Floats  # [N]


def deal_pairs(
    instance: Instance,
    costs: RateCosts,
    x: Ints,
    aim: Literal["rate", "balance"],
    *,
    seed: int = 0,
    deadline: Callable[[], bool] | None = None,
) -> Ints:
    """Feasible counts [C, N] at least as good by CPU as the feasible x given.

    The same where slots or heaps may run out, which are not looked at, or CPU has no limit.
    """
    groups, nodes = len(instance.heap), len(instance.slots)
    slots_matter = np.isfinite(instance.heap).any() or (instance.slots < groups).any()
    if slots_matter or nodes < 2 or not np.isfinite(costs.cpu).all() or (costs.cpu <= 0).any():
        return x
    most = np.where(instance.apart, 1, instance.count)
    rules = Rules(
        grows=costs.grows[instance.node_type],
        fixed=costs.fixed[instance.node_type],
        demand=instance.demand[instance.node_type],
        limit=np.maximum(instance.capacity, 0.0) * (1 + TOLERANCE),
        most=np.where(instance.allowed, most[:, None], 0).T.copy(),
        cpu=costs.cpu,
        installed=costs.installed,
    )
    deal, rng = new_deal(rules, x), stream(seed, 0x2468ACE)
    left = min(WAYS, OFTEN * prod(comb(n + nodes - 1, n) for n in instance.count.tolist()))
    while left > 0 and not (deadline is not None and deadline()):
        left -= improve_pairs(rules, deal, rng, min(left, WAYS_AT_ONCE), AIMS[aim])
    return np.ascontiguousarray(deal.best.T)


def new_deal(rules: Rules, x: Ints) -> Deal:
    """The counts x[C, N], to be dealt again."""
    rows = np.ascontiguousarray(x.T, dtype=np.int64)
    nodes, classes = rows.shape
    resources = rules.limit.shape[1]
    return Deal(
        rows=rows,
        used=np.zeros((nodes, resources)),
        grows=np.zeros(nodes),
        fixed=np.zeros(nodes),
        worth=np.zeros(nodes),
        best=rows.copy(),
        value=np.full(2, np.inf),
        free=np.zeros(classes, np.int64),
        digit=np.zeros(classes, np.int64),
        kept=np.zeros(classes, np.int64),
        two=np.zeros((2, resources + 2)),
    )


@kernel
def improve_pairs(rules: Rules, deal: Deal, rng: Rng, ways: int, aim: int) -> int:
    """Deal pairs of nodes again until so many ways were looked at; gives how many were.

    Best ways are taken as long as there are any. Then some pairs are dealt at random: for a rate so
    that no node becomes as full as the fullest, else anyhow, and from the best counts again.
    """
    nodes = deal.rows.shape[0]
    for n in range(nodes):
        count_node(rules, deal, n, aim)
    deal.value[1] = value_of(deal, aim)
    remember_best(deal)
    looked, vain = ZERO, ZERO
    while looked < ways:
        i = pick(rng, nodes)
        if aim == RATE:
            for n in range(nodes):
                if deal.worth[n] > deal.worth[i]:
                    i = n
        j = (i + 1 + pick(rng, nodes - 1)) % nodes
        looked += deal_two(rules, deal, rng, i, j, aim, False) + 1
        if deal.kept[0] < 0:
            vain += 1
        else:
            vain = ZERO
            remember_best(deal)
        if vain > 2 * nodes:
            vain = ZERO
            if aim == BALANCE and deal.value[1] > deal.value[0] * (1 + LEAST_GAIN):
                go_back(rules, deal, aim)
            for _ in range(2 + pick(rng, 2)):
                i = pick(rng, nodes)
                j = (i + 1 + pick(rng, nodes - 1)) % nodes
                looked += deal_two(rules, deal, rng, i, j, aim, True) + 1
    return looked


@kernel
def worth_of(rules: Rules, n: int, grows: float, fixed: float, aim: int) -> float:
    """Load of a node over its room, or the share of its CPU in use."""
    if aim == RATE:
        room = rules.cpu[n] - fixed
        return grows / room if room > 1e-9 * grows else FULL
    return (grows + fixed + rules.installed[n] - rules.cpu[n]) / rules.installed[n]


@kernel
def value_of(deal: Deal, aim: int) -> float:
    """The largest ratio, or the variance of the shares."""
    nodes = deal.worth.shape[0]
    most = 0.0
    total = 0.0
    squares = 0.0
    for n in range(nodes):
        most = max(most, deal.worth[n])
        total += deal.worth[n]
        squares += deal.worth[n] * deal.worth[n]
    if aim == RATE:
        return most
    return max(0.0, squares / nodes - (total / nodes) ** 2)


@kernel
def remember_best(deal: Deal) -> None:
    """Keep the counts if none were better."""
    if deal.value[1] < deal.value[0] * (1 - LEAST_GAIN):
        deal.value[0] = deal.value[1]
        copy_counts(deal.rows, deal.best)


@kernel
def copy_counts(source: Ints, target: Ints) -> None:
    """Copy counts; a slice would need memory of its own."""
    for n in range(source.shape[0]):
        for c in range(source.shape[1]):
            target[n, c] = source[n, c]


@kernel
def go_back(rules: Rules, deal: Deal, aim: int) -> None:
    """Take the best counts again."""
    copy_counts(deal.best, deal.rows)
    deal.value[1] = deal.value[0]
    for n in range(deal.rows.shape[0]):
        count_node(rules, deal, n, aim)


@kernel
def count_node(rules: Rules, deal: Deal, n: int, aim: int) -> None:
    """Work out what a node carries from its counts, free of old rounding."""
    deal.grows[n], deal.fixed[n] = 0.0, 0.0
    for r in range(deal.used.shape[1]):
        deal.used[n, r] = 0.0
    for c in range(deal.rows.shape[1]):
        k = deal.rows[n, c]
        deal.grows[n] += k * rules.grows[n, c]
        deal.fixed[n] += k * rules.fixed[n, c]
        for r in range(deal.used.shape[1]):
            deal.used[n, r] += k * rules.demand[n, c, r]
    deal.worth[n] = worth_of(rules, n, deal.grows[n], deal.fixed[n], aim)


@kernel
def deal_two(rules: Rules, deal: Deal, rng: Rng, i: int, j: int, aim: int, at_random: bool) -> int:
    """Divide what nodes i and j hold again, the best way or any; gives the ways looked at.

    `kept[0]` is -1 where nothing was changed: no way is better, or none is allowed at random.
    """
    deal.kept[0] = -1
    many = choose_classes(deal, rng, i, j)
    if many == 0:
        return 0
    load_pair(deal, i, j)
    for f in range(many):  # the first way: everything on j
        shift(rules, deal, i, j, deal.free[f], -deal.rows[i, deal.free[f]])
        deal.digit[f] = 0
    total, squares = sums_of_others(deal, i, j)
    limit = deal.value[1] * (1 - LEAST_GAIN)
    if aim == RATE and not at_random:
        limit = max(deal.worth[i], deal.worth[j]) * (1 - LEAST_GAIN)
    elif aim == BALANCE and at_random:
        limit = np.inf
    looked, found = ZERO, ZERO
    while True:
        looked += 1
        if pair_fits(rules, deal, i, j, many):
            value = value_of_pair(rules, deal, i, j, aim, total, squares)
            if value < limit:
                found += 1
                if not at_random:
                    limit = value
                if not at_random or random_share(rng) * found < 1.0:
                    for f in range(many):
                        deal.kept[f] = deal.digit[f]
        if not next_way(rules, deal, i, j, many):
            break
    if found > 0:
        take_way(rules, deal, i, j, many, aim)
    return looked


@kernel
def choose_classes(deal: Deal, rng: Rng, i: int, j: int) -> int:
    """Draw classes to deal again, as many as leave few enough ways; gives how many, in `free`."""
    classes = deal.rows.shape[1]
    held = ZERO
    for c in range(classes):
        if deal.rows[i, c] + deal.rows[j, c] > 0:
            deal.free[held] = c
            held += 1
    ways, many = ONE, ZERO
    while many < held:
        at = many + pick(rng, held - many)
        c = deal.free[at]
        ways *= deal.rows[i, c] + deal.rows[j, c] + 1
        if ways > MOST_WAYS:
            break
        deal.free[at] = deal.free[many]
        deal.free[many] = c
        many += 1
    return many


@kernel
def load_pair(deal: Deal, i: int, j: int) -> None:
    """What both nodes carry now, into `two`."""
    resources = deal.used.shape[1]
    for side in range(2):
        n = i if side == 0 else j
        for k in range(resources):
            deal.two[side, k] = deal.used[n, k]
        deal.two[side, resources] = deal.grows[n]
        deal.two[side, resources + 1] = deal.fixed[n]


@kernel
def shift(rules: Rules, deal: Deal, i: int, j: int, c: int, k: int) -> None:
    """Move k tasks of a class from node j to node i, in `two` (k < 0: from i to j)."""
    resources = deal.used.shape[1]
    for r in range(resources):
        deal.two[0, r] += k * rules.demand[i, c, r]
        deal.two[1, r] -= k * rules.demand[j, c, r]
    deal.two[0, resources] += k * rules.grows[i, c]
    deal.two[1, resources] -= k * rules.grows[j, c]
    deal.two[0, resources + 1] += k * rules.fixed[i, c]
    deal.two[1, resources + 1] -= k * rules.fixed[j, c]


@kernel
def next_way(rules: Rules, deal: Deal, i: int, j: int, many: int) -> bool:
    """Count one way on, like a clock: a task more of the first class on i, or none and so on."""
    for f in range(many):
        c = deal.free[f]
        whole = deal.rows[i, c] + deal.rows[j, c]
        if deal.digit[f] < whole:
            deal.digit[f] += 1
            shift(rules, deal, i, j, c, ONE)
            return True
        shift(rules, deal, i, j, c, -whole)
        deal.digit[f] = 0
    return False


@kernel
def pair_fits(rules: Rules, deal: Deal, i: int, j: int, many: int) -> bool:
    """Whether both nodes can hold what they would get."""
    for k in range(deal.used.shape[1]):
        if deal.two[0, k] > rules.limit[i, k] or deal.two[1, k] > rules.limit[j, k]:
            return False
    for f in range(many):
        c = deal.free[f]
        rest = deal.rows[i, c] + deal.rows[j, c] - deal.digit[f]
        if deal.digit[f] > rules.most[i, c] or rest > rules.most[j, c]:
            return False
    return True


@kernel
def sums_of_others(deal: Deal, i: int, j: int) -> tuple[float, float]:
    """Over all nodes but two: what they are worth, and its squares."""
    total, squares = 0.0, 0.0
    for n in range(deal.worth.shape[0]):
        if n not in (i, j):
            total += deal.worth[n]
            squares += deal.worth[n] * deal.worth[n]
    return total, squares


@kernel
def value_of_pair(
    rules: Rules, deal: Deal, i: int, j: int, aim: int, total: float, squares: float
) -> float:
    """What the way in `two` is worth: the larger ratio, or the variance of all shares."""
    resources, nodes = deal.used.shape[1], deal.worth.shape[0]
    one = worth_of(rules, i, deal.two[0, resources], deal.two[0, resources + 1], aim)
    other = worth_of(rules, j, deal.two[1, resources], deal.two[1, resources + 1], aim)
    if aim == RATE:
        return max(one, other)
    mean = (total + one + other) / nodes
    return max(0.0, (squares + one * one + other * other) / nodes - mean * mean)


@kernel
def take_way(rules: Rules, deal: Deal, i: int, j: int, many: int, aim: int) -> None:
    """Make the counts those of the way in `kept`."""
    for f in range(many):
        c = deal.free[f]
        whole = deal.rows[i, c] + deal.rows[j, c]
        deal.rows[i, c] = deal.kept[f]
        deal.rows[j, c] = whole - deal.kept[f]
    count_node(rules, deal, i, aim)
    count_node(rules, deal, j, aim)
    deal.value[1] = value_of(deal, aim)

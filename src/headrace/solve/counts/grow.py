"""Counts and places found together: how many tasks of each component on each node, for the largest factor of the rates.

All tasks of a component share its load evenly, so one task more makes all others smaller. Starts
deal out what the linear program (`rate_lp`) gives each pool of machines, in tasks of several sizes;
then tasks are moved, swapped, added, taken away and exchanged for others, annealed. The factor is
limited by the fullest node, and by the fullest thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.problem import CPU
from headrace.solve.chance import Rng, pick, random_share, stream
from headrace.solve.compiled import NONE, ONE, ZERO, kernel
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.state import (
    State,
    empty_state,
    load_state,
    overload_after,
    put,
)
from headrace.solve.least_traffic.terms import Terms, terms_of

STEEP = 16.0  # how much the fullest node outweighs the others while searching
FULL = 1e9  # ratio of a node whose fixed load alone exceeds it
SCALE, SOFT, TASKS = 0, 1, 2  # where `Live.sums` keeps what
THRIFT = 1e-3  # part of the cost that one more task per node costs: of equal plans the one with fewer tasks
HOT = (
    0.05,
    0.01,
    0.03,
    0.003,
)  # part of the cost a step may lose, on average, at the start of each round
SLICE_STEPS = 20_000
POINTS = (100.0, 70.0, 50.0, 35.0, 25.0, 16.0, 10.0, 6.0)  # sizes of tasks to start from
STARTS = 3  # of which the best are searched from
MOST_EMPTY = 0.1  # part of the cluster that a tile may leave out
TILES = (6, 10, 18)  # nodes of the small clusters that are searched well and then repeated


class Costs(NamedTuple):
    """What components cost. Y node types, C components, N nodes."""

    by_rate: Floats  # [Y, C] points of the whole component at factor 1
    fixed: Floats  # [Y, C] points of one task
    thread: Floats  # [Y, C] points one task has for what grows with the rate
    cpu: Floats  # [N] free points
    most: Ints  # [C] tasks


class Live(NamedTuple):
    """What follows from the counts, kept up to date."""

    total: Ints  # [C] tasks
    hosts: Ints  # [Y, C] nodes of a type that hold a component
    ratio: Floats  # [N] load over room at factor 1
    pace: Floats  # [C] the same of the fullest thread of a component
    sums: Floats


def grown(
    instance: Instance,
    costs: Costs,
    handled: Floats,
    pool: Ints,
    *,
    seed: int = 0,
    steps: int | None = None,
    deadline: Callable[[], bool] | None = None,
    enough: float = np.inf,
) -> tuple[Ints, float] | None:
    """Counts [C, N] and the factor they sustain; None where no start places one task of every component.

    `instance` says what else a node must hold (its CPU is not looked at); handled[C, P] is how much
    of each component the pools handle in the linear program, pool[N] the pool of each node. Ends
    early at a factor that is `enough`.
    """
    rng = stream(seed)
    search = Search(instance, costs, handled, pool, rng, deadline, enough)
    budget = int(np.clip(150 * instance.allowed.size, 150_000, 500_000)) if steps is None else steps
    starts = [
        *dealt(search),
        *(
            rows
            for copies in tile_sizes(costs, pool)
            if (rows := tiled(search, copies, budget)) is not None
        ),
    ]
    best = searched(search, starts, budget)
    return (
        None
        if best is None
        else (np.ascontiguousarray(best[0].T), 1.0 / best[1] if best[1] > 0 else np.inf)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """What is searched, and what ends it."""

    instance: Instance
    costs: Costs
    handled: Floats  # [C, P]
    pool: Ints  # [N]
    rng: Rng
    deadline: Callable[[], bool] | None
    enough: float


def dealt(search: Search) -> list[Ints]:
    """Rows [N, C] of tasks dealt out in several sizes, without those that leave a component out."""
    terms = _terms(search.instance, search.costs)
    state, live = empty_state(terms), _live(terms)
    made: list[Ints] = []
    for points in POINTS:
        quota = quotas(search.costs, search.handled, search.pool, terms.node_type, points)
        if any((quota.sum(axis=1) == rows.sum(axis=0)).all() for rows in made):
            continue
        load_state(terms, state, np.zeros_like(state.x))
        deal(terms, state, search.costs, live, quota, search.pool, np.zeros(len(search.pool)))
        if (live.total > 0).all():
            made.append(state.x.copy())
    return made


def tile_sizes(costs: Costs, pool: Ints) -> list[int]:
    """How often a small cluster, alike in its proportions, goes into the whole: a few numbers that leave little over."""
    count = np.bincount(pool)
    cpu = np.zeros(len(count))
    cpu[pool] = np.where(np.isfinite(costs.cpu), costs.cpu, 1.0)
    chosen: list[int] = []
    for nodes in TILES:
        wanted = len(pool) / nodes
        tries = (
            range(max(2, int(wanted * 0.7)), int(np.ceil(wanted * 1.4)) + 1)
            if wanted >= 2
            else range(0)
        )
        # What is left of a pool can repeat a node of the tile; a pool of which the tile has none
        # stays empty.
        empty = {g: float(cpu[count < g] @ count[count < g]) for g in tries}
        left = {
            g: empty[g] + 0.3 * float(cpu @ (count % g))
            for g in tries
            if empty[g] <= MOST_EMPTY * float(cpu @ count)
        }
        if left:
            chosen.append(min(left, key=lambda g: (left[g], abs(g - wanted))))
    return list(dict.fromkeys(chosen))


def tiled(search: Search, copies: int, budget: int) -> Ints | None:
    """Rows [N, C]: the best of a small cluster, repeated; nodes left over repeat a node like them. None if the small one has no plan."""
    instance, costs, pool = search.instance, search.costs, search.pool
    nodes = [np.flatnonzero(pool == p) for p in range(int(pool.max()) + 1)]
    tile = np.concatenate([here[: len(here) // copies] for here in nodes])
    many = np.flatnonzero(costs.most >= copies)  # the others have too few tasks to be in every copy
    if not len(tile) or not costs.by_rate[:, many].any():
        return None
    small = Search(
        part_of(instance, many, tile),
        Costs(
            np.ascontiguousarray(costs.by_rate[:, many]),
            np.ascontiguousarray(costs.fixed[:, many]),
            np.ascontiguousarray(costs.thread[:, many]),
            costs.cpu[tile],
            costs.most[many] // copies,
        ),
        search.handled[many] / copies,
        pool[tile],
        search.rng,
        search.deadline,
        search.enough / copies,
    )
    found = searched(small, dealt(small), max(20_000, budget // 4))
    if found is None:
        return None
    rows = np.zeros((len(pool), len(costs.most)), dtype=np.int64)
    at = {int(n): i for i, n in enumerate(tile)}
    for here in nodes:
        pattern = [at[n] for n in here[: len(here) // copies].tolist()]
        for i, n in enumerate(here.tolist() if pattern else []):
            rows[n, many] = found[0][pattern[i % len(pattern)]]
    return with_the_few(search, rows, many)


def part_of(instance: Instance, components: Ints, nodes: Ints) -> Instance:
    """The instance with some of its components and nodes only."""
    return replace(
        instance,
        count=instance.count[components],
        demand=np.ascontiguousarray(instance.demand[:, components]),
        node_type=instance.node_type[nodes],
        capacity=instance.capacity[nodes],
        allowed=instance.allowed[np.ix_(components, nodes)],
        apart=instance.apart[components],
        group=instance.group[components],
        slots=instance.slots[nodes],
        memory=instance.memory[components],
    )


def with_the_few(search: Search, rows: Ints, many: Ints) -> Ints | None:
    """The rows with the components of few tasks dealt out on top, and no component beyond its most tasks; None where one has no place."""
    costs = search.costs
    terms = _terms(search.instance, costs)
    state, live = empty_state(terms), _live(terms)
    for c in many.tolist():
        beyond = int(rows[:, c].sum() - costs.most[c])
        for n in np.flatnonzero(rows[:, c])[::-1].tolist():
            if beyond > 0:
                taken = min(beyond, int(rows[n, c]))
                rows[n, c] -= taken
                beyond -= taken
    quota = quotas(costs, search.handled, search.pool, terms.node_type, POINTS[0])
    quota[many] = 0
    load_state(terms, state, rows)
    total = np.maximum(rows.sum(axis=0), 1)
    deal(
        terms,
        state,
        costs,
        live,
        quota,
        search.pool,
        (rows * costs.by_rate[terms.node_type] / total).sum(axis=1),
    )
    rows = state.x.copy()
    return rows if (rows.sum(axis=0) > 0).all() else None


def searched(search: Search, starts: list[Ints], budget: int) -> tuple[Ints, float] | None:
    """The best rows [N, C] found from the most promising starts, and the reciprocal of their factor; None if there is no start."""
    costs, rng = search.costs, search.rng
    terms = _terms(search.instance, costs)
    state, live = empty_state(terms), _live(terms)
    made: list[tuple[float, int, Ints]] = []
    for rows in starts:
        load_state(terms, state, rows)
        load_live(terms, state, costs, live)
        made.append((value_of(live), len(made), rows))
    made.sort(
        key=lambda start: (start[0] * (1 + THRIFT * start[2].sum() / len(search.pool)), start[1])
    )
    best: tuple[Ints, float] | None = None
    for value, _, rows in made[:STARTS]:
        own, own_value = rows.copy(), np.array([value])
        if (best is None or best[1] * search.enough > 1.0) and value * search.enough > 1.0:
            _search(
                terms,
                state,
                costs,
                live,
                rng,
                own,
                own_value,
                budget // min(STARTS, len(made)),
                search.deadline,
                search.enough,
            )
        if best is None or own_value[0] < best[1]:
            best = own, float(own_value[0])
    return best


def _search(
    terms: Terms,
    state: State,
    costs: Costs,
    live: Live,
    rng: Rng,
    best: Ints,
    best_value: Floats,
    steps: int,
    deadline: Callable[[], bool] | None,
    enough: float,
) -> None:
    """Anneal from `best` in rounds of falling heat; the best counts end up there."""
    each = max(1, steps // len(HOT))
    for hot in HOT:
        load_state(terms, state, best.copy())
        done = 0
        while done < each:
            part = min(SLICE_STEPS, each - done)
            anneal(terms, state, costs, live, rng, best, best_value, part, hot * (1 - done / each))
            done += part
            if best_value[0] * enough <= 1.0 or (deadline is not None and deadline()):
                return


def factor_of(instance: Instance, costs: Costs, x: Ints) -> float:
    """The factor that counts x[C, N] sustain."""
    terms = _terms(instance, costs)
    state, live = empty_state(terms), _live(terms)
    load_state(terms, state, np.ascontiguousarray(x.T, dtype=np.int64))
    load_live(terms, state, costs, live)
    value = value_of(live)
    return 1.0 / value if value > 0 else np.inf


def _terms(instance: Instance, costs: Costs) -> Terms:
    """Limits without CPU, which depends on the counts, and without traffic."""
    demand, capacity = instance.demand.copy(), instance.capacity.copy()
    demand[:, :, CPU], capacity[:, CPU] = 0.0, np.inf
    none = np.zeros(0, dtype=np.int64)
    count = np.minimum(costs.most, 1_000_000)
    return terms_of(
        replace(
            instance,
            demand=demand,
            capacity=capacity,
            count=count,
            edge_a=none,
            edge_b=none,
            edge_weight=np.zeros(0),
        )
    )


def _live(terms: Terms) -> Live:
    nodes, classes = terms.allowed.shape
    types = terms.demand.shape[0]
    return Live(
        np.zeros(classes, np.int64),
        np.zeros((types, classes), np.int64),
        np.zeros(nodes),
        np.zeros(classes),
        np.zeros(3),
    )


def quotas(costs: Costs, handled: Floats, pool: Ints, node_type: Ints, points: float) -> Ints:
    """Whole tasks for every component and pool, of about so many points each, in the proportions of the program, [C, P]."""
    machine = np.zeros(handled.shape[1], dtype=np.int64)
    machine[pool] = node_type
    by_rate, thread = costs.by_rate[machine].T, costs.thread[machine].T
    factor = handled.sum(axis=1, keepdims=True)
    share = np.divide(handled, factor, out=np.zeros_like(handled), where=factor > 0)
    idle = factor[:, 0] <= 0
    share[idle, 0] = 1.0
    load = (by_rate * handled).sum(axis=1)
    # No task above one thread on the slowest machine it is dealt to.
    fewest = np.where(share > 1e-6, factor * by_rate / np.maximum(thread, 1e-9), 0.0).max(
        axis=1, initial=0.0
    )
    tasks = np.clip(
        np.maximum(np.ceil(fewest * (1 - 1e-9)), np.round(load / points)), 1, costs.most
    ).astype(np.int64)
    exact = share * tasks[:, None]
    quota = np.floor(exact + 1e-9).astype(np.int64)
    for c in range(len(quota)):
        left = int(tasks[c] - quota[c].sum())
        order = np.argsort(-(exact[c] - quota[c]), kind="stable")
        quota[c, order[:left]] += 1
    return quota


@kernel
def deal(
    terms: Terms, state: State, costs: Costs, live: Live, quota: Ints, pool: Ints, load: Floats
) -> None:
    """Give out the tasks to empty nodes, large ones first, each to the node of its pool that stays least full; where none has room, to any node."""
    nodes, classes = terms.allowed.shape
    kinds = quota.shape[1]
    live.total[:] = 0  # 0: not dealt yet, -1: no node takes even one
    for c in range(classes):
        tasks = 0
        for p in range(kinds):
            tasks += quota[c, p]
        live.pace[c] = 1.0 / max(1, tasks)  # until all are dealt, the share of one task
    dealt = 0
    while dealt < classes:
        largest = -1
        size = -1.0
        for c in range(classes):
            if live.total[c] == 0:
                most = 0.0
                for y in range(costs.by_rate.shape[0]):
                    most = max(most, costs.by_rate[y, c] * live.pace[c])
                if most > size:
                    size = most
                    largest = c
        c = largest
        dealt += 1
        placed = 0
        for p in range(kinds):
            for _ in range(quota[c, p]):
                where = -1
                least = np.inf
                for anywhere in range(2):
                    for n in range(nodes):
                        if (
                            (pool[n] != p and anywhere == 0)
                            or not terms.allowed[n, c]
                            or (terms.apart[c] and state.x[n, c] > 0)
                        ):
                            continue
                        y = terms.node_type[n]
                        full = (load[n] + costs.by_rate[y, c] * live.pace[c]) / max(
                            costs.cpu[n], 1e-9
                        )
                        if full < least and overload_after(terms, state, n, c, ONE, c, ZERO) <= 0.0:
                            least = full
                            where = n
                    if where >= 0:
                        break
                if where >= 0:
                    y = terms.node_type[where]
                    put(terms, state, c, where, ONE)
                    load[where] += costs.by_rate[y, c] * live.pace[c] + costs.fixed[y, c] * 1e-3
                    placed += 1
        live.total[c] = placed if placed > 0 else -1


@kernel
def ratio_of(terms: Terms, state: State, costs: Costs, live: Live, n: int) -> float:
    """Load of node n at factor 1 over what it has for it: the reciprocal is the factor it sustains."""
    y = terms.node_type[n]
    load = 0.0
    fixed = 0.0
    for i in range(state.contents[n]):
        c = int(state.content[n, i])
        load += state.x[n, c] * costs.by_rate[y, c] / live.total[c]
        fixed += state.x[n, c] * costs.fixed[y, c]
    if costs.cpu[n] == np.inf:
        return 0.0
    room = costs.cpu[n] - fixed
    if load <= 0.0:
        return FULL if fixed > costs.cpu[n] * (1 + 1e-9) else 0.0
    return load / room if room > load / FULL else FULL


@kernel
def pace_of(terms: Terms, costs: Costs, live: Live, c: int) -> float:
    """The same of the fullest thread of component c."""
    most = 0.0
    for y in range(costs.by_rate.shape[0]):
        if live.hosts[y, c] > 0 and costs.by_rate[y, c] > 0.0:
            most = max(most, costs.by_rate[y, c] / live.total[c] / max(costs.thread[y, c], 1e-9))
    return most


@kernel
def load_live(terms: Terms, state: State, costs: Costs, live: Live) -> None:
    """Work everything out from the counts."""
    nodes, classes = state.x.shape
    live.total[:] = 0
    live.hosts[:] = 0
    live.sums[:] = 0.0
    for n in range(nodes):
        for i in range(state.contents[n]):
            c = int(state.content[n, i])
            live.total[c] += state.x[n, c]
            live.hosts[terms.node_type[n], c] += 1
        live.sums[TASKS] += state.tasks[n]
    for n in range(nodes):
        live.ratio[n] = ratio_of(terms, state, costs, live, n)
        live.sums[SCALE] = max(live.sums[SCALE], live.ratio[n])
    for c in range(classes):
        live.pace[c] = pace_of(terms, costs, live, c)
        live.sums[SCALE] = max(live.sums[SCALE], live.pace[c])
    live.sums[SCALE] = max(live.sums[SCALE], 1e-30)
    for n in range(nodes):
        live.sums[SOFT] += (live.ratio[n] / live.sums[SCALE]) ** STEEP
    for c in range(classes):
        live.sums[SOFT] += (live.pace[c] / live.sums[SCALE]) ** STEEP


@kernel
def value_of(live: Live) -> float:
    """The reciprocal of the factor."""
    most = 0.0
    for n in range(live.ratio.shape[0]):
        most = max(most, live.ratio[n])
    for c in range(live.pace.shape[0]):
        most = max(most, live.pace[c])
    return most


@kernel
def cost_of(live: Live) -> float:
    """What the search lowers: a soft maximum of the ratios, and a little of the number of tasks."""
    return max(0.0, live.sums[SOFT]) ** (1.0 / STEEP) * (
        1.0 + THRIFT * live.sums[TASKS] / live.ratio.shape[0]
    )


@kernel
def refresh(terms: Terms, state: State, costs: Costs, live: Live, n: int) -> None:
    """Work out node n anew."""
    live.sums[SOFT] -= (live.ratio[n] / live.sums[SCALE]) ** STEEP
    live.ratio[n] = ratio_of(terms, state, costs, live, n)
    live.sums[SOFT] += (live.ratio[n] / live.sums[SCALE]) ** STEEP


@kernel
def change(terms: Terms, state: State, costs: Costs, live: Live, c: int, n: int, k: int) -> None:
    """Put k more tasks of c on node n (k < 0: fewer); what follows is worked out by `follow`."""
    y = terms.node_type[n]
    before = state.x[n, c]
    put(terms, state, c, n, k)
    if before == 0:
        live.hosts[y, c] += 1
    if before + k == 0:
        live.hosts[y, c] -= 1
    live.total[c] += k
    live.sums[TASKS] += k


@kernel
def follow(terms: Terms, state: State, costs: Costs, live: Live, c: int, resized: bool) -> None:
    """Work out anew what a change of component c has changed: its thread, and if its tasks became smaller or larger, all that hold it."""
    live.sums[SOFT] -= (live.pace[c] / live.sums[SCALE]) ** STEEP
    live.pace[c] = pace_of(terms, costs, live, c)
    live.sums[SOFT] += (live.pace[c] / live.sums[SCALE]) ** STEEP
    if resized:
        for i in range(state.holders[c]):
            refresh(terms, state, costs, live, int(state.holder[c, i]))


@kernel
def apply(
    terms: Terms,
    state: State,
    costs: Costs,
    live: Live,
    c: int,
    n: int,
    m: int,
    k: int,
    d: int,
    k2: int,
) -> None:
    """k tasks of c leave node n (if n >= 0) and come to node m (if m >= 0); k2 of d leave m for n, where both are given."""
    if n >= 0:
        change(terms, state, costs, live, c, n, -k)
        if k2 > 0:
            change(terms, state, costs, live, d, n, k2)
    if m >= 0:
        change(terms, state, costs, live, c, m, k)
        if k2 > 0:
            change(terms, state, costs, live, d, m, -k2)
    follow(terms, state, costs, live, c, n < 0 or m < 0)
    if k2 > 0:
        follow(terms, state, costs, live, d, n < 0 or m < 0)
    if n >= 0:
        refresh(terms, state, costs, live, n)
    if m >= 0:
        refresh(terms, state, costs, live, m)


@kernel
def anneal(
    terms: Terms,
    state: State,
    costs: Costs,
    live: Live,
    rng: Rng,
    best: Ints,
    best_value: Floats,
    steps: int,
    heat: float,
) -> None:
    """Propose `steps` changes; a step may lose, on average, the part `heat` of the cost. The best counts end up in `best`."""
    nodes, classes = state.x.shape
    load_live(terms, state, costs, live)
    cost = cost_of(live)
    scale = cost
    fullest = 0
    for step in range(steps):
        if step % 16 == 0:
            for n in range(nodes):
                if live.ratio[n] > live.ratio[fullest]:
                    fullest = n
        what = random_share(rng)
        n = -1
        m = -1
        d = -1
        k = ONE
        k2 = ZERO
        if what < 0.25:  # one task more, somewhere
            c = pick(rng, classes)
            m = pick(rng, nodes)
            if live.total[c] >= costs.most[c]:
                continue
        else:
            if random_share(rng) < 0.4 and state.contents[fullest] > 0:
                n = fullest
                c = int(state.content[n, pick(rng, state.contents[n])])
            else:
                c = pick(rng, classes)
                if state.holders[c] == 0:
                    continue
                n = int(state.holder[c, pick(rng, state.holders[c])])
            if what < 0.45:  # one task fewer
                if live.total[c] <= 1:
                    continue
            elif what < 0.55:  # a task becomes one of another component
                d = pick(rng, classes)
                k2 = ONE
                if d == c or live.total[c] <= 1 or live.total[d] >= costs.most[d]:
                    continue
            else:  # a task, or all of its kind, move; others may come back
                m = pick(rng, nodes)
                if m == n:
                    continue
                if random_share(rng) < 0.15:
                    k = state.x[n, c]
                if random_share(rng) < 0.5 and state.contents[m] > 0:
                    d = int(state.content[m, pick(rng, state.contents[m])])
                    if d == c:
                        continue
                    k2 = state.x[m, d] if random_share(rng) < 0.15 else ONE
        e = d if k2 > 0 else c
        if m >= 0:
            if not terms.allowed[m, c] or (terms.apart[c] and state.x[m, c] + k > 1):
                continue
            if overload_after(terms, state, m, c, k, e, -k2) > 0.0:
                continue
        if n >= 0 and k2 > 0:
            if not terms.allowed[n, d] or (terms.apart[d] and state.x[n, d] + k2 > 1):
                continue
            if overload_after(terms, state, n, c, -k, e, k2) > 0.0:
                continue
        apply(terms, state, costs, live, c, n, m, k, e, k2)
        now = cost_of(live)
        if now <= cost - heat * scale * np.log(1.0 - random_share(rng)):
            cost = now
            if now < 1.6 * best_value[0] / live.sums[SCALE] * nodes ** (1.0 / STEEP):
                value = value_of(live)
                if value < best_value[0] * (1 - 1e-9):
                    best_value[0] = value
                    for i in range(nodes):
                        for j in range(classes):
                            best[i, j] = state.x[i, j]
        elif n >= 0 and m >= 0:
            apply(terms, state, costs, live, c, m, n, k, e, k2)
        elif k2 > 0:
            apply(terms, state, costs, live, e, n, m, k2, c, k)
        elif n >= 0:
            apply(terms, state, costs, live, c, NONE, n, k, c, k2)
        else:
            apply(terms, state, costs, live, c, m, NONE, k, c, k2)

"""Large clusters: the counts of a small cluster, alike in its proportions, repeated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.counts.annealing import anneal_starts
from headrace.solve.counts.count_flow import no_flow
from headrace.solve.counts.fullness import TaskCosts
from headrace.solve.counts.starts import Growth, deal_starts, deal_the_few
from headrace.solve.instance import Instance

TILES = (6, 10, 18)  # nodes of the small clusters
MOST_EMPTY = 0.1  # share of the cluster that a tile may leave out
LEFT_OVER = 0.3  # what CPU of a node is missed where it only repeats another
LEAST_STEPS = 20_000  # for a tile


def tile_sizes(cpu: Floats, pool: Ints) -> list[int]:
    """How often a small cluster goes into the whole: a few numbers that leave little over.

    cpu[N] are the free points of the nodes, pool[N] their pools.
    """
    count = np.bincount(pool)
    points = np.zeros(len(count))
    points[pool] = np.where(np.isfinite(cpu), cpu, 1.0)
    chosen: list[int] = []
    for nodes in TILES:
        wanted = len(pool) / nodes
        if wanted < 2:
            continue
        left: dict[int, float] = {}
        for copies in range(max(2, int(wanted * 0.7)), int(np.ceil(wanted * 1.4)) + 1):
            # What is left of a pool can repeat a node of the tile; a pool of which the tile has
            # none stays empty.
            empty = float(points[count < copies] @ count[count < copies])
            if empty <= MOST_EMPTY * float(points @ count):
                left[copies] = empty + LEFT_OVER * float(points @ (count % copies))
        if left:
            chosen.append(min(left, key=lambda g: (left[g], abs(g - wanted))))
    return list(dict.fromkeys(chosen))


def repeat_tile(growth: Growth, copies: int, budget: int) -> Ints | None:
    """Rows [N, C]: the best counts of a small cluster, repeated; None if it has none.

    Nodes left over repeat a node like them.
    """
    costs, pool = growth.costs, growth.pool
    nodes = [np.flatnonzero(pool == p) for p in range(int(pool.max()) + 1)]
    tile = np.concatenate([here[: len(here) // copies] for here in nodes])
    many = np.flatnonzero(costs.most >= copies)  # the others have too few tasks to be in every copy
    if not len(tile) or not costs.by_rate[:, many].any():
        return None
    small = _small_growth(growth, many, tile, copies)
    found = anneal_starts(small, deal_starts(small), max(LEAST_STEPS, budget // 4))
    if found is None:
        return None
    rows = np.zeros((len(pool), len(costs.most)), dtype=np.int64)
    at = {int(n): i for i, n in enumerate(tile)}
    for here in nodes:
        pattern = [at[n] for n in here[: len(here) // copies].tolist()]
        for i, n in enumerate(here.tolist() if pattern else []):
            rows[n, many] = found[0][pattern[i % len(pattern)]]
    return deal_the_few(growth, rows, many)


def _small_growth(growth: Growth, components: Ints, nodes: Ints, copies: int) -> Growth:
    """The same question for some components on some nodes, of which there are so many copies."""
    costs = growth.costs
    return Growth(
        instance=_part_of_instance(growth.instance, components, nodes),
        costs=TaskCosts(
            by_rate=np.ascontiguousarray(costs.by_rate[:, components]),
            fixed=np.ascontiguousarray(costs.fixed[:, components]),
            thread=np.ascontiguousarray(costs.thread[:, components]),
            cpu=costs.cpu[nodes],
            most=costs.most[components] // copies,
            flow=no_flow(costs.flow.reference[components]),
        ),
        handled=growth.handled[components] / copies,
        pool=growth.pool[nodes],
        rng=growth.rng,
        deadline=growth.deadline,
        enough=growth.enough / copies,
    )


def _part_of_instance(instance: Instance, components: Ints, nodes: Ints) -> Instance:
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

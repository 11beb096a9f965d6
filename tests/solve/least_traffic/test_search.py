"""The count search: feasible, never worse than its starts, as good as brute force if small."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from headrace.model.arrays import Floats, Ints
from headrace.solve.instance import Instance
from headrace.solve.least_traffic.search import default_steps, least_crossing_search


def instance_of(
    count: list[int],
    edges: dict[tuple[int, int], float],
    load: list[float],
    capacity: list[float],
    **changes: object,
) -> Instance:
    """One resource, one machine type, one topology, no slot limits; `changes` replaces fields."""
    classes, nodes = len(count), len(capacity)
    pairs = sorted(edges)
    plain = Instance(
        count=np.array(count, np.int64),
        edge_a=np.array([a for a, _ in pairs], np.int64),
        edge_b=np.array([b for _, b in pairs], np.int64),
        edge_weight=np.array([edges[pair] for pair in pairs], np.float64),
        demand=np.array(load, np.float64)[None, :, None],
        node_type=np.zeros(nodes, np.int64),
        capacity=np.array(capacity, np.float64)[:, None],
        allowed=np.ones((classes, nodes), np.bool_),
        apart=np.zeros(classes, np.bool_),
        group=np.zeros(classes, np.int64),
        slots=np.full(nodes, 100, np.int64),
        heap=np.array([np.inf]),
        memory=np.zeros(classes),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def random_instance(seed: int) -> Instance:
    """A small problem with every kind of constraint, sometimes infeasible."""
    rng = np.random.default_rng(seed)
    classes, nodes, groups, kinds, resources = 4, 3, 2, 2, 2
    count = rng.integers(1, 4, classes)
    pairs = [
        pair
        for pair in itertools.combinations_with_replacement(range(classes), 2)
        if rng.random() < 0.6
    ]
    demand = rng.integers(1, 6, (kinds, classes, resources)).astype(np.float64)
    node_type = rng.integers(0, kinds, nodes)
    wanted = demand.mean(axis=0).T @ count
    allowed = rng.random((classes, nodes)) < 0.9
    return Instance(
        count=count,
        edge_a=np.array([a for a, _ in pairs], np.int64),
        edge_b=np.array([b for _, b in pairs], np.int64),
        edge_weight=rng.integers(1, 20, len(pairs)).astype(np.float64),
        demand=demand,
        node_type=node_type,
        capacity=wanted[None, :] * rng.uniform(0.3, 0.9, (nodes, resources)),
        allowed=allowed,
        apart=rng.random(classes) < 0.15,
        group=rng.integers(0, groups, classes),
        slots=rng.integers(1, 4, nodes),
        heap=np.where(rng.random(groups) < 0.5, np.inf, 6.0),
        memory=rng.integers(1, 5, classes).astype(np.float64),
    )


def broken_rules(instance: Instance, x: Ints) -> list[str]:
    """Every rule the counts break, checked task by task and independently of the solver."""
    broken: list[str] = []
    classes, nodes = x.shape
    if (x < 0).any() or [int(row.sum()) for row in x] != instance.count.tolist():
        broken.append("not every task is placed once")
    for n in range(nodes):
        here = [c for c in range(classes) for _ in range(int(x[c, n]))]
        if any(not instance.allowed[c, n] for c in here):
            broken.append(f"pin on {n}")
        if any(instance.apart[c] and here.count(c) > 1 for c in here):
            broken.append(f"apart on {n}")
        for r in range(instance.capacity.shape[1]):
            if sum(
                float(instance.demand[instance.node_type[n], c, r]) for c in here
            ) > instance.capacity[n, r] * (1 + 1e-9):
                broken.append(f"resource {r} on {n}")
        slots = 0
        for g in {int(instance.group[c]) for c in here}:
            bins: list[float] = [0.0]
            for need in sorted(
                (float(instance.memory[c]) for c in here if instance.group[c] == g), reverse=True
            ):
                at = next(
                    (
                        i
                        for i, used in enumerate(bins)
                        if used + need <= instance.heap[g] * (1 + 1e-9)
                    ),
                    None,
                )
                if at is None:
                    bins.append(need)
                else:
                    bins[at] += need
                if need > instance.heap[g] * (1 + 1e-9):
                    broken.append(f"heap on {n}")
            slots += len(bins)
        if slots > instance.slots[n]:
            broken.append(f"slots on {n}")
    return broken


def pair_crossing(instance: Instance, x: Ints) -> float:
    """Crossing traffic by looking at every pair of tasks."""
    weight: Floats = np.zeros((len(instance.count), len(instance.count)))
    weight[instance.edge_a, instance.edge_b] = instance.edge_weight
    weight[instance.edge_b, instance.edge_a] = instance.edge_weight
    tasks = [(c, n) for c, n in np.argwhere(x > 0).tolist() for _ in range(int(x[c, n]))]
    return sum(float(weight[a, b]) for (a, n), (b, m) in itertools.combinations(tasks, 2) if n != m)


def every_plan(instance: Instance) -> list[Ints]:
    """All feasible counts, by enumeration."""
    nodes = len(instance.slots)

    def spreads(tasks: int, left: int) -> list[tuple[int, ...]]:
        if left == 1:
            return [(tasks,)]
        return [(k, *rest) for k in range(tasks + 1) for rest in spreads(tasks - k, left - 1)]

    plans = (
        np.array(rows, np.int64)
        for rows in itertools.product(*(spreads(int(c), nodes) for c in instance.count))
    )
    return [x for x in plans if not broken_rules(instance, x)]


def optimum(instance: Instance, prefer: str) -> tuple[float, float] | None:
    """The best value by enumeration, None if there is no plan."""
    values = [
        (pair_crossing(instance, x), float((x.sum(axis=0) > 0).sum())) for x in every_plan(instance)
    ]
    if prefer == "nodes":
        values = [(nodes, crossing) for crossing, nodes in values]
    return min(values, default=None)


@pytest.mark.parametrize("prefer", ["traffic", "nodes"])
def test_small_problems_are_solved_to_the_optimum(prefer: str) -> None:
    best, solvable = 0, 0
    for seed in range(40):
        instance = random_instance(seed)
        wanted = optimum(instance, prefer)
        found = least_crossing_search(instance, prefer=prefer, steps=50_000)
        if wanted is None:
            assert found is None, f"seed {seed}: a plan where none exists"
            continue
        solvable += 1
        assert found is not None, f"seed {seed}: a feasible problem is refused"
        assert not broken_rules(instance, found.x), f"seed {seed}"
        assert found.crossing == pytest.approx(pair_crossing(instance, found.x))
        value = (found.crossing, float(found.nodes_used))
        best += (value if prefer == "traffic" else value[::-1]) == pytest.approx(wanted)
    assert solvable >= 20
    assert best >= 0.95 * solvable  # all of them when this was written


def test_racks_count_from_the_first_step() -> None:
    best, solvable, apart = 0, 0, 0
    for seed in range(40):
        rack = np.random.default_rng(seed).integers(0, 2, 3)
        instance = replace(random_instance(seed), rack=rack, rack_price=2.5)
        plans = every_plan(instance)
        found = least_crossing_search(instance, steps=50_000)
        if not plans:
            assert found is None
            continue
        assert found is not None
        rows = (found.x @ (rack[:, None] == np.arange(2))).astype(np.int64)
        between_racks = pair_crossing(instance, rows)
        cost = pair_crossing(instance, found.x) + 2.5 * between_racks
        assert found.cost == pytest.approx(cost), f"seed {seed}"
        solvable += 1
        apart += between_racks > 0
        best += found.cost == pytest.approx(min(instance.cost(x) for x in plans))
    assert solvable >= 20
    assert apart >= 5
    assert best >= 0.95 * solvable


def test_the_same_seed_gives_the_same_counts() -> None:
    instance = random_instance(3)
    first = least_crossing_search(instance, seed=7, steps=30_000)
    second = least_crossing_search(instance, seed=7, steps=30_000)
    assert first is not None
    assert second is not None
    assert first.x.tobytes() == second.x.tobytes()
    assert (first.steps, first.stopped) == (second.steps, "done")


def chain(seed: int, components: int, tasks: int, capacity: list[float]) -> Instance:
    """Components in a row with random streams."""
    rng = np.random.default_rng(seed)
    count = rng.multinomial(tasks - components, np.ones(components) / components) + 1
    edges = {
        (c, c + 1): float(rng.uniform(1, 9)) / (count[c] * count[c + 1])
        for c in range(components - 1)
    }
    return instance_of(count.tolist(), edges, rng.uniform(1, 3, components).tolist(), capacity)


def test_no_start_is_better_than_the_result() -> None:
    for seed in range(8):
        instance = chain(seed, 8, 60, [40.0] * 5)
        good = least_crossing_search(instance, seed=seed, steps=300_000)
        assert good is not None
        hasty = least_crossing_search(instance, starts=[good.x], seed=seed + 100, steps=10)
        assert hasty is not None
        assert hasty.crossing <= good.crossing * (1 + 1e-9)


def test_an_infeasible_start_does_no_harm() -> None:
    instance = chain(0, 6, 40, [40.0] * 4)
    crowded = np.zeros((6, 4), np.int64)
    crowded[:, 0] = instance.count
    found = least_crossing_search(instance, starts=[crowded], steps=20_000)
    assert found is not None
    assert not broken_rules(instance, found.x)


def scattered(instance: Instance, seed: int) -> Ints:
    """Some feasible plan with much crossing traffic."""
    rng = np.random.default_rng(seed)
    x = np.zeros(instance.allowed.shape, np.int64)
    for c in np.argsort(-instance.demand[0, :, 0]):
        for _ in range(int(instance.count[c])):
            used = instance.demand[0, :, 0] @ x
            room = np.nonzero(used + instance.demand[0, c, 0] <= instance.capacity[:, 0])[0]
            x[c, rng.choice(room)] += 1
    return x


def test_nothing_moves_when_moving_is_dear() -> None:
    instance = chain(1, 8, 60, [60.0] * 5)
    current = scattered(instance, 0)
    dear = least_crossing_search(
        instance, current=current, move_cost=np.full(8, 1e6), steps=100_000
    )
    free = least_crossing_search(instance, current=current, move_cost=np.zeros(8), steps=100_000)
    assert dear is not None
    assert free is not None
    assert (dear.x == current).all()
    assert dear.moving == 0.0
    assert free.crossing < dear.crossing


def test_a_move_is_made_when_it_saves_more_than_it_costs() -> None:
    # One task of b apart from its a: bringing it home saves 5 tuples/s.
    instance = instance_of([1, 1], {(0, 1): 5.0}, [1.0, 1.0], [2.0, 2.0])
    current = np.array([[1, 0], [0, 1]], np.int64)
    for cost, moved in ((4.0, 1), (6.0, 0)):
        found = least_crossing_search(
            instance, current=current, move_cost=np.full(2, cost), steps=5_000
        )
        assert found is not None
        assert int(np.maximum(found.x - current, 0).sum()) == moved
        assert found.moving == pytest.approx(cost * moved)


def hidden_packing(seed: int, slack: float) -> Instance:
    """Two resources; nodes are as large as what a hidden plan puts on them, times `slack`."""
    rng = np.random.default_rng(seed)
    classes, nodes = 12, 6
    x = rng.multinomial(1, np.ones(nodes) / nodes, (classes, 3)).sum(axis=1)
    demand = rng.integers(1, 20, (classes, 2)).astype(np.float64)
    pairs = [pair for pair in itertools.combinations(range(classes), 2) if rng.random() < 0.3]
    plain = instance_of(
        x.sum(axis=1).tolist(),
        {pair: float(rng.uniform(1, 5)) for pair in pairs},
        [1.0] * classes,
        [1.0] * nodes,
    )
    return replace(plain, demand=demand[None], capacity=np.maximum(x.T @ demand, 1.0) * slack)


def test_tight_packings_are_found() -> None:
    for seed in range(15):
        instance = hidden_packing(seed, slack=1.02)
        found = least_crossing_search(instance, steps=500_000)
        assert found is not None, f"seed {seed}: a feasible problem is refused"
        assert not broken_rules(instance, found.x), f"seed {seed}"


def test_what_cannot_fit_is_refused() -> None:
    assert least_crossing_search(instance_of([3], {}, [1.0], [1.0, 1.0])) is None
    assert least_crossing_search(instance_of([1], {}, [3.0], [2.0, 2.0])) is None
    assert (
        least_crossing_search(
            instance_of([2], {}, [1.0], [9.0, 9.0], apart=np.array([True]), slots=np.array([1, 0]))
        )
        is None
    )


def test_slots_and_heap_are_counted_by_bins() -> None:
    # Four tasks of 3 in slots of 7: two bins. Only node 1 has two slots, though node 0 is the
    # roomier one.
    instance = instance_of(
        [4],
        {(0, 0): 1.0},
        [1.0],
        [9.0, 4.0],
        slots=np.array([1, 2]),
        heap=np.array([7.0]),
        memory=np.array([3.0]),
    )
    found = least_crossing_search(instance, steps=5_000)
    assert found is not None
    assert found.x.tolist() == [[0, 4]]


def test_fewest_nodes_come_first_if_asked() -> None:
    # Two pairs fit two small nodes without any traffic; one large node takes all four tasks.
    instance = instance_of(
        [1, 1, 1, 1], {(0, 1): 5.0, (2, 3): 5.0}, [1.0] * 4, [2.0, 2.0, 3.0, 1.0]
    )
    by_traffic = least_crossing_search(instance, steps=20_000)
    by_nodes = least_crossing_search(
        instance_of([1, 1, 1], {(0, 1): 5.0}, [1.0, 1.0, 2.0], [2.0, 2.0, 3.0, 1.0]),
        prefer="nodes",
        steps=20_000,
    )
    assert by_traffic is not None
    assert by_nodes is not None
    assert (by_traffic.crossing, by_traffic.nodes_used) == (0.0, 2)
    assert by_nodes.nodes_used == 2


def test_a_deadline_cuts_the_search_short() -> None:
    instance = chain(2, 8, 60, [40.0] * 5)
    found = least_crossing_search(instance, deadline=lambda: True)
    assert found is not None
    assert found.stopped == "deadline"
    assert found.steps < default_steps(instance)
    assert not broken_rules(instance, found.x)

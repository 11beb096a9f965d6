"""The bound added up by topology: never above the optimum, near it, the same every time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.instances import microbenchmark, unsymmetric
from headrace.solve.instance import Instance
from headrace.solve.proof.by_topology import alone, crossing_bound_by_topology, relaxed
from headrace.solve.proof.exact import least_crossing
from headrace.solve.symmetry import quotient
from tests.solve.small_instances import least_by_brute_force, small_instance

# Work after which to stop, and how many of the bounds must be more than half of the optimum.
STOPS = [(1e6, 0), (5e7, 15), (np.inf, 20)]


@pytest.mark.parametrize(("work", "least_useful"), STOPS)
def test_the_bound_is_never_above_the_optimum(work: float, least_useful: int) -> None:
    useful = 0
    for seed in range(3000, 3150):
        instance = small_instance(seed)
        least = least_by_brute_force(instance)
        bound, _ = crossing_bound_by_topology(instance, work=work)
        assert bound <= least + 1e-6, f"seed {seed}"
        useful += np.isfinite(least) and bound > 0.5 * least > 0
    assert useful >= least_useful


@pytest.mark.parametrize("spare", [1, 3])
def test_the_bound_of_a_diamond_is_its_optimum_or_nearly_so(spare: int) -> None:
    instance = microbenchmark("diamond", 20, (4,) * (5 * spare))  # scarce nodes, and plenty
    least = least_crossing(instance)
    assert least.proven
    bound, kind = crossing_bound_by_topology(instance)
    assert kind == "column-generation"
    assert 0.95 * least.bound <= bound <= least.bound + 1e-6


def test_topologies_add_up_to_no_more_than_the_optimum_of_both() -> None:
    for shape in ("sparse", "operators"):
        instance = unsymmetric(1, shape, tasks=12, nodes=3)
        two = replace(
            instance, group=(np.arange(12) >= 6).astype(np.int64), heap=np.full(2, np.inf)
        )
        inside = two.group[two.edge_a] == two.group[two.edge_b]
        two = replace(
            two,
            edge_a=two.edge_a[inside],
            edge_b=two.edge_b[inside],
            edge_weight=two.edge_weight[inside],
            slots=np.full(3, 2),
        )
        least = least_crossing(two)
        assert least.proven
        parts = [least_crossing(alone(two, g)).bound for g in (0, 1)]
        bound, _ = crossing_bound_by_topology(two, work=np.inf)
        assert bound <= sum(parts) + 1e-6 <= least.bound + 2e-6


def test_a_deadline_leaves_a_bound_that_holds_and_the_same_work_gives_the_same() -> None:
    instance = unsymmetric(3, "operators", tasks=30, nodes=6)
    least = least_crossing(instance)
    assert least.proven
    bounds: list[float] = []
    for questions in (1, 5, 25, 125, 625):
        asked = iter([False] * questions)
        bound, _ = crossing_bound_by_topology(
            instance, work=np.inf, deadline=lambda left=asked: next(left, True)
        )
        assert bound <= least.bound + 1e-6
        bounds.append(bound)
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1]
    assert crossing_bound_by_topology(instance) == crossing_bound_by_topology(instance)


def test_nodes_are_merged_only_towards_more_room() -> None:
    q = quotient(many_kinds_of_nodes())
    merged = relaxed(q)
    assert len(merged.nodes) < len(q.nodes)
    assert merged.nodes.sum() == q.nodes.sum()
    for members, room in zip(merged.node_members, merged.room, strict=True):
        for j, own in enumerate(q.node_members):
            if np.isin(own, members).any():
                assert (q.room[j] <= room[: q.room.shape[1]]).all()


def test_what_fits_one_node_or_exchanges_nothing_has_the_trivial_bound() -> None:
    instance = microbenchmark("linear", 10, "HOM")
    silent = replace(instance, edge_weight=np.zeros_like(instance.edge_weight))
    roomy = replace(instance, capacity=np.full((10, 1), np.inf))
    assert crossing_bound_by_topology(silent) == (0.0, "trivial")
    assert crossing_bound_by_topology(roomy) == (0.0, "trivial")
    assert crossing_bound_by_topology(instance, deadline=lambda: True) == (0.0, "trivial")


def many_kinds_of_nodes() -> Instance:
    """A diamond on nodes that all differ, the largest of which could hold it together."""
    return microbenchmark("diamond", 20, tuple(range(12, 2, -1)))

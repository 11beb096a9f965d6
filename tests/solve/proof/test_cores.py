"""Parts and cores of a topology: what is left out never makes a bound too high."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.instances import microbenchmark, unsymmetric
from headrace.solve.proof import cores
from headrace.solve.proof.by_topology import crossing_bound_by_topology
from headrace.solve.proof.cores import connected_parts, cores_of
from headrace.solve.symmetry import quotient, restrict_classes, traffic_inside
from tests.solve.small_instances import least_by_brute_force, small_instance


def test_bounds_from_cores_are_never_above_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "CORE_SIZES", (2, 3))
    for seed in range(4000, 4100):
        instance = small_instance(seed)
        bound, _ = crossing_bound_by_topology(instance, work=np.inf)
        assert bound <= least_by_brute_force(instance) + 1e-6, f"seed {seed}"


def test_a_core_holds_the_busiest_classes_and_the_last_one_all() -> None:
    q = quotient(unsymmetric(0, "sparse", tasks=30, nodes=4))
    found = cores_of(q)
    assert [len(core) for core in found] == sorted({len(core) for core in found})
    assert len(found[-1]) == len(q.count)
    busiest = int(np.argmax(q.edge_weight * q.count[q.edge_a] * q.count[q.edge_b]))
    for core in found:
        assert {int(q.edge_a[busiest]), int(q.edge_b[busiest])} <= set(core.tolist())


def test_parts_that_exchange_nothing_are_bounded_separately() -> None:
    # 30 nodes for 20 tasks of which a node holds 4: plenty. Two diamonds cross twice what one does.
    one = microbenchmark("diamond", 20, (4,) * 30)
    classes = len(one.count)
    two = replace(
        one,
        count=np.tile(one.count, 2),
        edge_a=np.concatenate([one.edge_a, one.edge_a + classes]),
        edge_b=np.concatenate([one.edge_b, one.edge_b + classes]),
        edge_weight=np.tile(one.edge_weight, 2),
        demand=np.tile(one.demand, (1, 2, 1)),
        allowed=np.tile(one.allowed, (2, 1)),
        apart=np.tile(one.apart, 2),
        group=np.tile(one.group, 2),
        memory=np.tile(one.memory, 2),
    )
    q = quotient(two)
    parts = connected_parts(q)
    assert len(parts) == 2
    assert sum(int(part.count.sum()) for part in parts) == int(q.count.sum())
    alone, _ = crossing_bound_by_topology(one, work=np.inf)
    assert crossing_bound_by_topology(two, work=np.inf)[0] == pytest.approx(2 * alone)


def test_fewer_classes_keep_the_traffic_between_them() -> None:
    q = quotient(unsymmetric(2, "operators", tasks=20, nodes=4))
    chosen = np.arange(0, len(q.count), 2)
    pattern = np.zeros((1, len(q.count)), np.int64)
    pattern[0, chosen] = 1
    fewer = restrict_classes(q, chosen)
    assert traffic_inside(fewer, pattern[:, chosen]) == pytest.approx(traffic_inside(q, pattern))
    assert (fewer.room <= q.room).all()

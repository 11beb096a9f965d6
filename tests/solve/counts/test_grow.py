"""The relaxation against closed forms; counts with places against an independent calculation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.model.generate import nasiri_scenario
from headrace.model.sizable import load_of, sizable
from headrace.solve.counts.fill import fill_machines, pools_of
from headrace.solve.counts.rate_lp import Pools, cheapest_machines, fastest_machines, most_rate
from headrace.solve.counts.tiles import tile_sizes
from tests.size.workloads import chain, workload_of


def pools(**changes: object) -> Pools:
    """One component of 10 and 20 points at factor 1 on two kinds of machines of 100 points."""
    plain = Pools(
        by_rate=np.array([[10.0, 20.0]]), fixed=np.zeros((1, 2)), other=np.zeros((1, 1)),
        thread=np.full(2, 100.0),
        may=np.ones((1, 2), bool), cpu=np.full(2, 100.0), room=np.full((2, 1), np.inf),
        most=np.array([10**9]), apart=np.array([False]),
    )  # fmt: skip
    return replace(plain, **changes)  # pyright: ignore[reportArgumentType]


def rate(p: Pools, *machines: float) -> float:
    found = most_rate(p, np.array(machines))
    assert found is not None
    assert found.bound == pytest.approx(found.factor, rel=1e-6)
    return found.factor


def test_machines_add_up() -> None:
    assert rate(pools(), 1, 1) == pytest.approx(100 / 10 + 100 / 20)
    assert rate(pools(), 2, 0) == pytest.approx(20)


def test_every_full_thread_pays_its_fixed_cost() -> None:
    assert rate(pools(fixed=np.full((1, 2), 2.0)), 1, 1) == pytest.approx(98 / 10 + 98 / 20)


def test_few_tasks_and_memory_limit() -> None:
    assert rate(pools(most=np.array([1])), 1, 1) == pytest.approx(10)
    # A task takes half the memory of a machine; tasks are threads of 100 points, machines have 400.
    large = pools(cpu=np.full(2, 400.0), other=np.array([[1.0]]), room=np.array([[2.0], [2.0]]))
    assert rate(large, 1, 0) == pytest.approx(2 * 100 / 10)
    assert (
        most_rate(
            pools(other=np.array([[3.0]]), room=np.array([[2.0], [2.0]])), np.array([1.0, 0.0])
        )
        is None
    )


def test_whole_machines_are_bought() -> None:
    price, available = np.array([3.0, 1.0]), np.array([np.inf, np.inf])
    found = fastest_machines(
        pools(), price, available, 7.5
    )  # 5 per machine of the second kind at 1, 10 at 3 of the first
    assert found is not None
    assert found.machines.round(6).tolist() == [0, 7]
    assert found.factor == pytest.approx(35)
    cheap = cheapest_machines(pools(), price, np.array([9.0, 2.0]), 15.0)
    assert cheap is not None
    assert cheap.machines.round(6).tolist() == [1, 1]
    assert cheap.bound == pytest.approx(4, rel=1e-5)
    assert cheapest_machines(pools(), price, np.array([1.0, 1.0]), 15.1) is None


def test_counts_sustain_what_is_said() -> None:
    load = load_of(
        sizable(workload_of(nasiri_scenario("diamond", "small", 2.0)), catalog=False), catalog=False
    )
    found = fill_machines(load, steps=20_000)
    assert found is not None
    x = found.x.astype(np.float64)
    by_rate = (x / x.sum(axis=1, keepdims=True) * load.by_rate).sum(axis=0)
    fixed = (x * load.fixed).sum(axis=0)
    assert found.factor == pytest.approx(float(((100 - fixed) / by_rate).min()))
    assert found.factor <= found.bound


def test_more_steps_are_never_worse() -> None:
    load = load_of(
        sizable(workload_of(nasiri_scenario("linear", "small", 2.0)), catalog=False), catalog=False
    )
    short, long = fill_machines(load, steps=0), fill_machines(load, steps=60_000)
    assert short is not None
    assert long is not None
    assert long.factor >= short.factor


def test_a_large_cluster_is_tiled_with_every_pool_in_the_tile() -> None:
    load = load_of(
        sizable(workload_of(nasiri_scenario("linear", "large")), catalog=False), catalog=False
    )
    _, pool, machines = pools_of(load)
    assert machines.tolist() == [20, 70, 90]
    sizes = tile_sizes(load.problem.free[:, 0], pool)
    assert 10 in sizes  # nothing is left over
    assert max(sizes) <= 20


def test_a_component_with_few_tasks_is_put_on_top_of_the_tiles() -> None:
    content = chain([10, 1], nodes=40)
    content["topology"]["components"]["b2"]["max_tasks"] = 2
    load = load_of(sizable(workload_of(content), catalog=False), catalog=False)
    found = fill_machines(load)
    assert found is not None
    assert 1 <= found.x[2].sum() <= 2
    assert found.factor >= 0.95 * found.bound

"""Machines by patterns: what they hold fits, and on small cases none are cheaper."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from headrace.judge.report import judge
from headrace.model.generate import random_topology
from headrace.model.request import Request
from headrace.model.sizable import load_of, sizable
from headrace.provision.headrace import headrace
from headrace.solve.counts.cutting_stock import (
    GRID,
    Sizes,
    fill_one_machine,
    generate_patterns,
    pack_machines,
    rent_whole_machines,
)
from headrace.solve.counts.fill import pools_of
from headrace.solve.counts.rate_lp import Pools, cheapest_machines
from tests.size.workloads import workload_of


def pools(
    cpu: list[float],
    *,
    other: Any = None,
    room: Any = None,
    components: int = 2,
    apart: tuple[int, ...] = (),
) -> Pools:
    kinds = len(cpu)
    return Pools(
        by_rate=np.ones((components, kinds)),
        fixed=np.zeros((components, kinds)),
        other=np.zeros((components, 1))
        if other is None
        else np.array(other, dtype=np.float64).reshape(-1, 1),
        thread=np.full(kinds, 100.0),
        may=np.ones((components, kinds), dtype=bool),
        cpu=np.array(cpu),
        room=np.full((kinds, 1), np.inf)
        if room is None
        else np.array(room, dtype=np.float64).reshape(-1, 1),
        most=np.full(components, 10**9),
        apart=np.isin(np.arange(components), apart),
    )


def test_a_machine_is_filled_with_what_is_worth_most() -> None:
    # 100 points: one of 60 and one of 40 (worth 6 + 3) beat two of 40 (6) and one of 60 (6).
    sizes = Sizes(np.array([3, 3]), np.array([[60.0], [40.0]]))
    assert fill_one_machine(pools([100]), sizes, 0, np.array([6.0, 3.0])).tolist() == [1, 1]
    assert fill_one_machine(pools([100]), sizes, 0, np.array([6.0, 5.0])).tolist() == [1, 1]
    assert fill_one_machine(pools([100]), sizes, 0, np.array([2.0, 5.0])).tolist() == [0, 2]


def test_memory_and_separation_limit_a_pattern() -> None:
    sizes = Sizes(np.array([9, 9]), np.array([[10.0], [10.0]]))
    held = fill_one_machine(pools([100], other=[30, 1], room=[65]), sizes, 0, np.array([5.0, 1.0]))
    assert 30 * held[0] + held[1] <= 65
    assert held[0] == 2
    assert fill_one_machine(pools([100], apart=(0,)), sizes, 0, np.array([5.0, 1.0])).tolist() == [
        1,
        9,
    ]


def test_the_grid_never_lets_in_more_than_fits() -> None:
    random = np.random.default_rng(4)
    for _ in range(20):
        cpu = random.uniform(3, 60, size=(6, 1))
        held = fill_one_machine(
            pools([100], components=6), Sizes(np.full(6, 50), cpu), 0, random.uniform(0, 3, 6)
        )
        assert float(cpu[:, 0] @ held) <= 100 * (1 + 1e-9)
        assert float(cpu[:, 0] @ held) > 100 * (1 - 60 / 100)
    assert GRID >= 1000


@pytest.mark.parametrize("seed", range(6))
def test_few_tasks_get_the_cheapest_machines(seed: int) -> None:
    random = np.random.default_rng(seed)
    here = pools([100.0, 200.0])
    sizes = Sizes(
        random.integers(1, 4, 2), np.repeat(random.uniform(20, 95, size=(2, 1)), 2, axis=1)
    )
    price, available = np.array([1.0, random.uniform(1.6, 2.2)]), np.array([4.0, 4.0])
    found = rent_whole_machines(
        here, sizes, generate_patterns(here, sizes, price, available), price, available, None
    )
    assert found is not None
    assert found.holds.sum(axis=0).tolist() == sizes.tasks.tolist()
    assert ((found.holds * sizes.cpu[:, 0]).sum(axis=1) <= here.cpu[found.kind] * (1 + 1e-9)).all()
    best = min(
        (
            float(price @ machines)
            for machines in product(range(5), range(5))
            if fits(sizes, [100] * machines[0] + [200] * machines[1])
        ),
    )
    assert float(price[found.kind].sum()) <= best * 1.35  # at most one machine too many
    assert float(price[found.kind].sum()) >= best * (1 - 1e-9)


def fits(sizes: Sizes, machines: list[int]) -> bool:
    """Whether all tasks can be put into the machines, by trying everything."""

    def put(left: tuple[int, int], rest: list[int]) -> bool:
        if not any(left):
            return True
        if not rest:
            return False
        (a, b), room = sizes.cpu[:, 0], rest[0]
        return any(
            put((left[0] - i, left[1] - j), rest[1:])
            for i in range(left[0] + 1)
            for j in range(left[1] + 1)
            if i * a + j * b <= room * (1 + 1e-9)
        )

    return put((int(sizes.tasks[0]), int(sizes.tasks[1])), machines)


def test_too_few_machines_give_none() -> None:
    here, price = pools([100.0]), np.array([1.0])
    sizes = Sizes(np.array([3, 3]), np.full((2, 1), 60.0))
    assert generate_patterns(here, sizes, price, np.array([3.0])).value == np.inf
    assert (
        rent_whole_machines(
            here,
            sizes,
            generate_patterns(here, sizes, price, np.array([3.0])),
            price,
            np.array([3.0]),
            None,
        )
        is None
    )


@pytest.mark.parametrize(("components", "seed", "times"), [(12, 2, 30), (18, 8, 10)])
def test_random_topologies_are_within_five_percent_and_feasible_at_their_rate(
    components: int, seed: int, times: int
) -> None:
    content = random_topology(components, seed=seed)
    rate = times * sum(spec.get("rate", 0.0) for spec in content["topology"]["components"].values())
    plan = headrace(workload_of(content), Request(rate=rate))
    assert plan.rate >= rate * (1 - 1e-6)
    assert plan.gap is not None
    assert plan.gap <= 0.05
    given = float(plan.problem.rate[plan.problem.spout].sum())
    assert judge(plan.problem.scaled(rate / given * (1 - 1e-6)), plan.assignment).violations == ()
    for kind, count in plan.machines.items():
        assert count <= content["catalog"][kind]["available"]


def test_the_same_call_gives_the_same_machines() -> None:
    workload = sizable(workload_of(random_topology(14, seed=1)), catalog=True)
    here = pools_of(load_of(workload, catalog=True))[0]
    price = np.array([m.price for m in workload.catalog.values()])
    available = np.array([float(m.available or 0) for m in workload.catalog.values()])
    fluid = cheapest_machines(here, price, available, 10.0)
    assert fluid is not None
    one, other = (pack_machines(here, fluid, price, available) for _ in range(2))
    assert one is not None
    assert other is not None
    assert one[0].tolist() == other[0].tolist()
    assert one[1].tolist() == other[1].tolist()

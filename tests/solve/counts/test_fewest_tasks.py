"""The fewest tasks by an integer program: as few as by trying everything, and what they need."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from headrace.solve.counts.fewest_tasks import SharedWork, find_fewest_tasks


def random_work(seed: int) -> SharedWork:
    """Two classes on two or three unlike nodes, whose work nearly fills them."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 4))
    cpu = rng.uniform(40.0, 100.0, nodes)
    work = rng.uniform(0.3, 0.55, (2, 1)) * cpu.sum() * rng.uniform(0.8, 1.1, (2, nodes))
    return SharedWork(
        work=work,
        fixed=rng.choice([0.0, 1.0], (2, nodes)),
        demand=np.column_stack([np.zeros(2), rng.uniform(1.0, 4.0, 2).round()]),
        room=np.column_stack([cpu, rng.uniform(4.0, 9.0, nodes).round()]),
        thread=np.minimum(cpu, rng.choice([40.0, 100.0])),
        fits=np.ones((2, nodes), np.bool_),
        apart=np.array([bool(rng.random() < 0.2), False]),
        least=np.ones(2, np.int64),
        most=np.array([4, 5]),
    )


def fits(shared: SharedWork, x: np.ndarray) -> bool:
    """Whether every class has its tasks, and no node, thread or rule is broken."""
    tasks = x.sum(axis=1)
    if (tasks < shared.least).any() or (tasks > shared.most).any():
        return False
    each = shared.work / tasks[:, None] + shared.fixed
    room = shared.room * (1 + 1e-6)
    return bool(
        ((x == 0) | (each <= shared.thread * (1 + 1e-6))).all()
        and ((x * each).sum(axis=0) <= room[:, 0]).all()
        and (x.T @ shared.demand[:, 1] <= room[:, 1]).all()
        and (x[shared.apart] <= 1).all()
    )


@pytest.mark.parametrize("seed", range(12))
def test_none_are_fewer_than_by_trying_everything(seed: int) -> None:
    shared = random_work(seed)
    nodes = len(shared.thread)
    every = (np.array(counts).reshape(2, nodes) for counts in product(range(4), repeat=2 * nodes))
    least = min((int(x.sum()) for x in every if fits(shared, x)), default=None)
    found = find_fewest_tasks(shared, 10)
    if found is None:
        assert least is None
    else:
        assert fits(shared, found)
        assert found.sum() <= (99 if least is None else least)  # more than 3 on a node may be fewer
        assert find_fewest_tasks(shared, int(found.sum())) is None


def test_what_fits_nowhere_and_what_is_too_large_is_left_alone() -> None:
    shared = random_work(0)
    assert find_fewest_tasks(shared, 2) is None
    assert find_fewest_tasks(shared, 10, deadline=lambda: True) is None
    many = replace(shared, most=np.full(2, 10_000))
    assert find_fewest_tasks(many, 10_000) is None

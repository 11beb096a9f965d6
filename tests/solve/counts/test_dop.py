"""One machine per task, proven: against trying every choice of type and count."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from headrace.errors import Unsupported
from headrace.solve.counts.dop import Market, cheapest, fastest
from tests.failures import label_failure


def market(random: Random, components: int, types: int) -> Market:
    return Market(
        carries=np.array(
            [
                [random.choice((0.0, 1.0, 1.5, 2.0, 3.5)) for _ in range(types)]
                for _ in range(components)
            ]
        ),
        price=np.array([random.choice((1.0, 1.6, 2.5)) for _ in range(types)]),
        available=np.array([random.randint(1, 4) for _ in range(types)]),
        most=np.array([random.choice((2, 9)) for _ in range(components)]),
    )


def everything(market: Market) -> list[np.ndarray[tuple[int, int], np.dtype[np.int64]]]:
    """Every choice of one type and a count per component that availability allows."""
    components, types = market.carries.shape
    options = [
        [
            (y, n)
            for y in range(types)
            if market.carries[c, y] > 0
            for n in range(1, min(market.available[y], market.most[c]) + 1)
        ]
        for c in range(components)
    ]
    found: list[np.ndarray[tuple[int, int], np.dtype[np.int64]]] = []
    for choice in product(*options):
        machines = np.zeros((components, types), dtype=np.int64)
        for c, (y, n) in enumerate(choice):
            machines[c, y] = n
        if (machines.sum(axis=0) <= market.available).all():
            found.append(machines)
    return found


def test_the_best_of_all_choices_is_found() -> None:
    found = 0
    for seed in range(25):
        with label_failure(seed=seed):
            random = Random(seed)
            found += check_choice(market(random, 3, 3), random.choice((4.0, 7.0, 12.0)))
    assert found >= 15


def check_choice(m: Market, budget: float) -> bool:
    """Compare with trying every choice; gives whether the budget buys any."""
    choices = everything(m)
    paid = [x for x in choices if m.cost(x) <= budget + 1e-9]
    best = fastest(m, budget)
    if not paid:
        assert best is None
        return False
    assert best is not None
    assert m.factor(best) == pytest.approx(max(m.factor(x) for x in paid))
    mixed = fastest(m, budget, mixed=True)
    assert mixed is not None
    assert m.factor(mixed) >= m.factor(best) * (1 - 1e-9)
    assert m.cost(mixed) <= budget + 1e-9
    assert (mixed.sum(axis=0) <= m.available).all()
    wanted = m.factor(best)
    cheap = cheapest(m, wanted)
    assert cheap is not None
    assert m.cost(cheap) == pytest.approx(
        min(m.cost(x) for x in choices if m.factor(x) >= wanted - 1e-9)
    )
    return True


def test_the_best_of_all_mixtures_is_found() -> None:
    found = 0
    for seed in range(12):
        with label_failure(seed=seed):
            random = Random(100 + seed)
            found += check_mixture(market(random, 2, 3), random.choice((5.0, 9.0)))
    assert found >= 8


def check_mixture(m: Market, budget: float) -> bool:
    """Compare with trying every mixture; gives whether the budget buys any."""
    rows = [np.array(x) for x in product(*(range(n + 1) for n in m.available)) if any(x)]
    usable = [
        [x for x in rows if x.sum() <= m.most[c] and (m.carries[c][x > 0] > 0).all()]
        for c in range(2)
    ]
    pairs = [np.array(pair) for pair in product(*usable)]
    paid = [x for x in pairs if (x.sum(axis=0) <= m.available).all() and m.cost(x) <= budget + 1e-9]
    best = fastest(m, budget, mixed=True)
    if not paid:
        assert best is None
        return False
    assert best is not None
    assert m.factor(best) == pytest.approx(max(m.factor(x) for x in paid))
    return True


def test_mixing_helps_only_where_machines_are_scarce() -> None:
    # Three tasks are needed, and there are two machines of each type, one as fast as the other.
    scarce = Market(np.array([[1.0, 1.0]]), np.array([1.0, 1.0]), np.array([2, 2]), np.array([9]))
    assert cheapest(scarce, 3.0) is None
    mixed = cheapest(scarce, 3.0, mixed=True)
    assert mixed is not None
    assert mixed.sum() == 3
    # The slower machine sets the pace: a fast and a slow one carry twice the slow one.
    uneven = Market(np.array([[1.0, 5.0]]), np.array([1.0, 1.0]), np.array([1, 1]), np.array([9]))
    best = fastest(uneven, 10.0, mixed=True)
    assert best is not None
    assert uneven.factor(best) == 5.0
    assert uneven.factor(np.array([[1, 1]])) == 2.0


def test_an_endless_market_is_refused() -> None:
    endless = Market(np.array([[1.0]]), np.array([1e-9]), np.array([10**9]), np.array([10**9]))
    with pytest.raises(Unsupported, match="too many"):
        fastest(endless, 1.0)

"""Lots change places: less goes between racks, by what the kernel says, and none is lost."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.model.arrays import Floats, Ints
from headrace.solve.racks import swap_lots


def between(flow: Floats, rack: Ints) -> float:
    return sum(flow[a, b] for a in range(len(flow)) for b in range(a) if rack[a] != rack[b])


@pytest.mark.parametrize("seed", range(8))
def test_a_pass_gains_what_it_says_and_keeps_lots_on_nodes_that_hold_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes, lots, racks = 14, 11, 3
    rack, kind = rng.integers(0, racks, nodes), rng.integers(0, 2, nodes)
    at = rng.permutation(nodes)[:lots]
    number = np.full(nodes, -1)
    number[at] = np.arange(lots)
    fits = rng.random((lots, 2)) < 0.7
    fits[np.arange(lots), kind[at]] = True
    flow = np.triu(rng.random((lots, lots)), 1)
    flow += flow.T
    with_rack = np.stack([flow[:, rack[at] == r].sum(axis=1) for r in range(racks)], 1)
    before = between(flow, rack[at])
    gained = swap_lots(flow, with_rack, rack, kind, fits, at, number, np.arange(lots), 1e-9)
    assert gained > 0
    assert between(flow, rack[at]) == pytest.approx(before - gained)
    assert len(set(at.tolist())) == lots
    assert (number[at] == np.arange(lots)).all()
    assert (number >= 0).sum() == lots
    assert fits[np.arange(lots), kind[at]].all()
    expected = np.stack([flow[:, rack[at] == r].sum(axis=1) for r in range(racks)], 1)
    assert with_rack == pytest.approx(expected)


def test_two_lots_that_talk_meet_in_a_rack() -> None:
    flow = np.array([[0.0, 5.0, 0.0], [5.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    rack, kind = np.array([0, 0, 1]), np.zeros(3, dtype=np.int64)
    at, number = np.array([0, 2, 1]), np.array([0, 2, 1])
    with_rack = np.stack([flow[:, rack[at] == r].sum(axis=1) for r in range(2)], 1)
    fits = np.ones((3, 1), dtype=np.bool_)
    assert swap_lots(flow, with_rack, rack, kind, fits, at, number, np.arange(3), 0.0) == 5.0
    assert rack[at[0]] == rack[at[1]]

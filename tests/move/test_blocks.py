"""Block redistributions: the paper's tables with their errata, brute force, general laws."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from headrace.errors import InvalidInput, Unsupported
from headrace.move.blocks import Blocks, block_volumes, classes, segments, superclasses
from headrace.move.mod import mod
from headrace.move.ro_mod import ro_mod
from headrace.move.steps import Moves

PAPER = Blocks(16, 7, 16, 11)


def test_the_paper_s_table_of_classes_with_class_12_put_right() -> None:
    # Table 2 prints 2 for class 12; the costs must add up to t * s = 77.
    costs = [7, 7, 7, 7, 7, 6, 5, 4, 3, 2, 2, 2, 3, 4, 5, 6]
    assert [c.units for c in classes(PAPER)] == costs
    assert sum(costs) == 77


def test_the_paper_s_superclasses_with_class_10_in_two_of_them() -> None:
    chains = {s.number: s.chain for s in superclasses(PAPER)}
    assert list(chains) == [0, 15, 14, 13, 12, 11, 10]
    assert chains[0] == ((0, 7), (7, 4))
    assert chains[12] == ((12, 3), (3, 7), (10, 1))
    assert chains[11] == ((11, 2), (2, 7), (9, 2))
    assert chains[10] == ((10, 1), (1, 7), (8, 3))


def test_pairs_of_the_paper_s_tables() -> None:
    pairs = {c.number: set(c.pairs) for c in classes(PAPER)}
    assert pairs[7] >= {(1, 0), (12, 7), (7, 14), (2, 5)}
    assert pairs[0] >= {(0, 0), (11, 7), (6, 14), (15, 11)}
    assert (1, 0) not in pairs[6], "printed under class 6, but 1 * 7 mod 16 is 7"
    assert (9, 13) not in pairs[5], "printed under class 5, but 9 * 7 - 13 * 11 is 0 mod 16"
    assert all(len(members) == 16 for members in pairs.values())


def test_mod_takes_16_steps_and_ro_mod_7_equal_ones_for_the_same_volume() -> None:
    by_class, by_superclass = mod(PAPER), ro_mod(PAPER)
    assert [step.cost for step in by_class.steps] == [c.units for c in classes(PAPER)]
    assert [step.cost for step in by_superclass.steps] == [11] * 7
    assert (
        by_class.makespan == by_superclass.makespan == by_class.bound == by_superclass.bound == 77
    )
    assert by_class.units == by_superclass.units == PAPER.period == 1232


def test_eq_1_for_24_tasks_on_6_nodes() -> None:
    # The paper's example of eq. 1: tasks 0-3 on node 0, 4-7 on node 1, .., 20-23 on node 5.
    parts = segments(Blocks(6, 4, 6, 4))
    assert np.repeat(parts.source, parts.size).tolist() == [i // 4 for i in range(24)]


def received(blocks: Blocks, moves: Moves) -> list[list[float]]:
    """What every target receives, step by step."""
    rows: list[list[float]] = []
    for step in moves.steps:
        row = [0.0] * blocks.nodes_after
        for transfer in step.transfers:
            row[int(transfer.target)] += transfer.units
        rows.append(row)
    return rows


def check(n: int, t: int, q: int, s: int) -> None:
    """Brute force over one period, and every statement about steps and costs."""
    blocks = Blocks(n, t, q, s)
    g, d = math.gcd(n * t, q * s), math.gcd(s, t)
    element = np.arange(math.lcm(n * t, q * s))
    before, after = element // t % n, element // s % q
    volume = np.zeros((n, q))
    np.add.at(volume, (before, after), 1)
    parts = segments(blocks)
    assert parts.start.tolist() == np.concatenate([[0], np.cumsum(parts.size)[:-1]]).tolist()
    assert (np.repeat(parts.source, parts.size) == before).all()
    assert (np.repeat(parts.target, parts.size) == after).all()
    for moves in (mod(blocks), ro_mod(blocks)):
        moved = np.zeros((n, q))
        for step in moves.steps:
            for transfer in step.transfers:
                moved[int(transfer.source), int(transfer.target)] += transfer.units
        assert (moved == volume).all()
        assert [step.cost for step in moves.steps] == [max(row) for row in received(blocks, moves)]
        assert moves.makespan >= moves.bound == volume.sum(axis=0).max()
        assert (moves.one_port or 0) >= max(moves.makespan, volume.sum(axis=1).max())
    table = classes(blocks)
    assert all(volume[pair] == c.units for c in table for pair in c.pairs)
    with_pairs = [c for c in table if c.pairs]
    assert len(with_pairs) == g // d
    assert len(mod(blocks).steps) == sum(c.units > 0 for c in with_pairs) == min(g, s + t - d) // d
    one_to_one = all(
        len({a for a, _ in c.pairs}) == len({b for _, b in c.pairs}) == len(c.pairs)
        for c in with_pairs
        if c.units
    )
    assert one_to_one == (g // math.gcd(t, g) == n and g // math.gcd(s, g) == q)
    steps = received(blocks, ro_mod(blocks))
    assert len(steps) == len(superclasses(blocks)) == t // d
    exactly_s = all(row == [s] * q for row in steps)
    assert exactly_s == (g == n * d and math.gcd(q, t // d) == 1)
    inside = [c for superclass in superclasses(blocks) for c in {c for c, _ in superclass.chain}]
    assert (len(inside) > len(set(inside))) == (g < s + t - d and g % t != 0)
    assert all(
        sum(units for _, units in superclass.chain) == s for superclass in superclasses(blocks)
    )


def test_every_small_redistribution_moves_every_task_once() -> None:
    for n, t, q, s in product(range(1, 6), repeat=4):
        check(n, t, q, s)


def test_larger_redistributions_too() -> None:
    # All 20,736 up to 12 are checked by benchmarks/moving.py.
    rng = np.random.default_rng(0)
    for _ in range(300):
        check(*(int(x) for x in rng.integers(1, 13, 4)))


@pytest.mark.parametrize("text", ["2x2:2x1", "4x6:4x3", "5x4:6x5"])
def test_where_targets_idle_the_cost_is_what_the_busiest_receives(text: str) -> None:
    blocks = Blocks.parse(text)
    rows = received(blocks, ro_mod(blocks))
    assert any(min(row) != max(row) or max(row) != blocks.tasks_after for row in rows)


def test_sources_that_send_to_several_are_reported() -> None:
    # One step in which each of the two sources feeds two of the four targets.
    moves = ro_mod(Blocks.parse("2x1:4x1"))
    assert (moves.makespan, moves.one_port) == (1, 2)
    assert "one at a time" in moves.notes[0]


def test_the_volumes_of_a_redistribution() -> None:
    volumes = block_volumes(Blocks(2, 2, 2, 1))
    assert volumes.units.tolist() == [[1, 1], [1, 1]]
    assert (volumes.sources, volumes.bound) == ((0, 1), 2)


@pytest.mark.parametrize(
    "text", ["", "16x7", "16x7:16", "16*7:16x11", "-1x7:16x11", "0x7:16x11", "16x7:16x0"]
)
def test_wrong_blocks_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="blocks"):
        Blocks.parse(text)


def test_a_period_too_long_to_list_is_refused() -> None:
    with pytest.raises(Unsupported, match="pieces"):
        Blocks.parse("99991x7:99989x11")

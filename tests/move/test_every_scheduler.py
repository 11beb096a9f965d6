"""The contract of every scheduler of transfers."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headrace.errors import InvalidInput, Unsupported
from headrace.move import SCHEDULERS
from headrace.move.blocks import Blocks, block_volumes
from headrace.move.drain_checkpoint import drain_checkpoint
from headrace.move.optimal import optimal
from headrace.move.steps import Moves, Volumes

Scheduler = Callable[[Blocks | Volumes], Moves]
ANY = ("optimal", "all-at-once", "one-by-one", "drain-checkpoint")


def scheduler(name: str) -> Scheduler:
    return getattr(importlib.import_module(SCHEDULERS[name]), SCHEDULERS[name].rsplit(".", 1)[1])


def random_volumes(seed: int) -> Volumes:
    rng = np.random.default_rng([seed, 12])
    n = int(rng.integers(2, 25))
    units = rng.lognormal(2, 1, (n, n)) * (rng.random((n, n)) < rng.choice([0.1, 0.5, 1.0]))
    np.fill_diagonal(units, 0)
    speed = rng.choice([100.0, 1000.0], n)
    names = tuple(f"n{i}" for i in range(n))
    return Volumes(names, names, units, units * 8 / np.minimum.outer(speed, speed))


def moved(work: Volumes, moves: Moves) -> np.ndarray:
    total = np.zeros_like(work.units)
    row, column = (
        {name: i for i, name in enumerate(work.sources)},
        {name: j for j, name in enumerate(work.targets)},
    )
    for step in moves.steps:
        for transfer in step.transfers:
            assert transfer.units > 0
            total[row[transfer.source], column[transfer.target]] += transfer.units
    return total


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("text", ["16x7:16x11", "3x4:5x2", "1x1:1x1", "4x6:4x3"])
def test_every_block_is_moved_once_and_no_makespan_is_below_the_bound(name: str, text: str) -> None:
    blocks = Blocks.parse(text)
    moves = scheduler(name)(blocks)
    assert np.allclose(moved(block_volumes(blocks), moves), block_volumes(blocks).units)
    assert moves.makespan >= moves.bound > 0
    assert all(step.cost > 0 and step.transfers for step in moves.steps)


@pytest.mark.parametrize("name", ANY)
def test_every_megabyte_is_moved(name: str) -> None:
    for seed in range(40):
        work = random_volumes(seed)
        moves = scheduler(name)(work)
        assert np.allclose(moved(work, moves), work.units, rtol=1e-12)
        assert moves.bound == work.bound <= moves.makespan


def test_optimal_reaches_the_bound_with_one_sender_and_one_receiver_at_a_time() -> None:
    for seed in range(100):
        work = random_volumes(seed)
        moves = optimal(work)
        assert moves.makespan == pytest.approx(work.bound, rel=1e-12)
        per_unit = np.divide(
            work.cost, work.units, out=np.zeros_like(work.cost), where=work.units > 0
        )
        for step in moves.steps:
            sources, targets = (
                [t.source for t in step.transfers],
                [t.target for t in step.transfers],
            )
            assert len(set(sources)) == len(sources)
            assert len(set(targets)) == len(targets)
            for t in step.transfers:
                cost = (
                    t.units * per_unit[work.sources.index(t.source), work.targets.index(t.target)]
                )
                assert cost <= step.cost + 1e-9 * work.bound


def test_one_by_one_takes_the_sum_and_all_at_once_one_step() -> None:
    work = random_volumes(3)
    assert scheduler("one-by-one")(work).makespan == pytest.approx(work.cost.sum())
    assert len(scheduler("all-at-once")(work).steps) == 1


def test_drain_checkpoint_waits_writes_and_reads() -> None:
    # a sends 4 s to b and 3 s to c, b sends 2 s to c: a writes for 7 s, c reads for 5 s.
    cost = np.array([[0, 4, 3], [0, 0, 2], [0, 0, 0]], dtype=float)
    work = Volumes(tuple("abc"), tuple("abc"), cost * 10, cost)
    assert drain_checkpoint(work).makespan == 12
    moves = drain_checkpoint(work, drain_s=30)
    assert (moves.makespan, len(moves.steps), moves.bound) == (42, 1, 7)
    assert "30 to drain, 7 to write, 5 to read" in moves.notes[0]
    with pytest.raises(Unsupported, match="in seconds"):
        drain_checkpoint(Blocks.parse("2x2:2x1"), drain_s=1)
    with pytest.raises(InvalidInput, match="drain_s is -1"):
        drain_checkpoint(work, drain_s=-1)


@pytest.mark.parametrize("name", ANY)
def test_nothing_to_move_is_no_step(name: str) -> None:
    moves = scheduler(name)(Volumes(("a", "b"), ("a", "b"), np.zeros((2, 2)), np.zeros((2, 2))))
    assert (moves.steps, moves.makespan, moves.bound) == ((), 0, 0)


@pytest.mark.parametrize("name", ["mod", "ro-mod"])
def test_block_schedulers_refuse_other_work(name: str) -> None:
    with pytest.raises(Unsupported, match=f"{name} takes block redistributions only"):
        scheduler(name)(random_volumes(0))


@pytest.mark.parametrize("name", SCHEDULERS)
def test_the_json_has_the_contract_s_layout(name: str) -> None:
    moves = scheduler(name)(Blocks.parse("3x4:5x2"))
    shown = json.loads(json.dumps(moves.to_json()))
    assert set(shown) == {"steps", "report"}
    assert {"makespan", "bound"} <= set(shown["report"])
    for step in shown["steps"]:
        assert set(step) == {"transfers", "cost"}
        assert all(set(t) == {"from", "to", "units"} for t in step["transfers"])
    assert isinstance(shown["steps"][0]["transfers"][0]["from"], int)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_file_says_where_it_comes_from(name: str) -> None:
    module = importlib.import_module(SCHEDULERS[name])
    assert module.__file__ is not None
    text = Path(module.__file__).read_text(encoding="utf-8")
    for word in ("Source", "Maturity", "Guards", "Differs"):
        assert re.search(rf"^{word}\s+\S", text, re.MULTILINE), f"{name} lacks {word}"


def test_impossible_volumes_are_refused() -> None:
    for units, cost, match in (
        ([[0, -1], [0, 0]], [[0, 1], [0, 0]], "volume"),
        ([[0, 1], [0, 0]], [[0, 0], [0, 0]], "cost nothing"),
        ([[0, 1], [0, 0]], [[0, np.nan], [0, 0]], "cost in s"),
    ):
        with pytest.raises(InvalidInput, match=match):
            Volumes(
                ("a", "b"), ("a", "b"), np.array(units, dtype=float), np.array(cost, dtype=float)
            )

"""Moving: transfers, block redistributions, relabelling and safe orders.

Transfers are compared with their bound and redistributions with brute force; the judge replays
every state of a safe order.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from measure import Row, median_seconds, within

from headrace.model.arrays import Floats
from headrace.model.problem import Assignment
from headrace.move.blocks import Blocks, classes, segments
from headrace.move.mod import mod
from headrace.move.optimal import optimal
from headrace.move.relabel import measure_move, relabel
from headrace.move.ro_mod import ro_mod
from headrace.move.safe_order import NoSafeOrder, safe_order
from headrace.move.steps import Moves, Step, Volumes

# The plan pairs are those of the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.move.plan_pairs import broken_rules, random_pair, replayed


def rows(quick: bool) -> Iterator[Row]:
    """Measure."""
    yield from redistributions(6 if quick else 12)
    yield from transfers(100 if quick else 500)
    yield from relabelling(20 if quick else 100)
    yield from orders(40 if quick else 200)


def redistributions(most: int) -> Iterator[Row]:
    """Every (N, t) -> (Q, s) up to a size: each element moves once, steps and costs as known."""
    count = wrong = 0
    for n, t, q, s in product(range(1, most + 1), repeat=4):
        count += 1
        wrong += not redistribution_holds(n, t, q, s)
    yield Row(f"block redistributions up to {most}: checked against brute force", f"{count:,}")
    yield Row("  of them wrong", f"{wrong}", "0", wrong == 0)


def redistribution_holds(n: int, t: int, q: int, s: int) -> bool:
    """Brute force over one period; and what is known about steps and costs."""
    blocks = Blocks(n, t, q, s)
    g, d = math.gcd(n * t, q * s), math.gcd(s, t)
    element = np.arange(math.lcm(n * t, q * s))
    before, after = element // t % n, element // s % q
    volume = np.bincount(before * q + after, minlength=n * q).reshape(n, q)
    parts = segments(blocks)
    exact = bool(
        (np.repeat(parts.source, parts.size) == before).all()
        and (np.repeat(parts.target, parts.size) == after).all()
    )
    by_class, by_superclass = mod(blocks), ro_mod(blocks)
    received = [_received(step, q) for step in by_superclass.steps]
    whole = all(row == [s] * q for row in received) == (g == n * d and math.gcd(q, t // d) == 1)
    costs = [step.cost for step in by_superclass.steps] == [max(row) for row in received]
    table = classes(blocks)
    units = all(volume[pair] == c.units for c in table for pair in c.pairs)
    steps = len(by_superclass.steps) == t // d and sum(bool(c.pairs) for c in table) == g // d
    moves = all((_volume(m, n, q) == volume).all() for m in (by_class, by_superclass))
    return exact and whole and costs and units and steps and moves


def _received(step: Step, targets: int) -> list[float]:
    row = [0.0] * targets
    for transfer in step.transfers:
        row[int(transfer.target)] += transfer.units
    return row


def _volume(moves: Moves, n: int, q: int) -> Floats:
    total = np.zeros((n, q))
    for step in moves.steps:
        for transfer in step.transfers:
            total[int(transfer.source), int(transfer.target)] += transfer.units
    return total


def random_volumes(seed: int) -> Volumes:
    """Sparse, dense, skewed, with unequal bandwidth: up to 48 nodes."""
    rng = np.random.default_rng([seed, 8])
    n, kind = int(rng.integers(2, 49)), seed % 4
    units = rng.random((n, n))
    if kind == 0:
        units *= rng.random((n, n)) < 0.1
    if kind == 2:
        units *= rng.pareto(1.0, n)[:, None] * rng.pareto(1.0, n)[None]
    speed = rng.choice([100.0, 1000.0, 10_000.0], n) if kind == 3 else np.full(n, 1000.0)
    return volumes_of(units, speed)


def volumes_of(units: Floats, speed: Floats) -> Volumes:
    """Volumes between nodes of given bandwidths; nothing stays in place."""
    np.fill_diagonal(units, 0.0)
    names = tuple(f"n{i}" for i in range(len(units)))
    return Volumes(names, names, units, units * 8 / np.minimum.outer(speed, speed))


def transfers(count: int) -> Iterator[Row]:
    """The bound is reached, in few steps and little time."""
    missed = 0
    for seed in range(count):
        work = random_volumes(seed)
        missed += not math.isclose(optimal(work).makespan, work.bound, rel_tol=1e-9)
    yield Row(
        f"optimal on {count} volume matrices: bound not reached", f"{missed}", "0", missed == 0
    )
    for name, n, density, limit_s in (
        ("256 nodes, dense", 256, 1.0, 1.0),
        ("1,000 nodes, 5 % dense", 1000, 0.05, 5.0),
    ):
        rng = np.random.default_rng(1)
        work = volumes_of(rng.random((n, n)) * (rng.random((n, n)) < density), np.full(n, 1000.0))
        seconds = median_seconds(lambda work=work: optimal(work), 3)
        steps = len(optimal(work).steps)
        yield Row(f"optimal: {name}", *within(seconds, limit_s, "s"))
        yield Row("  its steps", f"{steps:,} = {steps / n:.2f} n", "<= 4 n", steps <= 4 * n)


def relabelling(count: int) -> Iterator[Row]:
    """Plans under other node names move nothing, and none moves more than before."""
    more = left = 0
    saved: list[float] = []
    for seed in range(count):
        problem, old, new = random_pair(seed)
        found = relabel(problem, old, new)
        before, after = measure_move(problem, old, new), measure_move(problem, old, found.plan)
        more += after[0] > before[0]
        saved.append(1 - after[0] / before[0])
        renamed = Assignment(
            np.random.default_rng(seed).permutation(len(problem.nodes))[old.node], old.worker
        )
        left += measure_move(problem, old, relabel(problem, old, renamed).plan)[1] > 0
    yield Row(f"relabel on {count} plan pairs: moves more than before", f"{more}", "0", more == 0)
    yield Row("  plans that differ only by node names and still move", f"{left}", "0", left == 0)
    yield Row("  megabytes saved on two random plans, mean", f"{100 * np.mean(saved):.0f} %")


def orders(count: int) -> Iterator[Row]:
    """Random plan pairs at 85 % load, every state replayed by the judge."""
    ordered = overloads = proven = refused = 0
    seconds: list[float] = []
    extra: list[float] = []
    for seed in range(count):
        problem, old, new = random_pair(seed)
        start = time.perf_counter()
        try:
            order = safe_order(problem, old, new)
        except NoSafeOrder as refusal:
            refused += 1
            proven += refusal.proven
            continue
        finally:
            seconds.append(time.perf_counter() - start)
        ordered += order.complete
        overloads += any(
            broken_rules(problem, state) for state in replayed(problem, old, order.moves)
        )
        extra.append(order.mb / measure_move(problem, old, new)[0] - 1)
    least = math.ceil(0.95 * count)
    yield Row(
        f"safe order of {count} plan pairs at 85 % load: ordered",
        f"{ordered}",
        f">= {least}",
        ordered >= least,
    )
    yield Row("  with an overloaded state on the way", f"{overloads}", "0", overloads == 0)
    yield Row("  refused, and of these proven", f"{refused}, {proven}")
    yield Row("  megabytes moved twice for parking, mean", f"{100 * np.mean(extra):.1f} %")
    yield Row("  seconds, median and most", f"{np.median(seconds):.2f}, {max(seconds):.2f}")

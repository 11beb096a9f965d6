"""Task prices near the best there are, from patterns that greed finds.

The master program chooses how many nodes of each class get which pattern, so that every task is
placed and most traffic is kept; `Master` holds the patterns known so far. Its dual prices jump
about while few patterns are known, so the prices that are tried lie between them and the best so
far (Wentges 1997). Greed says what a node could make of the prices tried: often nearly the most,
never more. What it says is a guess at the bound; `certificate` makes it one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve import highs
from headrace.solve.proof.greedy_patterns import grow_patterns
from headrace.solve.proof.knapsack import Knapsack, knapsack_of
from headrace.solve.symmetry import Quotient, traffic_inside

SMOOTHING, LESS_SMOOTHING = 0.5, 0.2  # weight of the best prices known, and by how much it falls
NEW_PATTERNS = (
    8  # of a node class in one round: more make the program slow and its prices no better
)
CONVERGED = 2e-4  # of all traffic: the difference between guess and program that is left alone
COLUMNS_KEPT = 3_000  # in the master program; beyond, the worst leave
MOST_PENALTY = 1e6  # of all traffic, for a task that is left out
PROGRAM_WORK, ENTRY_WORK = 800_000, 250  # of a linear program, and of each of its entries
SMALL_PROGRAM = 20_000  # entries, zeros included, up to which sparse matrices do not pay


@dataclass(slots=True)
class Work:
    """What may be spent, in visits of a class or a neighbour: a second is about 3e8."""

    most: float = np.inf
    deadline: Callable[[], bool] | None = None
    done: float = 0.0

    def spend(self, visits: float) -> None:
        self.done += visits

    def spent(self) -> bool:
        """Whether to stop now."""
        return self.done >= self.most or (self.deadline is not None and self.deadline())


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """Prices of the tasks, and what greed makes of them."""

    task: Floats  # [C]
    node: Floats  # [J]  the most that a pattern of the class is worth as far as greed sees
    guess: float  # of the traffic kept at most
    program: float  # traffic kept by the master program: no bound is less


@dataclass(slots=True, eq=False)
class Master:
    """The patterns known so far, each once; in fractions where `fractional_fills` makes them."""

    q: Quotient
    knapsacks: list[Knapsack]
    total: float  # all traffic
    unit: float  # the most that one task exchanges
    pattern: list[Ints | Floats] = field(default_factory=list[Ints | Floats])
    of_class: list[int] = field(default_factory=list[int])
    kept: list[float] = field(default_factory=list[float])
    known: set[tuple[int, bytes]] = field(default_factory=set[tuple[int, bytes]])

    def add(self, j: int, patterns: Ints | Floats, most: int | None = None) -> int:
        """Take in patterns [P, C] for node class j, the first `most` new ones; how many."""
        new = 0
        for pattern, kept in zip(patterns, traffic_inside(self.q, patterns), strict=True):
            key = (j, pattern.tobytes())
            if new == most:
                break
            if key not in self.known:
                self.known.add(key)
                self.pattern.append(pattern.copy())
                self.of_class.append(j)
                self.kept.append(float(kept))
                new += 1
        return new

    def patterns(self) -> Floats:
        """All of them, [P, C]."""
        return np.array(self.pattern, dtype=np.float64).reshape(-1, len(self.q.count))

    def keep(self, chosen: Ints) -> None:
        """Forget all patterns but the chosen."""
        self.pattern = [self.pattern[p] for p in chosen]
        self.of_class = [self.of_class[p] for p in chosen]
        self.kept = [self.kept[p] for p in chosen]
        self.known = {
            (j, pattern.tobytes()) for j, pattern in zip(self.of_class, self.pattern, strict=True)
        }


# Patterns [P, C] of every node class at some prices, and the most that one is worth [J].
Grow = Callable[[Master, Floats, Work], tuple[Sequence[Ints | Floats], Floats]]


def master_of(q: Quotient) -> Master:
    """A master program that knows every task alone on a node."""
    weight = q.weights()
    knapsacks = [knapsack_of(q, weight, j) for j in range(len(q.nodes))]
    exchanged = float((weight @ q.count).max(initial=0.0))
    master = Master(q, knapsacks, float(traffic_inside(q, q.count[None])[0]), exchanged or 1.0)
    for j in range(len(q.nodes)):
        master.add(j, np.diag(np.minimum(q.most[j], 1))[q.most[j] > 0])
    return master


def converge(
    master: Master, known: Prices | None, work: Work, grow: Grow | None = None
) -> Generator[None, None, Prices | None]:
    """Prices at which greed finds no pattern that pays more than its tasks' prices.

    Starts from prices known; None where the work is spent before there are any. Pauses after every
    round. `grow` may find patterns in another way than greed.
    """
    grow = grow or grow_by_greed
    q, tolerance = master.q, 1e-9 * master.total
    # What they are worth to nodes may have changed: more patterns are known.
    best = None if known is None else replace(known, guess=np.inf)
    penalty = 2.0 * master.unit  # for a task left out
    while not work.spent():
        solution = solve_master(master, penalty)
        if solution is None:
            break
        value, task, node, left_out = solution
        work.spend(PROGRAM_WORK + ENTRY_WORK * len(master.pattern) * (len(task) + len(node)))
        added, smoothing = 0, 0.0 if best is None else SMOOTHING
        while True:
            trial = task if best is None else smoothing * best.task + (1 - smoothing) * task
            found, worth = grow(master, trial, work)
            guess = float(trial @ q.count + worth @ q.nodes)
            if best is None or guess < best.guess - tolerance:
                best = Prices(trial, worth, guess, value)
            for j, patterns in enumerate(found):
                gain = traffic_inside(q, patterns) - patterns @ task - node[j]
                order = np.argsort(-gain, kind="stable")
                pays = order[gain[order] > tolerance]
                added += master.add(j, patterns[pays], NEW_PATTERNS)
            if added or smoothing <= 0.0:
                break
            smoothing = max(0.0, smoothing - LESS_SMOOTHING)
        best = replace(best, program=value)
        if not added or best.guess - value <= CONVERGED * master.total:
            if left_out <= 1e-7 or penalty > MOST_PENALTY * master.total:
                break
            penalty, best = 10.0 * penalty, None
        yield
    return best


def without_pause(prices: Generator[None, None, Prices | None]) -> Prices | None:
    """The same in one go."""
    while True:
        try:
            next(prices)
        except StopIteration as end:
            return end.value


def grow_by_greed(master: Master, price: Floats, work: Work) -> tuple[Sequence[Ints], Floats]:
    """Patterns that greed finds at these prices, by node class.

    And the most that one is worth, those known before included.
    """
    classes = len(price)
    patterns: list[Ints] = []
    most = np.zeros(len(master.knapsacks))
    known = np.array(master.kept) - master.patterns() @ price
    np.maximum.at(most, np.array(master.of_class, dtype=np.int64), known)
    for j, knapsack in enumerate(master.knapsacks):
        found, worth = np.zeros((classes, classes), dtype=np.int64), np.zeros(classes)
        grow_patterns(knapsack, -price, found, worth)
        work.spend(classes * classes * (4 + float(found.sum(axis=1).mean())))
        patterns.append(found[np.isfinite(worth)])
        most[j] = max(float(worth.max(initial=0.0)), most[j])
    return patterns, most


def solve_master(master: Master, penalty: float) -> tuple[float, Floats, Floats, float] | None:
    """Value, task prices, node prices and tasks left out of the relaxed master program.

    None where the solver gives up, which it does on numbers of very different size.
    """
    q = master.q
    patterns = len(master.pattern)
    classes, node_classes = len(q.count), len(q.nodes)
    on_node = np.zeros((node_classes, patterns + classes))
    on_node[master.of_class, np.arange(patterns)] = 1.0
    placed = np.concatenate([master.patterns().T, np.eye(classes)], axis=1)
    small = placed.size <= SMALL_PROGRAM
    result = highs.solve_linear_program(
        np.concatenate([-np.array(master.kept), np.full(classes, penalty)]) / master.unit,
        A_ub=on_node if small else _sparse(on_node),
        b_ub=q.nodes,
        A_eq=placed if small else _sparse(placed),
        b_eq=q.count,
        method="highs-ds",
        options={"presolve": not small},  # takes longer than it saves
    )
    if result.x is None or result.eqlin.marginals is None:
        return None
    task, node = -result.eqlin.marginals * master.unit, -result.ineqlin.marginals * master.unit
    if patterns > COLUMNS_KEPT:
        shortfall = node[master.of_class] + master.patterns() @ task - np.array(master.kept)
        master.keep(np.sort(np.argsort(shortfall, kind="stable")[: COLUMNS_KEPT // 2]))
    return -float(result.fun) * master.unit, task, node, float(result.x[patterns:].sum())


def _sparse(matrix: Floats) -> Any:
    from scipy.sparse import csr_array

    return csr_array(matrix)

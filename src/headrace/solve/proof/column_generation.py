"""Exact for unsymmetric instances: patterns are made where they pay, then all that could matter.

The master program chooses how many nodes of each class get which pattern so that every task is
placed and most traffic is kept. Its linear relaxation is solved by column generation, with prices
smoothed towards the best known (Wentges 1997). At any prices

    prices @ count + sum over node classes of nodes * (most that a pattern is worth at these prices)

is an upper bound on the traffic kept. A plan falls short of it by what its patterns fall short of
the best, so patterns that alone fall short by more than the gap to a known plan need not be looked
at: the others are enumerated, and an integer program over them decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.pattern_rows import pattern_rows
from headrace.solve.proof.greedy_patterns import grow_patterns
from headrace.solve.proof.integer_program import Budget, IntegerProgram, maximise
from headrace.solve.proof.knapsack import Knapsack, KnapsackSearch
from headrace.solve.proof.knapsack_search import advance_search, start_search
from headrace.solve.proof.prices import (
    Master,
    Work,
    converge,
    master_of,
    solve_master,
    without_pause,
)
from headrace.solve.symmetry import Quotient, traffic_inside

NodePatterns = list[tuple[int, Ints]]  # (node class, pattern) of each node that holds something

SMOOTHING = 0.4  # weight of the best prices known against those of the last master program
CONVERGED = 2e-4  # of all traffic: the first slack is far more
STEP_WORK = 150_000_000  # class and neighbour visits of a search per step, about half a second
QUICK_PART = 15  # of a step, for a search that only looks whether some pattern pays
BEST_FOUND = 32  # patterns that a search for the best hands over
FIRST_SLACK = 0.002  # of the traffic kept: how far below the bound to look for the optimum at first
MORE_SLACK = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class KeptTraffic:
    """How much traffic nodes can keep: the best plan found, and what no plan exceeds."""

    placed: NodePatterns | None
    upper: float
    done: bool  # the plan is the best there is, or there is none


@dataclass(frozen=True, slots=True, eq=False)
class _SurePrices:
    """Prices of the tasks, and the bound that they give."""

    task: Floats  # [C]
    node: Floats  # [J]  the most that a pattern of the class is worth at these prices, at least 0
    upper: float


def most_kept(
    q: Quotient, start: NodePatterns | None, budget: Budget, *, unit: float | None
) -> KeptTraffic:
    """The plan that keeps most traffic inside nodes, as far as the budget goes.

    All gains are multiples of `unit`, if given.
    """
    master = master_of(q)
    for j, pattern in start or []:
        master.add(j, pattern[None])
    # Good patterns to start with.
    without_pause(converge(master, None, Work(deadline=budget.deadline)))
    value = _value(q, start)
    prices = _relax(master, value, budget)
    if prices is None:
        return KeptTraffic(start, _everything(q), False)
    if prices.upper < -_tolerance(q):
        return KeptTraffic(None, -np.inf, True)
    return _close(master, start, prices, budget, unit)


def _relax(master: Master, value_known: float, budget: Budget) -> _SurePrices | None:
    """Prices at the optimum of the linear relaxation, or near it if the budget ends.

    None if it ends before there are any.
    """
    q = master.q
    everything, tolerance = master.total, 1e-2 * _tolerance(q)
    # For leaving a task out; what is enough shows when the relaxation leaves none out.
    penalty = 2.0 * everything + 1.0
    best: _SurePrices | None = None
    smoothing = SMOOTHING
    while not budget.spent():
        budget.spend()
        solution = solve_master(master, penalty)
        if solution is None:
            break
        value, task, node, left_out = solution
        if best is not None:
            near = CONVERGED * max(everything, abs(value))
            if np.isfinite(value_known):  # a bound much closer than the known plan is of no use
                near = max(near, 0.05 * (best.upper - value_known))
            if best.upper < -_tolerance(q) or best.upper - value <= near:
                if left_out <= 1e-7 or best.upper < -_tolerance(q) or penalty > 1e12 * everything:
                    break
                penalty *= 10.0
                continue
        trial = task if best is None else smoothing * best.task + (1 - smoothing) * task
        added, floor = _add_greedy(master, trial, task, node, tolerance)
        if added:
            continue
        searches = [
            start_search(knapsack, -trial, float(floor[j]))
            for j, knapsack in enumerate(master.knapsacks)
        ]
        for j, knapsack in enumerate(master.knapsacks):
            found = _look(knapsack, searches[j], _step_nodes(knapsack) // QUICK_PART)
            added += master.add(j, found[_paying(master, j, found, task, node, tolerance)])
        if added:
            continue
        worth = np.zeros(len(q.nodes))
        for j, knapsack in enumerate(master.knapsacks):
            worth[j], found = _best(knapsack, searches[j], budget)
            added += master.add(j, found[_paying(master, j, found, task, node, tolerance)])
        upper = float(trial @ q.count + worth @ q.nodes) + tolerance
        if best is None or upper < best.upper:
            best = _SurePrices(trial, worth, upper)
            smoothing = SMOOTHING
        elif not added:
            if smoothing == 0.0:
                break
            smoothing = max(0.0, smoothing - 0.4)
    return best


def _add_greedy(
    master: Master, trial: Floats, task: Floats, node: Floats, tolerance: float
) -> tuple[int, Floats]:
    """Add patterns found by greed that pay; how many, and the best worth of each node class."""
    classes = len(trial)
    added = 0
    floor = np.zeros(len(master.knapsacks))
    for j, knapsack in enumerate(master.knapsacks):
        found, worth = np.zeros((classes, classes), dtype=np.int64), np.zeros(classes)
        grow_patterns(knapsack, -trial, found, worth)
        floor[j] = max(float(worth.max(initial=0.0)), 0.0)
        found = found[np.isfinite(worth)]
        added += master.add(j, found[_paying(master, j, found, task, node, tolerance)])
    return added, floor


def _paying(
    master: Master, j: int, patterns: Ints, task: Floats, node: Floats, tolerance: float
) -> Ints:
    return np.flatnonzero(
        traffic_inside(master.q, patterns) - patterns @ task - node[j] > tolerance
    )


def _step_nodes(knapsack: Knapsack) -> int:
    """Search nodes in a step."""
    return STEP_WORK // (4 * len(knapsack.most) + int(np.count_nonzero(knapsack.weight)))


def _look(knapsack: Knapsack, search: KnapsackSearch, nodes: int) -> Ints:
    """Ever better patterns that so many more nodes of the search find."""
    found, worth = np.zeros((BEST_FOUND, len(knapsack.most)), dtype=np.int64), np.zeros(BEST_FOUND)
    hits = advance_search(knapsack, search, False, found, worth, nodes)
    return found[: min(hits, BEST_FOUND)]


def _best(knapsack: Knapsack, search: KnapsackSearch, budget: Budget) -> tuple[float, Ints]:
    """The most that a pattern is worth, at least 0, and good patterns on the way.

    If the budget ends, an upper bound on it.
    """
    found = [np.zeros((0, len(knapsack.most)), dtype=np.int64)]
    while search.depth[0] >= 0:
        found.append(_look(knapsack, search, _step_nodes(knapsack)))
        if search.depth[0] >= 0:
            budget.spend()
            if budget.spent():
                return max(float(search.upper[0]), 0.0), np.concatenate(found)
    return max(float(search.floor[0]), 0.0), np.concatenate(found)


def _close(
    master: Master,
    plan: NodePatterns | None,
    prices: _SurePrices,
    budget: Budget,
    unit: float | None,
) -> KeptTraffic:
    """Look ever further below the bound, until a plan is found or nothing is left to look at."""
    q = master.q
    tolerance = _tolerance(q)
    upper = prices.upper
    if not budget.spent():
        known = list(master.patterns().astype(np.int64))
        outcome = maximise(
            _program(q, master.of_class, known), budget.part(1), unit=unit or _scale(q)
        )
        plan = _better(q, plan, _patterns_of(master.of_class, known, outcome.solution))
    slack = FIRST_SLACK * prices.upper
    while True:
        value = _value(q, plan)
        if value >= _rounded(upper, unit, tolerance) - tolerance:
            return KeptTraffic(plan, value, True)
        if budget.spent():
            return KeptTraffic(plan, upper, False)
        all_of_it = prices.upper - max(value, 0.0) + 2 * tolerance
        slack = min(max(slack, tolerance), all_of_it)
        of_class, patterns, complete = _enumerate(master.knapsacks, prices, slack, budget)
        if not complete:
            return KeptTraffic(plan, upper, False)
        outcome = maximise(_program(q, of_class, patterns), budget, unit=unit or _scale(q))
        plan = _better(q, plan, _patterns_of(of_class, patterns, outcome.solution))
        # Whoever keeps more than prices.upper - slack uses enumerated patterns alone.
        upper = min(upper, max(prices.upper - slack, outcome.bound))
        if not outcome.done:
            return KeptTraffic(plan, upper, False)
        if slack == all_of_it or _value(q, plan) >= prices.upper - slack:
            return KeptTraffic(plan, _value(q, plan), True)
        slack *= MORE_SLACK


def _enumerate(
    knapsacks: list[Knapsack], prices: _SurePrices, slack: float, budget: Budget
) -> tuple[list[int], list[Ints], bool]:
    """All patterns within the slack of the best of their node class, and whether these are all."""
    of_class: list[int] = []
    patterns: list[Ints] = []
    for j, knapsack in enumerate(knapsacks):
        found, worth = np.zeros((20_000, len(prices.task)), dtype=np.int64), np.zeros(20_000)
        search = start_search(knapsack, -prices.task, float(prices.node[j]) - slack)
        while search.depth[0] >= 0:
            hits = advance_search(knapsack, search, True, found, worth, _step_nodes(knapsack))
            patterns += list(found[:hits].copy())
            of_class += [j] * hits
            if search.depth[0] >= 0:
                budget.spend()
                if budget.spent():
                    return of_class, patterns, False
            if len(patterns) > budget.most_columns():
                return of_class, patterns, False
    return of_class, patterns, True


def _program(q: Quotient, of_class: list[int], patterns: list[Ints]) -> IntegerProgram:
    counts = np.array(patterns, dtype=np.int64).reshape(len(patterns), len(q.count))
    return IntegerProgram(
        gain=traffic_inside(q, counts),
        matrix=pattern_rows(counts, of_class, len(q.nodes)),
        low=np.concatenate([q.count, np.full(len(q.nodes), -np.inf)]),
        high=np.concatenate([q.count, q.nodes]).astype(np.float64),
    )


def _patterns_of(
    of_class: list[int], patterns: list[Ints], solution: Ints | None
) -> NodePatterns | None:
    if solution is None:
        return None
    return [
        (of_class[p], patterns[p])
        for p in np.flatnonzero(solution)
        for _ in range(int(solution[p]))
    ]


def _better(
    q: Quotient, plan: NodePatterns | None, other: NodePatterns | None
) -> NodePatterns | None:
    return other if other is not None and _value(q, other) > _value(q, plan) else plan


def _value(q: Quotient, plan: NodePatterns | None) -> float:
    if plan is None:
        return -np.inf
    patterns = np.array([pattern for _, pattern in plan], dtype=np.int64)
    return float(traffic_inside(q, patterns.reshape(len(plan), len(q.count))).sum())


def _everything(q: Quotient) -> float:
    """All traffic."""
    return float(traffic_inside(q, q.count[None])[0])


def _tolerance(q: Quotient) -> float:
    """Differences in traffic that HiGHS may overlook."""
    return 1e-7 * max(_everything(q), 1e-30)


def _scale(q: Quotient) -> float:
    return max(float(q.edge_weight.max(initial=0.0)), 1e-30)


def _rounded(upper: float, unit: float | None, tolerance: float) -> float:
    return upper if unit is None else float(np.floor((upper + tolerance) / unit + 1e-6)) * unit

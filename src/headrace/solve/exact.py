"""Least traffic between nodes, proven: which counts of tasks on which nodes no plan can beat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from headrace.solve.column_generation import Kept, Placed, most_kept
from headrace.solve.instance import Instance, Ints
from headrace.solve.integer_program import Budget, common_unit, maximise
from headrace.solve.patterns import node_patterns, piece_model
from headrace.solve.symmetry import Quotient, counts_of, patterns_of, quotient


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """What is known about the least crossing traffic of an instance."""

    x: Ints | None  # [C, N]  best counts found
    bound: float  # no plan has less crossing traffic; inf if there is no plan at all
    proven: bool  # x is optimal
    kind: str  # exact | column-generation | trivial
    stopped: str  # done | steps | seconds
    infeasible: bool  # proven that no x fits


def least_crossing(
    instance: Instance, *, start: Ints | None = None, steps: int | None = None, deadline: Callable[[], bool] | None = None
) -> Proof:
    """The counts x[C, N] with least crossing traffic, or the best that the budget allows with an honest bound.

    `start` is a plan that fits. A step is one round of column generation, half a million nodes of a knapsack search, or one
    attempt at an integer program.
    """
    q = quotient(instance)
    if not q.most.any(axis=0).all():
        return Proof(None, np.inf, False, "exact", "done", True)  # some task fits on no node, not even alone
    if not len(q.count):
        return Proof(np.zeros(instance.allowed.shape, dtype=np.int64), 0.0, True, "exact", "done", False)
    budget = Budget(steps, deadline)
    known = None if start is None else patterns_of(instance, q, start)
    unit = common_unit(q.edge_weight)
    kept = _by_pieces(q, known, budget, unit)
    if kept is None or not kept.done:
        further = most_kept(q, known if kept is None else kept.placed, budget, unit=unit)
        kept = Kept(further.placed, min(further.upper, np.inf if kept is None else kept.upper), further.done)
    total = instance.total_weight
    if kept.done and kept.placed is None:
        return Proof(None, np.inf, False, "exact", "done", True)
    x = None if kept.placed is None else counts_of(instance, q, kept.placed)
    if start is not None and (x is None or instance.crossing(start) <= instance.crossing(x)):
        x = start.copy()
    if kept.done and x is not None:
        return Proof(x, instance.crossing(x), True, "exact", "done", False)
    bound = max(0.0, total - kept.upper)
    return Proof(x, bound, False, "column-generation" if bound > 0.0 else "trivial", budget.stopped, False)


def _by_pieces(q: Quotient, known: Placed | None, budget: Budget, unit: float | None) -> Kept | None:
    """The answer of the program over connected pieces; None where there are too many pieces."""
    model = piece_model(q)
    if model is None:
        return None
    outcome = maximise(model.program, budget, unit=unit or max(float(q.edge_weight.max(initial=0.0)), 1e-30))
    placed = known if outcome.solution is None else node_patterns(model, outcome.solution)
    return Kept(placed, outcome.bound, outcome.done)

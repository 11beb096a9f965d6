"""Least traffic between nodes, proven: which counts of tasks on which nodes no plan can beat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Ints
from headrace.solve.instance import Instance
from headrace.solve.proof.by_topology import crossing_bound_by_topology
from headrace.solve.proof.column_generation import KeptTraffic, NodePatterns, most_kept
from headrace.solve.proof.integer_program import COLUMN_LIMIT, Budget, common_unit, maximise
from headrace.solve.proof.patterns import node_patterns, piece_model
from headrace.solve.symmetry import Quotient, counts_of, patterns_of, quotient

# For the program over pieces, before column generation has its turn: so many at least, or a share.
PIECE_STEPS, PIECE_SHARE = 8, 0.05
MOST_CLASSES = 400  # above, no proof is in reach, and the bound for large instances is all there is


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """What is known about the least crossing traffic of an instance."""

    x: Ints | None  # [C, N]  best counts found
    bound: float  # no plan has less crossing traffic; inf if there is no plan at all
    proven: bool  # x is optimal
    kind: str  # exact | column-generation | pieces | lagrangian | trivial
    stopped: str  # done | steps | seconds
    infeasible: bool  # proven that no x fits


def least_crossing(
    instance: Instance,
    *,
    start: Ints | None = None,
    steps: int | None = None,
    deadline: Callable[[], bool] | None = None,
    columns: int = COLUMN_LIMIT,
    bounded: bool = True,
) -> Proof:
    """The counts x[C, N] with least crossing traffic, or the best found in time, with a bound.

    `start` is a plan that fits. A step is one round of column generation, a stretch of a knapsack
    search as long as such a round, or as much work on an integer program; none of more than
    `columns` is tried. Whoever wants the counts alone saves the quick bound (`bounded`).
    """
    if start is not None and instance.crossing(start) <= 1e-12 * max(instance.total_weight, 1.0):
        # Nothing crosses: nothing to prove.
        return Proof(start.copy(), 0.0, True, "exact", "done", False)
    q = quotient(instance)
    if not q.most.any(axis=0).all():
        # Some task fits on no node, not even alone.
        return Proof(None, np.inf, False, "exact", "done", True)
    if not len(q.count):
        return Proof(
            np.zeros(instance.allowed.shape, dtype=np.int64), 0.0, True, "exact", "done", False
        )
    budget = Budget(steps, deadline, columns)
    known = None if start is None else patterns_of(q, start)
    kept, kind = _most_kept(instance, q, known, budget, bounded)
    if kept.done and kept.placed is None and start is None:
        return Proof(None, np.inf, False, "exact", "done", True)
    x = None if kept.placed is None else counts_of(instance, q, kept.placed)
    if start is not None and (x is None or instance.crossing(start) <= instance.crossing(x)):
        x = start.copy()
    if kept.done and x is not None:
        return Proof(x, instance.crossing(x), True, "exact", "done", False)
    bound = instance.total_weight - kept.upper
    stopped = "steps" if budget.stopped == "done" else budget.stopped
    return Proof(x, max(bound, 0.0), False, kind if bound > 0.0 else "trivial", stopped, False)


def _most_kept(
    instance: Instance, q: Quotient, known: NodePatterns | None, budget: Budget, bounded: bool
) -> tuple[KeptTraffic, str]:
    """The most traffic that can be kept, and the kind of the bound on it.

    Pieces decide where they are few; column generation where they are many or cannot decide.
    """
    unit = common_unit(q.edge_weight)
    small = len(q.count) <= MOST_CLASSES
    by_pieces = _by_pieces(q, known, budget, unit) if small else None
    if by_pieces is not None:
        if by_pieces.done:
            return by_pieces, "exact"
        known = by_pieces.placed
    upper, kind = instance.total_weight, "trivial"
    if bounded:  # cheap, and better than what the exact way has when it is stopped early
        least, kind = crossing_bound_by_topology(instance, deadline=budget.deadline)
        upper -= least
    if by_pieces is not None and by_pieces.upper < upper:
        upper, kind = by_pieces.upper, "pieces"
    further = most_kept(q, known, budget, unit=unit) if small else KeptTraffic(known, np.inf, False)
    if further.done:
        return further, "exact"
    if further.upper < upper:
        upper, kind = further.upper, "column-generation"
    return KeptTraffic(further.placed, upper, False), kind


def _by_pieces(
    q: Quotient, known: NodePatterns | None, budget: Budget, unit: float | None
) -> KeptTraffic | None:
    """The answer of the program over connected pieces; None where there are too many pieces."""
    model = piece_model(q)
    if model is None:
        return None
    part = budget.part(max(PIECE_STEPS, int(PIECE_SHARE * (budget.steps or 0))))
    outcome = maximise(
        model.program, part, unit=unit or max(float(q.edge_weight.max(initial=0.0)), 1e-30)
    )
    budget.spend(-(part.steps or 0))  # what is left of it
    placed = known if outcome.solution is None else node_patterns(model, outcome.solution)
    return KeptTraffic(placed, outcome.bound, outcome.done)

"""Integer programs, solved within a budget and with a bound that holds whenever it stops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.request import seconds_left
from headrace.solve import highs

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# An attempt that cannot end by itself starts again with more. Only one that is done counts, so
# answers do not vary with the clock.
FIRST_NODES, MORE_NODES = 100, 8  # of branch and bound, where steps are limited
FIRST_SECONDS, MORE_SECONDS = 4.0, 3.0  # where there is a deadline
# HiGHS looks at no clock before its first node, and gets there in a time that grows with the square
# of the columns: about a step, half a second, for so many.
COLUMNS_PER_STEP, STEP_S = 4_000, 0.5
COLUMN_LIMIT = 200_000  # a program over more is hopeless


@dataclass(slots=True)
class Budget:
    """What a search may still spend.

    A step is a round of column generation, or half a second's work on an integer program.
    """

    steps: int | None = None
    deadline: Callable[[], bool] | None = None
    columns: int = COLUMN_LIMIT  # of an integer program that is worth a try
    stopped: str = "done"

    def spent(self) -> bool:
        """Whether to stop now; remembers why."""
        if self.stopped == "done":
            if self.steps is not None and self.steps <= 0:
                self.stopped = "steps"
            elif self.deadline is not None and self.deadline():
                self.stopped = "seconds"
        return self.stopped != "done"

    def spend(self, steps: int = 1) -> None:
        if self.steps is not None:
            self.steps -= steps

    def most_columns(self) -> int:
        """Columns of an integer program that there is still time for."""
        left = seconds_left(self.deadline)
        steps = inf if left is None else left / STEP_S
        steps = steps if self.steps is None else min(steps, self.steps)
        return int(min(self.columns, COLUMNS_PER_STEP * sqrt(max(steps, 0.0))))

    def affords(self, columns: int, steps: int) -> bool:
        """Whether a program of so many columns and steps may be tried; remembers why not."""
        if columns > self.most_columns() or (self.steps is not None and steps > self.steps):
            self.stopped = "seconds" if self.steps is None else "steps"
        return self.stopped == "done"

    def part(self, steps: int) -> Budget:
        """A budget of at most so many steps, taken from this one."""
        if self.steps is not None:
            steps = min(steps, self.steps)
            self.steps -= steps
        return Budget(steps, self.deadline, self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class IntegerProgram:
    """Maximise gain @ z over whole z >= 0 with low <= matrix @ z <= high."""

    gain: Floats  # [V]
    matrix: csr_array  # [R, V]
    low: Floats  # [R]
    high: Floats  # [R]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    solution: Ints | None  # [V] the best found
    bound: float  # no solution gains more; -inf if there is none at all
    done: bool  # the solution is optimal, or it is proven that none exists


def maximise(program: IntegerProgram, budget: Budget, *, unit: float) -> Outcome:
    """The best solution that the budget allows.

    `unit` divides every gain where there is such a number, else gives their scale.
    """
    nodes, seconds = FIRST_NODES, FIRST_SECONDS
    outcome = Outcome(None, float(np.inf), False)
    while not outcome.done and not budget.spent():
        cost = steps_of(program, nodes)
        if not budget.affords(len(program.gain), cost):
            break
        budget.spend(cost)
        left = seconds_left(budget.deadline)
        outcome = attempt(
            program,
            None if budget.steps is None else nodes,
            None if budget.deadline is None else seconds if left is None else min(seconds, left),
            unit,
        )
        nodes, seconds = nodes * MORE_NODES, seconds * MORE_SECONDS
    return outcome


def steps_of(program: IntegerProgram, nodes: int) -> int:
    """What an attempt with so many nodes of branch and bound costs."""
    share = len(program.gain) / COLUMNS_PER_STEP
    return max(1, ceil(share * share), ceil(share * nodes / FIRST_NODES))


def attempt(
    program: IntegerProgram, nodes: int | None, seconds: float | None, unit: float
) -> Outcome:
    """What the solver finds within so many nodes and seconds."""
    options: dict[str, Any] = {"mip_rel_gap": 0.0}
    if nodes is not None:
        options["node_limit"] = nodes
    if seconds is not None:
        options["time_limit"] = seconds
    arguments = {
        "integrality": np.ones(len(program.gain)),
        "bounds": highs.bounds(0, np.inf),
        "constraints": highs.rows(program.matrix, program.low, program.high),
        "options": options,
    }
    cost = -program.gain / unit
    result = highs.solve_integer_program(cost, **arguments)
    if result.status == 4:  # presolve may be unable to tell infeasible from unbounded
        options["presolve"] = False
        result = highs.solve_integer_program(cost, **arguments)
    if result.status == 2:
        return Outcome(None, -np.inf, True)
    solution = None if result.x is None else np.rint(result.x).astype(np.int64)
    bound = np.inf if result.mip_dual_bound is None else -float(result.mip_dual_bound) * unit
    return Outcome(solution, bound, result.status == 0)


def common_unit(weights: Floats) -> float | None:
    """A number of which all weights, and so their sums, are whole multiples; None if it is tiny."""
    positive = weights[weights > 0]
    if not len(positive):
        return None
    for parts in (1, 2, 3, 4, 5, 6, 8, 10, 12):
        unit = float(positive.min()) / parts
        multiples = positive / unit
        if multiples.max() > 1e6:
            return None
        if np.allclose(multiples, np.rint(multiples), rtol=1e-12, atol=1e-9):
            return unit
    return None

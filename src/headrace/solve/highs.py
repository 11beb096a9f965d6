"""Linear and integer programs through scipy's HiGHS, with nothing on standard output.

Every program of the package is solved here. scipy is imported by the first one: it takes longer
than most commands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from headrace.solve.silence import silent_stdout

if TYPE_CHECKING:
    from scipy.optimize import Bounds, LinearConstraint

# The stubs of scipy are too narrow: no arrays of limits, no sparse matrices, no options that are
# built step by step.


def solve_integer_program(cost: Any, **arguments: Any) -> Any:
    """The variables of least cost, some of them whole: what scipy's `milp` gives."""
    from scipy.optimize import milp

    with silent_stdout():
        return cast("Callable[..., Any]", milp)(cost, **arguments)


def solve_linear_program(cost: Any, *, method: str = "highs", **arguments: Any) -> Any:
    """The variables of least cost: what scipy's `linprog` gives."""
    from scipy.optimize import linprog

    with silent_stdout():
        return cast("Callable[..., Any]", linprog)(cost, method=method, **arguments)


def bounds(low: Any, high: Any) -> Bounds:
    """Limits of the variables of an integer program."""
    from scipy.optimize import Bounds

    return cast("Callable[..., Any]", Bounds)(low, high)


def rows(matrix: Any, low: Any, high: Any) -> LinearConstraint:
    """Rows of an integer program: low <= matrix @ variables <= high."""
    from scipy.optimize import LinearConstraint

    return cast("Callable[..., Any]", LinearConstraint)(matrix, low, high)

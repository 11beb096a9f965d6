"""Linear and integer programs through scipy's HiGHS, with nothing on standard output.

Every program of the package is solved here. scipy is imported by the first one: it takes longer
than most commands.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from headrace.model.progress import stop_wished
from headrace.solve.silence import silent_stdout

if TYPE_CHECKING:
    from scipy.optimize import Bounds, LinearConstraint

LOOK_EVERY_S = 0.1  # for a wish to stop

# The stubs of scipy are too narrow: no arrays of limits, no sparse matrices, no options that are
# built step by step.


def solve_integer_program(cost: Any, **arguments: Any) -> Any:
    """The variables of least cost, some of them whole: what scipy's `milp` gives.

    On a wish to stop there are none, as where its time is over.
    """
    from scipy.optimize import milp

    solve = partial(cast("Callable[..., Any]", milp), cost, **arguments)
    with silent_stdout():
        if threading.current_thread() is not threading.main_thread():
            return solve()
        return _wait_for(solve)


def _wait_for(solve: Callable[[], Any]) -> Any:
    """What a solver gives, in a thread of its own: this one sees Ctrl-C, which the solver does not.

    It cannot be stopped either: on a wish it is left behind, and ends with the process.
    """
    from scipy.optimize import OptimizeResult

    solved: Future[Any] = Future()

    def work() -> None:
        try:
            solved.set_result(solve())
        except Exception as error:  # noqa: BLE001 - whoever waits raises it
            solved.set_exception(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK_EVERY_S)
        if stop_wished() and not solved.done():
            return OptimizeResult(x=None, fun=None, status=1, success=False, mip_dual_bound=None)
    return solved.result()


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

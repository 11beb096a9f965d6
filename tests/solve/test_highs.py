"""Programs end on a wish to stop, and say what went wrong."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from headrace.model.progress import NOW
from headrace.solve import highs


def solve_hard_program(seconds: float) -> object:
    """Forty knapsacks at once, which nobody solves in a minute."""
    rng = np.random.default_rng(0)
    weight, gain = rng.integers(1, 100, (40, 120)), rng.integers(1, 100, 120)
    return highs.solve_integer_program(
        -gain.astype(float),
        constraints=[highs.rows(weight, -np.inf, weight.sum(axis=1) / 3)],
        integrality=np.ones(120),
        bounds=highs.bounds(0, 1),
        options={"time_limit": seconds},
    )


def test_a_wish_to_stop_ends_a_program_long_before_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(NOW, "stop", False)
    wish = threading.Timer(0.5, lambda: setattr(NOW, "stop", True))
    start = time.monotonic()
    wish.start()
    solved = solve_hard_program(60.0)
    assert time.monotonic() - start < 30
    assert solved.x is None  # pyright: ignore[reportAttributeAccessIssue]
    assert solved.status == 1  # pyright: ignore[reportAttributeAccessIssue]


def test_without_a_wish_a_program_has_its_answer() -> None:
    solved = highs.solve_integer_program(
        np.array([-1.0, -2.0]),
        constraints=[highs.rows(np.array([[1.0, 1.0]]), -np.inf, 1.5)],
        integrality=np.ones(2),
        bounds=highs.bounds(0, 1),
    )
    assert solved.fun == pytest.approx(-2.0)


def test_what_the_solver_refuses_is_raised_where_it_was_asked_for() -> None:
    with pytest.raises(ValueError, match="one-dimensional"):
        highs.solve_integer_program(np.zeros((2, 2)))

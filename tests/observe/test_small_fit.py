"""Fits over few points, where a line may leave all of them."""

from __future__ import annotations

import numpy as np

from headrace.observe.small_fit import final_sums


def test_a_line_that_leaves_its_points_is_not_followed() -> None:
    # The line through both points starts at a negative cost; without that it passes neither.
    found = final_sums(np.array([280.0, 297.0]), np.array([38.2, 46.8]))
    assert found["windows"] == 2
    assert found["y"] == 85.0

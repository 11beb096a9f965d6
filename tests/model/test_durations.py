"""Lengths of time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.errors import InvalidInput
from headrace.model.durations import Duration, seconds_of


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("10 minutes", 600), ("1.5 h", 5400), ("500 ms", 0.5), ("7", 7), ("2 weeks", 1_209_600),
        ("3 min", 180), (0, 0), (2.5, 2.5), (timedelta(hours=1), 3600),
    ],
)  # fmt: skip
def test_lengths_of_time_are_read(given: Duration, seconds: float) -> None:
    assert seconds_of(given, "late") == seconds


@pytest.mark.parametrize("given", ["ten", "5 years", "-3 s", "", -1, float("inf"), float("nan")])
def test_what_is_no_length_of_time_is_refused(given: Duration) -> None:
    with pytest.raises(InvalidInput, match=r"late: .* is no length of time"):
        seconds_of(given, "late")

"""Times as people and Spark write them."""

from __future__ import annotations

import pytest

from headrace.model.spans import in_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), ("500ms", 0.5), ("2 minutes", 120)],
)
def test_times_are_read(text: str, seconds: float) -> None:
    assert in_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1x", "m"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert in_seconds(text) is None

"""Times as people and Spark write them: 500ms, 90s, 10m, 1.5h."""

from __future__ import annotations

import re

SPAN = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([a-z]*)\s*")
UNITS = {
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    "us": 1e-6,
    "ms": 1e-3,
    "h": 3600.0,
    "hours": 3600.0,
    "d": 86400.0,
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
}


def in_seconds(text: str) -> float | None:
    """Seconds; None if it is no time."""
    match = SPAN.fullmatch(text.lower())
    if match is None or match[2] not in UNITS:
        return None
    return float(match[1]) * UNITS[match[2]]

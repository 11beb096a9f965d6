"""Lengths of time as people write them: `10 minutes`, `1.5 h`, `500 ms`, or seconds."""

from __future__ import annotations

import re
from datetime import timedelta

from headrace.errors import InvalidInput

Duration = str | float | timedelta
SECONDS = {"ms": 0.001, "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60}
UNITS = {**SECONDS, "h": 3600, "hour": 3600, "d": 86_400, "day": 86_400, "week": 604_800}


def seconds_of(duration: Duration, what: str) -> float:
    """A length of time in seconds; `what` names it in a refusal."""
    if isinstance(duration, timedelta):
        found = duration.total_seconds()
    elif isinstance(duration, str):
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", duration)
        named = "s" if match is None else match[2] or "s"
        unit = UNITS.get(named, UNITS.get(named.removesuffix("s")))
        if match is None or unit is None:
            raise InvalidInput(
                f"{what}: `{duration}` is no length of time; one is `10 minutes` or `500 ms`"
            )
        found = float(match[1]) * unit
    else:
        found = float(duration)
    if not 0 <= found < float("inf"):
        raise InvalidInput(f"{what}: {duration} is no length of time; it must be 0 or more")
    return found

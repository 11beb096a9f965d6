"""Figures as people read them."""

from __future__ import annotations

import math
from itertools import accumulate
from unicodedata import east_asian_width

NONE = "–"

FIGURE_NAMES = {
    "inter_node_traffic": "traffic between nodes",
    "max_rate": "sustained rate",
    "batch_seconds": "batch time",
    "nodes_used": "nodes used",
    "balance": "CPU balance",
    "cost": "cost",
}  # figure of a report -> what it is called in a sentence


def number(value: float | None) -> str:
    """Whole numbers in full, others to four digits."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def short(value: float) -> str:
    """A rate where room is scarce: 950, 14 k, 1.2 M."""
    for limit, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= limit:
            return f"{value / (limit if limit > 1e4 else 1e3):.3g} {sign}"
    return number(float(f"{value:.3g}")) if value < 100 else f"{value:,.0f}"


def percent(part: float) -> str:
    """A share; 0 % and 100 % only where it is nothing or all."""
    text = f"{100 * part:.0f}"
    if text in ("0", "100") and part not in (0.0, 1.0):
        text = (
            "under 0.1"
            if part < 0.001
            else "over 99.9"
            if 0.999 < part < 1
            else f"{100 * part:.1f}"
        )
    return f"{text} %"


def duration(seconds: float) -> str:
    """A time with a fitting unit."""
    if seconds >= 1:
        return f"{seconds:,.1f} s" if seconds < 100 else f"{seconds:,.0f} s"
    return f"{1000 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.0f} µs"


def factor(value: float | None) -> str:
    """A multiple of the given rates."""
    return NONE if value is None else f"{value:.3g}×" if value < 1000 else f"{value:,.0f}×"


def sustained(value: float | None, absolute: bool) -> str:
    """A rate: tuples/s where counts were chosen, else a multiple of the given rates."""
    return NONE if value is None else f"{number(value)} tuples/s" if absolute else factor(value)


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def truncated(text: str, most: int) -> str:
    """At most so many columns, the last an ellipsis if something is cut off; wide characters take two."""
    ends = list(accumulate(2 if east_asian_width(character) in "WF" else 1 for character in text))
    return text if not ends or ends[-1] <= most else text[: sum(end < most for end in ends)] + "…"

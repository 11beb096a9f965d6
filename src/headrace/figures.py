"""Numbers as people read them: one format each, for terminal, pages and sentences in JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate
from unicodedata import east_asian_width

NONE = "–"
DUST = 1e-9  # differences of equal sums leave so much; it counts as nothing
# What a terminal obeys instead of showing it: control characters, but for the end of a line and the
# tabulator, and those that turn the direction of writing.
CONTROL = (*range(9), *range(11, 32), *range(127, 160))
DIRECTION = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
AS_SHOWN = dict.fromkeys((*CONTROL, *DIRECTION), "�")


def number(value: float | None) -> str:
    """Whole numbers in full, others to four digits; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return NONE
    if abs(value) < DUST:
        return "0"
    if value == int(value) or abs(value) >= 999.95:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def figure(value: object) -> str:
    """What a report says of a plan: yes or no, a number, or a word as it is."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if value is None or isinstance(value, int | float) else str(value)


def short(value: float) -> str:
    """A rate where room is scarce: 950, 14 k, 1.2 M."""
    for limit, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= limit:
            return f"{value / (limit if limit > 1e4 else 1e3):.3g} {sign}"
    return number(float(f"{value:.3g}")) if value < 100 else f"{value:,.0f}"


def percent(share: float) -> str:
    """A share; 0 % and 100 % only where it is nothing or all, a decimal below 10 %."""
    if DUST < share < 0.001:
        return "under 0.1 %"
    if 0.999 < share < 1 - DUST:
        return "over 99.9 %"
    whole = f"{100 * share:.0f}"
    precise = share > DUST and abs(share - 1) > DUST and (share < 0.1 or whole == "100")
    return f"{100 * share:.1f}".removesuffix(".0") + " %" if precise else f"{whole} %"


def signed(value: float) -> str:
    """A number that is added or taken away: +3, -0.5."""
    return f"{'-' if value < 0 else '+'}{number(abs(value))}"


def change(before: object, after: object) -> str:
    """What a figure gains or loses, and how much of itself; `other` where it is no number."""
    if isinstance(before, bool) or not (
        isinstance(before, int | float) and isinstance(after, int | float)
    ):
        return "" if before == after else "other"
    if math.isclose(before, after, rel_tol=DUST):
        return "same"
    share = f" ({100 * (after - before) / abs(before):+.1f} %)" if before else ""
    return signed(after - before) + share


def duration(seconds: float) -> str:
    """A time with a fitting unit, to three digits."""
    if seconds >= 100:
        return f"{seconds:,.0f} s"
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{1000 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.0f} µs"


def factor(value: float | None) -> str:
    """A multiple of the given rates."""
    return NONE if value is None else f"{value:.3g}×" if value < 1000 else f"{value:,.0f}×"


def sustained_rate(value: float | None, absolute: bool) -> str:
    """A rate: tuples/s where counts were chosen, else a multiple of the given rates."""
    return NONE if value is None else f"{number(value)} tuples/s" if absolute else factor(value)


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def amounts(counts: Mapping[str, int]) -> str:
    """`3 small, 1 large`."""
    return ", ".join(f"{number(n)} {name}" for name, n in counts.items())


def shorten(text: str, most: int) -> str:
    """At most so many columns, the last an ellipsis if text is cut; wide characters take two."""
    ends = list(accumulate(2 if east_asian_width(character) in "WF" else 1 for character in text))
    return text if not ends or ends[-1] <= most else text[: sum(end < most for end in ends)] + "…"


def shorten_middle(text: str, most: int) -> str:
    """At most so many columns, with an ellipsis in the middle: names often differ at the end."""
    if shorten(text, most) == text:
        return text
    end = shorten(text[::-1], max(most // 2, 1))[::-1].removeprefix("…")
    return shorten(text, max(most - width(end), 1)) + end


def width(text: str) -> int:
    """How many columns a text takes; wide characters take two."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def printable(text: str) -> str:
    """The text with nothing in it that a terminal obeys: names come from files of others."""
    return text.translate(AS_SHOWN)

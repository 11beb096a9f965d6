"""Rates over three days, as factors of a mean, on which the loop's hysteresis is tried.

Chosen before any of them was run. `TUNED_ON` may be looked at while settings are chosen; the others
are for the end. All go up to about three times their least, as the issue of the loop asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from random import Random

HOUR_S, DAY_S = 3600.0, 86400.0
Curve = Callable[[float], float]  # second -> factor


def daily(at_s: float) -> float:
    """As the sun: 0.5 at midnight, 1.5 at noon."""
    return 1 + 0.5 * math.cos(2 * math.pi * (at_s - DAY_S / 2) / DAY_S)


def office(at_s: float) -> float:
    """Low at night, an hour's rise at eight, a dip at noon, an hour's fall at six."""
    hour = at_s % DAY_S / HOUR_S
    day = min(1.0, max(0.0, hour - 8)) * min(1.0, max(0.0, 19 - hour))
    dip = 0.3 * math.exp(-(((hour - 12.5) / 0.7) ** 2))
    return 0.5 + day * (1.0 - dip)


def two_peaks(at_s: float) -> float:
    """On the way to work and back: peaks at eight and at eighteen."""
    hour = at_s % DAY_S / HOUR_S
    return 0.5 + sum(math.exp(-(((hour - peak) / 2.0) ** 2)) for peak in (8.0, 18.0))


def noisy(at_s: float) -> float:
    """The daily curve, and 8 % of chance that stays for some ten minutes."""
    return daily(at_s) * (1 + 0.08 * _chance(int(at_s // 300)))


def crowds(at_s: float) -> float:
    """The daily curve, with a crowd of 40 minutes twice a day, half as many again."""
    starts = (3.3, 15.7, 27.2, 44.9, 50.1, 69.4)
    hour = at_s / HOUR_S
    return daily(at_s) * (1.5 if any(s <= hour < s + 2 / 3 for s in starts) else 1.0)


def growing(at_s: float) -> float:
    """The daily curve, a tenth higher every day."""
    return daily(at_s) * 0.85 * 1.1 ** (at_s / DAY_S)


def sawtooth(at_s: float) -> float:
    """Twenty hours of even rise, four of fall."""
    share = at_s % DAY_S / DAY_S
    rise = 20 / 24
    return 0.5 + (share / rise if share < rise else (1 - share) / (1 - rise))


def wandering(at_s: float) -> float:
    """A sum of slow waves with lengths that have nothing in common; no day looks like another."""
    hours = at_s / HOUR_S
    waves = sum(
        size * math.sin(2 * math.pi * hours / length + phase)
        for size, length, phase in ((0.3, 31.0, 0.4), (0.15, 13.0, 1.9), (0.1, 5.3, 4.0))
    )
    return 1 + waves


def web(at_s: float) -> float:
    """As sites are read: waves of a day and of half a day, least at five, most in the evening."""
    day = 2 * math.pi * at_s / DAY_S
    waves = 0.42 * math.cos(day - 2 * math.pi * 18 / 24) + 0.14 * math.cos(2 * day - math.pi * 1.8)
    return 1 + waves


def evening(at_s: float) -> float:
    """As films are watched: even for most of the day, a peak around half past eight."""
    hour = at_s % DAY_S / HOUR_S
    return 0.5 + sum(math.exp(-(((hour - peak) / 2.5) ** 2)) for peak in (-3.5, 20.5))


TUNED_ON: Mapping[str, Curve] = {
    "office": office,
    "two peaks": two_peaks,
    "noisy": noisy,
    "crowds": crowds,
}
HELD_BACK: Mapping[str, Curve] = {
    "daily": daily,  # of the issue; it was tuned on before
    "growing": growing,
    "sawtooth": sawtooth,
    "wandering": wandering,
    "web": web,  # this and the next came later, and nothing was tuned after
    "evening": evening,
}
CURVES = {**HELD_BACK, **TUNED_ON}


@cache
def _chance(step: int) -> float:
    """A random number of each five minutes that keeps 0.7 of the one before."""
    value = 0.0
    for i in range(max(0, step - 20), step + 1):
        value = 0.7 * value + math.sqrt(1 - 0.49) * Random(i).gauss(0, 1)
    return value

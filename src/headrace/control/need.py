"""How much a resized plan has to carry: what comes in now, what is about to, and what waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.control.history import Entry

CALM = 3  # intervals that the input must have been low before plans shrink
TREND = 7  # rates through which a line is drawn: single ones are too noisy to be followed
AHEAD = 3  # intervals that the line is followed: until then a plan must carry what comes
LASTS = 6  # intervals that a new plan should last, so that the next move is not soon
LASTS_KNOWN = 9  # the same where a forecast knows the day: it can be followed further
MOST_GROWTH = 0.25  # of the rate, that is expected in all
MOST_CATCH_UP = 0.5  # of the rate, to work off what waits

Rates = Sequence[tuple[float, float]]  # (second, tuples/s), oldest first


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a forecast says of the time ahead."""

    most_per_s: float  # the highest rate
    knows_the_day: bool = False  # by days before, and today is no busier than they were


Forecast = Callable[[Rates, float], Outlook | None]  # rates, seconds ahead


def needed_factor(
    history: Sequence[Entry],
    now_s: float,
    rate_per_s: float,
    lag: float,
    interval_s: float,
    forecast: Forecast | None = None,
    *,
    ahead: int = AHEAD,
    ahead_known: int | None = None,
) -> float:
    """What a plan should carry for the next intervals, as a factor of the measured rate.

    A rate that rose goes on rising for `ahead` intervals; one that fell counts as low after `CALM`;
    what waits is worked off within one. A forecast that knows the day is followed instead, for
    `ahead_known` intervals (absent: as many), up and down.
    """
    if not rate_per_s > 0:
        return 1.0
    rates = known_rates(history, now_s, rate_per_s)
    catch_up = min(lag / (rate_per_s * interval_s), MOST_CATCH_UP) if interval_s > 0 else 0.0
    expected = 0.0
    if forecast is not None:
        outlook = forecast(rates, ((ahead_known or ahead) - 1) * interval_s)
        if outlook is not None and outlook.knows_the_day:
            return max(1.0, outlook.most_per_s / rate_per_s) + catch_up
        outlook = forecast(rates, (ahead - 1) * interval_s)
        expected = 0.0 if outlook is None else outlook.most_per_s / rate_per_s
    recent = max(rate for _, rate in rates[-CALM:]) / rate_per_s
    rise_per_s = slope(rates[-TREND:])
    growth = min(max(0.0, rise_per_s * ahead * interval_s / rate_per_s), MOST_GROWTH)
    return max(recent, 1 + growth, expected) + catch_up


def known_rates(history: Sequence[Entry], now_s: float, rate_per_s: float) -> Rates:
    """What came in at each decision so far, and now."""
    past = [(entry.at_s, entry.rate_per_s) for entry in history if entry.rate_per_s > 0]
    return [*past, (now_s, rate_per_s)]


def slope(rates: Rates) -> float:
    """The rise of a line through rates, in tuples/s per second."""
    at = np.array([second for second, _ in rates])
    rate = np.array([value for _, value in rates])
    spread = float(((at - at.mean()) ** 2).sum())
    return float(((at - at.mean()) * (rate - rate.mean())).sum()) / spread if spread > 0 else 0.0

"""How much a resized plan has to carry: what comes in now, what is about to, and what waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from headrace.control.history import Entry

CALM = 3  # intervals that the input must have been low before plans shrink
TREND = 7  # rates through which a line is drawn: single ones are too noisy to be followed
AHEAD = 3  # intervals that the line is followed: until then a plan must carry what comes
LASTS = 6  # intervals that a new plan should last, so that the next move is not soon
MOST_GROWTH = 0.25  # of the rate, that is expected in all
MOST_CATCH_UP = 0.5  # of the rate, to work off what waits

Rates = Sequence[tuple[float, float]]  # (second, tuples/s), oldest first
Forecast = Callable[[Rates, float], float | None]  # rates, seconds ahead -> most that will come


def needed_factor(
    history: Sequence[Entry],
    now_s: float,
    rate_per_s: float,
    lag: float,
    interval_s: float,
    forecast: Forecast | None = None,
    *,
    ahead: int = AHEAD,
) -> float:
    """What a plan should carry for the next intervals, as a factor of the measured rate.

    A rate that rose goes on rising; one that fell counts as low after `CALM` intervals; what waits
    is worked off within one.
    """
    if not rate_per_s > 0:
        return 1.0
    rates = known_rates(history, now_s, rate_per_s)
    recent = [rate for _, rate in rates[-CALM:]]
    rise_per_s = slope(rates[-TREND:])
    growth = min(max(0.0, rise_per_s * ahead * interval_s / rate_per_s), MOST_GROWTH)
    catch_up = min(lag / (rate_per_s * interval_s), MOST_CATCH_UP) if interval_s > 0 else 0.0
    expected = forecast(rates, (ahead - 1) * interval_s) if forecast is not None else None
    need = max(max(recent) / rate_per_s, 1 + growth, (expected or 0.0) / rate_per_s)
    return need + catch_up


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

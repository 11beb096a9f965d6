"""What rate to expect, by the method that would have been right most often so far.

The methods are statsmodels' (an extra): a damped trend, and a daily season with a trend. Each is
tried on the end of the history; the last rate, held, competes too and wins where nothing is to be
seen.
"""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Callable, Mapping

import numpy as np

from headrace.control.need import Rates
from headrace.errors import Unsupported
from headrace.model.arrays import Floats

DAY_S = 86400.0
LEAST = 8  # rates, to look for a trend
MOST_DAYS = 7  # of history that count
MOST_STEPS = 400  # into which the history is divided
TRIALS = 5  # ends of the history on which methods are tried

Method = Callable[[Floats, int], Floats]  # rates at even steps, steps ahead -> rates


def require_forecast() -> None:
    """Refuse where the library is not installed."""
    if importlib.util.find_spec("statsmodels") is None:
        raise Unsupported(
            "--forecast needs statsmodels, which is not installed",
            fix="pip install 'headrace[forecast]'",
        )


def most_expected(rates: Rates, ahead_s: float) -> float | None:
    """The highest rate to expect within so many seconds; None while too little is known."""
    values, step_s = even_steps(rates)
    if len(values) < LEAST:
        return None
    steps = max(1, math.ceil(ahead_s / step_s))
    known = methods(len(values), step_s)
    best = min(known, key=lambda name: backtest(known[name], values, steps))
    return float(np.clip(known[best](values, steps), 0.0, None).max())


def even_steps(rates: Rates) -> tuple[Floats, float]:
    """Rates at even steps, of the newest days, and the seconds of a step."""
    at = np.array([second for second, _ in rates])
    rate = np.array([value for _, value in rates])
    if len(at) < 2 or at[-1] <= at[0]:
        return rate, 1.0
    step_s = float(np.median(np.diff(at)))
    if step_s <= 0:
        return rate[-1:], 1.0
    begin = max(at[0], at[-1] - MOST_DAYS * DAY_S)
    step_s = max(step_s, (at[-1] - begin) / MOST_STEPS)
    grid = np.arange(at[-1], begin - step_s / 2, -step_s)[::-1]
    return np.interp(grid, at, rate), step_s


def methods(count: int, step_s: float) -> Mapping[str, Method]:
    """The methods that so many rates are enough for."""
    found: dict[str, Method] = {"last": hold_last, "trend": follow_trend}
    period = round(DAY_S / step_s)
    if 2 <= period <= count // 2:
        found["day"] = lambda values, steps: follow_days(values, steps, period)
    return found


def backtest(method: Method, values: Floats, steps: int) -> float:
    """The mean error of a method on the newest ends of the history, as a share of the rates."""
    errors: list[float] = []
    for trial in range(TRIALS, 0, -1):
        end = len(values) - trial * steps
        if end < LEAST // 2:
            continue
        truth = values[end : end + steps]
        try:
            errors.append(float(np.abs(method(values[:end], steps) - truth).mean()))
        except (ValueError, np.linalg.LinAlgError):
            return math.inf  # too little before this end
    return float(np.mean(errors)) if errors else math.inf


def hold_last(values: Floats, steps: int) -> Floats:
    """The last rate goes on."""
    return np.full(steps, values[-1])


def follow_trend(values: Floats, steps: int) -> Floats:
    """A damped trend."""
    from statsmodels.tsa.holtwinters import ExponentialSmoothing  # pyright: ignore[reportMissingImports]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a flat history has no trend to converge to
        return ExponentialSmoothing(values, trend="add", damped_trend=True).fit().forecast(steps)


def follow_days(values: Floats, steps: int, period: int) -> Floats:
    """A season of a day beside a trend (STL)."""
    if len(values) < 2 * period:
        raise ValueError("less than two days")
    from statsmodels.tsa.forecasting.stl import STLForecast  # pyright: ignore[reportMissingImports]
    from statsmodels.tsa.holtwinters import ExponentialSmoothing  # pyright: ignore[reportMissingImports]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = STLForecast(
            values,
            ExponentialSmoothing,
            model_kwargs={"trend": "add", "damped_trend": True},
            period=period,
        )
        return np.asarray(model.fit().forecast(steps))

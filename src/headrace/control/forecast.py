"""What rate to expect, by the method that was nearest over the newest day.

The methods: the last rate, held; a damped trend; the day before, at the level of now; and, from two
days on, a daily season with a trend. The trend and the season are statsmodels' (an extra). Each is
tried on ends of the history all through the newest day: at night all are right, and the question is
which one knew of the morning.
"""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from headrace.control.need import Outlook, Rates
from headrace.errors import Unsupported
from headrace.model.arrays import Floats

DAY_S = 86400.0
LEAST = 8  # rates, to look for a trend
MOST_DAYS = 7  # of history that count
MOST_STEPS = 1008  # into which the history is divided: ten minutes each, of seven days
TRIALS = 36  # ends of a day's history, at most, on which methods are tried
TREND_STEPS = 100  # newest rates that a trend is of
SURPRISE = 0.1  # of the rate: more than that above what was expected, and it is not relied on

# Rates at even steps, steps ahead, steps of a day -> rates; ValueError where the history is short.
Method = Callable[[Floats, int, int], Floats]


def require_forecast() -> None:
    """Refuse where the library is not installed."""
    if importlib.util.find_spec("statsmodels") is None:
        raise Unsupported(
            "--forecast needs statsmodels, which is not installed",
            fix="pip install 'headrace[forecast]'",
        )


def expect(rates: Rates, ahead_s: float) -> Outlook | None:
    """The highest rate to expect within so many seconds; None while too little is known."""
    values, step_s = even_steps(rates)
    if len(values) < LEAST:
        return None
    steps, day = max(1, math.ceil(ahead_s / step_s)), max(1, round(DAY_S / step_s))
    best = min(methods(), key=lambda method: backtest(method, values, steps, day))
    most = float(np.clip(best(values, steps, day), 0.0, None).max())
    if best not in DAILY:
        return Outlook(most)
    before = float(best(values[:-1], 1, day)[0])
    return Outlook(most, knows_the_day=bool(values[-1] <= before * (1 + SURPRISE)))


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
    step_s *= max(1, math.ceil((at[-1] - begin) / step_s / MOST_STEPS))
    grid = np.arange(at[-1], begin - step_s / 2, -step_s)[::-1]
    return np.interp(grid, at, rate), step_s


def methods() -> Sequence[Method]:
    """All there are; of equals the first is asked."""
    return (hold_last, follow_trend, *DAILY)


def backtest(method: Method, values: Floats, steps: int, day: int) -> float:
    """The mean error of a method over the newest day, as a share of the rates.

    Ends that had too little before them do not count: that a day comes again is believed until it
    did not. They are multiples of one stride, so that most have been tried at the decision before.
    """
    stride = max(steps, math.ceil(min(day, len(values)) / TRIALS))
    newest = len(values) - steps
    ends = [e for e in range(0, newest + 1, stride) if e >= max(LEAST // 2, newest - day)]
    tried = (_trial(method, values[: end + steps].tobytes(), end, steps, day) for end in ends)
    errors = [error for error in tried if error is not None]
    return float(np.mean(errors)) if errors else math.inf


@lru_cache(maxsize=1024)
def _trial(method: Method, history: bytes, end: int, steps: int, day: int) -> float | None:
    """The error of a method after so many values; None if they are too few for it."""
    values = np.frombuffer(history)
    truth = values[end:]
    try:
        said = method(values[:end], steps, day)
    except (ValueError, np.linalg.LinAlgError):
        return None
    return float(np.abs(said - truth).mean() / max(truth.mean(), 1e-9))


def hold_last(values: Floats, steps: int, day: int) -> Floats:
    """The last rate goes on."""
    return np.full(steps, values[-1])


def follow_trend(values: Floats, steps: int, day: int) -> Floats:
    """A damped trend."""
    from statsmodels.tsa.holtwinters import ExponentialSmoothing  # pyright: ignore[reportMissingImports]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a flat history has no trend to converge to
        model = ExponentialSmoothing(values[-TREND_STEPS:], trend="add", damped_trend=True)
        return model.fit().forecast(steps)


def repeat_day(values: Floats, steps: int, day: int) -> Floats:
    """As a day ago, times the level of now over the level then, both of a quarter of a day."""
    count = len(values)
    if count < day + 1 or steps > day:
        raise ValueError("less than a day")
    window = min(max(1, day // 4), count - day)
    then = float(values[count - day - window : count - day].mean())
    level = float(values[-window:].mean()) / then if then > 0 else 1.0
    return values[count - day : count - day + steps] * level


def follow_days(values: Floats, steps: int, day: int) -> Floats:
    """A season of a day beside a trend (STL)."""
    if day < 2 or len(values) < 2 * day:
        raise ValueError("less than two days")
    from statsmodels.tsa.forecasting.stl import STLForecast  # pyright: ignore[reportMissingImports]
    from statsmodels.tsa.holtwinters import ExponentialSmoothing  # pyright: ignore[reportMissingImports]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = STLForecast(
            values,
            ExponentialSmoothing,
            model_kwargs={"trend": "add", "damped_trend": True},
            period=day,
        )
        return np.asarray(model.fit().forecast(steps))


DAILY: Sequence[Method] = (repeat_day, follow_days)

"""What rate is expected: the method that was right most often, and what the loop makes of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headrace.control import forecast
from headrace.control.forecast import (
    backtest,
    even_steps,
    hold_last,
    most_expected,
    require_forecast,
)
from headrace.control.history import Entry
from headrace.control.need import AHEAD, needed_factor
from headrace.errors import Unsupported
from headrace.model.arrays import Floats

HOUR_S = 3600.0


def daily(hours: float) -> float:
    """A rate that goes from 500 at midnight to 1,500 at noon."""
    return 1000 - 500 * math.cos(2 * math.pi * hours / 24)


def follow_line(values: Floats, steps: int) -> Floats:
    """The last step goes on."""
    return values[-1] + (values[-1] - values[-2]) * np.arange(1, steps + 1)


def test_rates_at_uneven_times_are_put_at_even_steps_up_to_the_newest() -> None:
    values, step_s = even_steps([(0.0, 10.0), (60.0, 20.0), (120.0, 30.0), (300.0, 60.0)])
    assert step_s == 60
    assert values.tolist() == pytest.approx([10, 20, 30, 40, 50, 60])
    assert even_steps([(5.0, 7.0)])[0].tolist() == [7]


def test_of_long_histories_the_newest_days_count() -> None:
    rates = [(hour * HOUR_S, float(hour)) for hour in range(24 * 20)]
    values, step_s = even_steps(rates)
    assert step_s == HOUR_S
    assert values[-1] == 24 * 20 - 1
    assert values[0] == 24 * 13 - 1


def test_a_method_is_judged_by_its_error_on_the_end_of_the_history() -> None:
    line = np.arange(30.0)
    assert backtest(follow_line, line, 2) == pytest.approx(0)
    assert backtest(hold_last, line, 2) == pytest.approx(1.5)  # 1 after one step, 2 after two

    def refuse(values: Floats, steps: int) -> Floats:
        raise ValueError("too little")

    assert backtest(refuse, line, 2) == math.inf


def test_the_method_that_was_nearest_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def known(count: int, step_s: float) -> dict[str, forecast.Method]:
        return {"last": hold_last, "line": follow_line}

    monkeypatch.setattr(forecast, "methods", known)
    rising = [(60.0 * i, 100.0 + 10 * i) for i in range(20)]
    assert most_expected(rising, 180.0) == pytest.approx(290 + 30)
    # Where a line is followed into every turn, the last rate is nearer.
    jumping = [(60.0 * i, 100.0 + 50 * (i % 2)) for i in range(20)]
    assert most_expected(jumping, 60.0) == pytest.approx(150)
    assert most_expected(rising[:5], 60.0) is None, "too little is known"
    falling = [(60.0 * i, 200.0 - 10 * i) for i in range(20)]
    assert most_expected(falling, 600.0) == 0, "never below nothing"


def test_a_plan_is_made_for_what_is_expected() -> None:
    history = [Entry(60.0 * i, False, False, "x", rate_per_s=100.0) for i in range(10)]
    asked: list[tuple[int, float]] = []

    def expect(rates: object, ahead_s: float) -> float:
        asked.append((len(list(rates)), ahead_s))  # pyright: ignore[reportArgumentType,reportUnknownVariableType]
        return 180.0

    assert needed_factor(history, 600.0, 100.0, 0.0, 60.0) == pytest.approx(1.0)
    need = needed_factor(history, 600.0, 100.0, 0.0, 60.0, expect)
    assert need == pytest.approx(1.8)
    assert asked == [(11, (AHEAD - 1) * 60.0)]
    # What is expected to fall does not make a plan smaller before it has.

    def expect_less(rates: object, ahead_s: float) -> float:
        return 20.0

    assert needed_factor(history, 600.0, 100.0, 0.0, 60.0, expect_less) == pytest.approx(1.0)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str) -> None:
        return None

    monkeypatch.setattr(forecast.importlib.util, "find_spec", find_nothing)
    with pytest.raises(Unsupported, match="--forecast needs statsmodels") as refusal:
        require_forecast()
    assert refusal.value.fix == "pip install 'headrace[forecast]'"


def test_a_day_that_comes_again_is_expected() -> None:
    pytest.importorskip("statsmodels", reason="needs the extra headrace[forecast]")
    now = 24 * 4 + 6.0  # at six the rate is 1,000, and rises by 130 an hour
    rates = [(h / 4 * HOUR_S, daily(h / 4)) for h in range(int(now * 4) + 1)]
    expected = most_expected(rates, 3 * HOUR_S)
    assert expected == pytest.approx(daily(now + 3), rel=0.05)
    assert expected is not None
    assert expected > 1.25 * rates[-1][1]
    # A level history is expected to go on.
    level = [(60.0 * i, 300.0) for i in range(40)]
    assert most_expected(level, 600.0) == pytest.approx(300, rel=0.01)

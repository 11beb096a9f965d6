"""What rate is expected: the method that was right most often, and what the loop makes of it."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from headrace.control import forecast
from headrace.control.forecast import (
    backtest,
    even_steps,
    expect,
    hold_last,
    repeat_day,
    require_forecast,
)
from headrace.control.history import Entry
from headrace.control.need import AHEAD, Outlook, Rates, needed_factor
from headrace.errors import Unsupported
from headrace.model.arrays import Floats

HOUR_S = 3600.0


def daily(hours: float) -> float:
    """A rate that goes from 500 at midnight to 1,500 at noon."""
    return 1000 - 500 * math.cos(2 * math.pi * hours / 24)


def office(hours: float) -> float:
    """500 at night, 1,500 by day, an hour's rise from eight on and an hour's fall from six on."""
    hour = hours % 24
    return 500 + 1000 * min(1.0, max(0.0, hour - 8)) * min(1.0, max(0.0, 19 - hour))


def follow_line(values: Floats, steps: int, day: int) -> Floats:
    """The last step goes on."""
    return values[-1] + (values[-1] - values[-2]) * np.arange(1, steps + 1)


def most(rates: Rates, ahead_s: float) -> float:
    found = expect(rates, ahead_s)
    assert found is not None
    return found.most_per_s


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


def test_a_method_is_judged_by_its_error_where_it_could_be_tried() -> None:
    line = np.arange(100.0, 130.0)
    assert backtest(follow_line, line, 2, 144) == pytest.approx(0)
    # 1 after one step and 2 after two, of about 115.
    assert backtest(hold_last, line, 2, 144) == pytest.approx(1.5 / 115, rel=0.02)

    def refuse(values: Floats, steps: int, day: int) -> Floats:
        raise ValueError("too little")

    assert backtest(refuse, line, 2, 144) == math.inf

    def late(values: Floats, steps: int, day: int) -> Floats:
        if len(values) < 20:
            raise ValueError("too little")
        return follow_line(values, steps, day)

    assert backtest(late, line, 2, 144) == pytest.approx(0), "ends before do not count"


def test_the_whole_newest_day_is_looked_at_and_not_its_last_hours_alone() -> None:
    jump = np.full(240, 100.0)
    jump[100:] = 300.0  # fourteen of twenty-four hours ago
    assert backtest(hold_last, jump, 5, 240) > 0
    assert backtest(hold_last, jump, 5, 60) == 0, "longer ago than a day"


def test_yesterday_comes_again_at_todays_level() -> None:
    values = np.concatenate([np.arange(1.0, 25), 2 * np.arange(1.0, 9)])  # 24 hours, then 8 doubled
    assert repeat_day(values, 3, 24) == pytest.approx([18, 20, 22])
    with pytest.raises(ValueError, match="less than a day"):
        repeat_day(values[:24], 3, 24)


def test_the_method_that_was_nearest_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def known() -> list[forecast.Method]:
        return [hold_last, follow_line]

    monkeypatch.setattr(forecast, "methods", known)
    rising = [(60.0 * i, 100.0 + 10 * i) for i in range(20)]
    assert most(rising, 180.0) == pytest.approx(290 + 30)
    # Where a line is followed into every turn, the last rate is nearer.
    jumping = [(60.0 * i, 100.0 + 50 * (i % 2)) for i in range(20)]
    assert most(jumping, 60.0) == pytest.approx(150)
    assert expect(rising[:5], 60.0) is None, "too little is known"
    falling = [(60.0 * i, 200.0 - 10 * i) for i in range(20)]
    assert most(falling, 600.0) == 0, "never below nothing"


def test_a_plan_is_made_for_what_is_expected() -> None:
    history = [Entry(60.0 * i, False, False, "x", rate_per_s=100.0) for i in range(10)]
    asked: list[tuple[int, float]] = []

    def expect_more(rates: object, ahead_s: float) -> Outlook:
        asked.append((len(list(rates)), ahead_s))  # pyright: ignore[reportArgumentType,reportUnknownVariableType]
        return Outlook(180.0)

    assert needed_factor(history, 600.0, 100.0, 0.0, 60.0) == pytest.approx(1.0)
    need = needed_factor(history, 600.0, 100.0, 0.0, 60.0, expect_more)
    assert need == pytest.approx(1.8)
    assert set(asked) == {(11, (AHEAD - 1) * 60.0)}
    # What is expected to fall does not make a plan smaller before it has.

    def expect_less(rates: object, ahead_s: float) -> Outlook:
        return Outlook(20.0, knows_the_day=True)

    assert needed_factor(history, 600.0, 100.0, 0.0, 60.0, expect_less) == pytest.approx(1.0)


def test_a_rise_is_not_followed_past_the_top_that_the_day_before_had() -> None:
    rising = [Entry(60.0 * i, False, False, "x", rate_per_s=100.0 + 5 * i) for i in range(10)]

    def expect_top(rates: object, ahead_s: float, *, knows: bool) -> Outlook:
        return Outlook(150.0, knows_the_day=knows)

    def need(knows: bool) -> float:
        found = partial(expect_top, knows=knows)
        return needed_factor(rising, 600.0, 150.0, 0.0, 60.0, found)

    assert need(True) == pytest.approx(1.0)
    assert need(False) == pytest.approx(1 + 5 * AHEAD / 150)


def test_a_fall_that_the_day_before_had_is_followed_at_once_and_a_known_day_further() -> None:
    fallen = [Entry(60.0 * i, False, False, "x", rate_per_s=300.0) for i in range(10)]
    asked: list[float] = []

    def expect_little(rates: object, ahead_s: float, *, knows: bool) -> Outlook:
        asked.append(ahead_s)
        return Outlook(100.0, knows_the_day=knows)

    def need(knows: bool) -> float:
        found = partial(expect_little, knows=knows)
        return needed_factor(fallen, 600.0, 100.0, 0.0, 60.0, found, ahead=6, ahead_known=9)

    assert (need(True), asked) == (1.0, [8 * 60.0])
    assert (need(False), asked[-1]) == (3.0, 5 * 60.0), "it may come back"


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
    expected = expect(rates, 3 * HOUR_S)
    assert expected is not None
    assert expected.most_per_s == pytest.approx(daily(now + 3), rel=0.05)
    assert expected.most_per_s > 1.25 * rates[-1][1]
    assert expected.knows_the_day
    # A level history is expected to go on.
    level = [(60.0 * i, 300.0) for i in range(40)]
    assert most(level, 600.0) == pytest.approx(300, rel=0.01)


def test_after_one_day_the_next_mornings_rise_is_known_before_it_begins() -> None:
    pytest.importorskip("statsmodels", reason="needs the extra headrace[forecast]")
    chance = np.random.default_rng(7)
    rates = [(h / 6 * HOUR_S, office(h / 6) * chance.normal(1, 0.02)) for h in range(32 * 6)]
    expected = expect(rates, 50 * 60.0)  # at ten to eight of the second day
    assert expected is not None
    assert expected.most_per_s == pytest.approx(office(8 + 4 / 6), rel=0.1)
    # A morning that is half as busy again is more than that.
    crowd = expect([*rates[:-1], (rates[-1][0], 750.0)], 50 * 60.0)
    assert crowd is not None
    assert not crowd.knows_the_day

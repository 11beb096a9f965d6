"""Figures and names as people read them."""

from __future__ import annotations

import numpy as np

from headrace.figures import (
    change,
    data_size,
    duration,
    figure,
    number,
    percent,
    short,
    shorten,
    signed,
)


def test_figures_read_well() -> None:
    assert [number(v) for v in (0.0, 14000.0, 247.0833, 0.5, 1234.56, None, np.inf)] == [
        "0",
        "14,000",
        "247.1",
        "0.5",
        "1,235",
        "–",
        "–",
    ]
    assert [short(v) for v in (5.0, 950.4, 14000.0, 1.25e6, 0.123456)] == [
        "5",
        "950",
        "14 k",
        "1.25 M",
        "0.123",
    ]
    assert [percent(v) for v in (0.0, 1.0, 0.834, 0.998, 0.0004, 0.99999)] == [
        "0 %",
        "100 %",
        "83 %",
        "99.8 %",
        "under 0.1 %",
        "over 99.9 %",
    ]
    sizes = ["0 bytes", "999 bytes", "1.5 kB", "2 MB", "3.21 GB", "1 TB"]
    assert [data_size(v) for v in (0.0, 999.0, 1500.0, 2e6, 3.21e9, 1e12)] == sizes
    assert [duration(v) for v in (0.3, 1.654, 12.34, 123.4, 1e-5)] == [
        "300 ms",
        "1.65 s",
        "12.3 s",
        "123 s",
        "10 µs",
    ]
    assert shorten("parse-and-normalise", 10) == "parse-and…"
    assert shorten("short", 5) == "short"
    assert shorten("日本語テキスト", 7) == "日本語…"


def test_changes_read_well() -> None:
    assert [signed(v) for v in (0.0, -1234.5, 0.25)] == ["+0", "-1,234", "+0.25"]
    assert [figure(v) for v in (True, 3, None, "refused")] == ["yes", "3", "–", "refused"]
    assert change(38682.0, 77364.0) == "+38,682 (+100.0 %)"
    assert change(0, 5) == "+5"
    assert change(109.9, 109.9 - 1e-14) == "same"
    assert (change(True, True), change(True, False), change(5.0, "refused")) == (
        "",
        "other",
        "other",
    )

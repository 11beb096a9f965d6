"""Figures and names as people read them."""

from __future__ import annotations

import numpy as np

from headrace.page.words import number, percent, short, truncated


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
    assert truncated("parse-and-normalise", 10) == "parse-and…"
    assert truncated("short", 5) == "short"
    assert truncated("日本語テキスト", 7) == "日本語…"

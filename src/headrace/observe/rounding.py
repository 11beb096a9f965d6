"""Figures as measured files hold them."""

from __future__ import annotations


def six_digits(value: float) -> float:
    """A figure without the digits that no clock gives, which would make a file hard to read."""
    return float(f"{value:.6g}")

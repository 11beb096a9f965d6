"""The fits of `fit.py` over a pandas frame: what a tuple costs, whatever outliers there are."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.model.arrays import Bools, Floats
from headrace.observe.fit import CUT, GROUP, REFITS, Fit, first_line, fit, weighted_line

Frame = Any  # a pandas frame, whose types are not known here


def fits(windows: Frame, window_s: int) -> list[Fit]:
    """A fit per component and machine type, in the order of their names."""
    found: list[Fit] = []
    for (topology, component), both in windows.groupby(["topology", "component"]):
        # A component that never takes anything in is a spout, whose rate is what it emits.
        spout = bool(both["tuples_in"].sum() == 0)
        for machine_type, group in both.groupby("machine_type", dropna=False):
            name = {
                "topology": topology,
                "component": component,
                "machine_type": machine_type if isinstance(machine_type, str) else None,
                "spout": spout,
            }
            rate = group["tuples_out" if spout else "tuples_in"].to_numpy(dtype=float) / window_s
            points = group["cpu_ms"].to_numpy(dtype=float) / (10.0 * window_s)
            found.append(fit({**name, **final_sums(rate, points)}))
    return sorted(found, key=lambda f: tuple(str(getattr(f, part) or "") for part in GROUP))


def final_sums(rate: Floats, points: Floats) -> dict[str, Any]:
    """What the last weighted line of a group is computed from."""
    low, high = rank(rate, 1 / 3), rank(rate, 2 / 3)
    ends = {"points": middle(points)}
    for name, part in (("low", rate <= low), ("high", rate >= high)):
        ends |= {f"{name}_rate": middle(rate[part]), f"{name}_points": middle(points[part])}
    slope, intercept, least, _ = first_line(ends)
    residual = _residuals(rate, points, slope, intercept, least)[0]
    scale = max(1.4826 * middle(np.abs(residual)), 1e-6)
    found: dict[str, Any] = {}
    for _ in range(REFITS):
        residual, predicted = _residuals(rate, points, slope, intercept, least)
        kept = np.abs(residual) <= CUT * scale
        if not kept.any():  # the line has left its points: the one before is as good as it gets
            break
        found = _sums(rate, points, predicted, kept)
        slope, intercept = weighted_line(found)
    return found


def _residuals(
    rate: Floats, points: Floats, slope: float, intercept: float, least: float
) -> tuple[Floats, Floats]:
    """What is left of each point as a share of its prediction, and the prediction."""
    line = slope * rate + intercept
    predicted = np.maximum(line, least)
    return (points - line) / predicted, predicted


def _sums(rate: Floats, points: Floats, predicted: Floats, kept: Bools) -> dict[str, Any]:
    x, y, weight = rate[kept], points[kept], 1 / predicted[kept] ** 2
    return {
        "w": float(weight.sum()),
        "wx": float((weight * x).sum()),
        "wy": float((weight * y).sum()),
        "wxx": float((weight * x * x).sum()),
        "wxy": float((weight * x * y).sum()),
        "x": float(x.sum()),
        "y": float(y.sum()),
        "r2": _r2(x, y),
        "windows": len(x),
        "range": [rank(x, 0.05), rank(x, 0.95)],
    }


def _r2(x: Floats, y: Floats) -> float | None:
    if not np.ptp(x):
        return None
    return 1.0 if not np.ptp(y) else float(np.corrcoef(x, y)[0, 1] ** 2)


def middle(values: Floats) -> float:
    return rank(values, 0.5)


def rank(values: Floats, share: float) -> float:
    """The smallest value that so large a share of the values does not exceed."""
    at = max(1, int(np.ceil(share * len(values))))
    return float(np.sort(values)[at - 1])

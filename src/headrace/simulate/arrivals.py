"""When the rates of the spouts change: a burst begins, a curve goes on, an event says so."""

from __future__ import annotations

import math
from itertools import pairwise

from headrace.model.dynamics import Dynamics
from headrace.model.problem import Problem
from headrace.solve.chance import random_share, stream

DAY_S = 86400.0
STEPS_A_DAY = 1440  # in which a daily curve is followed
Curve = list[tuple[float, float]]  # (second, factor of the given rates from then on)


def rate_curve(problem: Problem, seconds: float, seed: int) -> Curve:
    """The factor of all given rates over time."""
    dynamics = problem.dynamics
    if dynamics.arrivals == "on-off":
        return _bursts(dynamics, seconds, seed)
    if dynamics.arrivals == "daily":
        return _day(dynamics, seconds)
    if dynamics.arrivals == "trace":
        given = float(problem.rate[problem.spout].sum())
        scaled = [(at, rate / given if given else 0.0) for at, rate in dynamics.points]
        return scaled if scaled[0][0] == 0 else [(0.0, 0.0), *scaled]
    return [(0.0, 1.0)]


def with_factors(curve: Curve, factors: Curve) -> Curve:
    """A curve times the factors that events set."""
    times = sorted({at for at, _ in (*curve, *factors)})
    return [(at, _value(curve, at) * _value(factors, at)) for at in times]


def _value(curve: Curve, at: float) -> float:
    found = 1.0
    for moment, factor in curve:
        if moment > at:
            break
        found = factor
    return found


def mean_factor(curve: Curve, begin: float, end: float) -> float:
    """The mean factor between two moments."""
    if end <= begin:
        return _value(curve, begin)
    total = 0.0
    for (a, factor), (b, _) in pairwise([*curve, (math.inf, 0.0)]):
        total += factor * max(0.0, min(b, end) - max(a, begin))
    return total / (end - begin)


def _bursts(dynamics: Dynamics, seconds: float, seed: int) -> Curve:
    """Bursts and pauses of random lengths; in a burst so much comes that the mean is as given."""
    rng = stream(seed, salt=0xB0B5)
    high = (dynamics.on_s + dynamics.off_s) / dynamics.on_s
    curve: Curve = []
    at, on = 0.0, random_share(rng) < 1 / high
    while at <= seconds:
        curve.append((at, high if on else 0.0))
        mean = dynamics.on_s if on else dynamics.off_s
        at += max(-math.log(1 - random_share(rng)) * mean, 1e-9)
        on = not on
    return curve


def _day(dynamics: Dynamics, seconds: float) -> Curve:
    step = DAY_S / STEPS_A_DAY
    return [
        (
            i * step,
            1 + dynamics.amplitude * math.cos(2 * math.pi * (i * step - dynamics.peak_s) / DAY_S),
        )
        for i in range(int(seconds / step) + 1)
    ]

"""Random times and random choices."""

from __future__ import annotations

import math

from headrace.solve.chance import Rng, random_share
from headrace.solve.compiled import inlined, kernel


@inlined
def draw_exponential(rng: Rng) -> float:
    """A time of mean 1 that remembers nothing."""
    return -math.log(1.0 - random_share(rng))


@kernel
def draw_gamma(rng: Rng, shape: float) -> float:
    """A time of mean 1 with a coefficient of variation of 1 / sqrt(shape).

    By Marsaglia and Tsang 2000; below a shape of 1 as a power of chance times the next shape.
    """
    wanted = shape if shape >= 1.0 else shape + 1.0
    d = wanted - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = draw_normal(rng)
        v = (1.0 + c * x) ** 3
        if v > 0.0:
            u = 1.0 - random_share(rng)
            if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                break
    value = d * v
    if shape < 1.0:
        value *= (1.0 - random_share(rng)) ** (1.0 / shape)
    return value / shape


@kernel
def draw_normal(rng: Rng) -> float:
    """A number of the normal distribution (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - random_share(rng)))
    return radius * math.cos(2.0 * math.pi * random_share(rng))


@inlined
def draw_service(rng: Rng, shape: float) -> float:
    """A service time of mean 1: constant for a shape of 0."""
    if shape == 0.0:
        return 1.0
    if shape == 1.0:
        return draw_exponential(rng)
    return draw_gamma(rng, shape)

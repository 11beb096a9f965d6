"""Random numbers for compiled functions: a splitmix64 stream, the same on every machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace.solve.compiled import kernel

Rng = NDArray[np.uint64]  # [1] the state of a stream

_STEP = 0x9E3779B97F4A7C15


def stream(seed: int, salt: int = 0x1234567) -> Rng:
    """A stream of random numbers; another salt gives another stream for the same seed."""
    return np.array([(seed * _STEP + salt) % 2**64], np.uint64)


@kernel
def random_share(rng: Rng) -> float:
    """The next number in [0, 1)."""
    rng[0] += np.uint64(0x9E3779B97F4A7C15)
    z = rng[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) / 9007199254740992.0


@kernel
def pick(rng: Rng, n: int) -> int:
    """The next number in 0..n-1."""
    return int(random_share(rng) * n)

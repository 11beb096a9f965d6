"""How sure a simulated figure is, and what of a run is warm-up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Floats

BATCHES = 20
SURE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and where the true one lies with a certainty of 95 %; None where it is unknown."""

    mean: float | None
    low: float | None
    high: float | None

    def to_json(self) -> dict[str, float | None]:
        """As the contract has it."""
        return {"mean": self.mean, "low": self.low, "high": self.high}

    @property
    def half(self) -> float:
        """Half its width; 0 where it is unknown."""
        return 0.0 if self.high is None or self.mean is None else self.high - self.mean


def interval(values: Floats) -> Interval:
    """The interval of independent figures, one per run or batch (Student's t)."""
    mean = float(values.mean())
    if len(values) < 2:
        return Interval(mean, None, None)
    from scipy.special import stdtrit  # here: it takes a while to load

    reach = float(stdtrit(len(values) - 1, (1 + SURE) / 2))
    half = reach * float(values.std(ddof=1)) / float(np.sqrt(len(values)))
    return Interval(mean, mean - half, mean + half)


def batch_interval(totals: Floats, weights: Floats) -> Interval:
    """The interval of a ratio of sums over one run, by batch means.

    The spans of a run are joined into 20 batches, long enough to be nearly independent.
    """
    count = min(BATCHES, len(totals))
    edges = np.linspace(0, len(totals), count + 1).astype(int)[:-1]
    sums, shares = np.add.reduceat(totals, edges), np.add.reduceat(weights, edges)
    known = shares > 0
    if not known.any():
        return Interval(None, None, None)
    spread = interval(sums[known] / shares[known])
    mean = float(totals.sum() / weights.sum())
    return Interval(mean, *((None, None) if spread.low is None else _around(mean, spread)))


def _around(mean: float, spread: Interval) -> tuple[float, float]:
    return mean - spread.half, mean + spread.half


def warm_up_spans(latency: Floats) -> int:
    """How many spans at the start are warm-up, by the MSER rule (White 1997), at most half.

    Cutting so many leaves a mean whose estimated variance is the least.
    """
    count = len(latency)
    best, cut = np.inf, 0
    for d in range(count // 2 + 1):
        rest = latency[d:]
        if len(rest) < 2:
            break
        score = float(rest.var()) / len(rest)
        if score < best:
            best, cut = score, d
    return cut

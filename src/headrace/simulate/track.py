"""What is written down while a plan is simulated, and percentiles of what was written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.solve.simulation.state import BINS, BINS_PER_OCTAVE


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """One run in K spans of time; a tuple is one that arrived at a source, with all that follows.

    `histogram` counts latencies of completed tuples, then of tuples at each sink; a fluid has none.
    """

    ends: Floats  # [K] seconds
    entered: Floats  # [K]
    completed: Floats  # [K]
    lost: Floats  # [K]
    hops: Floats  # [K] tuples served by tasks
    pending: Floats  # [K] at the end of each span
    backlog: Floats  # [K] of these, before a spout
    latency_ms: Floats  # [K] summed over what completed
    sink_ms: Floats  # [K, sinks] summed
    sink_tuples: Floats  # [K, sinks]
    histogram: Ints | None  # [K, 1 + sinks, BINS]
    cores: Floats  # [K, N] busy
    waiting: Floats  # [K, N] tuples before the tasks of each node, at the end of each span
    links: Floats  # [K, L] share of time in use
    threads: Floats  # [T] share of time that each task was busy, over the second half
    components: Floats  # [K, C] tuples before the tasks of each component, at the end
    lost_tuples: int = 0

    @property
    def spans(self) -> Floats:
        """The length of each span, [K]."""
        return np.diff(self.ends, prepend=0.0)


def percentile(histogram: Ints, share: float) -> float | None:
    """The latency in ms that a share of all stays below; None where there is none, [BINS]."""
    total = int(histogram.sum())
    if not total:
        return None
    wanted = share * total
    so_far = np.cumsum(histogram)
    place = int(np.searchsorted(so_far, wanted))
    place = min(place, BINS - 1)
    before = float(so_far[place - 1]) if place else 0.0
    inside = (wanted - before) / max(1.0, float(histogram[place]))
    return float(2 ** ((place + inside) / BINS_PER_OCTAVE) - 1) / 1e3

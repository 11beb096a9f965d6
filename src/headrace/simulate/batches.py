"""A plan on a micro-batch engine: batches by interval, stage after stage, queues between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from headrace.errors import InvalidInput, Unsupported
from headrace.judge.rate import batch_seconds
from headrace.judge.traffic import Workers, traffic
from headrace.judge.use import use
from headrace.model.arrays import Floats, Ints
from headrace.model.problem import Assignment, Problem
from headrace.model.simulation_sections import Event
from headrace.simulate.arrivals import Curve, mean_factor, with_factors
from headrace.simulate.fluid import rate_events
from headrace.simulate.layout import sink_numbers
from headrace.simulate.options import options_of
from headrace.simulate.track import Track
from headrace.solve.simulation.state import BINS, BINS_PER_OCTAVE

QUANTILES = 64  # points at which the latencies of a batch are counted


def run_batches(
    problem: Problem,
    assignment: Assignment,
    ends: Floats,
    curve: Curve,
    events: Sequence[Event],
    plans: Mapping[str, Assignment],
    seed: int,
) -> tuple[Track, list[str], Curve]:
    """What batches do, one after another; a batch that is late makes the next ones wait.

    A batch holds what arrived in its interval, at most `batch_size` tuples (option of `simulate`),
    and starts `batch_gap_s` after the one before at the earliest.
    With `batches: merge` a batch takes all that has arrived when it starts, as Structured Streaming
    does; else intervals stay apart, as in Spark Streaming.
    """
    del plans
    curve = with_factors(curve, rate_events(events, "batch"))
    interval, size, gap_s, merge = _settings(problem)
    seconds = float(ends[-1])
    rng = np.random.default_rng(seed)
    fixed_s, each_s = _cost(problem, assignment, interval)
    rate = float(problem.rate[problem.spout].sum())
    poisson = problem.dynamics.arrivals != "constant"
    batches: list[tuple[float, float, float, float]] = []  # arrived from, to, end, tuples
    queue: list[tuple[float, float, float]] = []  # arrived from, to, tuples
    entered = np.zeros(len(ends))
    free, k = 0.0, 0
    while k * interval < seconds:
        a, b = k * interval, (k + 1) * interval
        expected = rate * mean_factor(curve, a, b) * interval
        arrived = float(rng.poisson(expected)) if poisson else expected
        inside = max(0.0, min(b, seconds) - a) / interval
        _spread(entered, ends, a, b, arrived, inside)
        queue.append((a, b, arrived))
        k += 1
        while queue and free <= k * interval and queue[0][1] <= k * interval:
            ready = max(free, queue[0][1])
            begin, end, tuples = _next_batch(queue, ready, size, merge)
            scale = 1 + problem.dynamics.cv / np.sqrt(max(tuples, 1.0)) * rng.standard_normal()
            done = ready + fixed_s + each_s * tuples * max(scale, 0.0)
            batches.append((begin, end, done, tuples))
            free = done + gap_s
    track = _track(problem, assignment, ends, entered, batches)
    note = f"batches every {interval:g} s cost {fixed_s:.3g} s and {each_s * 1e6:.3g} s per million"
    return track, [note], curve


def _settings(problem: Problem) -> tuple[float, float, float, bool]:
    """Interval, largest batch, time between batches, and whether what has arrived is merged."""
    interval = float(str(problem.options.get("judge", {}).get("batch_interval_s", 1)))
    if not interval > 0:
        raise InvalidInput(f"options.judge.batch_interval_s is {interval:g}; it must be above 0")
    options = options_of(problem)
    return interval, options.batch_size, options.batch_gap_s, options.batches == "merge"


def _cost(problem: Problem, assignment: Assignment, interval: float) -> tuple[float, float]:
    """Seconds of a batch whatever it holds, and seconds per tuple: what `batch_seconds` says."""
    workers = Workers.of(assignment)
    half, whole = (batch_seconds(problem.scaled(f), assignment, workers).value for f in (0.5, 1.0))
    if half is None or whole is None:
        raise Unsupported(
            "no cost of a tuple is known, so batches take no time", fix="give a `profile`"
        )
    tuples = float(problem.rate[problem.spout].sum()) * interval
    return max(0.0, 2 * half - whole), 2 * (whole - half) / tuples


def _next_batch(
    queue: list[tuple[float, float, float]], ready: float, size: float, merge: bool
) -> tuple[float, float, float]:
    """Take a batch: one interval, or all that has arrived; no more than its size."""
    begin, end, tuples = queue.pop(0)
    while merge and queue and queue[0][1] <= ready and tuples < size:
        _, end, more = queue.pop(0)
        tuples += more
    if tuples > size:
        cut = begin + (end - begin) * size / tuples
        queue.insert(0, (cut, end, tuples - size))
        end, tuples = cut, size
    return begin, end, tuples


def _spread(into: Floats, ends: Floats, a: float, b: float, tuples: float, inside: float) -> None:
    """Count what arrives evenly between two moments in the spans it falls into."""
    starts = np.concatenate([[0.0], ends[:-1]])
    overlap = np.clip(np.minimum(ends, b) - np.maximum(starts, a), 0.0, None)
    if overlap.sum() > 0:
        into += tuples * inside * overlap / overlap.sum()


def _track(
    problem: Problem,
    assignment: Assignment,
    ends: Floats,
    entered: Floats,
    batches: Sequence[tuple[float, float, float, float]],
) -> Track:
    spans, sinks = len(ends), np.flatnonzero(sink_numbers(problem) >= 0)
    completed, latency, counted = np.zeros(spans), np.zeros(spans), np.zeros(spans)
    histogram = np.zeros((spans, 1 + len(sinks), BINS), np.int64)
    points = (np.arange(QUANTILES) + 0.5) / QUANTILES
    for begin, end, done, tuples in batches:
        if done > ends[-1]:
            continue
        k = int(np.searchsorted(ends, done))
        completed[k] += tuples
        times = done - begin - (end - begin) * points
        latency[k] += tuples * float(times.mean()) * 1e3
        counted[k] += tuples
        _count(histogram[k, 0], times, tuples)
    given = float(problem.rate[problem.spout].sum())
    per_tuple = problem.rate / given
    for i, c in enumerate(sinks.tolist()):
        histogram[:, i + 1] = np.round(histogram[:, 0] * per_tuple[c])
    workers = Workers.of(assignment)
    used = use(problem, assignment, workers, traffic(problem, assignment, workers))
    length = np.diff(ends, prepend=0.0)
    cores = used.cpu_by_rate / 100 * (completed / given / length)[:, None]
    pending = np.cumsum(entered - completed)
    queues = np.zeros((spans, len(problem.tasks)))
    queues[:, np.flatnonzero(problem.spout)[0]] = pending
    return Track(
        ends=ends,
        entered=entered,
        completed=completed,
        lost=np.zeros(spans),
        hops=completed * float(per_tuple.sum()),
        pending=pending,
        backlog=pending,
        latency_ms=latency,
        sink_ms=latency[:, None] * per_tuple[sinks],
        sink_tuples=counted[:, None] * per_tuple[sinks],
        histogram=histogram,
        cores=cores,
        waiting=np.zeros((spans, len(problem.nodes))),
        links=np.zeros((spans, 2 * len(problem.nodes))),
        threads=np.zeros(0),
        components=queues,
    )


def _count(row: Ints, times_s: Floats, tuples: float) -> None:
    place = (BINS_PER_OCTAVE * np.log2(1 + np.maximum(times_s, 0.0) * 1e6)).astype(np.int64)
    np.add.at(row, np.minimum(place, BINS - 1), max(1, round(tuples / len(times_s))))

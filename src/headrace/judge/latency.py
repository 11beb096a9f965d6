"""The latency that a plan is predicted to have: a queueing formula over tasks, nodes and links.

Every task is a queue with one server, every link too, and a node with fewer cores than tasks
stretches the service of all of them. A tuple of a source has tuples in several tasks at a time, so
the slowest of them counts. docs/concepts/simulate.md says how far that is from the simulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headrace.judge.traffic import Crossing, Workers, stream_crossing
from headrace.judge.use import Use
from headrace.model.arrays import Floats, Ints, totals
from headrace.model.problem import CPU, UNPLACED, Assignment, Problem, Stream

EULER = 0.5772156649
TAIL = 2.3263478740408408  # of the normal distribution: 99 % are below
BUSIEST = 0.998  # share of time that a queue is taken to be busy at most
ROUNDS = 12
MOST_TASKS = 200_000  # above, a prediction is not made: it would cost more than the rest


@dataclass(frozen=True, slots=True)
class Latency:
    """From a tuple's arrival to the end of all that follows from it, in milliseconds."""

    mean: float
    p99: float


def predicted_latency(
    problem: Problem, assignment: Assignment, workers: Workers, used: Use
) -> Latency | None:
    """The latency at the given rates; None where the plan cannot hold them, or none arrive."""
    placed = bool((assignment.node != UNPLACED).all())
    if not placed or problem.task_count > MOST_TASKS or not problem.rate[problem.spout].sum() > 0:
        return None
    stay = response_s(problem, assignment, used)
    hops = hop_s(problem, workers)
    if stay is None or hops is None:
        return None
    mean, variance = slowest_way(problem, stay, hops)
    if mean <= 0:
        return Latency(0.0, 0.0)
    # A gamma law of this mean and variance (Wilson and Hilferty 1931).
    part = variance / (9 * mean**2)
    return Latency(1e3 * mean, 1e3 * mean * max(1.0, (1 - part + TAIL * part**0.5) ** 3))


def response_s(problem: Problem, assignment: Assignment, used: Use) -> Floats | None:
    """Seconds that a tuple stays at a component in the mean, [C]; None where a queue grows."""
    c, node = problem.component_of, assignment.node
    kind = problem.node_type[node]
    rate = problem.rate[c] * problem.share
    fixed = problem.cpu_fixed[c, kind] / 100
    cores = problem.demand[c, CPU] / 100 + problem.cpu_rate[c, kind] * problem.share / 100
    free = (problem.capacity[:, CPU] - problem.taken[:, CPU]) / 100
    room = free - totals(node, fixed, len(free))
    load = used.cpu_by_rate / 100
    if (load > 0).any() and (room[load > 0] <= load[load > 0]).any():
        return None
    cap = np.maximum(1.0 - fixed, 1e-9)
    alone = np.divide(cores, rate, out=np.zeros(len(c)), where=rate > 0) / cap
    if (rate * alone >= 1).any():
        return None
    service = alone * _stretch(node, rate * alone, room)[node]
    busy = np.minimum(rate * service, BUSIEST)
    varied = (1 + problem.dynamics.cv**2) / 2
    stay = service * (1 + busy / (1 - busy) * varied)
    return totals(c, stay * problem.share, len(problem.tasks))


def _stretch(node: Ints, busy: Floats, cores: Floats) -> Floats:
    """How much longer services take since a node's cores are shared, [N].

    A task at work finds B others busy, about normally distributed, and together they slow down to
    cores / (B + 1). That keeps all of them busy for longer, so it is worked out in rounds.
    """
    nodes = len(cores)
    threads = np.bincount(node, minlength=nodes)
    shared = np.isfinite(cores) & (threads > cores) & (cores > 0)
    stretch = np.ones(nodes)
    if not shared.any():
        return stretch
    limit = np.where(shared, cores, 1.0)
    slowest = np.where(shared, threads / limit, 1.0)
    for _ in range(ROUNDS):
        share = np.minimum(busy * stretch[node], BUSIEST)
        others = np.maximum(threads - 1, 0) / np.maximum(threads, 1)
        mean = totals(node, share, nodes) * others
        deviation = np.sqrt(totals(node, share * (1 - share), nodes) * others) + 1e-12
        far = (mean - (limit - 1)) / deviation
        density = np.exp(-(far**2) / 2) / np.sqrt(2 * np.pi)
        above = (mean - (limit - 1)) * _normal(far) + deviation * density
        wanted = np.clip(1 + above / limit, np.maximum(1.0, 1 / limit), slowest)
        stretch = np.where(shared, (stretch + wanted) / 2, 1.0)
    return stretch


def _normal(x: Floats) -> Floats:
    """The normal distribution, to three digits."""
    near = np.clip(x, -8.0, 8.0)  # further out it is 0 or 1
    return 1 / (1 + np.exp(-1.5976 * near - 0.07056 * near**3))


def hop_s(problem: Problem, workers: Workers) -> list[tuple[Stream, float]] | None:
    """Every stream with the mean seconds of its way; None where a link is full."""
    crossings = [(s, stream_crossing(problem, workers, s)) for s in problem.streams]
    out, into = np.zeros((2, len(problem.nodes)))
    for s, crossing in crossings:
        if not np.isnan(s.bytes):
            out += crossing.to_other_node * s.bytes * 8 / 1e6
            into += crossing.from_other_node * s.bytes * 8 / 1e6
    mbps = problem.bandwidth_mbps
    if (out >= mbps).any() or (into >= mbps).any():
        return None
    waits = 1 + out / mbps / (2 * (1 - out / mbps)), 1 + into / mbps / (2 * (1 - into / mbps))
    return [(s, _way_s(problem, s, crossing, waits)) for s, crossing in crossings]


def _way_s(
    problem: Problem, stream: Stream, crossing: Crossing, waits: tuple[Floats, Floats]
) -> float:
    if crossing.total <= 0:
        return 0.0
    worker, node, rack = (ms / 1e3 for ms in problem.dynamics.latency_ms)
    inside = crossing.inter_worker - crossing.inter_node
    level = inside * worker + (crossing.inter_node - crossing.inter_rack) * node
    total = level + crossing.inter_rack * rack
    if not np.isnan(stream.bytes):
        each = stream.bytes * 8 / 1e6 / problem.bandwidth_mbps
        total += float((crossing.to_other_node * each * waits[0]).sum())
        total += float((crossing.from_other_node * each * waits[1]).sum())
    return total / crossing.total


def slowest_way(
    problem: Problem, stay: Floats, hops: Sequence[tuple[Stream, float]]
) -> tuple[float, float]:
    """Mean and variance of the seconds along the slowest way from the spouts to a sink.

    Of v tuples of a tree at a component the last one counts: the mean of the largest of v
    exponential times. Below one tuple per tree it counts as often as there is one.
    """
    given = float(problem.rate[problem.spout].sum())
    visits = np.where(problem.spout, 1.0, problem.rate / given)
    last = np.maximum(visits, 1.0)
    harmonic = np.where(last > 1.5, np.log(last) + EULER + 0.5 / last, last)
    spread = np.where(last > 1.5, np.pi**2 / 6 - 1 / last, 1.0)
    often = np.minimum(visits, 1.0)
    mean = stay * harmonic * often
    variance = (stay**2) * spread * often + (stay * harmonic) ** 2 * often * (1 - often)
    order = sorted(hops, key=lambda hop: int(problem.stage[hop[0].source]))
    best_mean, best_variance = mean.copy(), variance.copy()
    for s, way in order:
        if problem.stage[s.source] >= problem.stage[s.target]:
            continue  # an edge that leads back; its tuples are among the visits
        candidate = best_mean[s.source] + way * float(often[s.target]) + mean[s.target]
        if candidate > best_mean[s.target]:
            best_mean[s.target] = candidate
            best_variance[s.target] = best_variance[s.source] + variance[s.target]
    end = int(best_mean.argmax())
    return float(best_mean[end]), float(best_variance[end])

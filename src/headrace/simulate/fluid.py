"""A plan as a fluid: for a million tasks, and for hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from headrace.errors import Unsupported
from headrace.model.arrays import Floats, Ints, totals
from headrace.model.problem import UNPLACED, Assignment, Problem, Stream
from headrace.model.simulation_sections import Event
from headrace.simulate.arrivals import Curve, mean_factor, with_factors
from headrace.simulate.fluid_trees import Trees
from headrace.simulate.layout import placed_on, sink_numbers
from headrace.simulate.routes import task_shares
from headrace.simulate.track import Track
from headrace.solve.simulation.fluid import Fluid, flow

STEPS = 100  # in every span


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Groups of tasks of one component on one node with equal shares."""

    component: Ints  # [Q]
    node: Ints  # [Q]
    count: Ints  # [Q]
    share: Floats  # [Q] of one task
    first: Ints  # [Q] a task of each


def cells_of(problem: Problem, assignment: Assignment) -> Cells:
    """Tasks that nobody can tell apart, as one."""
    placed = np.flatnonzero(assignment.node != UNPLACED)
    c, n, share = problem.component_of[placed], assignment.node[placed], task_shares(problem)
    if problem.task_share is None and share is problem.share:
        key = c * len(problem.nodes) + n
    else:
        _, kind = np.unique(share[placed], return_inverse=True)
        key = (c * len(problem.nodes) + n) * (int(kind.max(initial=0)) + 1) + kind
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    return Cells(c[first], n[first], count, share[placed][first], placed[first])


def rate_events(events: Sequence[Event], detail: str) -> Curve:
    """The factors of rates that events set; other events need tuples."""
    factors: Curve = [(0.0, 1.0)]
    for event in sorted(events, key=lambda e: e.at):
        if event.rate is None:
            raise Unsupported(
                f"at {event.at:g} s something other than a rate changes, "
                f"which is not simulated with --detail {detail}",
                fix="use --detail tuple",
            )
        factors.append((event.at, event.rate))
    return factors


def run_fluid(
    problem: Problem,
    assignment: Assignment,
    ends: Floats,
    curve: Curve,
    events: Sequence[Event],
    plans: Mapping[str, Assignment],
    seed: int,
) -> tuple[Track, list[str], Curve]:
    """What flows, span by span. Chance has no place in it, so the seed matters only for bursts."""
    del plans, seed
    curve = with_factors(curve, rate_events(events, "fluid"))
    cells = cells_of(problem, assignment)
    fluid = pour(problem, assignment, cells)
    nodes, count = len(problem.nodes), len(problem.tasks)
    rows: dict[str, list[Any]] = {}
    begin = 0.0
    path, trees = _Path(problem, fluid), Trees(problem, fluid, cells.count, _copies(problem))
    for end in ends.tolist():
        before = (fluid.started.copy(), fluid.done.copy(), fluid.passed.copy())
        steps = [begin + (end - begin) * i / 4 for i in range(5)]
        for a, b in pairwise(steps):
            flow(fluid, mean_factor(curve, a, b), (b - a) / (STEPS // 4), STEPS // 4)
        trees.note()
        started, done = fluid.started - before[0], fluid.done - before[1]
        span = end - begin
        note = {
            "entered": started[0],
            "hops": done.sum(),
            "backlog": fluid.waiting[fluid.arrives > 0].sum(),
            "latency_ms": np.float64(path.latency_ms(done / span)),
            "done": done,
            "cores": totals(cells.node, (fluid.passed - before[2]) * fluid.work_s, nodes) / span,
            "waiting": totals(cells.node, fluid.waiting, nodes),
            "components": totals(cells.component, fluid.waiting, count),
            "links": np.concatenate([fluid.need[1] / fluid.mbps, fluid.need[2] / fluid.mbps]),
        }
        for name, value in note.items():
            rows.setdefault(name, []).append(value)
        begin = end
    track = _track(problem, ends, rows, trees.completed())
    return track, ["a fluid: no chance, so no percentiles"], curve


def pour(problem: Problem, assignment: Assignment, cells: Cells) -> Fluid:
    """An empty fluid."""
    placed = placed_on(problem, assignment)
    q, c, n = len(cells.node), len(problem.tasks), len(problem.nodes)
    work, cap = placed.work_s[cells.first], placed.cap[cells.first]
    with np.errstate(divide="ignore"):
        most = np.where(work > 0, cells.count * cap / work, np.inf)
    share = cells.share * cells.count
    on_node = np.zeros((c, n))
    np.add.at(on_node, (cells.component, cells.node), share)
    spout = problem.spout[cells.component]
    size = problem.dynamics.queue_size
    given = float(problem.rate[problem.spout].sum())
    streams, pairs, copies = _streams(problem), _pair_streams(problem), _copies(problem)
    kept = _kept_share(problem)
    most_open = problem.dynamics.max_spout_pending
    # Longer than 60 lines: one line for each array.
    return Fluid(
        component=cells.component,
        node=cells.node,
        share=share,
        most=most,
        threads=cap * cells.count,
        work_s=work,
        limit=np.where(spout | (size is None), np.inf, float(size or 0) * cells.count),
        arrives=np.where(spout, problem.rate[cells.component] * share, 0.0),
        cores=placed.cores,
        mbps=problem.bandwidth_mbps.copy(),
        source=np.array([s.source for s in streams] + [p[0] for p in pairs], np.int64),
        target=np.array([s.target for s in streams] + [p[1] for p in pairs], np.int64),
        gain=np.array(
            [
                s.tuples_per_s * k / float(problem.rate[s.source]) * float(kept[s.target])
                for s, k in zip(streams, copies.tolist(), strict=False)
            ]
            + [p[2] for p in pairs]
        ),
        megabits=np.array(
            # All of a join's input travels, also what it does not serve.
            [
                0.0 if np.isnan(s.bytes) else s.bytes * 8 / 1e6 / float(kept[s.target])
                for s in streams
            ]
            + [p[3] for p in pairs]
        ),
        on_node=on_node,
        waiting=np.zeros(q),
        served=np.zeros(q),
        enters=np.zeros(q),
        hold=np.ones(c),
        need=np.zeros((3, n)),
        level=np.zeros((3, n)),
        emitted=np.zeros((c, n)),
        total=np.zeros(c),
        visits=problem.rate / given,
        started=np.zeros(3),
        done=np.zeros(c),
        open=np.array(
            [np.inf if most_open is None else most_open * float(problem.tasks[problem.spout].sum())]
        ),
        passed=np.zeros(q),
    )


def _streams(problem: Problem) -> list[Stream]:
    """Those that carry something."""
    return [s for s in problem.streams if problem.rate[s.source] > 0]


def _copies(problem: Problem) -> Floats:
    """How many tasks get each tuple of a stream; pairs are the last streams."""
    every = [
        float(problem.tasks[s.target]) if s.grouping == "all" else 1.0 for s in _streams(problem)
    ]
    return np.array(every + [1.0] * len(_pair_streams(problem)))


def _kept_share(problem: Problem) -> Floats:
    """The share of its input that a component serves: less than all where it joins tuples."""
    received = np.zeros(len(problem.tasks))
    for s, k in zip(_streams(problem), _copies(problem).tolist(), strict=False):
        received[s.target] += s.tuples_per_s * k
    kept = np.divide(problem.rate, received, out=np.ones(len(received)), where=received > 0)
    return np.where(kept < 1 - 1e-9, np.maximum(kept, 1e-9), 1.0)


def _pair_streams(problem: Problem) -> list[tuple[int, int, float, float]]:
    """Measured pairs as streams between components: source, target, gain, megabits."""
    pairs = problem.pairs
    if not len(pairs):
        return []
    c = problem.component_of
    key = c[pairs.source] * len(problem.tasks) + c[pairs.target]
    found: list[tuple[int, int, float, float]] = []
    for k in np.unique(key).tolist():
        rows = key == k
        a, b = divmod(k, len(problem.tasks))
        sent = float(pairs.tuples_per_s[rows].sum())
        if problem.rate[a] > 0 and sent > 0:
            data = float(np.nan_to_num(pairs.bytes_per_s[rows]).sum())
            found.append((a, b, sent / float(problem.rate[a]), data / sent * 8 / 1e6))
    return found


class _Path:
    """The mean latency along the slowest way through the components."""

    def __init__(self, problem: Problem, fluid: Fluid) -> None:
        self._fluid, self._count = fluid, len(problem.tasks)
        stage = problem.stage
        edges = set(zip(fluid.source.tolist(), fluid.target.tolist(), strict=True))
        forward = [(a, b) for a, b in edges if stage[a] < stage[b]]
        self._steps = sorted(forward, key=lambda edge: (int(stage[edge[0]]), edge))
        self._delay_ms = problem.dynamics.latency_ms[1]

    def latency_ms(self, served: Floats) -> float:
        """Service and fluid queues on the slowest way, and a hop's latency where nodes differ."""
        fluid = self._fluid
        work = totals(fluid.component, fluid.work_s * fluid.share, self._count)
        waiting = totals(fluid.component, fluid.waiting, self._count)
        own = (work + np.divide(waiting, served, out=np.zeros(len(served)), where=served > 0)) * 1e3
        total = own.copy()
        for a, b in self._steps:
            crosses = 1 - float((fluid.on_node[a] * fluid.on_node[b]).sum())
            total[b] = max(float(total[b]), float(total[a] + own[b] + crosses * self._delay_ms))
        return float(total.max(initial=0.0))


def _track(
    problem: Problem, ends: Floats, rows: Mapping[str, Sequence[Any]], complete: Floats
) -> Track:
    sinks = np.flatnonzero(sink_numbers(problem) >= 0)
    done, mean = np.stack(rows["done"]), np.stack(rows["latency_ms"])
    entered, completed = np.stack(rows["entered"]), np.diff(complete, prepend=0.0)
    return Track(
        ends=ends,
        entered=entered,
        completed=completed,
        lost=np.zeros(len(ends)),
        hops=np.stack(rows["hops"]),
        pending=np.cumsum(entered) - complete,
        backlog=np.stack(rows["backlog"]),
        latency_ms=mean * completed,
        sink_ms=done[:, sinks] * mean[:, None],
        sink_tuples=done[:, sinks],
        histogram=None,
        cores=np.stack(rows["cores"]),
        waiting=np.stack(rows["waiting"]),
        links=np.stack(rows["links"]),
        threads=np.zeros(0),
        components=np.stack(rows["components"]),
    )

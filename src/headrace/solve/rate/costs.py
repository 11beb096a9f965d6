"""What tasks cost and streams carry, class by class: what a rate or a batch is worked out from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from headrace.model.arrays import Floats, Ints
from headrace.model.problem import CPU, Problem
from headrace.solve.classes import Classes

MOST_PAIR_CELLS = 2_000_000  # measured pairs x nodes that are still counted one by one


class RateCosts(NamedTuple):
    """What tasks cost and streams carry; Y types, C classes, N nodes, S flows."""

    grows: Floats  # [Y, C] CPU points of one task that grow with the rate
    fixed: Floats  # [Y, C] and that do not
    cpu: Floats  # [N] free points
    installed: Floats  # [N] points in all
    cores: Floats  # [N]
    bytes_per_s: Floats  # [N] bandwidth, each way
    send_points: float  # CPU points per tuple/s sent to another node
    receive_points: float  # and per tuple/s that comes from one
    stage: Ints  # [C]
    member_start: Ints  # [stages + 1] classes of a stage are member[..]
    member: Ints
    out_start: Ints  # [C + 1] flows a class emits on, and how many tuples/s one task emits
    out_stream: Ints
    out_amount: Floats
    in_start: Ints  # [C + 1] flows a class receives, and copies of a tuple that one task gets
    in_stream: Ints
    in_amount: Floats
    into_start: Ints  # [stages + 1] flows into a stage
    into_stream: Ints
    target: Ints  # [S] stage
    size: Floats  # [S] bytes per tuple; 0 where unknown
    emitted: Floats  # [S] tuples/s in all
    copies: Floats  # [S] copies of a tuple in all


class ClassFlow(NamedTuple):
    """Tuples between classes: a stream, or a measured pair of tasks."""

    target: int  # component
    emitted: float  # tuples/s in all
    copies: float  # copies of a tuple in all
    size: float  # bytes per tuple; 0 where unknown
    emits: list[tuple[int, float]]  # class, tuples/s one task emits
    receives: list[tuple[int, float]]  # class, copies of a tuple one task receives


def rate_costs(problem: Problem, classes: Classes) -> RateCosts:
    """A problem's costs class by class."""
    owner, task = classes.component, classes.order[classes.first[:-1]]
    share = problem.share[task]
    stage, count = problem.stage[owner], int(problem.stage.max(initial=-1)) + 1
    member = np.argsort(stage, kind="stable")
    flows = class_flows(problem, classes)
    emits = [(c, k, v) for k, flow in enumerate(flows) for c, v in flow.emits]
    receives = [(c, k, v) for k, flow in enumerate(flows) for c, v in flow.receives]
    into = [(int(problem.stage[flow.target]), k, 0.0) for k, flow in enumerate(flows)]
    out_start, out_stream, out_amount = _sort_by_first(emits, len(owner))
    in_start, in_stream, in_amount = _sort_by_first(receives, len(owner))
    into_start, into_stream, _ = _sort_by_first(into, count)
    stated = problem.options.get("judge", {})
    free = problem.capacity[:, CPU] - problem.taken[:, CPU]
    return RateCosts(
        grows=np.ascontiguousarray(
            (problem.demand[owner, CPU][:, None] + problem.cpu_rate[owner] * share[:, None]).T
        ),
        fixed=np.ascontiguousarray(problem.cpu_fixed[owner].T),
        cpu=free,
        installed=problem.capacity[:, CPU],
        cores=np.where(np.isfinite(free), np.maximum(1.0, np.floor(free / 100)), np.inf),
        bytes_per_s=problem.bandwidth_mbps * 1e6 / 8,
        send_points=float(str(stated.get("send_node_cpu_ms", 0))) / 10,
        receive_points=float(str(stated.get("receive_node_cpu_ms", 0))) / 10,
        stage=stage,
        member_start=np.searchsorted(stage[member], np.arange(count + 1)).astype(np.int64),
        member=member.astype(np.int64),
        out_start=out_start,
        out_stream=out_stream,
        out_amount=out_amount,
        in_start=in_start,
        in_stream=in_stream,
        in_amount=in_amount,
        into_start=into_start,
        into_stream=into_stream,
        target=np.array([problem.stage[flow.target] for flow in flows], dtype=np.int64),
        size=np.array([flow.size for flow in flows]),
        emitted=np.array([flow.emitted for flow in flows]),
        copies=np.array([flow.copies for flow in flows]),
    )


def _sort_by_first(rows: list[tuple[int, int, float]], count: int) -> tuple[Ints, Ints, Floats]:
    """Where the rows of each first number start, and their second and third numbers."""
    rows = sorted(rows)
    start = np.searchsorted([row[0] for row in rows], np.arange(count + 1)).astype(np.int64)
    return (
        start,
        np.array([row[1] for row in rows], dtype=np.int64),
        np.array([row[2] for row in rows], dtype=np.float64),
    )


def class_flows(problem: Problem, classes: Classes) -> list[ClassFlow]:
    """What is sent, class by class; measured pairs only where there are not too many of them."""
    flows = [*_streams(problem, classes)]
    if len(problem.pairs) * len(problem.nodes) <= MOST_PAIR_CELLS:
        flows += _pairs(problem, classes)
    return [flow for flow in flows if flow.emitted > 0]


def _streams(problem: Problem, classes: Classes) -> Iterator[ClassFlow]:
    owner, task = classes.component, classes.order[classes.first[:-1]]
    for s in problem.streams:
        received = s.received(int(problem.tasks[s.target]))
        emits = [
            (int(c), float(s.tuples_per_s * problem.share[task[c]]))
            for c in np.flatnonzero(owner == s.source)
        ]
        receives = [
            (int(c), float(received[task[c] - problem.first[s.target]]))
            for c in np.flatnonzero(owner == s.target)
        ]
        size = 0.0 if np.isnan(s.bytes) else s.bytes
        yield ClassFlow(s.target, s.tuples_per_s, float(received.sum()), size, emits, receives)


def _pairs(problem: Problem, classes: Classes) -> Iterator[ClassFlow]:
    owner, pairs = classes.component, problem.pairs
    class_of = np.empty(problem.task_count, dtype=np.int64)
    class_of[classes.order] = np.repeat(np.arange(len(owner)), np.diff(classes.first))
    rows = zip(
        class_of[pairs.source].tolist(),
        class_of[pairs.target].tolist(),
        pairs.tuples_per_s.tolist(),
        pairs.bytes_per_s.tolist(),
        strict=True,
    )
    for a, b, tuples, data in rows:
        size = data / tuples if tuples > 0 and data > 0 else 0.0
        yield ClassFlow(int(owner[b]), tuples, 1.0, size, [(a, tuples)], [(b, 1.0)])

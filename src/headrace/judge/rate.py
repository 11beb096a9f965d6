"""How fast a plan is: `max_rate` for pipelined engines, `batch_seconds` for micro-batch ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.judge.traffic import Traffic, Workers, stream_crossing
from headrace.judge.use import Use
from headrace.model.arrays import TOLERANCE, Floats, distinct, totals
from headrace.model.problem import CPU, UNPLACED, Assignment, Problem


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What limits a plan: a resource of a node, the one thread of a task, or a stage on a node."""

    resource: str  # cpu, bandwidth in, bandwidth out, thread or stage
    node: str | None = None
    task: str | None = None
    components: tuple[str, ...] = ()  # of the stage
    rack: str | None = None  # whose uplink it is

    def __str__(self) -> str:
        """The sentence of the contract."""
        if self.rack is not None:
            return f"rack {self.rack}: {self.resource}"
        if self.task is not None:
            return f"task {self.task}: one {self.resource}"
        if self.components:
            return f"stage {' + '.join(self.components)} on node {self.node}"
        return f"node {self.node}: {self.resource}"


@dataclass(frozen=True, slots=True)
class Speed:
    """A figure and what sets it."""

    value: float | None
    bottleneck: Bottleneck | None


def max_rate(problem: Problem, sent: Traffic, used: Use) -> Speed:
    """The factor by which all spout rates can grow before a node's CPU or bandwidth is full.

    None if nothing limits it. 0 where the CPU that does not grow with the rates is already too much
    for a node.
    """
    free = problem.capacity[:, CPU] - problem.taken[:, CPU]
    fixed = used.resources[:, CPU] - used.cpu_by_rate
    full = (fixed > 0) & (fixed > free + TOLERANCE * np.maximum(1.0, free))
    room = {
        "cpu": (free - fixed, used.cpu_by_rate),
        "bandwidth out": (problem.bandwidth_mbps, sent.out_bytes * 8 / 1e6),
        "bandwidth in": (problem.bandwidth_mbps, sent.in_bytes * 8 / 1e6),
    }
    best, bottleneck = np.inf, None
    for resource, (available, load) in room.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(
                load > 0, np.maximum(available, 0.0) / load, np.where(full, 0.0, np.inf)
            )
        n = int(factor.argmin())
        if factor[n] < best:
            best, bottleneck = float(factor[n]), Bottleneck(resource, problem.nodes[n])
    return Speed(best if np.isfinite(best) else None, bottleneck)


def batch_seconds(problem: Problem, assignment: Assignment, workers: Workers) -> Speed:
    """Time of a micro-batch: all stages, each as slow as its slowest node, and the overhead.

    A stage is all components that are equally far from their topology's spouts. On a node its tasks
    run one per core, in waves; then its input from other nodes arrives. A batch holds the tuples of
    `batch_interval_s` (default 1 s); `batch_overhead_s` is what the engine adds (options of
    `judge`). None where no cost is known.
    """
    options = problem.options.get("judge", {})
    interval = float(str(options.get("batch_interval_s", 1)))
    overhead = float(str(options.get("batch_overhead_s", 0)))
    total, slowest, bottleneck = overhead, 0.0, None
    arriving = _arriving_bytes(problem, assignment, workers)
    for stage in range(int(problem.stage.max(initial=-1)) + 1):
        members = [
            c
            for c in np.flatnonzero(problem.stage == stage).tolist()
            if assignment.node[problem.first[c]] != UNPLACED
        ]
        if not members:
            continue
        seconds = _stage_cpu_s(problem, assignment, members) * interval
        if stage in arriving:
            seconds = seconds + arriving[stage] * 8 / 1e6 / problem.bandwidth_mbps * interval
        n = int(seconds.argmax())
        total += float(seconds[n])
        if seconds[n] > slowest:
            names = tuple(problem.components[c] for c in members)
            slowest = float(seconds[n])
            bottleneck = Bottleneck("stage", problem.nodes[n], components=names)
    return Speed(total if bottleneck else None, bottleneck)


def _stage_cpu_s(problem: Problem, assignment: Assignment, components: list[int]) -> Floats:
    """Seconds per second of input that the tasks of a stage keep each node busy, [N]."""
    n = len(problem.nodes)
    tasks = np.concatenate([np.arange(problem.first[c], problem.first[c + 1]) for c in components])
    node, owner = assignment.node[tasks], problem.component_of[tasks]
    machine = problem.node_type[node]
    by_rate = problem.cpu_rate[owner, machine] * problem.share[tasks]
    points = problem.demand[owner, CPU] + problem.cpu_fixed[owner, machine] + by_rate
    count, load = np.bincount(node, minlength=n), totals(node, points, n)
    longest = np.zeros(n)
    np.maximum.at(longest, node, points)
    cores = np.maximum(1.0, np.floor((problem.capacity[:, CPU] - problem.taken[:, CPU]) / 100))
    waves = np.where(np.isfinite(cores), np.ceil(count / cores), np.minimum(count, 1))
    mean = np.divide(load, count, out=np.zeros(n), where=count > 0)
    return np.maximum(waves * mean, longest) / 100


def _arriving_bytes(
    problem: Problem, assignment: Assignment, workers: Workers
) -> dict[int, Floats]:
    """Per stage, bytes/s each node takes in or gives out for its input, whichever is more, [N]."""
    n = len(problem.nodes)
    into: dict[int, list[Floats]] = {}
    for stream in problem.streams:
        if assignment.node[problem.first[stream.source]] != UNPLACED and not np.isnan(stream.bytes):
            c = stream_crossing(problem, workers, stream)
            flows = into.setdefault(int(problem.stage[stream.target]), [np.zeros(n), np.zeros(n)])
            flows[0] += c.from_other_node * stream.bytes
            flows[1] += c.to_other_node * stream.bytes
    pairs = problem.pairs
    a, b = assignment.node[pairs.source], assignment.node[pairs.target]
    crosses = np.flatnonzero((a != b) & (a != UNPLACED) & (b != UNPLACED) & (pairs.bytes_per_s > 0))
    target = problem.stage[problem.component_of[pairs.target[crosses]]]
    for stage in distinct(target).tolist():
        here = crosses[target == stage]
        flows = into.setdefault(stage, [np.zeros(n), np.zeros(n)])
        flows[0] += totals(b[here], pairs.bytes_per_s[here], n)
        flows[1] += totals(a[here], pairs.bytes_per_s[here], n)
    return {stage: np.maximum(arrives, leaves) for stage, (arrives, leaves) in into.items()}

"""What a batch takes under a plan that has not run yet, foretold by the judge from batches that ran under another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from headrace.judge.report import judge
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.run.batches import BatchDone
from headrace.run.placement import Placement


@dataclass(frozen=True, slots=True)
class Batch:
    """Of one batch: how long it takes, bytes between nodes, and the CPU of each node's tasks."""

    seconds: float
    remote_bytes: float
    cpu_ms: Mapping[str, float]


def measured(batches: Sequence[BatchDone], placement: Placement) -> Batch:
    """The middle one of batches that ran under a plan, figure by figure."""
    nodes = sorted({node for node, _ in placement.places.values()})
    used: dict[str, list[float]] = {node: [] for node in nodes}
    for done in batches:
        total = dict.fromkeys(nodes, 0.0)
        for report in done.reports:
            total[placement.node((report.component, report.number))] += report.cpu_ms
        for node in nodes:
            used[node].append(total[node])
    return Batch(
        seconds=median(done.seconds for done in batches),
        remote_bytes=median(done.remote_bytes for done in batches),
        cpu_ms={node: median(values) for node, values in used.items()},
    )


def emitted_per_s(batches: Sequence[BatchDone]) -> dict[str, float]:
    """Tuples/s of every component: what batches held, over the time from the start of the one before them to the start of the last."""
    emitted: dict[str, int] = {}
    for report in (report for done in batches[1:] for report in done.reports):
        emitted[report.component] = emitted.get(report.component, 0) + report.tuples_out
    start_s = [done.ended - done.seconds for done in batches]
    return {
        component: tuples / (start_s[-1] - start_s[0])
        for component, tuples in emitted.items()
        if start_s[-1] > start_s[0]
    }


def with_batch_times(problem: Problem, batches: Sequence[BatchDone], window_s: float) -> Problem:
    """The problem, told how much one batch holds, and how long the engine takes beside the work: what is left of the running plan's batches."""
    spouts = {
        name
        for name, spout in zip(problem.components, problem.spout.tolist(), strict=True)
        if spout
    }
    rate = float(problem.rate[problem.spout].sum())
    emitted = (
        median(sum(r.tuples_out for r in done.reports if r.component in spouts) for done in batches)
        if batches
        else 0
    )
    if not emitted or rate <= 0:
        return problem
    interval_s = emitted / rate
    # What a task takes whatever its input was measured per window with a batch in it; where batches
    # are rarer, it is taken less often.
    problem = replace(problem, cpu_fixed=problem.cpu_fixed * min(1.0, window_s / interval_s))
    told = timed(problem, interval_s=interval_s, overhead_s=0.0)
    if told.current is None or (told.current.node == UNPLACED).any():
        return told  # the plan that ran cannot be judged: some of its nodes are gone
    work_s = judge(told, told.current, objective="batch", bounded=False).batch_seconds or 0.0
    return timed(
        problem,
        interval_s=interval_s,
        overhead_s=max(0.0, median(done.seconds for done in batches) - work_s),
    )


def timed(problem: Problem, *, interval_s: float, overhead_s: float) -> Problem:
    """The problem with these options of the judge."""
    options = {
        **problem.options.get("judge", {}),
        "batch_interval_s": interval_s,
        "batch_overhead_s": overhead_s,
    }
    return replace(problem, options={**problem.options, "judge": options})


def predicted(problem: Problem, plan: Assignment) -> Batch:
    """A batch under a plan, by the judge; the problem knows its batch times."""
    report = judge(problem, plan, objective="batch", bounded=False)
    interval_s = float(str(problem.options.get("judge", {}).get("batch_interval_s", 1)))
    return Batch(
        seconds=report.batch_seconds or 0.0,
        remote_bytes=sum(row["out_mbps"] or 0.0 for row in report.nodes.values())
        * 1e6
        / 8
        * interval_s,
        cpu_ms={node: (row["cpu"] or 0.0) * 10 * interval_s for node, row in report.nodes.items()},
    )

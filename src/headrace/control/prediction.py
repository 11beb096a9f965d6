"""What a batch will take under a plan that has not run yet, by the judge, from batches that ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from headrace.judge.report import judge
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.run.batches import BatchDone
from headrace.run.placement import Placement


@dataclass(frozen=True, slots=True)
class BatchFigures:
    """Of one batch: how long it takes, bytes between nodes, and the CPU of each node's tasks."""

    seconds: float
    remote_bytes: float
    cpu_ms: Mapping[str, float]


def median_figures(batches: Sequence[BatchDone], placement: Placement) -> BatchFigures:
    """The median of batches that ran under a plan, figure by figure."""
    nodes = sorted({node for node, _ in placement.places.values()})
    used: dict[str, list[float]] = {node: [] for node in nodes}
    for done in batches:
        total = dict.fromkeys(nodes, 0.0)
        for report in done.reports:
            total[placement.node((report.component, report.number))] += report.cpu_ms
        for node in nodes:
            used[node].append(total[node])
    return BatchFigures(
        seconds=median(done.seconds for done in batches),
        remote_bytes=median(done.remote_bytes for done in batches),
        cpu_ms={node: median(values) for node, values in used.items()},
    )


def emission_rates(batches: Sequence[BatchDone]) -> dict[str, float]:
    """Tuples/s out of every component: what all batches but the first held, over their time.

    That time is from the start of the first batch to the start of the last.
    """
    emitted: dict[str, int] = {}
    for report in (report for done in batches[1:] for report in done.reports):
        emitted[report.component] = emitted.get(report.component, 0) + report.tuples_out
    start_s = [done.ended - done.seconds for done in batches]
    return {
        component: tuples / (start_s[-1] - start_s[0])
        for component, tuples in emitted.items()
        if start_s[-1] > start_s[0]
    }


def crossing_rates(batches: Sequence[BatchDone]) -> dict[str, float]:
    """Tuples/s between nodes and between workers, by the names that the judge has for them.

    Over the same time as the rates of the spouts.
    """
    start_s = [done.ended - done.seconds for done in batches]
    if len(batches) < 2 or start_s[-1] <= start_s[0]:
        return {}
    span_s = start_s[-1] - start_s[0]
    return {
        "inter_node_traffic": sum(d.crossed.node_tuples for d in batches[1:]) / span_s,
        "inter_worker_traffic": sum(d.crossed.worker_tuples for d in batches[1:]) / span_s,
    }


def with_batch_times(problem: Problem, batches: Sequence[BatchDone], window_s: float) -> Problem:
    """The problem with the time between batches, and what a batch takes beside its tasks' work.

    The latter is what is left of the running plan's batches when the judge's figure is taken off.
    """
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
    bare = _with_times(problem, interval_s=interval_s, overhead_s=0.0)
    if bare.current is None or (bare.current.node == UNPLACED).any():
        return bare  # the plan that ran cannot be judged: some of its nodes are gone
    work_s = judge(bare, bare.current, objective="batch", bounded=False).batch_seconds or 0.0
    overhead_s = max(0.0, median(done.seconds for done in batches) - work_s)
    return _with_times(problem, interval_s=interval_s, overhead_s=overhead_s)


def _with_times(problem: Problem, *, interval_s: float, overhead_s: float) -> Problem:
    """The problem with these options of the judge."""
    options = {
        **problem.options.get("judge", {}),
        "batch_interval_s": interval_s,
        "batch_overhead_s": overhead_s,
    }
    return replace(problem, options={**problem.options, "judge": options})


def predict_batch(problem: Problem, plan: Assignment) -> BatchFigures:
    """A batch under a plan, by the judge; the problem has its batch times."""
    report = judge(problem, plan, objective="batch", bounded=False)
    interval_s = float(str(problem.options.get("judge", {}).get("batch_interval_s", 1)))
    sent_mbps = sum(row["out_mbps"] or 0.0 for row in report.nodes.values())
    return BatchFigures(
        seconds=report.batch_seconds or 0.0,
        remote_bytes=sent_mbps * 1e6 / 8 * interval_s,
        cpu_ms={node: (row["cpu"] or 0.0) * 10 * interval_s for node, row in report.nodes.items()},
    )

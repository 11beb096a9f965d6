"""Run a plan tuple by tuple and write down what happens, span by span."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace.errors import Unsupported
from headrace.model.arrays import Floats, totals
from headrace.model.problem import Assignment, Problem
from headrace.simulate.arrivals import Curve
from headrace.simulate.layout import grow, lay_out
from headrace.simulate.track import Track
from headrace.solve.simulation import state as at
from headrace.solve.simulation.state import Run
from headrace.solve.simulation.tuples import advance, set_rate

MOST_TUPLES = 1 << 24  # in memory at a time; a plan with more is far beyond what it sustains

# What happens at a moment: it changes the run, or gives one with other arrays.
Action = Callable[[Run], Run]


@dataclass(slots=True)
class _Notes:
    """What is written down, span by span."""

    rows: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])

    def add(self, **values: Any) -> None:
        for name, value in values.items():
            self.rows.setdefault(name, []).append(value)

    def of(self, name: str) -> Any:
        return np.stack(self.rows[name])


def run_tuples(
    problem: Problem,
    assignment: Assignment,
    *,
    ends: Floats,
    curve: Curve,
    actions: Sequence[tuple[float, Action]] = (),
    seed: int = 0,
) -> Track:
    """Simulate until the last of the given moments, with a note at each of them."""
    run = lay_out(problem, assignment, seed)
    given = (problem.rate[problem.component_of] * problem.share)[run.sources]
    notes = _Notes()
    half, half_at = run.took.copy(), 0.0
    timeline = _timeline(ends, curve, actions)
    before = _reading(run)
    for moment, kind, what in timeline:
        run = _advance(run, moment)
        if kind == "rate":
            for i, rate in enumerate((given * what).tolist()):
                set_rate(run, i, rate)
        elif kind == "action":
            run = what(run)
        else:
            now = _reading(run)
            _write(notes, problem, run, before, now)
            before = now
            if half_at == 0.0 and moment >= ends[-1] / 2:
                half, half_at = run.took.copy(), moment
    threads = (run.took - half) / max(float(ends[-1]) - half_at, 1e-12)
    return _track(notes, ends, threads, int(run.counts[at.LOST_TUPLES]))


def _timeline(
    ends: Floats, curve: Curve, actions: Sequence[tuple[float, Action]]
) -> list[tuple[float, str, Any]]:
    """All moments in order; at one moment notes come first, then rates, then actions."""
    last = float(ends[-1])
    rows: list[tuple[float, int, str, Any]] = [(float(t), 0, "note", None) for t in ends]
    rows += [(t, 1, "rate", factor) for t, factor in curve if t < last]
    rows += [(t, 2, "action", action) for t, action in actions if t < last]
    rows.sort(key=lambda row: row[:2])
    return [(t, kind, what) for t, _, kind, what in rows]


def _advance(run: Run, until: float) -> Run:
    while advance(run, until) == at.FULL:
        if len(run.next) > MOST_TUPLES:
            raise Unsupported(
                f"{int((run.open > 0).sum()):,} tuples are pending after {run.now[0]:.0f} s: "
                "the plan is far beyond the rate it sustains",
                fix="simulate fewer seconds, a lower rate, or with --detail fluid",
            )
        run = grow(run)
    return run


def _reading(run: Run) -> dict[str, Any]:
    """All that is counted, as it is now."""
    return {
        "counts": run.counts.copy(),
        "sums": run.sums.copy(),
        "sink_ms": run.sink_ms.copy(),
        "histogram": run.histogram.copy(),
        "took": run.took.copy(),
        "link_busy": run.link_busy.copy(),
        "now": run.now.copy(),
    }


def _write(
    notes: _Notes,
    problem: Problem,
    run: Run,
    before: dict[str, Any],
    now: dict[str, Any],
) -> None:
    counts = now["counts"] - before["counts"]
    nodes, real = len(problem.nodes), len(run.mbps) - at.LEVELS - 1
    span = max(float(now["now"][0] - before["now"][0]), 1e-12)
    histogram = (now["histogram"] - before["histogram"]).astype(np.int32)
    entered, completed, lost = (int(now["counts"][i]) for i in (at.ENTERED, at.COMPLETED, at.LOST))
    waiting = run.waiting.astype(np.float64)
    spouts = run.source.astype(bool)
    notes.add(
        entered=counts[at.ENTERED],
        completed=counts[at.COMPLETED],
        lost=counts[at.LOST],
        hops=counts[at.HOPS],
        pending=np.float64(entered - completed - lost),
        backlog=waiting[spouts].sum(),
        latency_ms=(now["sums"] - before["sums"])[0],
        sink_ms=now["sink_ms"] - before["sink_ms"],
        histogram=histogram,
        cores=totals(run.node, now["took"] - before["took"], nodes) / span,
        waiting=totals(run.node, waiting, nodes),
        links=((now["link_busy"] - before["link_busy"]) / span)[:real],
        components=totals(problem.component_of, waiting, len(problem.tasks)),
    )


def _track(notes: _Notes, ends: Floats, threads: Floats, lost_tuples: int) -> Track:
    histogram = notes.of("histogram")
    fields = {
        name: notes.of(name).astype(np.float64)
        for name in (
            "entered", "completed", "lost", "hops", "pending", "backlog", "latency_ms",
            "sink_ms", "cores", "waiting", "links", "components",
        )
    }  # fmt: skip
    return Track(
        ends=ends,
        sink_tuples=histogram[:, 1:].sum(axis=2).astype(np.float64),
        histogram=histogram,
        threads=threads,
        lost_tuples=lost_tuples,
        **fields,
    )

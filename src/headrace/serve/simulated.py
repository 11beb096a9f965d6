"""Simulations as runs to look at: a journal and decisions, as a run would have written them.

A simulation knows its nodes' use over time, the loop's world its rate; what flows along streams is
what the plan's rates say, at the rate of the moment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.control.history import NAME as DECISIONS
from headrace.control.history import Entry, find_plan
from headrace.control.planning import plan_section, read_plan
from headrace.judge.report import judge
from headrace.model.plan import made_from
from headrace.model.problem import Assignment, Problem
from headrace.page.view import flows, operators
from headrace.run.journal import Journal
from headrace.serve.lines import BITS
from headrace.serve.picture import problem_of

if TYPE_CHECKING:
    from headrace.control.adaptive import Adaptive
    from headrace.model.read import Inputs
    from headrace.simulate.result import Simulation

Section = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AtOneRate:
    """What nodes, components and streams do in a second at the rates of the files."""

    nodes: Mapping[str, tuple[float, float, float, float]]  # CPU ms, MB, bytes out and in
    components: Mapping[str, tuple[float, float, float]]
    streams: Sequence[tuple[str, str, float, float, float]]
    tuples: float
    remote_bytes: float
    total_bytes: float

    @staticmethod
    def of(problem: Problem, assignment: Assignment) -> AtOneRate:
        """As the judge has it."""
        report = judge(problem, assignment, bounded=False)
        nodes = {
            name: (
                10 * (row["cpu"] or 0.0), row["memory_mb"] or 0.0,
                (row["out_mbps"] or 0.0) / BITS, (row["in_mbps"] or 0.0) / BITS,
            )
            for name, row in report.nodes.items()
        }  # fmt: skip
        drawn = operators(problem)
        rates = {o.name: float(problem.rate[o.components].sum()) for o in drawn}
        found = flows(problem, assignment)
        streams = [
            (drawn[f.source].name, drawn[f.target].name, f.tuples_per_s, 0.0, f.inter_node)
            for f in found
        ]
        remote = sum(row[2] for row in nodes.values())
        share = report.inter_node_traffic / report.total_traffic if report.total_traffic else 0.0
        return AtOneRate(
            nodes,
            {name: (rate, rate, 0.0) for name, rate in rates.items()},
            streams,
            float(problem.rate[problem.spout].sum()),
            remote,
            remote / share if share else remote,
        )

    def line(self, at_s: float, seconds: float, factor: float) -> dict[str, Any]:
        """A batch line of so many seconds at a factor of the rates."""
        by = seconds * factor
        return {
            "at_s": at_s,
            "seconds": seconds,
            "tuples": round(self.tuples * by),
            "remote_bytes": round(self.remote_bytes * by),
            "total_bytes": round(self.total_bytes * by),
            "misplaced": 0,
            "failure": None,
            "nodes": {n: [c * by, mb, o * by, i * by] for n, (c, mb, o, i) in self.nodes.items()},
            "components": {n: [x * by for x in row] for n, row in self.components.items()},
            "streams": [[a, b, *(x * by for x in row)] for a, b, *row in self.streams],
        }


def write_simulation(folder: Path, found: Simulation, inputs: Inputs) -> Path:
    """A simulated plan as a run: one line per span of its series."""
    problem, series = found.problem, found.series
    steady = AtOneRate.of(problem, found.assignment)
    journal = Journal(folder)
    journal.begin(made_from(inputs.document), simulated=True, telemetry=None, at_s=0.0)
    section = plan_section(problem, found.assignment)
    journal.add_plan(found.scheduler, section["tasks"], section["placement"])
    spans = found.tracks[0].spans.tolist()
    latency, nodes = series["latency_ms"]["mean"], series["nodes"]
    for i, (at_s, seconds) in enumerate(zip(series["at_s"], spans, strict=True)):
        rate = series["throughput_per_s"][i]
        line = steady.line(at_s, seconds, rate / steady.tuples if steady.tuples else 1.0)
        for name, rows in nodes.items():
            own = line["nodes"].setdefault(name, [0.0] * 4)
            own[0] = 1000 * rows["cores"][i] * seconds
        line |= {
            "batch": i,
            "plan": found.scheduler,
            "tuples": round(rate * seconds),
            "pending": series["pending"][i],
            "latency_s": None if latency[i] is None else latency[i] / 1000,
        }
        journal.add(line)
    journal.end()
    return folder


def write_adaptive(folder: Path, done: Adaptive, inputs: Inputs) -> Path:
    """The loop in a simulated world as a run: one line per interval, and its decisions."""
    document = made_from(inputs.document)
    journal = Journal(folder)
    journal.begin(document, simulated=True, telemetry=None, at_s=0.0)
    history, start_s, now = done.decisions, 0.0, ""
    at_one_rate: AtOneRate | None = None
    for i, interval in enumerate(done.intervals):
        name = plan_at(history, start_s)
        if name and name != now:
            section = find_plan(history, name)
            if section is not None:
                now = name
                journal.add_plan(name, section["tasks"], section["placement"])
                problem = problem_of({"format": "headrace/1", **document}, section)
                at_one_rate = AtOneRate.of(problem, read_plan(problem, section))
        if at_one_rate is not None:
            seconds = interval.end_s - start_s
            factor = interval.rate_per_s / at_one_rate.tuples if at_one_rate.tuples else 1.0
            line = at_one_rate.line(interval.end_s, seconds, factor)
            line |= {"batch": i, "plan": now, "pending": interval.lag_s * interval.rate_per_s,
                     "latency_s": interval.lag_s or None}  # fmt: skip
            journal.add(line)
        start_s = interval.end_s
    journal.end()
    lines = "".join(json.dumps(asdict(entry)) + "\n" for entry in history)
    (folder / DECISIONS).write_text(lines, encoding="utf-8")
    return folder


def plan_at(history: Sequence[Entry], at_s: float) -> str:
    """The plan in force at a moment."""
    before = [entry for entry in history if entry.at_s <= at_s]
    if before:
        return before[-1].plan
    return history[0].left if history else ""

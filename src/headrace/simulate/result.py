"""What a simulation says: a summary with confidence, series over time, and the bottleneck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from headrace.judge.rate import Bottleneck
from headrace.model.arrays import Floats
from headrace.model.document import FORMAT
from headrace.model.output import save_result
from headrace.model.problem import CPU, Assignment, Problem
from headrace.simulate.confidence import Interval, batch_interval, interval
from headrace.simulate.layout import sink_names
from headrace.simulate.track import Track, percentile

GROWTH = 0.01  # of what arrives: more than this stays behind when a run is not stable
FEW = 30.0  # tuples; a backlog that grows by fewer is chance
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """What a plan did in one or more runs."""

    scheduler: str
    problem: Problem
    assignment: Assignment
    seed: int
    detail: str  # tuple, fluid or batch
    warm_up_s: float
    tracks: tuple[Track, ...]
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Simulated seconds of each run."""
        return float(self.tracks[0].ends[-1])

    @cached_property
    def kept(self) -> slice:
        """The spans after the warm-up."""
        first = int(np.searchsorted(self.tracks[0].ends, self.warm_up_s * (1 + 1e-12), "right"))
        return slice(min(first, len(self.tracks[0].ends) - 1), None)

    @cached_property
    def throughput_per_s(self) -> Interval:
        """Tuples of the sources that are completed in a second."""
        kept = self.kept
        rates = [t.completed[kept] / t.spans[kept] for t in self.tracks]
        return self._interval(rates)

    @cached_property
    def mean_latency_ms(self) -> Interval:
        """Mean latency with its confidence; weighted by what completed."""
        kept = self.kept
        means = [_ratio(t.latency_ms[kept].sum(), t.completed[kept].sum()) for t in self.tracks]
        known = [m for m in means if m is not None]
        if not known:
            return Interval(None, None, None)
        track, *others = self.tracks
        if others:
            return interval(np.array(known))
        spread = batch_interval(track.latency_ms[kept], track.completed[kept])
        return Interval(known[0], spread.low, spread.high)

    @cached_property
    def latency_ms(self) -> dict[str, Any]:
        """Mean and percentiles from arrival to the end of all that follows, over all runs."""
        mean = self.mean_latency_ms
        found: dict[str, Any] = {"mean": mean.mean, "low": mean.low, "high": mean.high}
        return found | self._percentiles(0)

    @cached_property
    def p99_latency_ms(self) -> Interval:
        """The latency that 99 % stay below, with its confidence over runs; none for one run."""
        each = [replace(self, tracks=(t,)).latency_ms["p99"] for t in self.tracks]
        known = np.array([value for value in each if value is not None])
        value: float | None = self.latency_ms["p99"]
        if value is None or len(known) < 2:
            return Interval(value, None, None)
        half = interval(known).half
        return Interval(value, value - half, value + half)

    @cached_property
    def sinks(self) -> dict[str, dict[str, Any]]:
        """Throughput and latency at each sink."""
        kept, table = self.kept, dict[str, dict[str, Any]]()
        seconds = sum(float(t.spans[kept].sum()) for t in self.tracks)
        for i, name in enumerate(sink_names(self.problem)):
            count = sum(float(t.sink_tuples[kept, i].sum()) for t in self.tracks)
            total = sum(float(t.sink_ms[kept, i].sum()) for t in self.tracks)
            latency = {"mean": _ratio(total, count)} | self._percentiles(i + 1)
            table[name] = {"throughput_per_s": count / seconds, "latency_ms": latency}
        return table

    @cached_property
    def nodes(self) -> dict[str, dict[str, float | None]]:
        """Use of every node that runs tasks: cores, CPU with what is always taken, links."""
        problem, count = self.problem, len(self.problem.nodes)
        cores = self._mean([t.cores for t in self.tracks])
        links = self._mean([t.links for t in self.tracks])
        fixed = np.zeros(count)
        there = self.assignment.node >= 0
        kind = problem.node_type[self.assignment.node[there]]
        owner = problem.component_of[there]
        np.add.at(fixed, self.assignment.node[there], problem.cpu_fixed[owner, kind] / 100)
        ran = {int(n) for n in np.flatnonzero(cores > 0)} | set(
            self.assignment.node[there].tolist()
        )
        table: dict[str, dict[str, float | None]] = {}
        for n in sorted(ran):
            capacity = float(problem.capacity[n, CPU]) / 100
            used = float(cores[n] + fixed[n] + problem.taken[n, CPU] / 100)
            limited = bool(np.isfinite(capacity) and capacity > 0)
            table[problem.nodes[n]] = {
                "cpu": used / capacity if limited else None,
                "cores": float(cores[n] + fixed[n]),
                "link_out": float(links[n]) if len(links) else None,
                "link_in": float(links[count + n]) if len(links) else None,
                "waiting": float(self._mean([t.waiting for t in self.tracks])[n]),
            }
        return table

    @cached_property
    def racks(self) -> dict[str, dict[str, float]]:
        """Use of every uplink that has a bandwidth; a fluid and batches know none."""
        problem, links = self.problem, self._mean([t.links for t in self.tracks])
        first, count = 2 * len(problem.nodes), len(problem.racks)
        if len(links) < first + 2 * count:
            return {}
        return {
            name: {
                "uplink_out": float(links[first + r]),
                "uplink_in": float(links[first + count + r]),
            }
            for r, name in enumerate(problem.racks)
            if np.isfinite(problem.uplink_mbps[r])
        }

    @property
    def stable(self) -> bool:
        """Whether what is pending stays bounded: it does not grow over the second half of a run.

        It grows if in its last quarter more is pending than in the one before, by more than a
        hundredth of what arrived in a quarter, in the mean over runs.
        """
        pending = np.mean([t.pending for t in self.tracks], axis=0)
        quarter = max(1, len(pending) // 4)
        entered = float(np.mean([t.entered[-quarter:].sum() for t in self.tracks]))
        before, after = pending[-2 * quarter : -quarter], pending[-quarter:]
        if not len(before):
            return True
        return bool(after.mean() - before.mean() <= max(GROWTH * entered, FEW))

    @cached_property
    def bottleneck(self) -> tuple[Bottleneck, float] | None:
        """What is used most: a node's CPU, a task's thread or a link; and how much of it."""
        problem = self.problem
        best: tuple[Bottleneck, float] | None = None
        found: list[tuple[float, Bottleneck]] = []
        for name, row in self.nodes.items():
            found += [(row["cpu"] or 0.0, Bottleneck("cpu", name))]
            found += [(row["link_out"] or 0.0, Bottleneck("bandwidth out", name))]
            found += [(row["link_in"] or 0.0, Bottleneck("bandwidth in", name))]
        for name, row in self.racks.items():
            found += [(row["uplink_out"], Bottleneck("uplink out", rack=name))]
            found += [(row["uplink_in"], Bottleneck("uplink in", rack=name))]
        threads = np.mean([t.threads for t in self.tracks], axis=0)
        if len(threads):
            t = int(threads.argmax())
            found.append((float(threads[t]), Bottleneck("thread", task=problem.task_name(t))))
        if found:
            use, what = max(found, key=lambda row: row[0])
            best = (what, use) if use > 0 else None
        return best

    def total(self, name: str) -> int:
        """A count over all runs, from the first second on."""
        return round(sum(float(getattr(t, name).sum()) for t in self.tracks))

    @property
    def pending(self) -> int:
        """What is still on its way at the end, over all runs."""
        return round(sum(float(t.pending[-1]) for t in self.tracks))

    @cached_property
    def series(self) -> dict[str, Any]:
        """Over time, as the mean of all runs; every list has one figure per moment."""
        tracks, spans = self.tracks, self.tracks[0].spans
        completed = np.mean([t.completed for t in tracks], axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            latency = np.sum([t.latency_ms for t in tracks], axis=0) / np.sum(
                [t.completed for t in tracks], axis=0
            )
        found: dict[str, Any] = {
            "at_s": tracks[0].ends.tolist(),
            "arrived_per_s": (np.mean([t.entered for t in tracks], axis=0) / spans).tolist(),
            "throughput_per_s": (completed / spans).tolist(),
            "pending": np.mean([t.pending for t in tracks], axis=0).tolist(),
            "lost": np.mean([t.lost for t in tracks], axis=0).tolist(),
            "latency_ms": {"mean": [_known(v) for v in latency.tolist()]},
        }
        if all(t.histogram is not None for t in tracks):
            summed = np.sum([t.histogram[:, 0] for t in tracks if t.histogram is not None], axis=0)
            for name, share in PERCENTILES.items():
                found["latency_ms"][name] = [percentile(row, share) for row in summed]
        cores = np.mean([t.cores for t in tracks], axis=0)
        waiting = np.mean([t.waiting for t in tracks], axis=0)
        links = np.mean([t.links for t in tracks], axis=0)
        number = {name: n for n, name in enumerate(self.problem.nodes)}
        found["nodes"] = {
            name: {
                "cores": cores[:, number[name]].tolist(),
                "waiting": waiting[:, number[name]].tolist(),
                "link_out": links[:, number[name]].tolist(),
                "link_in": links[:, len(number) + number[name]].tolist(),
            }
            for name in self.nodes
        }
        queues = np.mean([t.components for t in tracks], axis=0)
        found["queues"] = {
            name: queues[:, c].tolist() for c, name in enumerate(self.problem.components)
        }
        return found

    def summary(self) -> dict[str, Any]:
        """The figures of the contract."""
        limit = self.bottleneck
        return {
            "throughput_per_s": self.throughput_per_s.to_json(),
            "latency_ms": self.latency_ms
            | {"p99_low": self.p99_latency_ms.low, "p99_high": self.p99_latency_ms.high},
            "sinks": self.sinks,
            "nodes": self.nodes,
            "racks": self.racks,
            "entered": self.total("entered"),
            "completed": self.total("completed"),
            "pending": self.pending,
            "lost": self.total("lost"),
            "hops": self.total("hops"),
            "stable": self.stable,
            "bottleneck": None if limit is None else str(limit[0]),
            "bottleneck_use": None if limit is None else limit[1],
        }

    def to_json(self) -> dict[str, Any]:
        """The contract's object."""
        return {
            "format": FORMAT,
            "plan": self.scheduler,
            "seed": self.seed,
            "detail": self.detail,
            "simulated_seconds": self.seconds,
            "runs": len(self.tracks),
            "warm_up_s": self.warm_up_s,
            "summary": self.summary(),
            "series": self.series,
            "notes": list(self.notes),
        }

    def html(self, *, title: str | None = None, command: str | None = None) -> str:
        """The picture as one HTML page, which needs no network."""
        from headrace.page.simulation import simulation_page

        return simulation_page([self], title=title, command=command)

    def save(self, file: str | Path) -> Path:
        """Write it as .json or .yaml, or as .html to look at."""
        return save_result(file, self.to_json, self.html)

    def __repr__(self) -> str:
        from headrace.words import simulation_in_a_line

        return simulation_in_a_line(self)

    def _percentiles(self, row: int) -> dict[str, float | None]:
        kept = self.kept
        if any(t.histogram is None for t in self.tracks):
            return dict.fromkeys(PERCENTILES)
        summed = np.sum(
            [t.histogram[kept, row].sum(axis=0) for t in self.tracks if t.histogram is not None],
            axis=0,
        )
        return {name: percentile(summed, share) for name, share in PERCENTILES.items()}

    def _mean(self, values: Sequence[Floats]) -> Floats:
        """The mean after the warm-up, over time and runs."""
        kept = self.kept
        weight = self.tracks[0].spans[kept]
        return np.mean([np.average(v[kept], axis=0, weights=weight) for v in values], axis=0)

    def _interval(self, rates: Sequence[Floats]) -> Interval:
        weight = self.tracks[0].spans[self.kept]
        if len(rates) > 1:
            return interval(np.array([np.average(r, weights=weight) for r in rates]))
        return batch_interval(rates[0] * weight, weight)


def _ratio(total: float, count: float) -> float | None:
    return float(total / count) if count > 0 else None


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None

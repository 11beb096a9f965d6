"""Advice on one application: its replay, the curve, settings, findings, what is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.advise.cold_start import fit_cold_starts
from headrace.advise.curve import Point, choose_point, curve_of, price_of
from headrace.advise.findings import Saving, find_all
from headrace.advise.memory import Memory, memory_of
from headrace.advise.overheads import fit_overheads
from headrace.advise.replay import Outcome, replay
from headrace.advise.settings import Setting, settings_for
from headrace.advise.streams import (
    HEADROOM,
    Stream,
    enough_for,
    stream_findings,
    stream_settings,
    streams_of,
)
from headrace.advise.what_if import Shape, WhatIf, replay_with, shape_of
from headrace.advise.work import Work, work_of
from headrace.model.document import FORMAT
from headrace.model.output import save_result
from headrace.observe.spark_log.trace import Trace


@dataclass(frozen=True, repr=False)
class Advice:
    """What an application did, and what it would do elsewhere."""

    trace: Trace
    work: Work
    shape: Shape
    replayed: Outcome
    curve: tuple[Point, ...]
    chosen: Point
    why: str
    settings: tuple[Setting, ...]
    findings: tuple[Saving, ...]
    streams: tuple[Stream, ...]
    memory: Memory
    unknown: tuple[str, ...]

    @property
    def error(self) -> float:
        """How far the replay is from the log, as a share of the log's time."""
        return abs(self.replayed.wall_s - self.trace.wall_s) / max(self.trace.wall_s, 1e-9)

    def what_if(
        self,
        *,
        executors: int | None = None,
        cores: int | None = None,
        partitions: int | None = None,
        speed: float = 1.0,
        no_stragglers: bool = False,
    ) -> Outcome:
        """The application with something different."""
        change = WhatIf(executors, cores, partitions, speed, no_stragglers)
        return replay_with(self.trace, self.work, change)

    def to_json(self) -> dict[str, Any]:
        """As the contract has it."""
        log_core_h = core_hours(self.trace)
        answer: dict[str, Any] = {
            "format": FORMAT,
            "application": {
                "id": self.trace.id,
                "name": self.trace.name,
                "spark": self.trace.version,
                "ended": self.trace.ended,
            },
            "log": {
                "wall_s": round(self.trace.wall_s, 3),
                "core_hours": round(log_core_h, 6),
                "executors": self.shape.executors,
                "cores": self.shape.cores,
                "memory_mb": self.memory.asked_mb,
                "memory_used_mb": self.memory.used_mb,
            },
            "replay": {
                "wall_s": round(self.replayed.wall_s, 3),
                "core_hours": round(self.replayed.core_s / 3600, 6),
            },
            "curve": [point.to_json() for point in self.curve],
            "chosen": {**self.chosen.to_json(), "reason": self.why},
            "settings": [setting.to_json() for setting in self.settings],
            "findings": [finding.to_json() for finding in self.findings],
            "unknown": list(self.unknown),
            "notes": list(self.trace.notes),
        }
        if self.streams:
            answer["streams"] = [stream.to_json() for stream in self.streams]
        return answer

    def html(self, *, title: str | None = None, command: str | None = None) -> str:
        """The advice as one HTML page, which needs no network."""
        from headrace.page.advice import advice_page

        return advice_page(self, title=title, command=command)

    def save(self, file: str | Path) -> Path:
        """Write it as .json or .yaml, or as .html to look at."""
        return save_result(file, self.to_json, self.html)

    def __repr__(self) -> str:
        return (
            f"<Advice {self.trace.name}: {self.trace.wall_s:.4g} s in the log, "
            f"{self.replayed.wall_s:.4g} s replayed; {self.chosen.executors} executors of "
            f"{self.chosen.cores} cores: {self.chosen.wall_s:.4g} s>"
        )

    def _repr_html_(self) -> str:
        from headrace.page.advice import advice_fragment

        return advice_fragment(self)


def prepare(trace: Trace) -> Work:
    """The work of an application, with what Spark itself takes fitted to the log."""
    return fit_cold_starts(fit_overheads(work_of(trace), trace), trace)


def core_hours(trace: Trace) -> float:
    """Cores held while the application ran, as the log has it."""
    held = 0.0
    for span in trace.executors:
        first = max(min(span.added_ms, trace.end_ms), trace.start_ms)
        last = trace.end_ms if span.removed_ms is None else min(span.removed_ms, trace.end_ms)
        held += span.cores * max(last - first, 0)
    return held / 3_600_000


def advise_on(
    trace: Trace,
    *,
    deadline_s: float | None = None,
    budget: float | None = None,
    catalog: Mapping[str, object] | None = None,
) -> Advice:
    """Everything there is to say about one application."""
    work = prepare(trace)
    shape, memory = shape_of(trace, work), memory_of(trace)
    replayed = replay(work)
    price = price_of(catalog, shape.cores, memory.asked_mb)
    curve = curve_of(trace, work, price)
    own = next(p for p in curve if (p.executors, p.cores) == (shape.executors, shape.cores))
    chosen, why = choose_point(curve, own, deadline_s=deadline_s, budget=budget)
    streams = streams_of(trace, work)
    if streams and deadline_s is None and budget is None:
        chosen = enough_for(streams, curve) or max(curve, key=lambda p: p.executors * p.cores)
        why = f"the fewest that sustain what arrives with {1 - HEADROOM:.0%} to spare"
    settings, unknown = settings_for(trace, work, chosen, why, memory)
    settings += stream_settings(trace, work, streams)
    findings = find_all(trace, work, replayed, shape.executors * shape.slots)
    return Advice(
        trace=trace,
        work=work,
        shape=shape,
        replayed=replayed,
        curve=tuple(curve),
        chosen=chosen,
        why=why,
        settings=tuple(settings),
        findings=tuple(stream_findings(streams) + findings),
        streams=tuple(streams),
        memory=memory,
        unknown=tuple(dict.fromkeys(unknown)),
    )

"""Advice on a Spark application, for people: the curve as bars, settings, findings."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from headrace.advise.report import Advice
from headrace.figures import NONE, duration, number, plural
from headrace.terminal.console import bullets, remarks, table
from headrace.terminal.plans import bar

MOST_FINDINGS = 12


def advice(found: Advice) -> RenderableType:
    """One application."""
    return Group(*_parts(found))


def _parts(found: Advice) -> Iterator[RenderableType]:
    trace, shape = found.trace, found.shape
    used = "unknown" if found.memory.used_mb is None else f"{found.memory.used_mb:,.0f} MB"
    size = f"{plural(shape.executors, 'executor')} of {plural(shape.cores, 'core')}"
    yield Text(f"{trace.name} ({trace.id}, Spark {trace.version})", style="bold")
    yield Text(
        f"  log: {duration(trace.wall_s)} on {size}; "
        f"replayed: {duration(found.replayed.wall_s)} ({found.error:.1%} off)\n"
        f"  memory of an executor: {found.memory.asked_mb:,.0f} MB asked for; "
        f"execution and storage used {used}"
    )
    yield _curve(found)
    yield _settings(found)
    yield from _findings(found)
    for stream in found.streams:
        sustains = stream.sustained_rows_per_s
        most = "more than the log can tell" if sustains is None else f"{number(sustains)} rows/s"
        arrives = NONE if stream.rows_per_s is None else number(stream.rows_per_s)
        yield Text(
            f"  {stream.name}: {stream.batches} batches of {duration(stream.batch_s)}, "
            f"{arrives} rows/s; sustains {most}"
        )
    yield from bullets("not to be known from this log:", found.unknown, "dim")
    yield from remarks(f"note: {note}" for note in trace.notes)


def _curve(found: Advice) -> RenderableType:
    grid = table(
        "executors",
        "cores",
        "time",
        "",
        "core-hours",
        "cost",
        words=(3,),
        left=0,
        drop=("", "cost", "core-hours"),
    )
    longest = max(p.wall_s for p in found.curve)
    for p in found.curve:
        grid.add_row(
            str(p.executors),
            str(p.cores),
            duration(p.wall_s),
            bar(p.wall_s / longest if longest else 0.0),
            number(p.core_hours),
            NONE if p.cost is None else number(p.cost),
            style="bold" if p == found.chosen else None,
        )
    return grid


def _settings(found: Advice) -> RenderableType:
    grid = table("setting", "value", "why", left=3, prose=(2,), drop=())
    for setting in found.settings:
        grid.add_row(setting.name, setting.value, setting.reason)
    return grid


def _findings(found: Advice) -> Iterator[RenderableType]:
    if not found.findings:
        return
    grid = table(
        "seconds", "what", "where", "evidence", left=0, words=(1, 2), prose=(3,), drop=("where",)
    )
    for f in found.findings[:MOST_FINDINGS]:
        seconds = NONE if f.seconds is None else number(f.seconds)
        grid.add_row(seconds, f.kind, f.stage or "", f.evidence)
    if len(found.findings) > MOST_FINDINGS:
        grid.caption = f"and {len(found.findings) - MOST_FINDINGS} more"
    yield grid

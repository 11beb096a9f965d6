"""What a run on Spark measured, beside what was predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from headrace.figures import NONE, number, percent
from headrace.terminal.console import table

if TYPE_CHECKING:
    from headrace.demo import DemoRun


def live_run(ran: DemoRun) -> RenderableType:
    """A run before and after its new plan: measured, and predicted before it ran."""
    first, second = ran.plans
    columns = ran.before, ran.predicted, ran.after
    names = first, f"{second}, predicted", f"{second}, measured"
    grid = table("per batch, median", *names, drop=())
    grid.add_row("seconds", *(number(batch.seconds) for batch in columns))
    grid.add_row("bytes between nodes", *(number(batch.remote_bytes) for batch in columns))
    shares = (batch.remote_bytes / max(1, ran.total_bytes) for batch in columns)
    grid.add_row("  of all bytes", *map(percent, shares))
    for node in sorted({node for batch in columns for node in batch.cpu_ms}):
        used = (number(b.cpu_ms[node]) if node in b.cpu_ms else NONE for b in columns)
        grid.add_row(f"CPU of {node}, ms", *used)
    off = abs(ran.predicted.seconds - ran.after.seconds) / max(ran.after.seconds, 1e-9)
    words = f"The batch time was predicted {percent(off)} off. "
    words += f"{ran.batches} batches in one run, {ran.misplaced} tasks misplaced. "
    return Group(Text(""), grid, Text(f"{words}Decision: {ran.decision.reason}."))

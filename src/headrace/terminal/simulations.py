"""What a plan did in a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from headrace.figures import NONE, number, percent, plural
from headrace.terminal.console import MOST_ROWS, bullets, count_rest, table
from headrace.terminal.plans import bar
from headrace.words import simulated

if TYPE_CHECKING:
    from headrace.simulate.confidence import Interval
    from headrace.simulate.result import Simulation


def simulation(found: Simulation) -> RenderableType:
    """One plan: the sentence, sinks, nodes, and what was assumed."""
    runs = f" in each of {plural(len(found.tracks), 'run')}" if len(found.tracks) > 1 else ""
    warm = f", the first {number(found.warm_up_s)} s left out" if found.warm_up_s else ""
    first = f"{found.scheduler}: {simulated(found)}"
    second = f"{number(found.seconds)} s{runs}{warm}; {_counts(found)}"
    limit = found.bottleneck
    third = "" if limit is None else f"\nbusiest: {limit[0]}, {percent(limit[1])}"
    sinks = table("sink", "tuples/s", "mean ms", "p50", "p95", "p99")
    for name, row in list(found.sinks.items())[:MOST_ROWS]:
        latency = row["latency_ms"]
        cells = (number(latency[key]) for key in ("mean", "p50", "p95", "p99"))
        sinks.add_row(name, number(row["throughput_per_s"]), *cells)
    nodes = table("node", "cpu", "", "link out", "link in", "waiting")
    rows = sorted(found.nodes.items(), key=lambda item: -(item[1]["cpu"] or 0.0))
    for name, use in rows[:MOST_ROWS]:
        cpu = use["cpu"]
        nodes.add_row(
            name,
            NONE if cpu is None else percent(cpu),
            bar(cpu or 0.0),
            _share(use["link_out"]),
            _share(use["link_in"]),
            number(use["waiting"]),
        )
    count_rest(nodes, len(rows), " nodes")
    head = Text(f"{first}\n{second}{third}", style="" if found.stable else "red")
    return Group(head, sinks, nodes, *bullets("Notes:", found.notes, "dim"))


def simulations(found: Sequence[Simulation]) -> RenderableType:
    """Several plans side by side."""
    grid = table("plan", "tuples/s", "±", "mean ms", "±", "p50", "p99", "stable", "busiest")
    for one in found:
        rate, latency, limit = one.throughput_per_s, one.latency_ms, one.bottleneck
        grid.add_row(
            one.scheduler,
            number(rate.mean),
            _half(rate),
            number(latency["mean"]),
            _half(one.mean_latency_ms),
            number(latency["p50"]),
            number(latency["p99"]),
            "yes" if one.stable else "no",
            NONE if limit is None else f"{limit[0]}, {percent(limit[1])}",
        )
    return grid


def _counts(found: Simulation) -> str:
    lost = found.total("lost")
    words = f"{number(found.total('entered'))} tuples entered, {number(found.pending)} are pending"
    return words + (f", {number(lost)} are lost" if lost else "")


def _share(value: float | None) -> str:
    return NONE if value is None else percent(value)


def _half(found: Interval) -> str:
    return NONE if found.low is None else number(found.half)

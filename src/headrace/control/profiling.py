"""What the tuples of an application cost on this machine: its input ramped, a line fitted.

The first step of Nasiri's and of Cao's method. Every component runs as one task, without Spark;
batches grow from an eighth to the whole, again and again. CPU against tuples gives a slope, the
cost of a tuple, and an intercept, what a batch takes whatever it holds; both with 95 % intervals.
"""

# pyright: reportUnknownParameterType=false
# pyarrow and scipy say little about their types.

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.errors import InvalidInput
from headrace.model.arrays import Floats
from headrace.model.document import FORMAT
from headrace.model.topology import Topology
from headrace.run.batches import BatchDone, Settings
from headrace.run.rehearsal import rehearse

SIZES = tuple(i / 8 for i in range(1, 9))  # of a batch, one after another
WARM_UP = 2  # batches: modules load, caches fill
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure, and where it is with 95 %."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What a component does with a tuple."""

    component: str
    cpu_ms: Interval  # per tuple
    batch_ms: Interval  # per batch, whatever it holds
    selectivity: dict[str, float]  # tuples to each other component, per tuple
    bytes: dict[str, float]  # of such a tuple
    r2: float
    batches: int

    @property
    def most_per_s(self) -> float:
        """Tuples/s that one thread does at most."""
        return 1000 / self.cpu_ms.value if self.cpu_ms.value > 0 else math.inf


def profile_app(
    topology: Topology,
    folder: Path,
    *,
    rows: int = 20_000,
    repeats: int = 4,
    make_rows: Callable[[int, int], pa.Table] | None = None,
    components: Sequence[str] = (),
) -> list[Cost]:
    """The costs of an application's components, or of some; `folder` takes its state and results.

    `make_rows(first, count)` gives rows of the sources; absent: numbers, as generators take them.
    """
    for name in components:
        if name not in topology.components:
            known = ", ".join(topology.components)
            raise InvalidInput(f"the topology has no component `{name}`; there are: {known}")
    alone = topology.with_tasks(dict.fromkeys(topology.components, 1))
    spouts = [name for name, component in alone.components.items() if component.spout]
    give = make_rows or number_rows
    inputs: list[dict[str, Any]] = []
    first = 0
    for size in (1.0,) * WARM_UP + SIZES * repeats:
        count = max(1, round(rows * size))
        inputs.append({spout: give(first, count) for spout in spouts})
        first += count
    done = rehearse(alone, inputs, Settings(folder))[WARM_UP:]
    return [cost_of(name, done) for name in components or alone.components]


def number_rows(first: int, count: int) -> pa.Table:
    """The numbers from one on, as `value`."""
    return pa.table({"value": np.arange(first, first + count)})


def cost_of(component: str, batches: Sequence[BatchDone]) -> Cost:
    """A component's cost from batches of different sizes."""
    reports = [
        [r for r in done.reports if r.component == component and r.role == "work"]
        for done in batches
    ]
    given = np.array([sum(r.tuples_in or r.tuples_out for r in own) for own in reports], float)
    cpu_ms = np.array([sum(r.cpu_ms for r in own) for own in reports])
    slope, start, r2 = fit_line(given, cpu_ms)
    sent: dict[str, float] = {}
    sizes: dict[str, float] = {}
    for report in (r for own in reports for r in own):
        for target, _, tuples, size in report.edges:
            sent[target] = sent.get(target, 0.0) + tuples
            sizes[target] = sizes.get(target, 0.0) + size
    total = float(given.sum())
    return Cost(
        component,
        slope,
        start,
        {target: tuples / total for target, tuples in sent.items()} if total > 0 else {},
        {target: sizes[target] / tuples for target, tuples in sent.items() if tuples > 0},
        r2,
        len(batches),
    )


def fit_line(x: Floats, y: Floats) -> tuple[Interval, Interval, float]:
    """Slope and intercept of y over x with their intervals, and how much the line explains.

    Neither is below 0: a tuple costs no less than nothing.
    """
    from scipy import stats

    if len(np.unique(x)) < 3:
        raise InvalidInput(
            f"batches of {len(np.unique(x))} different sizes are too few for a line; give more rows"
        )
    line: Any = stats.linregress(x, y)
    wide = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(x) - 2))

    def interval(value: float, error: float) -> Interval:
        low, high = value - wide * error, value + wide * error
        return Interval(max(0.0, value), max(0.0, low), max(0.0, high))

    return (
        interval(float(line.slope), float(line.stderr)),
        interval(float(line.intercept), float(line.intercept_stderr)),
        float(line.rvalue) ** 2,
    )


def profile_document(costs: Sequence[Cost], machine_type: str) -> dict[str, Any]:
    """The sections of a file: `profile` for the machine type, and `streams`."""
    profile = {
        cost.component: {
            machine_type: {
                "cpu_ms": round(cost.cpu_ms.value, 9),
                "r2": round(cost.r2, 4),
                "windows": cost.batches,
            }
        }
        for cost in costs
    }
    streams = [
        {
            "from": cost.component,
            "to": target,
            "selectivity": round(value, 6),
            "bytes": round(cost.bytes.get(target, 0.0), 3),
        }
        for cost in costs
        for target, value in cost.selectivity.items()
    ]
    return {"format": FORMAT, "profile": profile, **({"streams": streams} if streams else {})}

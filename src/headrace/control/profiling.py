"""What the tuples of an application cost on this machine: its input ramped, a line fitted.

The first step of Nasiri's and of Cao's method. Every component runs as one task, without Spark;
batches grow from an eighth to the whole, again and again. CPU against tuples gives a slope, the
cost of a tuple, and an intercept, what a batch takes whatever it holds; the clock against tuples
gives what a thread does at most. All have 95 % intervals.
"""

# pyright: reportUnknownParameterType=false
# pyarrow and scipy say little about their types.

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headrace.errors import InvalidInput
from headrace.model.arrays import Floats
from headrace.model.document import FORMAT
from headrace.model.topology import Topology
from headrace.run.apps import load, topology_of
from headrace.run.batches import BatchDone, Batches, Settings
from headrace.run.placement import PlanInForce
from headrace.run.rehearsal import rehearse_batch

SIZES = tuple(i / 8 for i in range(1, 9))  # of a batch, one after another
WARM_UP = 2  # batches: modules load, caches fill
CONFIDENCE = 0.95
BATCH_MS = 400.0  # of CPU for the largest batch: several periods of a quota, which are 100 ms
FIRST_ROWS, LEAST_ROWS, MOST_ROWS = 16, len(SIZES), 1_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure, and where it is with 95 %."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Interval:
        """The same figure in another unit."""
        return Interval(self.value * factor, self.low * factor, self.high * factor)

    def to_rate(self) -> Interval:
        """Milliseconds of one as how many a second."""

        def rate(ms: float) -> float:
            return 1000 / ms if ms > 0 else math.inf

        return Interval(rate(self.value), rate(self.high), rate(self.low))


@dataclass(frozen=True, slots=True)
class Cost:
    """What a component does with a tuple."""

    component: str
    cpu_ms: Interval  # per tuple
    batch_ms: Interval  # per batch, whatever it holds
    wall_ms: Interval  # per tuple, by the clock: CPU, and waiting for it or for a disk
    selectivity: dict[str, float]  # tuples to each other component, per tuple
    bytes: dict[str, float]  # of such a tuple
    r2: float
    batches: int
    flag: str | None = None  # what is doubtful about it

    @property
    def most_per_s(self) -> Interval:
        """Tuples/s that one thread does at most."""
        return self.wall_ms.to_rate()


@dataclass(frozen=True, slots=True)
class Ramp:
    """What is profiled, and how; as `headrace profile` takes it."""

    app: str
    options: Mapping[str, Any]
    rows: int | None = None
    repeats: int = 4
    rows_file: str | None = None
    components: tuple[str, ...] = ()


def profile_ramp(ramp: Ramp, folder: Path) -> list[Cost]:
    """The costs of an application that is named."""
    return profile_app(
        topology_of(load(ramp.app), ramp.options),
        folder,
        rows=ramp.rows,
        repeats=ramp.repeats,
        make_rows=None if ramp.rows_file is None else read_rows(ramp.rows_file),
        components=ramp.components,
    )


def profile_app(
    topology: Topology,
    folder: Path,
    *,
    rows: int | None = None,
    repeats: int = 4,
    make_rows: Callable[[int, int], pa.Table] | None = None,
    components: Sequence[str] = (),
) -> list[Cost]:
    """The costs of an application's components, or of some; `folder` takes its state and results.

    `rows` are those of the largest batch; absent: as many as take 0.4 s of CPU, so that the line
    is seen through the noise. `make_rows(first, count)` gives rows of the sources; absent:
    numbers, as generators take them.
    """
    for name in components:
        if name not in topology.components:
            known = ", ".join(topology.components)
            raise InvalidInput(f"the topology has no component `{name}`; there are: {known}")
    alone = topology.with_tasks(dict.fromkeys(topology.components, 1))
    run = Rehearsal(alone, folder, make_rows or number_rows)
    if rows is None:
        rows = find_rows(run)
    for _ in range(WARM_UP):
        run(rows)
    done = [run(max(1, round(rows * size))) for size in SIZES * repeats]
    return [cost_of(name, done) for name in components or alone.components]


class Rehearsal:
    """Runs one batch after another, each with the rows that follow."""

    def __init__(
        self, topology: Topology, folder: Path, give: Callable[[int, int], pa.Table]
    ) -> None:
        self._batches = Batches(topology, PlanInForce(topology), Settings(folder))
        self._spouts = [name for name, c in topology.components.items() if c.spout]
        self._give, self._batch, self._row = give, 0, 0

    def __call__(self, rows: int) -> BatchDone:
        inputs = {spout: self._give(self._row, rows) for spout in self._spouts}
        done = rehearse_batch(self._batches, self._batch, inputs)
        assert done is not None, "its folder is new"
        self._batch, self._row = self._batch + 1, self._row + rows
        return done


def find_rows(run: Callable[[int], BatchDone]) -> int:
    """Rows of a batch that takes `BATCH_MS` of CPU, by batches that grow."""
    rows = FIRST_ROWS
    run(rows)  # modules load
    while (cpu_ms := cpu_of(run(rows))) < BATCH_MS / 4 and rows < MOST_ROWS:
        rows = min(MOST_ROWS, rows * 4)
    return min(MOST_ROWS, max(LEAST_ROWS, round(rows * BATCH_MS / max(cpu_ms, 1.0))))


def cpu_of(done: BatchDone) -> float:
    """CPU milliseconds of a batch, of all components."""
    return sum(report.cpu_ms for report in done.reports)


def number_rows(first: int, count: int) -> pa.Table:
    """The numbers from one on, as `value`."""
    return pa.table({"value": np.arange(first, first + count)})


def read_rows(file: str) -> Callable[[int, int], pa.Table]:
    """Rows of a Parquet file, from the beginning again when they are used up."""
    try:
        table: Any = pq.read_table(file)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file}: no Parquet file that can be read: {error}") from None
    if not table.num_rows:
        raise InvalidInput(f"{file}: holds no rows")

    def give(first: int, count: int) -> pa.Table:
        return table.take(np.arange(first, first + count) % table.num_rows)

    return give


def cost_of(component: str, batches: Sequence[BatchDone]) -> Cost:
    """A component's cost from batches of different sizes."""
    reports = [
        [r for r in done.reports if r.component == component and r.role == "work"]
        for done in batches
    ]
    given = np.array([sum(r.tuples_in or r.tuples_out for r in own) for own in reports], float)
    cpu_ms = np.array([sum(r.cpu_ms for r in own) for own in reports])
    wall_ms = np.array([sum((r.ended - r.began) * 1000 for r in own) for own in reports])
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
        fit_line(given, wall_ms)[0],
        {target: tuples / total for target, tuples in sent.items()} if total > 0 else {},
        {target: sizes[target] / tuples for target, tuples in sent.items() if tuples > 0},
        r2,
        len(batches),
        None if slope.low > 0 else "the interval of its cost reaches 0",
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


def profile_document(costs: Mapping[str, Sequence[Cost]]) -> dict[str, Any]:
    """The sections of a file: `profile` for machine types with their costs, and `streams`."""
    profile: dict[str, dict[str, Any]] = {}
    streams: dict[tuple[str, str], dict[str, Any]] = {}
    for machine_type, own in costs.items():
        for cost in own:
            profile.setdefault(cost.component, {})[machine_type] = {
                "cpu_ms": round(cost.cpu_ms.value, 9),
                "r2": round(cost.r2, 4),
                "windows": cost.batches,
                **({} if cost.flag is None else {"flag": cost.flag}),
            }
            for target, value in cost.selectivity.items():
                stream = {
                    "from": cost.component,
                    "to": target,
                    "selectivity": round(value, 6),
                    "bytes": round(cost.bytes.get(target, 0.0), 3),
                }
                streams.setdefault((cost.component, target), stream)  # the same on every type
    found = {"streams": list(streams.values())} if streams else {}
    return {"format": FORMAT, "profile": profile, **found}


def profile_report(costs: Mapping[str, Sequence[Cost]]) -> dict[str, Any]:
    """All that was measured, with intervals; a bound that is not known is null."""

    def bounds(figure: Interval) -> dict[str, float | None]:
        return {name: x if math.isfinite(x) else None for name, x in asdict(figure).items()}

    return {
        "costs": [
            {
                "component": cost.component,
                "type": machine_type,
                "cpu_ms": bounds(cost.cpu_ms),
                "batch_ms": bounds(cost.batch_ms),
                "most_per_s": bounds(cost.most_per_s),
                "selectivity": cost.selectivity,
                "bytes": cost.bytes,
                "r2": cost.r2,
                "batches": cost.batches,
            }
            for machine_type, own in costs.items()
            for cost in own
        ]
    }

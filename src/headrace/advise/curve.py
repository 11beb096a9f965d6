"""Time against cost: the replay on more and on fewer executors, and which of them to take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.advise.what_if import Shape, WhatIf, replay_with, shape_of
from headrace.advise.work import Work
from headrace.errors import Infeasible, InvalidInput
from headrace.figures import duration, number, plural
from headrace.observe.spark_log.trace import Trace

FACTORS = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0)
MOST_EXECUTORS = 4096
SLOWER = 0.05  # than before: what the knee may cost in time
LEAST_GAIN = 0.02  # of the time: less is not worth another executor
MOST_GROWTH = 2.0  # times what the log had: beyond, what executors cost each other is in no log


@dataclass(frozen=True, slots=True)
class Price:
    """What an executor costs per hour: the cheapest machine type that holds it."""

    machine: str
    per_hour: float


@dataclass(frozen=True, slots=True)
class Point:
    """The application on so many executors of so many cores."""

    executors: int
    cores: int  # of each
    wall_s: float
    core_hours: float
    cost: float | None  # None: no prices were given

    @property
    def spent(self) -> float:
        """What a budget is compared with."""
        return self.core_hours if self.cost is None else self.cost

    def to_json(self) -> dict[str, float | int | None]:
        return {
            "executors": self.executors,
            "cores": self.cores,
            "wall_s": round(self.wall_s, 3),
            "core_hours": round(self.core_hours, 6),
            "cost": None if self.cost is None else round(self.cost, 6),
        }


def price_of(
    catalog: Mapping[str, object] | None, cores: int, memory_mb: float | None
) -> Price | None:
    """The cheapest machine type of a catalog that holds an executor; prices are per hour."""
    if not catalog:
        return None
    fits: list[tuple[float, str]] = []
    for name, machine in catalog.items():
        cpu = float(getattr(machine, "cpu", 0) or 0)
        memory = getattr(machine, "memory_mb", None)
        if cpu >= 100 * cores and (memory is None or memory_mb is None or memory >= memory_mb):
            # Several executors share a machine that is large enough for them.
            each = max(1, int(cpu // (100 * cores)))
            if memory is not None and memory_mb:
                each = max(1, min(each, int(memory // memory_mb)))
            fits.append((float(getattr(machine, "price", 0) or 0) / each, name))
    if not fits:
        raise Infeasible(
            f"no machine type of the catalog holds an executor of {cores} cores"
            + (f" and {memory_mb:.0f} MB" if memory_mb else ""),
            resource="cpu",
            needed=100.0 * cores,
            available=max(
                (float(getattr(m, "cpu", 0) or 0) for m in catalog.values()), default=0.0
            ),
        )
    per_hour, machine = min(fits)
    return Price(machine, per_hour)


def sizes(shape: Shape) -> list[tuple[int, int]]:
    """Executors and cores to try: from an eighth to four times what there was."""
    if shape.local:
        counts = {max(1, round(shape.cores * f)) for f in FACTORS}
        return [(1, cores) for cores in sorted(counts)]
    counts = {min(max(1, round(shape.executors * f)), MOST_EXECUTORS) for f in FACTORS}
    return [(executors, shape.cores) for executors in sorted(counts | {shape.executors})]


def curve_of(trace: Trace, work: Work, price: Price | None) -> list[Point]:
    """One point per number of executors, smallest first."""
    points: list[Point] = []
    for executors, cores in sizes(shape_of(trace, work)):
        points.append(point_at(trace, work, executors, cores, price))
    return points


def point_at(
    trace: Trace, work: Work, executors: int, cores: int, price: Price | None, **change: object
) -> Point:
    """The application with so many executors."""
    what_if = WhatIf(executors=executors, cores=cores, **change)  # pyright: ignore[reportArgumentType]
    outcome = replay_with(trace, work, what_if)
    hours = outcome.core_s / 3600
    cost = None if price is None else price.per_hour * hours / cores
    return Point(executors, cores, outcome.wall_s, hours, cost)


def choose_point(
    curve: Sequence[Point], own: Point, *, deadline_s: float | None, budget: float | None
) -> tuple[Point, str]:
    """The point to take instead of the log's own, and why: a deadline, a budget, or the knee."""
    if deadline_s is not None and budget is not None:
        raise InvalidInput("a deadline and a budget: give one of them")
    if deadline_s is not None:
        in_time = [p for p in curve if p.wall_s <= deadline_s]
        if not in_time:
            best = min(curve, key=lambda p: p.wall_s)
            raise Infeasible(
                f"no number of executors gives {duration(deadline_s)}: "
                f"{best.executors} take {duration(best.wall_s)}, and more do not help",
                resource="time",
                needed=deadline_s,
                available=best.wall_s,
            )
        chosen = min(in_time, key=lambda p: (p.spent, p.wall_s))
        return chosen, f"the cheapest that ends within {duration(deadline_s)}"
    if budget is not None:
        paid = [p for p in curve if p.spent <= budget]
        unit = "core-hours" if curve[0].cost is None else "of the catalog's money"
        if not paid:
            least = min(curve, key=lambda p: p.spent)
            raise Infeasible(
                f"no number of executors keeps to {number(budget)} {unit}: "
                f"the least is {number(least.spent)}",
                resource="budget",
                needed=least.spent,
                available=budget,
            )
        chosen = min(paid, key=lambda p: (p.wall_s, p.spent))
        return chosen, f"the fastest for at most {number(budget)} {unit}"
    chosen = knee(curve, own)
    further = knee(curve, own, growth=math.inf)
    why = "the knee of the curve: beyond it, time costs more than it is worth"
    if further.executors * further.cores > chosen.executors * chosen.cores:
        why = (
            f"twice the log's at most: {plural(further.executors, 'executor')} of "
            f"{plural(further.cores, 'core')} may be better, and a log of this will tell"
        )
    return chosen, why


def knee(curve: Sequence[Point], own: Point, *, growth: float = MOST_GROWTH) -> Point:
    """The least time times cost: there, a percent less time costs a percent more.

    Who asks for nothing does not ask to wait longer: points much slower than before are left out,
    and so are those too far from what the log shows.
    """
    most = growth * own.executors * own.cores
    near = [p for p in curve if p.executors * p.cores <= most] or curve
    curve = [p for p in near if p.wall_s <= own.wall_s * (1 + SLOWER)] or near
    best = min(curve, key=lambda p: (p.wall_s * max(p.spent, 1e-12), p.executors * p.cores))
    alike = [
        p
        for p in curve
        if p.wall_s <= best.wall_s * (1 + LEAST_GAIN) and p.spent <= best.spent * (1 + LEAST_GAIN)
    ]
    return min(alike, key=lambda p: p.executors * p.cores)

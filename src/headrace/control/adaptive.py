"""The loop in a simulated world, from files to what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from headrace.control.history import Entry
from headrace.control.learning import outcomes
from headrace.control.loop import run
from headrace.control.planning import LoopSettings, place_within_reach, resize
from headrace.control.simulated import Interval, Simulated
from headrace.control.truth import Truth
from headrace.errors import InvalidInput
from headrace.model.document import FORMAT
from headrace.model.read import Inputs
from headrace.model.simulation_sections import Event
from headrace.model.sizable import sizable
from headrace.model.workload import Workload
from headrace.planner import Plan
from headrace.registry import By
from headrace.simulate.arrivals import rate_curve


@dataclass(frozen=True, slots=True)
class Adaptive:
    """What a loop decided, and what happened between its decisions."""

    decisions: tuple[Entry, ...]
    intervals: tuple[Interval, ...]
    interval_s: float

    @property
    def core_hours(self) -> float:
        """Cores of the nodes in use, over the time that they were."""
        starts = [0.0, *(one.end_s for one in self.intervals)]
        return sum(
            one.cores * (one.end_s - start) / 3600
            for one, start in zip(self.intervals, starts, strict=False)
        )

    @property
    def behind(self) -> int:
        """Intervals at whose end input waited."""
        return sum(one.behind for one in self.intervals)

    @property
    def longest_behind(self) -> int:
        """The most intervals in a row."""
        longest = row = 0
        for one in self.intervals:
            row = row + 1 if one.behind else 0
            longest = max(longest, row)
        return longest

    @property
    def moves(self) -> int:
        """Plans that were put in force."""
        return sum(entry.applied for entry in self.decisions)

    def in_a_line(self) -> str:
        """The run in one line."""
        return (
            f"{len(self.decisions)} decisions, {self.moves} moves, "
            f"{self.core_hours:.4g} core-hours; "
            f"behind at the end of {self.behind} of {len(self.intervals)} intervals, "
            f"at most {self.longest_behind} in a row"
        )

    def to_json(self) -> dict[str, Any]:
        """As `headrace simulate --adaptive --json` prints it."""
        came = outcomes(self.decisions)
        return {
            "format": FORMAT,
            "adaptive": {
                "decisions": len(self.decisions),
                "moves": self.moves,
                "core_hours": self.core_hours,
                "intervals": len(self.intervals),
                "behind": self.behind,
                "longest_behind": self.longest_behind,
            },
            "decisions": [asdict(entry) for entry in self.decisions],
            "outcomes": [
                {
                    "at_s": one.entry.at_s,
                    "figure": one.figure,
                    "predicted": one.predicted,
                    "measured": one.measured,
                }
                for one in came
            ],
            "series": [asdict(one) for one in self.intervals],
        }


def simulate_adaptive(
    inputs: Inputs,
    settings: LoopSettings,
    *,
    seconds: float,
    events: Sequence[Event] = (),
    seed: int = 0,
    noise: float = 0.02,
    first: Plan | None = None,
    first_by: By = "headrace",
) -> Adaptive:
    """Let the loop decide for so many simulated seconds, from a first plan on."""
    if not settings.interval_s > 0:
        raise InvalidInput(f"{settings.interval_s:g} s between decisions; more than 0 are needed")
    document = inputs.document.model_copy(update={"plan": None})
    inputs = replace(inputs, document=document)
    if settings.resize:  # with other counts, what a task costs is not what the files say
        rents = document.cluster is None and bool(document.catalog)
        inputs = sizable(Workload(inputs), catalog=rents).inputs
    start = first or plan_first(inputs, replace(settings, by=first_by), seconds, seed)
    world = Simulated(
        Truth(inputs, machines=start.machines), start, seconds, events, seed, noise,
        resizable=settings.resize,
    )  # fmt: skip
    run(world, settings)
    return Adaptive(tuple(world.entries), tuple(world.intervals), settings.interval_s)


def plan_first(inputs: Inputs, settings: LoopSettings, seconds: float, seed: int) -> Plan:
    """The first plan, for the rate at the beginning."""
    workload, catalog = Workload(inputs), inputs.document.catalog
    rents = inputs.document.cluster is None and bool(catalog)
    if rents and not settings.resize:
        raise InvalidInput("the files have a catalog and no cluster: use --resize to rent machines")
    problem = workload.problem(None, {next(iter(catalog)): 1} if rents and catalog else None)
    factor = max(rate_curve(problem, seconds, seed)[0][1], 1e-3)
    if settings.resize:
        return resize(workload, settings, workload.spout_rate * factor)
    return place_within_reach(problem, settings, factor)

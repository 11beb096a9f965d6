"""What has to be transferred, and the steps it is transferred in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import InvalidInput
from headrace.model.arrays import Floats, Ints
from headrace.model.problem import Problem
from headrace.model.ranges import Ranges
from headrace.solve.transfers import longest_line

Name = str | int  # of a node; block redistributions call nodes by their number


@dataclass(frozen=True, eq=False)
class Volumes:
    """What has to go from which node to which, and how long that takes: S sources, R receivers."""

    sources: tuple[Name, ...]
    targets: tuple[Name, ...]
    units: Floats  # [S, R]
    cost: Floats  # [S, R] of all units of a pair, alone: seconds, or units where there is no clock
    unit: str = "MB"
    clock: str = "s"  # what costs are measured in
    notes: tuple[str, ...] = ()  # what was assumed
    ranges: NamedRanges | None = None  # what the units are made of, between two plans

    def __post_init__(self) -> None:
        shape = (len(self.sources), len(self.targets))
        if self.units.shape != shape or self.cost.shape != shape:
            raise InvalidInput(
                f"volumes are {self.units.shape}, costs {self.cost.shape}; "
                f"{shape} sources and targets are named"
            )
        for what, values in (
            (f"volume in {self.unit}", self.units),
            (f"cost in {self.clock}", self.cost),
        ):
            wrong = np.argwhere(~(np.isfinite(values) & (values >= 0)))
            if len(wrong):
                i, j = wrong[0].tolist()
                raise InvalidInput(
                    f"the {what} from {self.sources[i]} to {self.targets[j]} is {values[i, j]:g}; "
                    "it must be 0 or more"
                )
        free = np.argwhere((self.units > 0) & (self.cost <= 0))
        if len(free):
            i, j = free[0].tolist()
            raise InvalidInput(
                f"{self.units[i, j]:g} {self.unit} "
                f"from {self.sources[i]} to {self.targets[j]} cost nothing"
            )

    @cached_property
    def bound(self) -> float:
        """The most any node has to send or to receive, one at a time: nothing is quicker."""
        return longest_line(self.cost)


@dataclass(frozen=True, slots=True, eq=False)
class NamedRanges:
    """The pieces of state behind volumes, and the names that they need to be shown."""

    of: Ranges
    problem: Problem

    def show(self, piece: int) -> KeyRange:
        """A piece by names."""
        r, problem = self.of, self.problem
        c = int(r.component[piece])
        name = problem.components[c]
        return KeyRange(
            name,
            int(r.first[piece]),
            int(r.end[piece]),
            self._task(c, int(r.holder[piece])),
            self._task(c, int(r.taker[piece])),
            problem.nodes[int(r.source[piece])],
            problem.nodes[int(r.target[piece])],
            float(r.mb[piece]),
        )

    def _task(self, component: int, number: int) -> str:
        name = self.problem.components[component]
        return name if self.problem.bare else f"{name}.{number + 1}"

    def list_moving(self) -> list[int]:
        """The pieces that go to another node and hold anything."""
        return np.flatnonzero(self.of.moving & (self.of.mb > 0)).tolist()


class KeyRange(NamedTuple):
    """State that goes from one task to another: the key groups [first, end) of a component.

    State that is not keyed has no groups (0, 0): it goes with its task.
    """

    component: str
    first: int
    end: int
    holder: str
    taker: str
    source: str
    target: str
    mb: float

    def to_json(self) -> dict[str, Any]:
        """As printed by `move --json`."""
        return {
            "component": self.component,
            "groups": [self.first, self.end] if self.end else None,
            "from_task": self.holder,
            "to_task": self.taker,
            "from": self.source,
            "to": self.target,
            "mb": self.mb,
        }


# A tuple: there may be a hundred thousand of them, and it is made three times as quickly.
class Transfer(NamedTuple):
    """So much from one node to another."""

    source: Name
    target: Name
    units: float


@dataclass(frozen=True, slots=True)
class Step:
    """Transfers at the same time, and how long the step lasts."""

    transfers: tuple[Transfer, ...]
    cost: float
    ranges: tuple[KeyRange, ...] = ()  # what exactly, where the scheduler says so


@dataclass(frozen=True, eq=False)
class Moves:
    """Steps one after another; the bound counts what costs count: no makespan is below it."""

    steps: tuple[Step, ...]
    bound: float
    unit: str = "MB"
    clock: str = "s"
    # The same steps where a node also sends to one at a time; None: as the makespan.
    one_port: float | None = None
    notes: tuple[str, ...] = field(default=())

    @cached_property
    def makespan(self) -> float:
        """All steps together."""
        total = math.fsum(step.cost for step in self.steps)
        return self.bound if math.isclose(total, self.bound, rel_tol=1e-12) else total

    @cached_property
    def units(self) -> float:
        """All that is transferred."""
        return math.fsum(transfer.units for step in self.steps for transfer in step.transfers)

    def to_json(self) -> dict[str, Any]:
        """As the contract has it."""
        steps = [
            {
                "transfers": [
                    {"from": t.source, "to": t.target, "units": whole(t.units)}
                    for t in step.transfers
                ],
                "cost": whole(step.cost),
                **({"ranges": [r.to_json() for r in step.ranges]} if step.ranges else {}),
            }
            for step in self.steps
        ]
        report = {
            "makespan": whole(self.makespan),
            "bound": whole(self.bound),
            "one_port": whole(self.one_port or self.makespan),
            "units": whole(self.units),
            "unit": self.unit,
            "clock": self.clock,
            "notes": list(self.notes),
        }
        return {"steps": steps, "report": report}


def whole(number: float) -> float | int:
    """The number, as an int if it is whole."""
    return int(number) if float(number).is_integer() else float(number)


def steps_of(
    volumes: Volumes,
    step: Ints,
    source: Ints,
    target: Ints,
    units: Iterable[float],
    cost: Sequence[float],
) -> tuple[Step, ...]:
    """Steps from parts in the order of their steps; `cost` is per step."""
    grouped: list[list[Transfer]] = [[] for _ in cost]
    for k, i, j, amount in zip(step.tolist(), source.tolist(), target.tolist(), units, strict=True):
        grouped[k].append(Transfer(volumes.sources[i], volumes.targets[j], amount))
    return tuple(Step(tuple(transfers), c) for transfers, c in zip(grouped, cost, strict=True))

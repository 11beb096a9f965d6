"""What `size` and `provision` answer: counts, machines, and the bound of the rate or the cost.

Rates here are absolute: tuples/s summed over the spouts, in the ratio of their `rate`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.model.problem import Assignment, Problem
from headrace.model.workload import Workload


@dataclass(frozen=True, slots=True, eq=False)
class Sized:
    """How many tasks each component gets on the cluster of the file."""

    tasks: Mapping[str, int]
    problem: Problem  # with these counts
    assignment: Assignment | None  # None: the algorithm counts tasks but does not place them
    rate: float  # what the placed tasks sustain; without an assignment, what the counts are for
    bound: float | None = None  # no counts and no placement on this cluster sustain more
    bound_kind: str = ""
    notes: tuple[str, ...] = ()
    workload: Workload = field(kw_only=True)  # as planned: a cost per tuple for every component


@dataclass(frozen=True, slots=True)
class ComponentMachines:
    """The machines of a component: all of one type, each with one of its tasks."""

    type: str
    tasks: int


@dataclass(frozen=True, slots=True, eq=False)
class Provisioned:
    """Which machines to rent, and the tasks on them."""

    machines: Mapping[str, int]  # type -> how many; types of which none is rented are left out
    tasks: Mapping[str, int]
    problem: Problem  # with these counts, on these machines
    assignment: Assignment
    cost: float  # per time unit of the prices
    rate: float
    bound: float | None = None
    bound_of: str = ""  # rate: none is faster within the budget; cost: none as fast is cheaper
    bound_kind: str = ""
    # Only where the machines of every component are of one type.
    components: Mapping[str, ComponentMachines] = field(
        default_factory=dict[str, ComponentMachines]
    )
    steps: int = 0  # improvements made by algorithms that count them
    notes: tuple[str, ...] = ()
    workload: Workload = field(kw_only=True)  # as planned: a cost per tuple for every component

    @property
    def gap(self) -> float | None:
        """Distance of the rate, or the cost, from its bound, as a share of the larger of both."""
        if self.bound is None:
            return None
        value = self.cost if self.bound_of == "cost" else self.rate
        largest = max(abs(value), abs(self.bound))
        return abs(value - self.bound) / largest if largest else 0.0


def round_up(value: float) -> float:
    """The next number above with six digits: short to read in a refusal, and still enough."""
    return _round(value, up=True)


def round_down(value: float) -> float:
    """The next number below with six digits."""
    return _round(value, up=False)


def _round(value: float, *, up: bool) -> float:
    if value <= 0 or not math.isfinite(value):
        return value
    step = 10.0 ** (math.floor(math.log10(value)) - 5)
    whole = value / step
    near = round(whole)
    number = near if abs(whole - near) < 1e-6 else math.ceil(whole) if up else math.floor(whole)
    return float(f"{number * step:.6g}")
